/* Printed tests, compiled as they are: each is a function here, and what it says failed is counted. */
#ifndef STRATA_TESTS_MUTATED_PAGES_H
#define STRATA_TESTS_MUTATED_PAGES_H

#include "tests/harness/test.h"

void page_calls(void);
void page_threads(void);
extern unsigned pages_failed;

#endif
