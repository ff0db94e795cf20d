/* Opens files to read or to append to, and scratch files. Nothing here waits until another process
 * opens the other end of a pipe. */
#ifndef STRATA_PLATFORM_FILE_H
#define STRATA_PLATFORM_FILE_H

#include <stddef.h>

#include "platform/status.h"

typedef enum strata_file_named {
    STRATA_FILE_NAMED_BY_USER, /* may also be a pipe or a character device, since the user chose it */
    /* A name in a text that the user may not have read: only a regular file is allowed. Nothing else is
     * even opened, since opening a device may have effects. */
    STRATA_FILE_NAMED_BY_FILE
} strata_file_named_t;

/* Opens the file and sets *file to a descriptor that is closed on exec. Fails with E_IO and "PATH: cannot
 * read the file: why". */
strata_status_t strata_file_open(const char *path, strata_file_named_t named, int *file);
/* Returns OK for a regular file, with links followed, otherwise E_IO as above. */
strata_status_t strata_file_is_regular(const char *path);
/* Creates a file without a name in a directory, which only its owner writes and reads. Closing its last
 * descriptor deletes it. Fails with E_IO, and with E_INVALID if the directory's name is too long. */
strata_status_t strata_file_scratch(const char *directory, int *file);
/* Writes the path that a pattern means, with the process's number in place of %p. The path is truncated
 * to the capacity. */
void strata_file_expand(const char *pattern, char *path, size_t capacity);
/* Returns another writing end of a pipe, even if it has none; `descriptor` is the pipe's reading end.
 * Returns -1 and sets errno on failure. */
int strata_file_write_end(int descriptor);
/* Sets *file to a descriptor that appends to the file of a pattern, which is created if it does not
 * exist. "stderr" means standard error. A full pipe refuses a write, and a symbolic link is not
 * followed. Fails with E_IO, also if the path is neither a file, a pipe nor a character device. Fails
 * with E_INVALID if the path is too long. */
strata_status_t strata_file_append(const char *pattern, int *file);

#endif
