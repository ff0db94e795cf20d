#include "tests/mutated/pages.h"

#define main page_turns
#include "tests/mutated/printed_turns.inc"
