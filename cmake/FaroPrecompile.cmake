# faro_precompile(<target> [COLD]): the headers that nearly every source includes are read once, for all libraries, and for all
# test programs, if FARO_PRECOMPILE is on. It shortens a build that has nothing in a cache. Presets without it (debug, aarch64)
# compile each source with what it includes, and nothing else.
set(precompiled <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <functional> <memory> <mutex> <optional> <span>
                <string> <string_view> <thread> <utility> <vector> <fmt/format.h>)

add_library(faro_precompiled_flags INTERFACE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # For ccache; and against false positives inside std::string, of which g++ 12 has more with precompiled headers.
  target_compile_options(faro_precompiled_flags INTERFACE
                         -fpch-preprocess -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()

# g++ takes headers only where they were precompiled with the same flags: for libraries, also cold ones, and for programs.
if(FARO_PRECOMPILE)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "int main() { return 0; }\n")
  foreach(name library cold_library)
    add_library(faro_precompiled_${name} STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cc)
    target_link_libraries(faro_precompiled_${name} PRIVATE faro_flags faro_precompiled_flags faro::fmt Threads::Threads)
    target_precompile_headers(faro_precompiled_${name} PRIVATE ${precompiled})
  endforeach()
  target_link_libraries(faro_precompiled_cold_library PRIVATE faro_cold_flags)
  if(FARO_BUILD_TESTS AND NOT FARO_FUZZ)
    find_package(GTest REQUIRED)
    add_executable(faro_precompiled_test EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cc)
    target_link_libraries(faro_precompiled_test
                          PRIVATE faro_flags faro_test_flags faro_precompiled_flags faro::fmt Threads::Threads GTest::gtest)
    target_precompile_headers(faro_precompiled_test PRIVATE ${precompiled} <deque> <fstream> <map> <gtest/gtest.h>)
  endif()
endif()

function(faro_precompile target)
  if(NOT FARO_PRECOMPILE)
    return()
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set(from faro_precompiled_test)
  elseif("COLD" IN_LIST ARGN)
    set(from faro_precompiled_cold_library)
  else()
    set(from faro_precompiled_library)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${from})
  target_link_libraries(${target} PRIVATE faro_precompiled_flags)
endfunction()

# faro_unite(<target>): its sources are compiled eight at a time, as one, if FARO_UNITY is on. It shortens a build that has
# nothing in a cache. Presets without it (debug, aarch64) show that each source compiles alone. What is anonymous in one source
# must have another name in the next one of the folder; a source that cannot be compiled with others has the property
# SKIP_UNITY_BUILD_INCLUSION.
function(faro_unite target)
  if(FARO_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()
