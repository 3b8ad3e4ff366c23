# `cmake --install`: headers, the libraries, the CMake package, the pkg-config files and the program `faro`.
# The target faro_installed builds all of it, and nothing else (`./run install`). tests/release/installed shows that nothing of
# native/lab is among it.

include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/native/include/faro DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

add_custom_target(faro_installed DEPENDS faro faro_static faro_c)
if(FARO_BUILD_COMMAND)
  install(TARGETS faro_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  add_dependencies(faro_installed faro_command)
  # Only where it is asked for: cmake --build <folder> --target faro_lab && cmake --install <folder> --component laboratory
  install(TARGETS faro_lab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT laboratory EXCLUDE_FROM_ALL)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/faro)
install(TARGETS faro faro_static faro_c EXPORT faro_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT faro_targets NAMESPACE faro:: FILE faro-targets.cmake DESTINATION ${package_dir})
get_property(plugins GLOBAL PROPERTY FARO_PLUGINS)
if(plugins)
  install(TARGETS ${plugins} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  add_dependencies(faro_installed ${plugins})
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/faro-config.cmake.in
                              ${PROJECT_BINARY_DIR}/faro-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/faro-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/faro-config.cmake ${PROJECT_BINARY_DIR}/faro-config-version.cmake
        DESTINATION ${package_dir})

# The prefix is found from the place of the .pc, so that an installed tree can be moved.
file(RELATIVE_PATH faro_pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(pc faro.pc faro_c.pc)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${pc}.in ${PROJECT_BINARY_DIR}/${pc} @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/faro.pc ${PROJECT_BINARY_DIR}/faro_c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
