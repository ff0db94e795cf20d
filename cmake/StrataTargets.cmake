# Defines the shared library `strata`, the static library `strata_static`, and the command.
strata_objects(library_objects ${STRATA_LIBRARY_FOLDERS})

configure_file(cmake/strata.map ${CMAKE_BINARY_DIR}/strata.map @ONLY)
add_library(strata SHARED ${library_objects})
set_target_properties(strata PROPERTIES
  VERSION ${STRATA_VERSION}
  SOVERSION ${STRATA_ABI_VERSION}
  LINKER_LANGUAGE C
  LINK_DEPENDS ${CMAKE_BINARY_DIR}/strata.map)
target_link_libraries(strata PRIVATE strata_dependencies)
target_link_options(strata PRIVATE
  -Wl,--version-script=${CMAKE_BINARY_DIR}/strata.map -Wl,--as-needed
  $<$<BOOL:${STRATA_STATIC_DEPS}>:-Wl,--exclude-libs,ALL>)
if(NOT STRATA_SANITIZE)
  target_link_options(strata PRIVATE -Wl,-z,defs)
endif()

add_library(strata_static STATIC ${library_objects})
set_target_properties(strata_static PROPERTIES OUTPUT_NAME strata LINKER_LANGUAGE C)
target_link_libraries(strata_static INTERFACE
  $<BUILD_INTERFACE:strata_dependencies> $<INSTALL_INTERFACE:Threads::Threads> $<INSTALL_INTERFACE:-ldl> $<INSTALL_INTERFACE:-lm>)
if(STRATA_STATIC_DEPS)
  # The archive includes the members of libyaml and zlib, so that it needs no other.
  file(WRITE ${CMAKE_BINARY_DIR}/merge.mri
    "OPEN libstrata.a\nADDLIB ${STRATA_YAML_ARCHIVE}\nADDLIB ${STRATA_ZLIB_ARCHIVE}\nSAVE\nEND\n")
  add_custom_command(TARGET strata_static POST_BUILD COMMAND ${CMAKE_AR} -M < merge.mri
                     WORKING_DIRECTORY ${CMAKE_BINARY_DIR} VERBATIM)
else()
  target_link_libraries(strata_static INTERFACE $<INSTALL_INTERFACE:-lyaml> $<INSTALL_INTERFACE:-lz>)
  set(STRATA_PC_REQUIRES "yaml-0.1, zlib")
endif()

foreach(target strata strata_static)
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/doors/cpp> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  add_library(strata::${target} ALIAS ${target})
endforeach()

# The library that `strata run` preloads into a program, with the functions of CUDA that it interposes. Their names have no
# versions, so that they take precedence over a runtime with versioned names.
strata_objects(preload_objects doors/common doors/preload)
add_library(strata_preload MODULE ${library_objects} ${preload_objects})
set_target_properties(strata_preload PROPERTIES LINKER_LANGUAGE C LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/preload.map)
target_link_libraries(strata_preload PRIVATE strata_dependencies)
target_link_options(strata_preload PRIVATE
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/preload.map -Wl,--as-needed
  $<$<BOOL:${STRATA_STATIC_DEPS}>:-Wl,--exclude-libs,ALL>)
if(NOT STRATA_SANITIZE)
  target_link_options(strata_preload PRIVATE -Wl,-z,defs)
endif()

set_source_files_properties(${CMAKE_SOURCE_DIR}/lab/tools/run.c PROPERTIES COMPILE_DEFINITIONS
                            "STRATA_INSTALL_LIBDIR=\"${CMAKE_INSTALL_LIBDIR}\"")

# The command includes the library's objects, so that it runs from any folder.
strata_objects(command_objects ${STRATA_LAB_FOLDERS})
add_executable(strata_command ${library_objects} ${command_objects})
# Layers that it loads find the functions of strata/layer.h in the command itself.
set_target_properties(strata_command PROPERTIES OUTPUT_NAME strata ENABLE_EXPORTS ON)
target_link_libraries(strata_command PRIVATE strata_dependencies)
target_link_options(strata_command PRIVATE -Wl,--as-needed $<$<BOOL:${STRATA_STATIC_DEPS}>:-Wl,--exclude-libs,ALL>)
