/* The bytes of a file, plain or gzip (recognised by the first two bytes), in order and in bounded memory. */
#ifndef STRATA_TRACE_INPUT_H
#define STRATA_TRACE_INPUT_H

#include <stddef.h>

#include "platform/status.h"

enum { STRATA_INPUT_HEAD = 4096 };

typedef struct strata_input strata_input_t;

/* E_IO, E_HOST_MEMORY. */
strata_status_t strata_input_open(const char *path, strata_input_t **input);
/* The next bytes, valid until the next call; *count 0 is the end of a complete, undamaged file. E_FORMAT: the gzip data is cut off
 * or damaged (the text says which, and names no file); E_IO. */
strata_status_t strata_input_read(strata_input_t *input, const char **bytes, size_t *count);
/* The first bytes, unpacked, valid until the next call: STRATA_INPUT_HEAD of them, or all of a smaller file. They are read again by
 * strata_input_read(), so that a pipe too can be looked at before it is known who reads it. Only before the first read. Fails as
 * that does, if there is nothing before the damage. */
strata_status_t strata_input_head(strata_input_t *input, const char **bytes, size_t *count);
/* The rest of the file, at most `most` bytes of it, and a zero after them; to be deleted by strata_host_delete(). E_LIMIT: it is
 * larger; and as strata_input_read(). */
strata_status_t strata_input_rest(strata_input_t *input, size_t most, char **bytes, size_t *count);
void strata_input_close(strata_input_t *input);

#endif
