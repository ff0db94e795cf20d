/* The streams that borrow each block of a running trace, as lists in one array. */
#ifndef STRATA_REPLAY_BORROWS_H
#define STRATA_REPLAY_BORROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"

#define STRATA_BORROWS_END 0 /* 0, so that zeroed lists are empty; no entry has this number */

typedef struct strata_borrow {
    uint32_t stream;
    uint32_t next; /* STRATA_BORROWS_END ends a list */
} strata_borrow_t;

typedef struct strata_borrows {
    uint32_t *first; /* by lifetime */
    strata_borrow_t *all;
    uint32_t count, capacity;
    uint32_t unused; /* list of free entries */
} strata_borrows_t;

strata_status_t strata_borrows_begin(strata_borrows_t *borrows, size_t lifetimes);
/* Makes room for more lifetimes. If it fails with E_HOST_MEMORY, nothing has changed. */
strata_status_t strata_borrows_grow(strata_borrows_t *borrows, size_t lifetimes, size_t more);
void strata_borrows_end(strata_borrows_t *borrows);
/* Sets *added to false if the stream was already in the list. Fails with E_HOST_MEMORY. */
strata_status_t strata_borrows_add(strata_borrows_t *borrows, uint32_t lifetime, uint32_t stream, bool *added);
/* Returns true if the stream was in the list. */
bool strata_borrows_remove(strata_borrows_t *borrows, uint32_t lifetime, uint32_t stream);
/* Removes the first stream of a list. Returns false if the list is empty. */
bool strata_borrows_pop(strata_borrows_t *borrows, uint32_t lifetime, uint32_t *stream);

#endif
