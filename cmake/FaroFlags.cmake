# How faro's own sources are compiled. Everything here is private to them: a user of the library gets the include folder,
# C++20 and threads, and nothing else.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # one set of objects for libfaro.so, libfaro.a, tests and the command
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(faro_is_top_level)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  set(CMAKE_BUILD_RPATH ${PROJECT_BINARY_DIR}/lib)  # where programs of this tree find plug-ins
endif()

# Release is CMake's own -O3 -DNDEBUG. No -march: the library has to run on every processor of its architecture.
add_library(faro_flags INTERFACE)
target_compile_options(faro_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
if(FARO_WERROR)
  target_compile_options(faro_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports it inside std::string's operator+ (gcc bug 105651).
  target_compile_options(faro_flags INTERFACE -Wno-restrict)
endif()
# Standard-library assertions wherever ours are on.
target_compile_definitions(faro_flags INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)

if(FARO_SANITIZE)
  if(NOT FARO_SANITIZE MATCHES "^(address|undefined|address,undefined|thread)$")
    message(FATAL_ERROR "FARO_SANITIZE=${FARO_SANITIZE}: expected address, undefined, address,undefined or thread")
  endif()
  add_compile_options(-fsanitize=${FARO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FARO_SANITIZE})
  # For tests and command: which sanitizer they run under (a test may need fewer rounds).
  string(REPLACE "," ";" sanitizers ${FARO_SANITIZE})
  foreach(sanitizer IN LISTS sanitizers)
    string(TOUPPER ${sanitizer} upper)
    target_compile_definitions(faro_flags INTERFACE FARO_SANITIZE_${upper}=1)
  endforeach()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code gives g++ false positives here.
    target_compile_options(faro_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

if(FARO_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # what has been reached guides libFuzzer
endif()

# Beside them for what is compiled more often than it runs: the command line, some sources of modules (COLD_SOURCES), and tests.
# Instrumented, nothing of it is measured or shipped, and -Og takes g++ half as long as -O1. Test programs of the release build are
# not measured either.
add_library(faro_cold_flags INTERFACE)
add_library(faro_test_flags INTERFACE)
if(FARO_SANITIZE)
  target_compile_options(faro_cold_flags INTERFACE -Og)
  target_compile_options(faro_test_flags INTERFACE -Og)
else()
  target_compile_options(faro_cold_flags INTERFACE $<$<CONFIG:Release>:-O1>)
  target_compile_options(faro_test_flags INTERFACE $<$<CONFIG:Release>:-Og>)
endif()
