/* Text of any length in the library's own memory, written through a FILE. For one thread. */
#ifndef STRATA_PLATFORM_HOST_TEXT_H
#define STRATA_PLATFORM_HOST_TEXT_H

#include <stdio.h>

#include "platform/status.h"

typedef struct strata_host_text {
    FILE *out; /* to write to, between begin and end */
    char *bytes;
    size_t length, capacity;
} strata_host_text_t;

/* E_HOST_MEMORY. */
strata_status_t strata_host_text_begin(strata_host_text_t *text);
/* Ends the writing. *whole is the text with its terminating zero, to be deleted by strata_host_delete(). E_HOST_MEMORY: a part of it
 * found no room; nothing is left. */
strata_status_t strata_host_text_end(strata_host_text_t *text, char **whole);

#endif
