/* Remembers dead ends of a search: the items that were left, and the room that each section could waste.
 * Those items with no more room anywhere are a dead end too. A full memo forgets everything, which costs
 * only time. */
#ifndef STRATA_PLANNING_MEMO_H
#define STRATA_PLANNING_MEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/status.h"

typedef struct strata_memo_entry {
    uint64_t key; /* of the remaining items */
    uint32_t at; /* index of its room in `room` plus 1, so that 0 marks an empty entry */
    uint32_t count;
} strata_memo_entry_t;

typedef struct strata_memo {
    strata_memo_entry_t *entries;
    uint64_t *room;
    uint32_t capacity, used; /* entries; the capacity is a power of two */
    uint32_t room_capacity, room_used;
} strata_memo_t;

/* Makes a memo for a problem of this many items. Returns E_HOST_MEMORY with nothing allocated. */
strata_status_t strata_memo_init(strata_memo_t *memo, uint32_t items);
void strata_memo_destroy(strata_memo_t *memo);
void strata_memo_clear(strata_memo_t *memo);
/* Returns true if this state is a known dead end. */
bool strata_memo_has(const strata_memo_t *memo, uint64_t key, const uint64_t *room, uint32_t count);
void strata_memo_note(strata_memo_t *memo, uint64_t key, const uint64_t *room, uint32_t count);

#endif
