# Fails unless every ctest name consists of words, so that it stays the same from build to build and can be given to
# `ctest -R`: cmake -DCTEST=<ctest> -DBUILD_DIR=<build folder> -P check_test_names.cmake

# In a folder of its own: in the build folder it would end the log of the ctest that runs this.
set(folder ${BUILD_DIR}/Testing/names)
file(WRITE ${folder}/CTestTestfile.cmake "subdirs(\"${BUILD_DIR}\")\n")
execute_process(COMMAND ${CTEST} --test-dir ${folder} -N OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "Test +#[0-9]+: [^\n]*" tests "${listing}")
list(LENGTH tests count)
if(count EQUAL 0)
  message(FATAL_ERROR "ctest knows no test in ${BUILD_DIR}")
endif()
set(bad)
foreach(test IN LISTS tests)
  string(REGEX REPLACE "^Test +#[0-9]+: " "" name "${test}")
  if(NOT name MATCHES "^[A-Za-z0-9_./]+$")
    string(APPEND bad "\n  ${name}")
  endif()
endforeach()
if(bad)
  message(FATAL_ERROR "these tests are not called by words (a suite with parameters needs a name for each):${bad}")
endif()
