/* Text of any length in the library's own memory, written through a FILE. Not thread-safe. */
#ifndef STRATA_PLATFORM_HOST_TEXT_H
#define STRATA_PLATFORM_HOST_TEXT_H

#include <stdio.h>

#include "platform/status.h"

typedef struct strata_host_text {
    FILE *out; /* write here between begin and end */
    char *bytes;
    size_t length, capacity;
} strata_host_text_t;

/* Begins an empty text. Fails with E_HOST_MEMORY. */
strata_status_t strata_host_text_begin(strata_host_text_t *text);
/* Ends the text. *whole is the text with its terminating zero; release it with strata_host_delete().
 * Fails with E_HOST_MEMORY if a write failed, and everything is then released. */
strata_status_t strata_host_text_end(strata_host_text_t *text, char **whole);

#endif
