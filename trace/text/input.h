/* The bytes of a file, plain or gzip (recognized by the first two bytes), in order and in bounded memory. */
#ifndef STRATA_TRACE_INPUT_H
#define STRATA_TRACE_INPUT_H

#include <stddef.h>

#include "platform/status.h"

enum { STRATA_INPUT_HEAD = 4096 };

typedef struct strata_input strata_input_t;

/* Opens a file. Fails with E_IO or E_HOST_MEMORY. */
strata_status_t strata_input_open(const char *path, strata_input_t **input);
/* Reads the next bytes, which are valid until the next call. *count is 0 at the end of a complete,
 * undamaged file. Fails with E_IO, or with E_FORMAT if the gzip data is cut off or damaged. The text of
 * the error distinguishes the two and names no file. */
strata_status_t strata_input_read(strata_input_t *input, const char **bytes, size_t *count);
/* Returns the first bytes, unpacked and valid until the next call: STRATA_INPUT_HEAD of them, or all of
 * a smaller file. A later strata_input_read() returns them again, so a pipe too can be examined before
 * its reader is chosen. May be called only before the first read. Fails as that does, if the data is
 * damaged at the first byte. */
strata_status_t strata_input_peek(strata_input_t *input, const char **bytes, size_t *count);
/* Reads the rest of the file, at most `most` bytes, and appends a zero. Delete the bytes with
 * strata_host_delete(). Fails with E_LIMIT if the rest is larger, and as strata_input_read() does. */
strata_status_t strata_input_read_all(strata_input_t *input, size_t most, char **bytes, size_t *count);
void strata_input_close(strata_input_t *input);

#endif
