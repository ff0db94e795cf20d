/* Files that a test writes and that go away with it. */
#ifndef STRATA_TESTS_FILES_H
#define STRATA_TESTS_FILES_H

#include <stddef.h>

/* A path of the name in a folder of this process's own, made at the first call and removed at exit. Valid until the next call.
 */
const char *temporary(const char *name);
/* Writes bytes there; NULL and a failed test if it cannot. */
const char *write_file(const char *name, const void *bytes, size_t count);
const char *write_text(const char *name, const char *text);
/* The text, gzipped. */
const char *write_gzip(const char *name, const void *bytes, size_t count);
/* The bytes of a file, to be freed; NULL if it is not there. */
char *read_bytes(const char *path, size_t *count);

#endif
