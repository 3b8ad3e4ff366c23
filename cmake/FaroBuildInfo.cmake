# The pseudo-module build_info, for bench and command: `DEPENDS build_info` gives "build_info/build_info.h".
# Not for a module of libfaro: whatever includes it is compiled again with every commit.
set(build_info_dir ${PROJECT_BINARY_DIR}/module_includes/build_info)
set(build_info_header ${build_info_dir}/build_info/build_info.h)
add_custom_target(faro_write_build_info BYPRODUCTS ${build_info_header}
                  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${build_info_header} -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
                          -DVERSION=${PROJECT_VERSION} -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
                          "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
                          -P ${CMAKE_CURRENT_LIST_DIR}/build_info.cmake
                  COMMENT "" VERBATIM)
add_library(faro_build_info INTERFACE)
target_include_directories(faro_build_info INTERFACE ${build_info_dir})
add_dependencies(faro_build_info faro_write_build_info)
