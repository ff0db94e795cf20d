/* The bytes of a file, plain or gzip (recognised by the first two bytes), in order and in bounded memory. */
#ifndef STRATA_TRACE_INPUT_H
#define STRATA_TRACE_INPUT_H

#include <stddef.h>

#include "platform/status.h"

typedef struct strata_input strata_input_t;

/* E_IO, E_HOST_MEMORY. */
strata_status_t strata_input_open(const char *path, strata_input_t **input);
/* The next bytes, valid until the next call; *count 0 is the end of a complete, undamaged file. E_FORMAT: the gzip data is cut off
 * or damaged (the text says which, and names no file); E_IO. */
strata_status_t strata_input_read(strata_input_t *input, const char **bytes, size_t *count);
void strata_input_close(strata_input_t *input);

#endif
