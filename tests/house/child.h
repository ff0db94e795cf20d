/* A check in a process of its own, which may crash, hang, and open what it likes. */
#ifndef STRATA_TESTS_HOUSE_CHILD_H
#define STRATA_TESTS_HOUSE_CHILD_H

#include <stddef.h>

/* Writes what is wrong; nothing: all is as it should be. */
typedef void (*child_fn)(void *context, char *wrong, size_t capacity);
/* Runs it, with everything of values.h made, and returns what is wrong: "" if nothing is. Valid until the next call. */
const char *child_run(child_fn check, void *context);

#endif
