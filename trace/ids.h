/* Numbers and words of a file, each given the next small number at its first use. Hashed with a random key of the table's own, so
 * that no file can be made to attack it. Numbers that come one after the other from the first on, as most files count, need no table
 * until one does not. */
#ifndef STRATA_TRACE_IDS_H
#define STRATA_TRACE_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/status.h"
#include "trace/sip_hash.h"

#define STRATA_IDS_NONE UINT32_MAX

typedef struct strata_ids {
    struct strata_ids_slot {
        uint64_t key;
        uint32_t number; /* STRATA_IDS_NONE: empty */
    } * slots;
    uint32_t
        capacity; /* a power of two; 0: the keys are `first`, first + 1 ... in the order of their numbers, and there are no slots */
    uint64_t first;
    uint32_t count;
    strata_sip_key_t secret; /* drawn at the first use; zero: not yet */
} strata_ids_t; /* all zero is an empty table */

/* A key for a word, in this table alone. Two words may have one key by chance; the caller must check. */
uint64_t strata_ids_word(strata_ids_t *ids, const char *word);
uint32_t strata_ids_find_slot(const strata_ids_t *ids, uint64_t key);
/* The number of `key`, or STRATA_IDS_NONE. */
static inline uint32_t strata_ids_find(const strata_ids_t *ids, uint64_t key) {
    if (ids->capacity) return strata_ids_find_slot(ids, key);
    return key - ids->first < ids->count ? (uint32_t)(key - ids->first) : STRATA_IDS_NONE;
}
strata_status_t strata_ids_add_any(strata_ids_t *ids, uint64_t key);
/* Gives `key`, which must not be there, the number `count`. E_HOST_MEMORY. */
static inline strata_status_t strata_ids_add(strata_ids_t *ids, uint64_t key) {
    if (ids->count == 0 || ids->capacity || key - ids->first != ids->count) return strata_ids_add_any(ids, key);
    ids->count++;
    return STRATA_OK;
}
void strata_ids_clear(strata_ids_t *ids);

#endif
