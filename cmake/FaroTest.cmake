# faro_test: one test program.
#
#   faro_test(NAME ring_test
#             SOURCES ring_test.cc
#             MODULES ring               # modules under test; what they depend on comes along
#             TIMEOUT 60)                # seconds for each test case; this is the default
#   and if needed
#             FULL "part_[2-9]"          # cases whose names match have the label `full`, too: ./run test leaves them out; "." is all of
#                                        # them: it does not build the program, either
#             LONG "of_[0-9]+_nodes"     # cases whose names match have the label `long`: ./run test --full leaves them out
#             LINK nlohmann_json::nlohmann_json
#             PROCESSORS 2               # it keeps more than one processor busy
#             COST 100                   # a case takes long: begin with it where no earlier run has told how long
#             RUN_SERIAL                 # nothing else may run beside it
#
# Each test case is one ctest test, so that a hang costs one case and the report names it. A case that is skipped is
# reported as skipped. Test programs can include what stands in tests/ ("support/...") and find the programs faro and
# faro-lab at FARO_COMMAND_PATH and FARO_LAB_PATH (strings; programs in tests/system only).

find_package(GTest REQUIRED)
include(GoogleTest)

# Adds tests/<folder>, which must exist. The target tests_<folder> builds the programs of that folder.
function(faro_add_test_folder folder)
  add_custom_target(tests_${folder})
  add_subdirectory(${PROJECT_SOURCE_DIR}/tests/${folder} ${PROJECT_BINARY_DIR}/tests/${folder})
endfunction()

# faro_test_library(NAME test_support SOURCES ... MODULES ...): what several test programs share; they name it in LINK.
function(faro_test_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;MODULES;LINK")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES)
    message(FATAL_ERROR "faro_test_library: NAME and SOURCES are needed; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  add_library(${arg_NAME} STATIC ${arg_SOURCES})
  list(TRANSFORM arg_MODULES PREPEND faro_)
  target_include_directories(${arg_NAME} PUBLIC ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${arg_NAME} PUBLIC ${arg_MODULES} ${arg_LINK} GTest::gtest PRIVATE faro_flags faro_cold_flags)
  faro_precompile(${arg_NAME} COLD)
  faro_unite(${arg_NAME})
endfunction()

function(faro_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "RUN_SERIAL" "NAME;TIMEOUT;PROCESSORS;COST;FULL;LONG" "SOURCES;MODULES;LINK")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES)
    message(FATAL_ERROR "faro_test: NAME and SOURCES are needed; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(timeout 60)
  if(arg_TIMEOUT)
    set(timeout ${arg_TIMEOUT})
  endif()
  set(processors 1)
  if(arg_PROCESSORS)
    set(processors ${arg_PROCESSORS})
  endif()

  list(TRANSFORM arg_MODULES PREPEND faro_)
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_include_directories(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${arg_NAME} PRIVATE faro_flags faro_test_flags ${arg_MODULES} ${arg_LINK} GTest::gtest GTest::gtest_main)
  faro_precompile(${arg_NAME})
  faro_unite(${arg_NAME})
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
  if(NOT arg_FULL STREQUAL ".")
    add_dependencies(tests_${folder} ${arg_NAME})
  endif()
  if(folder STREQUAL "system" AND FARO_BUILD_COMMAND)
    target_compile_definitions(${arg_NAME} PRIVATE FARO_COMMAND_PATH="$<TARGET_FILE:faro_command>"
                               FARO_LAB_PATH="$<TARGET_FILE:faro_lab>")
    add_dependencies(${arg_NAME} faro_command faro_lab)
  endif()

  set(properties TIMEOUT ${timeout} PROCESSORS ${processors} LABELS ${folder})
  if(arg_COST)
    list(APPEND properties COST ${arg_COST})
  endif()
  if(arg_RUN_SERIAL)
    list(APPEND properties RUN_SERIAL TRUE)
  endif()
  # NO_PRETTY_VALUES: a case with a parameter is called by the name its suite gives it, never by the parameter's bytes.
  gtest_discover_tests(${arg_NAME} TEST_PREFIX ${folder}. NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       TEST_LIST ${arg_NAME}_cases PROPERTIES ${properties})
  if(arg_FULL OR arg_LONG)
    # gtest_discover_tests() has one list of properties for all cases of a program: this is set where ctest knows their names.
    set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}_labels.cmake)
    file(CONFIGURE OUTPUT ${labels_file} @ONLY CONTENT "
foreach(case IN LISTS @arg_NAME@_cases)
  if(NOT \"@arg_LONG@\" STREQUAL \"\" AND case MATCHES \"@arg_LONG@\")
    set_tests_properties(\${case} PROPERTIES LABELS \"@folder@;long\")
  elseif(NOT \"@arg_FULL@\" STREQUAL \"\" AND case MATCHES \"@arg_FULL@\")
    set_tests_properties(\${case} PROPERTIES LABELS \"@folder@;full\")
  endif()
endforeach()
")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
  endif()
endfunction()
