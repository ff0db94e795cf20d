/* A small map of 64-bit words (handles, addresses), guarded by its owner's lock. Room is claimed in advance, with no lock held, so
 * putting never allocates and never fails: it may follow a driver call that cannot be undone. */
#ifndef STRATA_PLATFORM_CUDA_TABLE_H
#define STRATA_PLATFORM_CUDA_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/lock.h"
#include "platform/status.h"

typedef struct strata_cuda_slot {
    uint64_t key; /* 0: empty */
    uint64_t value;
} strata_cuda_slot_t;

/* All zero is an empty table. count + claimed <= capacity / 2. */
typedef struct strata_cuda_table {
    strata_cuda_slot_t *slots;
    uint64_t capacity; /* a power of two, or 0 */
    uint64_t count;
    uint64_t claimed;
} strata_cuda_table_t;

/* Makes room for one more key; takes `lock` itself. Every claim ends with one put or one unclaim. */
strata_status_t strata_cuda_table_claim(strata_cuda_table_t *table, strata_lock_t *lock);
/* The rest is called with the lock held; keys are not 0. Putting an existing key replaces its value. */
void strata_cuda_table_unclaim(strata_cuda_table_t *table);
void strata_cuda_table_put(strata_cuda_table_t *table, uint64_t key, uint64_t value);
/* The place of the value of `key`, or NULL. Valid until the lock is released. */
uint64_t *strata_cuda_table_find(strata_cuda_table_t *table, uint64_t key);
/* Removes `key`; false if it was not there. `value` may be NULL. */
bool strata_cuda_table_take(strata_cuda_table_t *table, uint64_t key, uint64_t *value);
/* The same, but its room stays claimed, so that it can be put back if the driver call that follows fails. */
bool strata_cuda_table_lift(strata_cuda_table_t *table, uint64_t key, uint64_t *value);
void strata_cuda_table_drop(strata_cuda_table_t *table);

#endif
