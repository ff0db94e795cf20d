/* Interns names that the program gives to its requests (tags, operators). Each is stored once and has a
 * number. Names stay until the facade closes, and their count is bounded. */
#ifndef STRATA_FACADE_NAMES_H
#define STRATA_FACADE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "platform/lock.h"
#include "platform/status.h"

enum {
    STRATA_NAMES = 1 << 16, /* distinct names; all later ones share one entry */
    STRATA_NAME_LENGTH = 127, /* bytes; longer names are cut */
    STRATA_NAME_BYTES = 1 << 22 /* of all names, zeros included */
};

typedef struct strata_names {
    strata_lock_t lock; /* guards everything except the text of a name, which never changes */
    char *text; /* in a reserved range; a name's number is its offset. NULL before the first */
    uint32_t *slots; /* a hash table of numbers, after the text */
    size_t reserved;
    uint32_t used; /* bytes of the text */
    uint32_t count;
} strata_names_t;

void strata_names_init(strata_names_t *names);
void strata_names_destroy(strata_names_t *names);
/* Returns the number of a name, adding it if it is new, or 0 for NULL and "". Control characters become
 * question marks. Without room it is the number of "(other names)". E_HOST_MEMORY is possible only for
 * the first name. Call it with no lock held. */
strata_status_t strata_names_number(strata_names_t *names, const char *name, uint32_t *number);
/* Returns the text of a number that was returned before, or NULL if it names nothing. Any thread may call it. */
const char *strata_names_find(strata_names_t *names, uint64_t number);
/* Returns the text, or "" for 0. The calling thread must have created the number or received it under a lock. */
const char *strata_names_text(const strata_names_t *names, uint32_t number);

#endif
