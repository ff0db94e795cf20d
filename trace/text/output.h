/* Files that are complete or not there: written under another name and renamed. Gzip if the name ends in .gz; "-" is standard
 * output.
 *
 * What replaces a file has its owner and permissions, if that is possible, and never wider ones. Pipes and character devices are
 * written into, symbolic links to anything else are refused, as are folders, sockets and block devices. */
#ifndef STRATA_TRACE_OUTPUT_H
#define STRATA_TRACE_OUTPUT_H

#include <stddef.h>

#include "platform/status.h"

typedef struct strata_output strata_output_t;

/* E_IO (the folder must exist and be writable), E_HOST_MEMORY. */
strata_status_t strata_output_open(const char *path, strata_output_t **output);
/* A failure is remembered and returned again by every later call. */
strata_status_t strata_output_write(strata_output_t *output, const char *bytes, size_t count);
strata_status_t strata_output_print(strata_output_t *output, const char *format, ...) STRATA_PRINTF(2, 3);
/* What was written so far, as a file of its own, compressed if its name ends in .gz. E_UNSUPPORTED: what goes into a pipe or device is
 * gone. */
strata_status_t strata_output_copy(strata_output_t *output, const char *path);
/* Puts the file under its name and ends the output. After any failure the old file is still there, and nothing beside it. The text
 * of a failure names the path. */
strata_status_t strata_output_finish(strata_output_t *output);
/* Ends the output; no file is left. NULL is ignored. */
void strata_output_abandon(strata_output_t *output);

#endif
