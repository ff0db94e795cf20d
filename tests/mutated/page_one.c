#include "tests/mutated/pages.h"

#define main page_one
#include "tests/mutated/printed_one.inc"
