# sundog_test_folder(FOLDER DEPS ...): one GoogleTest binary FOLDER_test of tests/FOLDER/**/*_test.cpp,
# beside whatever other .cpp files lie there to help them.
#
# ctest sees it as FOLDER.0, FOLDER.1, ... : GoogleTest's own sharding spreads the cases over them, so
# that they run in parallel without a test discovery step at each build.  A test suite whose name
# begins with "Slow" is left out of these and runs in FOLDER.slow (label slow), which the sanitizer
# pass skips.
set(SUNDOG_TEST_SHARDS 4 CACHE STRING "ctest entries a test folder is spread over")

function(sundog_test_folder folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS")
  sundog_sources(sources tests/${folder})
  if(NOT sources)
    return()
  endif()
  add_executable(${folder}_test ${sources})
  target_link_libraries(${folder}_test PRIVATE ${arg_DEPS} sundog_warnings GTest::gtest GTest::gtest_main)
  target_compile_definitions(${folder}_test PRIVATE SUNDOG_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(TARGET sundog)
    # The tests of a folder may run the tool itself.
    add_dependencies(${folder}_test sundog)
    target_compile_definitions(${folder}_test PRIVATE SUNDOG_TOOL="$<TARGET_FILE:sundog>")
  endif()

  math(EXPR last "${SUNDOG_TEST_SHARDS} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${folder}.${shard} COMMAND ${folder}_test --gtest_brief=1 --gtest_filter=-*Slow*)
    set_tests_properties(${folder}.${shard} PROPERTIES
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${SUNDOG_TEST_SHARDS};GTEST_SHARD_INDEX=${shard}"
      LABELS ${folder} TIMEOUT 300)
  endforeach()
  add_test(NAME ${folder}.slow COMMAND ${folder}_test --gtest_brief=1 --gtest_filter=*Slow*)
  set_tests_properties(${folder}.slow PROPERTIES LABELS "${folder};slow" TIMEOUT 900)
endfunction()
