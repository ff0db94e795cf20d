/* A small map of 64-bit words (handles, addresses), guarded by its owner's lock. Room is claimed in
 * advance, with no lock held, so putting never allocates and never fails. It may therefore follow a
 * driver call that cannot be undone. */
#ifndef STRATA_PLATFORM_CUDA_TABLE_H
#define STRATA_PLATFORM_CUDA_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/lock.h"
#include "platform/status.h"

typedef struct strata_cuda_slot {
    uint64_t key; /* 0 if the slot is empty */
    uint64_t value;
} strata_cuda_slot_t;

/* All zero is an empty table. The invariant is count + claimed <= capacity / 2. */
typedef struct strata_cuda_table {
    strata_cuda_slot_t *slots;
    uint64_t capacity; /* a power of two, or 0 */
    uint64_t count;
    uint64_t claimed;
} strata_cuda_table_t;

/* Makes room for one more key. Takes `lock` itself. Every claim ends with one put or one unclaim. */
strata_status_t strata_cuda_table_claim(strata_cuda_table_t *table, strata_lock_t *lock);
/* All functions below are called with the lock held, and keys are not 0. Putting an existing key
 * replaces its value. */
void strata_cuda_table_unclaim(strata_cuda_table_t *table);
void strata_cuda_table_insert(strata_cuda_table_t *table, uint64_t key, uint64_t value);
/* Returns a pointer to the value of `key`, or NULL. It is valid until the lock is released. */
uint64_t *strata_cuda_table_find(strata_cuda_table_t *table, uint64_t key);
/* Removes `key`. Returns false if it is not there. `value` may be NULL. */
bool strata_cuda_table_remove(strata_cuda_table_t *table, uint64_t key, uint64_t *value);
/* Removes `key`, but keeps its room claimed, so that it can be put back if the driver call that follows
 * fails. */
bool strata_cuda_table_remove_claimed(strata_cuda_table_t *table, uint64_t key, uint64_t *value);
void strata_cuda_table_destroy(strata_cuda_table_t *table);

#endif
