/* Runs a check in a separate process, so that it may crash, hang or open anything. */
#ifndef STRATA_TESTS_HOUSE_CHILD_H
#define STRATA_TESTS_HOUSE_CHILD_H

#include <stddef.h>

/* Writes what is wrong; leaves the text empty on success. */
typedef void (*child_fn)(void *context, char *wrong, size_t capacity);
/* Runs a check after values.h opened everything. Returns what is wrong, or "". Valid until the next call. */
const char *child_run(child_fn check, void *context);

#endif
