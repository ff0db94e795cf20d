/* Names that the program gives to its requests (tags, operators), each kept once: a number stands for it. Names stay until the
 * facade closes; how many there are is bounded. */
#ifndef STRATA_FACADE_NAMES_H
#define STRATA_FACADE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "platform/host/lock.h"
#include "platform/status.h"

enum {
    STRATA_NAMES = 1 << 16, /* different ones; behind them all are one */
    STRATA_NAME_LENGTH = 127, /* bytes; what is longer is cut */
    STRATA_NAME_BYTES = 1 << 22 /* of all of them, zeros included */
};

typedef struct strata_names {
    strata_lock_t lock; /* guards all but the text that a number names: that never changes */
    char *text; /* in a reserved range; a name's number is where it begins. NULL until the first */
    uint32_t *slots; /* a hash table of numbers, behind the text */
    size_t reserved;
    uint32_t used; /* bytes of the text */
    uint32_t count;
} strata_names_t;

void strata_names_init(strata_names_t *names);
void strata_names_destroy(strata_names_t *names);
/* The number of a name, made if it is new; 0 of NULL and of "". Control characters become question marks. When there is no room
 * left it is that of "(other names)". E_HOST_MEMORY at the first name alone. No lock is held. */
strata_status_t strata_names_number(strata_names_t *names, const char *name, uint32_t *number);
/* The text of a number that somebody said; NULL: it is no name's. Any thread. */
const char *strata_names_find(strata_names_t *names, uint64_t number);
/* "" of 0. Any thread that was handed the number by a lock or made it itself. */
const char *strata_names_text(const strata_names_t *names, uint32_t number);

#endif
