# What the wheel holds besides the Python files (pyproject.toml): the library, the command, the headers and the doors, below strata/.
# scikit-build-core builds `wheel_parts` and installs the component `wheel`.
add_custom_target(wheel_parts DEPENDS strata strata_command)
set(executable OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# A wheel has no links: the library is one file, under the name that programs ask the loader for.
install(FILES $<TARGET_FILE:strata> RENAME libstrata.so.${STRATA_ABI_VERSION} DESTINATION lib COMPONENT wheel)
install(PROGRAMS $<TARGET_FILE:strata_command> DESTINATION bin PERMISSIONS ${executable} COMPONENT wheel)
install(DIRECTORY include/strata DESTINATION include COMPONENT wheel FILES_MATCHING PATTERN "*.h")
# The door into PyTorch, where a C++ compiler is there; and the sources of the one that is built against the user's own PyTorch.
if(TARGET strata_torch)
  add_dependencies(wheel_parts strata_torch)
  install(TARGETS strata_torch LIBRARY DESTINATION lib COMPONENT wheel)
endif()
install(DIRECTORY doors/torch DESTINATION include/doors COMPONENT wheel
        FILES_MATCHING REGEX "/(whole|pinned)\\.cc$" PATTERN "*.h" PATTERN "state.h" EXCLUDE)
