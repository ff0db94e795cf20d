# Adds the library, the command, the headers and the doors to the wheel, below strata/. pyproject.toml adds the Python files.
# During a build of the wheel, scikit-build-core builds `wheel_parts` and installs the component `wheel`.
add_custom_target(wheel_parts DEPENDS strata strata_command)
set(executable OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# A wheel has no links, so the library is one file with its SONAME.
install(FILES $<TARGET_FILE:strata> RENAME libstrata.so.${STRATA_ABI_VERSION} DESTINATION lib COMPONENT wheel)
install(PROGRAMS $<TARGET_FILE:strata_command> DESTINATION bin PERMISSIONS ${executable} COMPONENT wheel)
install(DIRECTORY include/strata DESTINATION include COMPONENT wheel FILES_MATCHING PATTERN "*.h")
# Adds the pluggable door into PyTorch if there is a C++ compiler. Adds the sources of the whole door, which is built against
# the user's PyTorch.
if(TARGET strata_torch)
  add_dependencies(wheel_parts strata_torch)
  install(TARGETS strata_torch LIBRARY DESTINATION lib COMPONENT wheel)
endif()
install(DIRECTORY doors/torch DESTINATION include/doors COMPONENT wheel
        FILES_MATCHING REGEX "/(whole|pinned)\\.cc$" PATTERN "*.h" PATTERN "state.h" EXCLUDE)
