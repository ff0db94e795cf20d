/* What a search has found to lead nowhere: which items were left, and how much room each section had to waste. The same items with
 * no more room anywhere lead nowhere either. When it is full it forgets everything: it saves time, and nothing depends on it. */
#ifndef STRATA_PLANNING_MEMO_H
#define STRATA_PLANNING_MEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/status.h"

typedef struct strata_memo_entry {
    uint64_t key; /* of the items left */
    uint32_t at; /* of its room, in `room`; plus 1, so that 0 is empty */
    uint32_t count;
} strata_memo_entry_t;

typedef struct strata_memo {
    strata_memo_entry_t *entries;
    uint64_t *room;
    uint32_t capacity, used; /* entries; a power of two */
    uint32_t room_capacity, room_used;
} strata_memo_t;

/* For a problem of so many items. E_HOST_MEMORY: nothing is left. */
strata_status_t strata_memo_init(strata_memo_t *memo, uint32_t items);
void strata_memo_destroy(strata_memo_t *memo);
void strata_memo_clear(strata_memo_t *memo);
/* Whether it is known that this leads nowhere. */
bool strata_memo_has(const strata_memo_t *memo, uint64_t key, const uint64_t *room, uint32_t count);
void strata_memo_note(strata_memo_t *memo, uint64_t key, const uint64_t *room, uint32_t count);

#endif
