/* What stood under a name is there still. */
#ifndef STRATA_TESTS_SECURITY_KEPT_H
#define STRATA_TESTS_SECURITY_KEPT_H

#include <stddef.h>

#include "platform/status.h"

#define BEFORE "{\"schema\": 1, \"what\": \"stood there before\"}\n"

/* Files under the names that it has while it is written. */
size_t parts_beside(const char *path);
/* The file is BEFORE, nothing lies beside it, and the error says which file and why. */
void expect_kept(const char *path, const char *error, const char *why);
/* So many bytes that do not pack, as the library writes all its files. */
strata_status_t write_much(const char *path, size_t bytes);

#endif
