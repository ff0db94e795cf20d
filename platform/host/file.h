/* Opens the files that are read, and scratch files. Nothing here waits until another process opens the other end of a pipe. */
#ifndef STRATA_PLATFORM_FILE_H
#define STRATA_PLATFORM_FILE_H

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

#endif
