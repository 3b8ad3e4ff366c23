# For `./run release`: zig's clang and C++ runtime, and glibc's symbols as they were in the version of common.sh. What is used
# beside them is in build/release-sysroot-<processor> alone. -DFARO_PROCESSOR=x86_64 or aarch64.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FARO_PROCESSOR)
cmake_path(SET project NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../..)
set(commands ${project}build/release-tools/bin-${FARO_PROCESSOR})
set(sysroot ${project}build/release-sysroot-${FARO_PROCESSOR})

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${FARO_PROCESSOR})
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # to link, zig would build a C++ runtime without optimisation for it
set(CMAKE_CXX_COMPILER ${commands}/zig-c++)
set(CMAKE_AR ${commands}/zig-ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${commands}/zig-ranlib CACHE FILEPATH "")

set(CMAKE_FIND_ROOT_PATH ${sysroot})
set(CMAKE_LIBRARY_ARCHITECTURE ${FARO_PROCESSOR}-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(OPENSSL_USE_STATIC_LIBS ON)

# No path of this machine in what is made, nor a place to look for libraries.
set(CMAKE_SKIP_RPATH ON)
# Optimised and stripped from the first check on: zig builds a C++ runtime for each kind of program that is linked.
set(CMAKE_CXX_FLAGS_INIT "-O3 -s -ffunction-sections -fdata-sections")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Wl,--gc-sections -Wl,--as-needed -Wl,--build-id=sha1")
endforeach()

# What __builtin_cpu_supports asks is not in zig's runtime, but in libgcc, as an object of its own.
if(FARO_PROCESSOR STREQUAL "x86_64")
  set(CMAKE_CXX_STANDARD_LIBRARIES_INIT ${project}build/release-tools/libgcc/cpuinfo.o)
endif()

# How zig is told to compile a header ahead (FARO_PRECOMPILE); CMake knows clang's own way alone.
set(CMAKE_USER_MAKE_RULES_OVERRIDE_CXX ${CMAKE_CURRENT_LIST_DIR}/precompile.cmake)
