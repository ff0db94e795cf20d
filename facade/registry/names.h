/* Names that the program gives to its requests (tags, operators), each kept once and known by a number. Names stay until the facade
 * closes; their number is bounded. */
#ifndef STRATA_FACADE_NAMES_H
#define STRATA_FACADE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "platform/lock.h"
#include "platform/status.h"

enum {
    STRATA_NAMES = 1 << 16, /* different ones; all later ones count as one */
    STRATA_NAME_LENGTH = 127, /* bytes; longer names are cut */
    STRATA_NAME_BYTES = 1 << 22 /* of all of them, zeros included */
};

typedef struct strata_names {
    strata_lock_t lock; /* guards everything but the text of a name, which never changes */
    char *text; /* in a reserved range; a name's number is its offset. NULL until the first */
    uint32_t *slots; /* a hash table of numbers, after the text */
    size_t reserved;
    uint32_t used; /* bytes of the text */
    uint32_t count;
} strata_names_t;

void strata_names_init(strata_names_t *names);
void strata_names_destroy(strata_names_t *names);
/* The number of a name, added if it is new; 0 for NULL and "". Control characters become question marks. Without room it is the
 * number of "(other names)". E_HOST_MEMORY at the first name alone. No lock is held. */
strata_status_t strata_names_number(strata_names_t *names, const char *name, uint32_t *number);
/* The text of a number that was given out; NULL: it names nothing. Any thread. */
const char *strata_names_find(strata_names_t *names, uint64_t number);
/* "" of 0. Any thread that was handed the number by a lock or made it itself. */
const char *strata_names_text(const strata_names_t *names, uint32_t number);

#endif
