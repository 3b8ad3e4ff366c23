# faro_fuzz_target: one target for fuzzing, fuzz_<NAME>, of <NAME>_fuzz.cc and corpus/<NAME>.
#
#   faro_fuzz_target(NAME ring
#                    MODULES ring)   # modules under test; what they depend on comes along
#
# With FARO_FUZZ it is a program of libFuzzer. Else it is one that runs over files, and the ctest test
# fuzz.<NAME>.holds_for_its_corpus, which counts as a unit test, gives it the corpus.
function(faro_fuzz_target)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "MODULES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_MODULES)
    message(FATAL_ERROR "faro_fuzz_target: NAME and MODULES are needed; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(target fuzz_${arg_NAME})
  list(TRANSFORM arg_MODULES PREPEND faro_)
  add_executable(${target} ${arg_NAME}_fuzz.cc)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE faro_flags faro_cold_flags ${arg_MODULES})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
  if(FARO_FUZZ)
    target_sources(${target} PRIVATE libfuzzer_entry.cc)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_link_libraries(${target} PRIVATE fuzz_replay)
  add_dependencies(tests_unit ${target})
  set(test fuzz.${arg_NAME}.holds_for_its_corpus)
  add_test(NAME ${test} COMMAND ${target} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${arg_NAME})
  set_tests_properties(${test} PROPERTIES LABELS unit TIMEOUT 60)
endfunction()
