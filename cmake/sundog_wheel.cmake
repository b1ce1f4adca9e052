# What a wheel holds besides the Python files: libsundog.so with the libraries that a bare machine may
# lack beside it, found through $ORIGIN, and the .proto files that sundog/_wire.py reads.
set_target_properties(sundog_shared PROPERTIES
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
# RPATH, not RUNPATH: it also finds what the libraries beside it need.
target_link_options(sundog_shared PRIVATE -Wl,--disable-new-dtags -s)
install(TARGETS sundog_shared LIBRARY DESTINATION sundog COMPONENT python)
file(GLOB protos ${PROJECT_SOURCE_DIR}/core/*.proto)
install(FILES ${protos} DESTINATION sundog/proto COMPONENT python)
install(FILES ${PROJECT_SOURCE_DIR}/python/abi/sundog.h DESTINATION sundog COMPONENT python)
# The files behind the links: a library is looked for by its SONAME.
find_library(sundog_zlib z)
foreach(library IN ITEMS ${Protobuf_LIBRARY_RELEASE} ${Protobuf_LIBRARY} ${Z3_LIBRARY} ${sundog_zlib})
  if(library MATCHES "\\.so$")
    get_filename_component(file ${library} REALPATH)
    execute_process(COMMAND readelf -d ${file} OUTPUT_VARIABLE dynamic)
    string(REGEX MATCH "soname: \\[([^]]+)\\]" _ "${dynamic}")
    if(CMAKE_MATCH_1)
      install(PROGRAMS ${file} DESTINATION sundog RENAME ${CMAKE_MATCH_1} COMPONENT python)
    endif()
  endif()
endforeach()
