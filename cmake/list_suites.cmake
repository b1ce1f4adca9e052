# Read by ctest as it starts: registers each suite of the GoogleTest binary BINARY of tests/FOLDER.
if(NOT EXISTS ${BINARY})
  add_test(${FOLDER}.not_built ${BINARY})  # fails, as it should
  return()
endif()
execute_process(COMMAND ${BINARY} --gtest_list_tests
  OUTPUT_VARIABLE listing RESULT_VARIABLE status ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(STATUS "${BINARY} cannot list its tests: ${errors}")
  add_test(${FOLDER}.cannot_list ${BINARY} --gtest_list_tests)
  return()
endif()

# A suite stands at the start of a line and ends in a dot; its cases are indented below it.
string(REGEX MATCHALL "(^|\n)[A-Za-z_][A-Za-z0-9_/]*\\." suites "${listing}")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "[\n.]" "" suite "${suite}")
  add_test(${FOLDER}.${suite} ${BINARY} --gtest_brief=1 --gtest_filter=${suite}.*)
  set(labels ${FOLDER})
  if(suite MATCHES "Slow")
    list(APPEND labels slow)
  endif()
  set_tests_properties(${FOLDER}.${suite} PROPERTIES LABELS "${labels}" TIMEOUT 600)
endforeach()
