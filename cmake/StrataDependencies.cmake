# libyaml and zlib (the library), threads; the CUDA Toolkit for tests, where there is one.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(YAML REQUIRED yaml-0.1)
pkg_check_modules(ZLIB REQUIRED zlib)

add_library(strata_dependencies INTERFACE)
target_include_directories(strata_dependencies SYSTEM INTERFACE ${YAML_INCLUDE_DIRS} ${ZLIB_INCLUDE_DIRS})
if(STRATA_STATIC_DEPS)
  find_library(STRATA_YAML_ARCHIVE NAMES libyaml.a REQUIRED)
  find_library(STRATA_ZLIB_ARCHIVE NAMES libz.a REQUIRED)
  target_link_libraries(strata_dependencies INTERFACE ${STRATA_YAML_ARCHIVE} ${STRATA_ZLIB_ARCHIVE})
else()
  target_link_libraries(strata_dependencies INTERFACE ${YAML_LINK_LIBRARIES} ${ZLIB_LINK_LIBRARIES})
endif()
target_link_libraries(strata_dependencies INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)

# The CUDA device is built without the Toolkit. Where there is one, the declarations of platform/cuda/driver are held against it.
find_package(CUDAToolkit 12.0 QUIET)
if(CUDAToolkit_FOUND)
  message(STATUS "CUDA Toolkit to check declarations against: ${CUDAToolkit_VERSION}")
endif()

# NVTX 3 is headers alone. They come with the Toolkit, or stand where the system has its headers.
find_path(STRATA_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(STRATA_NVTX_INCLUDE)
set(STRATA_HAVE_NVTX FALSE)
if(STRATA_NVTX_INCLUDE)
  set(STRATA_HAVE_NVTX TRUE)
endif()
