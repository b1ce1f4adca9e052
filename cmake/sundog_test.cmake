# sundog_test_folder(FOLDER DEPS ... [TOOL]): one GoogleTest binary FOLDER_test of every .cpp below
# tests/FOLDER.  With TOOL the tests run the sundog executable (compile definition SUNDOG_TOOL).
#
# ctest sees one entry for each test suite, named FOLDER.Suite and labelled FOLDER: suites run in
# parallel, and a suite may set up something costly once for its cases.  A suite whose name contains
# "Slow" is also labelled slow, which the sanitizer pass leaves out.  The suites are asked of the
# binary when ctest starts (list_suites.cmake), so a build does not run it.
function(sundog_test_folder folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TOOL" "" "DEPS")
  sundog_sources(sources tests/${folder})
  if(NOT sources)
    return()
  endif()
  set(target ${folder}_test)
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE ${arg_DEPS} sundog_warnings GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE SUNDOG_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # A test's own code runs once: what optimizing it further takes is never won back.
  target_compile_options(${target} PRIVATE -O1)
  sundog_precompile(${target} <gtest/gtest.h>)
  if(arg_TOOL AND TARGET sundog)
    add_dependencies(${target} sundog)
    target_compile_definitions(${target} PRIVATE SUNDOG_TOOL="$<TARGET_FILE:sundog>")
  endif()

  set(include_file ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
  file(WRITE ${include_file} "set(FOLDER ${folder})
set(BINARY ${CMAKE_BINARY_DIR}/${target})
include(${PROJECT_SOURCE_DIR}/cmake/list_suites.cmake)
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include_file})
endfunction()
