// In the place of memory_resource.cpp where CMake has found no CCCL.
#include <gtest/gtest.h>

TEST(cpp_cccl, headers_are_missing) { GTEST_SKIP() << "CMake has found no cuda/memory_resource, or no cuda_runtime_api.h"; }
