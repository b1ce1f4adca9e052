# Libraries and tools are folders: every .cpp below one belongs to it, so a new file needs no edit here.

# sundog_sources(OUT FOLDER): every .cpp below FOLDER; the list is looked up again at each build.
function(sundog_sources out folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  list(SORT sources)
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# sundog_library(FOLDER DEPS ...): the static, position-independent library sundog_FOLDER.  While the
# folder is empty it is an INTERFACE library, so that its users configure all the same.
function(sundog_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS")
  sundog_sources(sources ${folder})
  if(sources)
    add_library(sundog_${folder} STATIC ${sources})
    target_link_libraries(sundog_${folder} PUBLIC ${arg_DEPS} PRIVATE $<BUILD_INTERFACE:sundog_warnings>)
    target_include_directories(sundog_${folder} PUBLIC ${PROJECT_SOURCE_DIR})
    if(SUNDOG_SANITIZE)
      sundog_precompile(sundog_${folder})
    endif()
  else()
    add_library(sundog_${folder} INTERFACE)
    target_link_libraries(sundog_${folder} INTERFACE ${arg_DEPS})
    target_include_directories(sundog_${folder} INTERFACE ${PROJECT_SOURCE_DIR})
  endif()
endfunction()

# sundog_tool(FOLDER NAME n DEPS ...): the executable n.  Everything but main.cpp is a library of its
# own (sundog_FOLDER), which the tests link.
function(sundog_tool folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME" "DEPS")
  sundog_sources(sources ${folder})
  set(main ${PROJECT_SOURCE_DIR}/${folder}/main.cpp)
  list(REMOVE_ITEM sources ${main})
  if(sources)
    add_library(sundog_${folder} STATIC ${sources})
    target_link_libraries(sundog_${folder} PUBLIC ${arg_DEPS} PRIVATE $<BUILD_INTERFACE:sundog_warnings>)
    target_include_directories(sundog_${folder} PUBLIC ${PROJECT_SOURCE_DIR})
    if(SUNDOG_SANITIZE)
      sundog_precompile(sundog_${folder})
    endif()
  else()
    add_library(sundog_${folder} INTERFACE)
    target_link_libraries(sundog_${folder} INTERFACE ${arg_DEPS})
    target_include_directories(sundog_${folder} INTERFACE ${PROJECT_SOURCE_DIR})
  endif()
  file(GLOB has_main CONFIGURE_DEPENDS ${main})
  if(has_main)
    add_executable(${arg_NAME} ${main})
    target_link_libraries(${arg_NAME} PRIVATE sundog_${folder} sundog_warnings)
  endif()
endfunction()

# sundog_shared(FOLDER NAME n DEPS ...): libn.so of the folder's sources.  Only what the
# version script beside them lists is visible: the static libraries inside stay private.
function(sundog_shared folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME" "DEPS")
  sundog_sources(sources ${folder})
  if(NOT sources)
    return()
  endif()
  set(exports ${PROJECT_SOURCE_DIR}/${folder}/exports.map)
  add_library(${arg_NAME}_shared SHARED ${sources})
  target_link_libraries(${arg_NAME}_shared PRIVATE ${arg_DEPS} sundog_warnings)
  target_link_options(${arg_NAME}_shared PRIVATE -Wl,--exclude-libs,ALL
    -Wl,--version-script,${exports} -Wl,--gc-sections -Wl,--no-undefined)
  set_target_properties(${arg_NAME}_shared PROPERTIES
    OUTPUT_NAME ${arg_NAME} CXX_VISIBILITY_PRESET hidden LINK_DEPENDS ${exports})
endfunction()
