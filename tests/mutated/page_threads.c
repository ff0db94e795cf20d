#include "tests/mutated/pages.h"

#undef TEST
#undef FAIL_TEST
#define TEST(suite, name) void page_##name(void)
#define FAIL_TEST(...)    (pages_failed++)
#include "tests/mutated/printed_threads.inc"
