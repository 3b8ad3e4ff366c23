# faro_module: one folder of native/ as one CMake target.
#
#   faro_module(NAME ring
#               SOURCES producer.cc consumer.cc     # none: a module of headers only
#               COLD_SOURCES layout.cc              # those that run so seldom that compiling them quickly is worth more
#               DEPENDS base wire                   # modules below; theirs come along
#               LINK faro::fmt           # third-party, used in the module's headers
#               PRIVATE_LINK xxhash::xxhash)        # third-party, used in its .cc files only
#
# It makes the static library faro_<NAME>. All of them together are libfaro (cmake/FaroLibrary.cmake), except those in
# native/lab, which faro-lab and tests link, and plugins. The folder below native/ is the include path: native/ring/producer.h is
# `#include "ring/producer.h"`, native/transport/shm/shm_setup.h is `#include "transport/shm/shm_setup.h"`.
#
# How the layer rule is enforced. If the include path were native/, every module could include every other. So each
# module has a folder of its own in the build tree that holds links to *its* headers and nothing else:
#
#   <build>/module_includes/ring/ring/producer.h                        -> native/ring/producer.h
#   <build>/module_includes/transport/transport/transport.h             -> native/transport/transport.h
#   <build>/module_includes/transport_shm/transport/shm/shm_setup.h     -> native/transport/shm/shm_setup.h
#
# and exports only that. The links are per header, not per folder, because a link to native/transport would show
# transport/shm to everyone. The public headers, native/include, are visible to every module.
#
# A new header is picked up by the next build by itself; a new .cc is added to SOURCES.

# Public headers and nothing else.
add_library(faro_headers INTERFACE)
target_include_directories(faro_headers INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/native/include>)

define_property(GLOBAL PROPERTY FARO_LIBRARY_MODULES BRIEF_DOCS "Targets whose objects make libfaro"
                FULL_DOCS "Every module that has sources and is neither in native/lab nor a plugin.")

# Adds native/<folder>, which must exist: a module that went missing must not look like one that passed.
function(faro_add_module_folder folder)
  add_subdirectory(${PROJECT_SOURCE_DIR}/native/${folder} ${PROJECT_BINARY_DIR}/native/${folder})
endfunction()

# Makes <out_dir>/<folder>/x.h a link to each header (.h, and .def for lists) of the current source folder; removes the
# links of headers that went.
function(faro_link_headers out_dir folder)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h ${CMAKE_CURRENT_SOURCE_DIR}/*.def)
  file(GLOB links LIST_DIRECTORIES false ${out_dir}/${folder}/*)
  file(MAKE_DIRECTORY ${out_dir}/${folder})
  foreach(header IN LISTS headers)
    get_filename_component(file ${header} NAME)
    list(REMOVE_ITEM links ${out_dir}/${folder}/${file})
    if(NOT IS_SYMLINK ${out_dir}/${folder}/${file})
      file(CREATE_LINK ${header} ${out_dir}/${folder}/${file} SYMBOLIC)
    endif()
  endforeach()
  if(links)
    file(REMOVE ${links})
  endif()
endfunction()

function(faro_module)
  cmake_parse_arguments(PARSE_ARGV 0 arg "PLUGIN" "NAME" "SOURCES;COLD_SOURCES;DEPENDS;LINK;PRIVATE_LINK")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME)
    message(FATAL_ERROR "faro_module: NAME is needed; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/native ${CMAKE_CURRENT_SOURCE_DIR})

  set(dependencies faro_headers ${arg_LINK})
  foreach(dependency IN LISTS arg_DEPENDS)
    if(NOT TARGET faro_${dependency})
      message(FATAL_ERROR "native/${folder} depends on ${dependency}, which is not below it (list of modules in the "
                          "top-level CMakeLists.txt)")
    endif()
    list(APPEND dependencies faro_${dependency})
  endforeach()

  set(target faro_${arg_NAME})
  set(include_dir ${PROJECT_BINARY_DIR}/module_includes/${arg_NAME})
  faro_link_headers(${include_dir} ${folder})
  if(arg_SOURCES)
    set(targets ${target})
    add_library(${target} STATIC ${arg_SOURCES})
    if(arg_COLD_SOURCES)
      list(APPEND targets ${target}_cold)
      add_library(${target}_cold OBJECT ${arg_COLD_SOURCES})
      target_link_libraries(${target}_cold PRIVATE faro_cold_flags)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_cold>)
    endif()
    foreach(each IN LISTS targets)
      faro_unite(${each})
      target_include_directories(${each} PUBLIC ${include_dir})
      target_link_libraries(${each} PUBLIC ${dependencies} Threads::Threads PRIVATE faro_flags ${arg_PRIVATE_LINK})
    endforeach()
    faro_precompile(${target})
    if(arg_COLD_SOURCES)
      faro_precompile(${target}_cold COLD)
    endif()
    if(NOT arg_PLUGIN AND NOT folder MATCHES "^lab/")  # PLUGIN: of FaroPlugin.cmake
      set_property(GLOBAL APPEND PROPERTY FARO_LIBRARY_MODULES ${targets})
    endif()
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${include_dir})
    target_link_libraries(${target} INTERFACE ${dependencies} Threads::Threads)
  endif()

  if(FARO_BUILD_TESTS AND FARO_CHECK_HEADERS)
    file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
    list(TRANSFORM headers REPLACE "^.*/" "${folder}/")
    faro_check_headers(${arg_NAME} "" "${target};${arg_PRIVATE_LINK}" ${headers})
  endif()
endfunction()

# faro_program_part: some of the sources of a folder of programs, as the static library faro_<NAME>. All parts of a folder see
# its headers. Its programs are main files over parts.
#
#   faro_program_part(NAME command_parts SOURCES config_command.cc ... DEPENDS node PRIVATE_LINK CLI11::CLI11)
#   faro_program(TARGET faro_command NAME faro SOURCES main.cc DEPENDS command_parts)    # build/<preset>/bin/faro
function(faro_program_part)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;DEPENDS;PRIVATE_LINK")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES)
    message(FATAL_ERROR "faro_program_part: NAME and SOURCES are needed; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/native ${CMAKE_CURRENT_SOURCE_DIR})
  string(MAKE_C_IDENTIFIER ${folder} folder_name)
  set(include_dir ${PROJECT_BINARY_DIR}/module_includes/${folder_name})
  faro_link_headers(${include_dir} ${folder})
  list(TRANSFORM arg_DEPENDS PREPEND faro_)
  set(target faro_${arg_NAME})
  add_library(${target} STATIC ${arg_SOURCES})
  target_include_directories(${target} PUBLIC ${include_dir})
  target_link_libraries(${target} PUBLIC faro_headers ${arg_DEPENDS} PRIVATE faro_flags faro_cold_flags ${arg_PRIVATE_LINK})
  faro_precompile(${target} COLD)
endfunction()

function(faro_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET;NAME" "SOURCES;DEPENDS;PRIVATE_LINK")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_TARGET OR NOT arg_NAME OR NOT arg_SOURCES)
    message(FATAL_ERROR "faro_program: TARGET, NAME and SOURCES are needed; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  list(TRANSFORM arg_DEPENDS PREPEND faro_)
  add_executable(${arg_TARGET} ${arg_SOURCES})
  set_target_properties(${arg_TARGET} PROPERTIES OUTPUT_NAME ${arg_NAME})
  target_link_libraries(${arg_TARGET} PRIVATE faro_flags faro_cold_flags ${arg_DEPENDS} ${arg_PRIVATE_LINK})
endfunction()

# faro_check_headers(<name> <text after the include> <libraries> header...): compiles each header alone, twice included. The
# target check_headers has them all; the build of tests has the public ones only.
function(faro_check_headers name epilogue libraries)
  set(sources)
  foreach(header IN LISTS ARGN)
    set(source ${PROJECT_BINARY_DIR}/check_headers/${header}.cc)
    file(CONFIGURE OUTPUT ${source} @ONLY
         CONTENT "#include \"@header@\"\n#include \"@header@\"  // its guard works\n@epilogue@")
    list(APPEND sources ${source})
  endforeach()
  if(NOT TARGET check_headers)
    add_custom_target(check_headers)
  endif()
  if(sources)
    add_library(check_headers_${name} OBJECT EXCLUDE_FROM_ALL ${sources})
    target_compile_options(check_headers_${name} PRIVATE -O0)
    target_link_libraries(check_headers_${name} PRIVATE faro_flags ${libraries})
    add_dependencies(check_headers check_headers_${name})
  endif()
endfunction()

# Public headers: also without anything that a user of the installed library would not have.
if(FARO_BUILD_TESTS)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/native/include
       ${PROJECT_SOURCE_DIR}/native/include/faro/*.h)
  faro_check_headers(public [=[
#if defined(FMT_VERSION) || defined(SPDLOG_VERSION) || defined(CLI11_VERSION) || defined(TOML_LIB_MAJOR) || \
    defined(NLOHMANN_JSON_VERSION_MAJOR) || defined(XXH_VERSION_MAJOR) || defined(ATOMIC_QUEUE_ATOMIC_QUEUE_H_INCLUDED)
#error "a public header includes a third-party one; users of the installed library do not have it"
#endif
]=] faro_headers ${headers})
  set_target_properties(check_headers_public PROPERTIES EXCLUDE_FROM_ALL FALSE)
endif()
