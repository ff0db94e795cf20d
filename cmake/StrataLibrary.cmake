# One object library a rank folder (tests link only the folders that they test). StrataTargets.cmake makes the library and the
# command of them. Sources are found by their folder, so that a new layer is one file.
function(strata_folder name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.c)
  if(name STREQUAL platform AND NOT CUDAToolkit_FOUND)
    list(FILTER sources EXCLUDE REGEX "/cuda_toolkit\\.c$")
  elseif(name STREQUAL strategy)
    strata_embed(sources DIRECTORY strategy/presets HEADER strategy/presets.h TYPE strata_preset_text_t
                 ARRAY strata_preset_texts)
  elseif(name STREQUAL replay)
    strata_page(sources DIRECTORY replay/report/page HEADER replay/report/parts.h)
  endif()
  if(NOT sources)
    return()
  endif()
  add_library(strata_${name} OBJECT ${sources})
  target_link_libraries(strata_${name} PRIVATE strata_flags strata_dependencies)
  if(name STREQUAL platform AND CUDAToolkit_FOUND)
    list(TRANSFORM CUDAToolkit_INCLUDE_DIRS PREPEND "-isystem" OUTPUT_VARIABLE toolkit)
    set_source_files_properties(${CMAKE_SOURCE_DIR}/platform/cuda/driver/cuda_toolkit.c PROPERTIES COMPILE_OPTIONS "${toolkit}")
  endif()
endfunction()

# What the library is made of, lowest rank first; replay, conform, torture and tools belong to the command alone, integration to
# what is loaded into other programs.
set(STRATA_LIBRARY_FOLDERS platform trace allocation planning strategy config facade programs)
foreach(folder ${STRATA_LIBRARY_FOLDERS} replay conform torture integration tools)
  strata_folder(${folder})
endforeach()

# $<TARGET_OBJECTS:...> of the folders given that exist.
function(strata_objects out)
  set(objects)
  foreach(folder ${ARGN})
    if(TARGET strata_${folder})
      list(APPEND objects $<TARGET_OBJECTS:strata_${folder}>)
    endif()
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
