// In the place of rmm.cpp where CMake has found no RMM.
#include <gtest/gtest.h>

TEST(cpp_rmm, headers_are_missing) { GTEST_SKIP() << "CMake has found no RMM with its CCCL and its libraries"; }
