#include "allocation/mechanism/past.h"

#include "platform/arithmetic.h"
#include "platform/status.h"

enum { LEAST_SLOTS = 1024, SLOTS = 1 << 24, READY_AT_ONCE = 64 };

static uint32_t slots_in(const strata_growing_t *range) {
    return (uint32_t)strata_min(strata_growing_usable(range) / sizeof(uint32_t), SLOTS);
}

strata_status_t strata_past_init(strata_past_t *past) {
    *past = (strata_past_t){.first = 1, .next = 1};
    strata_status_t status = strata_nodes_init(&past->nodes, sizeof(strata_past_request_t), STRATA_PAST_LENGTH);
    if (status != STRATA_OK) return status;
    status = strata_growing_reserve(&past->range, LEAST_SLOTS * sizeof(uint32_t), (size_t)SLOTS * sizeof(uint32_t));
    if (status != STRATA_OK) {
        strata_nodes_destroy(&past->nodes);
        return status;
    }
    past->by_slot = past->range.memory;
    past->slots = slots_in(&past->range);
    return STRATA_OK;
}

void strata_past_destroy(strata_past_t *past) {
    strata_growing_release(&past->range);
    strata_nodes_destroy(&past->nodes);
}

/* ---- requests ---- */

bool strata_past_extend(strata_past_t *past) {
    if (past->next == 0) {
        past->next = STRATA_PAST_LENGTH;
        strata_past_forget(past);
    }
    uint32_t node = past->next % STRATA_PAST_LENGTH;
    while (node >= past->nodes.used)
        if (strata_nodes_take_fresh(&past->nodes, READY_AT_ONCE) == 0) return false;
    past->ready = (uint32_t)strata_min(past->nodes.used, STRATA_PAST_LENGTH) - node;
    return true;
}

void strata_past_forget(strata_past_t *past) {
    past->first = past->next;
    past->quiet = 0;
}

uint32_t strata_past_sink(strata_past_t *past) {
    uint32_t at = past->quiet;
    while (strata_past_knows(past, at) && strata_past_at(past, at)->live > past->live) at = strata_past_at(past, at)->below;
    past->quiet = at;
    return at;
}

bool strata_past_reaches(strata_past_t *past, uint32_t slot) {
    if (past->slots == SLOTS) return slot < past->slots;
    past->slots = slots_in(&past->range);
    if (slot >= past->slots / 2 && past->slots < SLOTS) strata_growing_want(&past->range, false);
    past->wants = slot >= past->slots;
    if (past->wants) past->ready = 0;
    return !past->wants;
}

void strata_past_refresh(strata_past_t *past) {
    if (past->wants) past->slots = slots_in(&past->range);
    past->wants = false;
}

/* ---- repetition ---- */

static uint64_t hash_before(const strata_past_t *past, uint32_t number) {
    return number == past->next ? past->hash : strata_past_at(past, number)->hash;
}

uint64_t strata_past_hash(const strata_past_t *past, uint32_t from, uint32_t count) {
    uint64_t power = 1, base = UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t n = count; n; n >>= 1, base *= base)
        if (n & 1) power *= base;
    return hash_before(past, from + count) - hash_before(past, from) * power;
}

bool strata_past_repeats(const strata_past_t *past, uint32_t count) {
    uint32_t now = past->next;
    if (count == 0 || count > STRATA_PAST_LENGTH / 2 || now - past->first < 2 * count) return false;
    if (strata_past_hash(past, now - count, count) != strata_past_hash(past, now - 2 * count, count)) return false;
    for (uint32_t n = now - count; n != now; n++)
        if (strata_past_at(past, n)->key != strata_past_at(past, n - count)->key) return false;
    return true;
}

uint64_t strata_past_peak(const strata_past_t *past, uint32_t count) {
    uint64_t peak = past->live;
    for (uint32_t n = past->next - count; n != past->next; n++) {
        const strata_past_request_t *request = strata_past_at(past, n);
        peak = strata_max(peak, request->live + request->size);
    }
    return peak;
}

/* One that lives is as old as there have been requests since; of one that was not noted nothing is known. */
static uint32_t age(const strata_past_t *past, uint32_t number) {
    const strata_past_request_t *request = strata_past_at(past, number);
    if (request->size == 0) return UINT32_MAX;
    return request->until ? request->until - number : past->next - number;
}

uint32_t strata_past_life(const strata_past_t *past, uint32_t number, uint32_t count) {
    uint32_t before = age(past, number - count), now = age(past, number);
    if (before == UINT32_MAX && strata_past_at(past, number)->until) return now;
    return (uint32_t)strata_max(before, now);
}

/* ---- check ---- */

strata_status_t strata_past_validate(const strata_past_t *past) {
    uint64_t live = 0;
    if (past->next - past->first > STRATA_PAST_LENGTH) return strata_fail(STRATA_E_CORRUPT, 0, "past: it is too long");
    for (uint32_t n = past->first; n != past->next; n++) {
        const strata_past_request_t *request = strata_past_at(past, n);
        if (request->size && !request->until) {
            live += request->size;
            if (past->by_slot[request->slot] != n) return strata_fail(STRATA_E_CORRUPT, 0, "past: a block's slot names another");
        }
        bool sound = (!strata_past_knows(past, request->below) || strata_past_at(past, request->below)->live < request->live) &&
                     (!strata_past_knows(past, request->level) || strata_past_at(past, request->level)->live == request->live);
        if (!sound) return strata_fail(STRATA_E_CORRUPT, 0, "past: a link leads to the wrong level");
        uint64_t hash = n + 1 == past->next ? past->hash : strata_past_at(past, n + 1)->hash;
        if (hash != strata_past_mix(request->hash, request->key)) return strata_fail(STRATA_E_CORRUPT, 0, "past: a hash is wrong");
    }
    if (live > past->live) return strata_fail(STRATA_E_CORRUPT, 0, "past: more lives than is counted");
    return strata_nodes_validate(&past->nodes);
}
