/* Programs that tests start, with and without the preloaded library. */
#ifndef STRATA_TESTS_INTEGRATION_RUN_H
#define STRATA_TESTS_INTEGRATION_RUN_H

#include <stdbool.h>

#include "tests/harness/test.h"

enum { OUTPUT_ROOM = 65536 };

/* Runs `command` and returns both outputs and the exit status. */
int run(const char *command, char output[OUTPUT_ROOM]);
/* Returns the output of the program with the preloaded library; the exit status must be 0. Valid until the next call. */
const char *run_preloaded(const char *program, const char *environment, const char *argument);

/* A sanitizer must be the first library, and would replace the program's allocator. */
static inline bool sanitized(void) { return *STRATA_SANITIZERS != '\0'; }
#define PRELOADED_OR_SKIP()                                                                                                        \
    if (sanitized()) TEST_SKIP("a sanitized library is not preloaded into a program that is not sanitized")

#endif
