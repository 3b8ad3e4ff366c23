# libfaro.so, libfaro.a and libfaro_c.so: the objects of the modules of the library. tests/release/no_laboratory shows that nothing of
# native/lab is in them.

get_property(modules GLOBAL PROPERTY FARO_LIBRARY_MODULES)
set(objects)
foreach(module IN LISTS modules)
  list(APPEND objects $<TARGET_OBJECTS:${module}>)
endforeach()
if(NOT objects)
  message(FATAL_ERROR "no module has sources: there is nothing to make libfaro of")
endif()

add_library(faro SHARED ${objects})
add_library(faro_static STATIC ${objects})
add_library(faro::faro ALIAS faro)
add_library(faro::faro_static ALIAS faro_static)

# Until 1.0 each minor version may change the ABI.
set_target_properties(faro PROPERTIES VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set_target_properties(faro_static PROPERTIES OUTPUT_NAME faro)
if(NOT FARO_SANITIZE)
  target_link_options(faro PRIVATE -Wl,--no-undefined)
endif()
# A thread that looks up a name, or opens a session, ends by itself: its code must not go before (base/thread.h).
target_link_options(faro PRIVATE -Wl,-z,nodelete)

foreach(library faro faro_static)
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
  target_compile_features(${library} INTERFACE cxx_std_20)
  target_link_libraries(${library} PUBLIC Threads::Threads ${CMAKE_DL_LIBS} PRIVATE OpenSSL::SSL)
  target_include_directories(${library} INTERFACE
                             $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/native/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

# A program with libfaro.a inside may be anywhere: its RUNPATH leads to libfaro_verbs.so.
target_link_options(faro_static INTERFACE
                    "$<INSTALL_INTERFACE:LINKER:-rpath,$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}>")

# libfaro_c.so exports faro/c.h alone, and needs nothing of a system but glibc: OpenSSL and the C++ runtime are inside, the former
# where its static libraries are there. Its version is that of the ABI, FARO_ABI_VERSION, which only grows by what is added.
add_library(faro_c SHARED ${objects})
add_library(faro::faro_c ALIAS faro_c)
set(exports ${PROJECT_SOURCE_DIR}/native/c/exports.map)
set_target_properties(faro_c PROPERTIES VERSION 1.${PROJECT_VERSION} SOVERSION 1 LINKER_LANGUAGE CXX LINK_DEPENDS ${exports})
find_library(FARO_STATIC_SSL libssl.a)
find_library(FARO_STATIC_CRYPTO libcrypto.a)
mark_as_advanced(FARO_STATIC_SSL FARO_STATIC_CRYPTO)
set(ssl OpenSSL::SSL)
if(FARO_STATIC_SSL AND FARO_STATIC_CRYPTO)
  set(ssl ${FARO_STATIC_SSL} ${FARO_STATIC_CRYPTO})
endif()
target_link_libraries(faro_c PRIVATE ${ssl} Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(faro_c INTERFACE
                           $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/native/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_options(faro_c PRIVATE -Wl,--version-script=${exports} -Wl,-z,nodelete)
if(NOT FARO_SANITIZE)
  target_link_options(faro_c PRIVATE -Wl,--no-undefined -static-libstdc++ -static-libgcc)
endif()
