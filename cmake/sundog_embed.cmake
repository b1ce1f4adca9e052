# sundog_embed(TARGET SYMBOL FILE [NAMESPACE n]): makes the text of FILE (relative to the project root)
# a constant of TARGET.  Declare it where it is used:
#
#   namespace sundog::codegen { extern const std::string_view SYMBOL; }  # or the namespace given
#
# The constant follows the file at every build.
function(sundog_embed target symbol file)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "NAMESPACE" "")
  if(NOT arg_NAMESPACE)
    set(arg_NAMESPACE sundog::codegen)
  endif()
  set(source ${PROJECT_SOURCE_DIR}/${file})
  set(generated ${CMAKE_BINARY_DIR}/embedded/${symbol}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/write_embedded.cmake)
  add_custom_command(
    OUTPUT ${generated}
    COMMAND ${CMAKE_COMMAND} -DSYMBOL=${symbol}
            -DNAMESPACE=${arg_NAMESPACE} -DINPUT=${source} -DOUTPUT=${generated} -P ${script}
    DEPENDS ${source} ${script}
    COMMENT "Embedding ${file}"
    VERBATIM)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    target_sources(${target} INTERFACE ${generated})
  else()
    target_sources(${target} PRIVATE ${generated})
  endif()
endfunction()
