# One object library a rank folder (tests link only the folders that they test). StrataTargets.cmake makes the library and the
# command of them. Sources are found by their folder, so that a new layer is one file.
function(strata_folder name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.c)
  if(name STREQUAL platform)
    # The CUDA device, or what says that it was not built.
    if(STRATA_HAVE_CUDA)
      list(FILTER sources EXCLUDE REGEX "/cuda/cuda_absent\\.c$")
    else()
      list(FILTER sources EXCLUDE REGEX "/cuda/.*\\.c$")
      file(GLOB absent CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/platform/cuda/cuda_absent.c)
      list(APPEND sources ${absent})
    endif()
  elseif(name STREQUAL strategy)
    strata_embed(sources DIRECTORY strategy/presets HEADER strategy/presets.h TYPE strata_preset_text_t
                 ARRAY strata_preset_texts)
  endif()
  if(NOT sources)
    return()
  endif()
  add_library(strata_${name} OBJECT ${sources})
  target_link_libraries(strata_${name} PRIVATE strata_flags strata_dependencies)
  if(name STREQUAL platform AND STRATA_HAVE_CUDA)
    target_include_directories(strata_${name} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  endif()
endfunction()

# What the library is made of, lowest rank first; replay, conform and tools belong to the command alone.
set(STRATA_LIBRARY_FOLDERS platform trace allocation planning strategy config facade programs)
foreach(folder ${STRATA_LIBRARY_FOLDERS} replay conform torture tools)
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
