/* Numbers and words of a file, each mapped to the next small number at its first use. They are hashed
 * with the table's own random key, so that no file can be made to attack it. Most files count upward.
 * As long as the numbers are consecutive from the first one on, no table is needed. */
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
        uint32_t number; /* STRATA_IDS_NONE if the slot is empty */
    } * slots;
    /* A power of two. If it is 0, there are no slots: the keys are `first`, first + 1 ... in the order
     * of their numbers. */
    uint32_t capacity;
    uint64_t first;
    uint32_t count;
    strata_sip_key_t secret; /* drawn at the first use; zero until then */
} strata_ids_t; /* all zero is an empty table */

/* Returns a key for a word, valid in this table only. Two words may have one key by chance, so the
 * caller must check. */
uint64_t strata_ids_hash_word(strata_ids_t *ids, const char *word);
uint32_t strata_ids_find_slot(const strata_ids_t *ids, uint64_t key);
/* Returns the number of `key`, or STRATA_IDS_NONE. */
static inline uint32_t strata_ids_find(const strata_ids_t *ids, uint64_t key) {
    if (ids->capacity) return strata_ids_find_slot(ids, key);
    return key - ids->first < ids->count ? (uint32_t)(key - ids->first) : STRATA_IDS_NONE;
}
strata_status_t strata_ids_add_any(strata_ids_t *ids, uint64_t key);
/* Gives `key`, which must not be in the table, the number `count`. Fails with E_HOST_MEMORY. */
static inline strata_status_t strata_ids_add(strata_ids_t *ids, uint64_t key) {
    if (ids->count == 0 || ids->capacity || key - ids->first != ids->count) return strata_ids_add_any(ids, key);
    ids->count++;
    return STRATA_OK;
}
void strata_ids_clear(strata_ids_t *ids);

#endif
