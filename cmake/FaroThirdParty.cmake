# What faro is built with. All but OpenSSL and RDMA is used header-only, so nothing of it reaches the users of the
# installed library, and public headers must not include any of it (check_headers refuses that).
#
#   rdma::verbs                  <infiniband/verbs.h>, <rdma/rdma_cma.h>: libibverbs and librdmacm, for libfaro_verbs.so
#                                only; the target is missing where they are
#   OpenSSL::Crypto, ::SSL       <openssl/...>: the shared libcrypto and libssl, so that their corrections come with the system
#   faro::fmt                    <fmt/...>, compiled once, in native/base/fmt_library.cc
#   atomic_queue::atomic_queue   <atomic_queue/atomic_queue.h>
#   tomlplusplus::tomlplusplus   <toml++/toml.h>
#   xxhash::xxhash               <xxhash.h>, inlined
#   CLI11::CLI11                 <CLI/CLI.hpp>            only with FARO_BUILD_COMMAND
#   nlohmann_json::nlohmann_json <nlohmann/json.hpp>      only with FARO_BUILD_COMMAND or FARO_BUILD_TESTS

find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto SSL)

# Packages without a CMake file, or with one that links a shared library.
function(faro_header_only target header package)
  if(TARGET ${target})
    return()
  endif()
  string(MAKE_C_IDENTIFIER "FARO_${package}_INCLUDE_DIR" variable)
  find_path(${variable} ${header})
  mark_as_advanced(${variable})
  if(NOT ${variable})
    message(FATAL_ERROR "<${header}> not found: install ${package} (packages.txt lists all)")
  endif()
  add_library(${target} INTERFACE IMPORTED)
  set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${${variable}}")
endfunction()
faro_header_only(faro::fmt fmt/format.h libfmt-dev)
faro_header_only(atomic_queue::atomic_queue atomic_queue/atomic_queue.h libatomic-queue-dev)
faro_header_only(tomlplusplus::tomlplusplus toml++/toml.h libtomlplusplus-dev)
faro_header_only(xxhash::xxhash xxhash.h libxxhash-dev)
set_target_properties(xxhash::xxhash PROPERTIES INTERFACE_COMPILE_DEFINITIONS XXH_INLINE_ALL)

if(FARO_BUILD_COMMAND)
  find_package(CLI11 REQUIRED)
endif()
if(FARO_BUILD_COMMAND OR FARO_BUILD_TESTS)
  find_package(nlohmann_json REQUIRED)
endif()

find_path(FARO_VERBS_INCLUDE_DIR infiniband/verbs.h)
find_path(FARO_RDMACM_INCLUDE_DIR rdma/rdma_cma.h)
find_library(FARO_VERBS_LIBRARY ibverbs)
find_library(FARO_RDMACM_LIBRARY rdmacm)
mark_as_advanced(FARO_VERBS_INCLUDE_DIR FARO_RDMACM_INCLUDE_DIR FARO_VERBS_LIBRARY FARO_RDMACM_LIBRARY)
if(FARO_VERBS_INCLUDE_DIR AND FARO_RDMACM_INCLUDE_DIR AND FARO_VERBS_LIBRARY AND FARO_RDMACM_LIBRARY)
  add_library(rdma::verbs INTERFACE IMPORTED)
  set_target_properties(rdma::verbs PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${FARO_VERBS_INCLUDE_DIR};${FARO_RDMACM_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${FARO_RDMACM_LIBRARY};${FARO_VERBS_LIBRARY}")
endif()
