# Rules of cmake --install: headers, both libraries, the command, the CMake package, the pkg-config file, presets and pages.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/strata doors/cpp/strata DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS strata strata_static EXPORT strata
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS strata_command DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS strata_preload DESTINATION ${CMAKE_INSTALL_LIBDIR}/strata)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/strata)
install(EXPORT strata NAMESPACE strata:: FILE strataTargets.cmake DESTINATION ${package})
configure_package_config_file(cmake/strataConfig.cmake.in ${CMAKE_BINARY_DIR}/strataConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/strataConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/strataConfig.cmake ${CMAKE_BINARY_DIR}/strataConfigVersion.cmake DESTINATION ${package})

# The prefix in strata.pc is relative to the file, so that an installed tree may be moved.
file(RELATIVE_PATH STRATA_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
set(STRATA_PC_PREFIX "\${pcfiledir}/${STRATA_PC_PREFIX}")
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(STRATA_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
endif()
cmake_path(APPEND pc_libdir "\${prefix}" ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND pc_includedir "\${prefix}" ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(cmake/strata.pc.in ${CMAKE_BINARY_DIR}/strata.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/strata.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The presets are embedded in the library. The files are installed as documentation, and as templates for new strategies.
install(DIRECTORY strategy/presets DESTINATION ${CMAKE_INSTALL_DATADIR}/strata FILES_MATCHING PATTERN "*.yaml")
# These folders are as in the tree, so that links between pages and the commands in them work.
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.c"
        PATTERN "*.cpp")
install(DIRECTORY traces DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "NOTICE"
        PATTERN "*.csv" PATTERN "*.csv.gz")
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
