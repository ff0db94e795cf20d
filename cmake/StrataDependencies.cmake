# Finds libyaml, zlib and threads for the library, and the CUDA Toolkit for tests, if it is installed.
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

# The CUDA device is built without the Toolkit. If it is installed, the declarations of platform/cuda/driver are compared with it.
find_package(CUDAToolkit 12.0 QUIET)
if(CUDAToolkit_FOUND)
  message(STATUS "CUDA Toolkit to check declarations against: ${CUDAToolkit_VERSION}")
endif()

# NVTX 3 has only headers. They are in the Toolkit or in a folder of system headers.
find_path(STRATA_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(STRATA_NVTX_INCLUDE)
set(STRATA_HAVE_NVTX FALSE)
if(STRATA_NVTX_INCLUDE)
  set(STRATA_HAVE_NVTX TRUE)
endif()
