/* Files that are either complete or absent: written under another name and then renamed. They are gzip
 * if the name ends in .gz, and "-" is standard output.
 *
 * A file that replaces another gets its owner and permissions if that is possible, and never wider
 * permissions. Pipes and character devices are written directly. Symbolic links to anything else are
 * refused, as are folders, sockets and block devices. */
#ifndef STRATA_TRACE_OUTPUT_H
#define STRATA_TRACE_OUTPUT_H

#include <stddef.h>

#include "platform/status.h"

typedef struct strata_output strata_output_t;

/* Opens an output. Fails with E_IO (the folder must exist and be writable) or E_HOST_MEMORY. */
strata_status_t strata_output_open(const char *path, strata_output_t **output);
/* Write bytes or formatted text. A failure is kept and returned again by every later call. */
strata_status_t strata_output_write(strata_output_t *output, const char *bytes, size_t count);
strata_status_t strata_output_print(strata_output_t *output, const char *format, ...) STRATA_PRINTF(2, 3);
/* Writes a copy of the bytes so far as a separate file, compressed if its name ends in .gz. Fails with
 * E_UNSUPPORTED for a pipe or device, since written bytes cannot be read back. */
strata_status_t strata_output_copy(strata_output_t *output, const char *path);
/* Puts the file under its name and frees the output. After any failure the old file is still there, and
 * no temporary file. The text of a failure names the path. */
strata_status_t strata_output_finish(strata_output_t *output);
/* Frees the output and leaves no file. NULL is ignored. */
void strata_output_abandon(strata_output_t *output);

#endif
