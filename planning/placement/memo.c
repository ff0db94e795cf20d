#include "planning/placement/memo.h"

#include <string.h>

#include "platform/host/host_memory.h"

/* Small problems get small tables, since their search would end before large tables were zeroed. */
enum { ENTRIES = 1 << 18, ROOM = 1 << 23, SMALL = 64, SMALL_ENTRIES = 1 << 12, SMALL_ROOM = 1 << 16, PROBES_MAX = 16 };

strata_status_t strata_memo_init(strata_memo_t *memo, uint32_t items) {
    *memo = (strata_memo_t){.capacity = items > SMALL ? ENTRIES : SMALL_ENTRIES,
                            .room_capacity = items > SMALL ? ROOM : SMALL_ROOM};
    memo->entries = strata_host_new(memo->capacity, sizeof *memo->entries);
    memo->room = strata_host_new(memo->room_capacity, sizeof *memo->room);
    if (memo->entries && memo->room) return STRATA_OK;
    strata_memo_destroy(memo);
    return STRATA_E_HOST_MEMORY;
}

void strata_memo_destroy(strata_memo_t *memo) {
    strata_host_delete(memo->entries);
    strata_host_delete(memo->room);
    *memo = (strata_memo_t){0};
}

void strata_memo_clear(strata_memo_t *memo) {
    if (memo->used) memset(memo->entries, 0, memo->capacity * sizeof *memo->entries);
    memo->used = memo->room_used = 0;
}

static bool is_dominated(const uint64_t *room, const uint64_t *known, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (room[i] > known[i]) return false;
    return true;
}

bool strata_memo_has(const strata_memo_t *memo, uint64_t key, const uint64_t *room, uint32_t count) {
    for (uint32_t slot = (uint32_t)key, i = 0; i < PROBES_MAX; i++, slot++) {
        const strata_memo_entry_t *entry = &memo->entries[slot & (memo->capacity - 1)];
        if (entry->at == 0) return false;
        if (entry->key == key && entry->count == count && is_dominated(room, memo->room + entry->at - 1, count)) return true;
    }
    return false;
}

void strata_memo_note(strata_memo_t *memo, uint64_t key, const uint64_t *room, uint32_t count) {
    if (count > memo->room_capacity) return;
    if (memo->used > memo->capacity / 2 || memo->room_used > memo->room_capacity - count) strata_memo_clear(memo);
    for (uint32_t slot = (uint32_t)key, i = 0; i < PROBES_MAX; i++, slot++) {
        strata_memo_entry_t *entry = &memo->entries[slot & (memo->capacity - 1)];
        if (entry->at != 0) continue;
        *entry = (strata_memo_entry_t){.key = key, .at = memo->room_used + 1, .count = count};
        memcpy(memo->room + memo->room_used, room, count * sizeof *room);
        memo->room_used += count;
        memo->used++;
        return;
    }
}
