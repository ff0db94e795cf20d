/* Opens the files that are read or added to, and scratch files. Nothing here waits until another process opens the other end of a pipe. */
#ifndef STRATA_PLATFORM_FILE_H
#define STRATA_PLATFORM_FILE_H

#include <stddef.h>

#include "platform/status.h"

typedef enum strata_file_named {
    STRATA_FILE_NAMED_BY_USER, /* pipes and character devices too: their contents are the user's own affair */
    STRATA_FILE_NAMED_BY_FILE /* named by a text that the user may not have read: only a regular file. Nothing else is even opened,
                                 since opening a device may have effects */
} strata_file_named_t;

/* E_IO with "PATH: the file cannot be read: why". A descriptor that is closed on exec. */
strata_status_t strata_file_open(const char *path, strata_file_named_t named, int *file);
/* Whether it is a regular file, links followed; otherwise E_IO as above. */
strata_status_t strata_file_is_regular(const char *path);
/* A file without a name in a directory, to be written and read by its owner alone. It goes with its last descriptor. E_IO, and
 * E_INVALID for a directory's name that is too long. */
strata_status_t strata_file_scratch(const char *directory, int *file);
/* The path that a pattern means: %p in it stands for the process's number. It is cut to the room. */
void strata_file_expand(const char *pattern, char *path, size_t capacity);
/* Another writing end of the pipe whose reading end `descriptor` is, even if it has none. -1: errno says why. */
int strata_file_write_end(int descriptor);
/* A descriptor whose writes add to the file of a pattern, which is made if it is not there; "stderr": to standard error. A pipe that is
 * full refuses a write, and a symbolic link is not followed. E_IO, as for what is neither a file, a pipe nor a character device; E_INVALID for a path that is too long. */
strata_status_t strata_file_append(const char *pattern, int *file);

#endif
