# faro_plugin: a transport that is a library of its own, loaded at run time (native/transport/plugin/plugin.h).
#
#   faro_plugin(NAME transport_verbs       # makes libfaro_verbs.so ...
#               LIBRARY faro_verbs
#               SOURCES ...  DEPENDS ...   # ... with the modules below linked into it, as far as it uses them
#               LINK rdma::verbs)          # third-party, also used in its headers
#
# Its objects are in the static library faro_<NAME> for tests, and never in libfaro.

# What both sides share: a library that was compiled with other interfaces is refused when it is loaded.
file(GLOB interface_headers CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/native/include/faro/*.h ${PROJECT_SOURCE_DIR}/native/include/faro/*.def
     ${PROJECT_SOURCE_DIR}/native/include/faro/detail/*.h ${PROJECT_SOURCE_DIR}/native/base/*.h ${PROJECT_SOURCE_DIR}/native/base/*.def
     ${PROJECT_SOURCE_DIR}/native/wire/*.h ${PROJECT_SOURCE_DIR}/native/ring/*.h ${PROJECT_SOURCE_DIR}/native/transport/*.h
     ${PROJECT_SOURCE_DIR}/native/transport/plugin/*.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${interface_headers})
set(hashes)
foreach(header IN LISTS interface_headers)
  file(SHA256 ${header} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 12 hash)
set(faro_plugin_build "${PROJECT_VERSION}-${hash}-${CMAKE_CXX_COMPILER_ID}${CMAKE_CXX_COMPILER_VERSION}-${CMAKE_BUILD_TYPE}${FARO_SANITIZE}")

function(faro_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;LIBRARY" "SOURCES;COLD_SOURCES;DEPENDS;LINK")
  faro_module(NAME ${arg_NAME} PLUGIN SOURCES ${arg_SOURCES} COLD_SOURCES ${arg_COLD_SOURCES}
              DEPENDS ${arg_DEPENDS} LINK ${arg_LINK})
  target_compile_definitions(faro_${arg_NAME} PRIVATE "FARO_PLUGIN_BUILD=\"${faro_plugin_build}\"")
  add_library(${arg_LIBRARY} MODULE $<TARGET_OBJECTS:faro_${arg_NAME}>)
  set_target_properties(${arg_LIBRARY} PROPERTIES LINKER_LANGUAGE CXX)
  # Symbols of the modules below stay inside: the library has only one name to show.
  target_link_libraries(${arg_LIBRARY} PRIVATE faro_${arg_NAME})
  set(exports ${PROJECT_SOURCE_DIR}/cmake/plugin_exports.map)
  target_link_options(${arg_LIBRARY} PRIVATE -Wl,--version-script=${exports})
  set_target_properties(${arg_LIBRARY} PROPERTIES LINK_DEPENDS ${exports})
  if(NOT FARO_SANITIZE)
    target_link_options(${arg_LIBRARY} PRIVATE -Wl,--no-undefined)
  endif()
  set_property(GLOBAL APPEND PROPERTY FARO_PLUGINS ${arg_LIBRARY})
endfunction()
