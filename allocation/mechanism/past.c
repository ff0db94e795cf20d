#include "allocation/mechanism/past.h"

#include "platform/arithmetic.h"
#include "platform/status.h"

enum { READY_AT_ONCE = 64, READY_MOST = 1024, HALF = STRATA_PAST_LENGTH / 2 };

strata_status_t strata_past_init(strata_past_t *past) {
    *past = (strata_past_t){.first = 1, .next = 1, .open = 1};
    return strata_nodes_init(&past->nodes, sizeof(strata_past_request_t), STRATA_PAST_LENGTH);
}

void strata_past_destroy(strata_past_t *past) { strata_nodes_destroy(&past->nodes); }

/* ---- requests ---- */

/* Now and then, so that it costs no request anything: a half of the length may end here, and what is too old is not known any more. */
static void move_on(strata_past_t *past) {
    if (past->next % HALF == 0 && past->turned != past->next) {
        past->turned = past->next;
        past->most[1] = past->most[0];
        past->most[0] = past->live;
    }
    uint32_t last = past->next + past->ready;
    if (last - past->first > STRATA_PAST_LENGTH) past->first = last - STRATA_PAST_LENGTH;
    if (past->next - past->open > past->next - past->first) past->open = past->first;
}

bool strata_past_extend(strata_past_t *past) {
    if (past->next == 0) {
        past->next = STRATA_PAST_LENGTH;
        strata_past_forget(past);
    }
    uint32_t node = past->next % STRATA_PAST_LENGTH;
    while (node >= past->nodes.used)
        if (strata_nodes_take_fresh(&past->nodes, READY_AT_ONCE) == 0) return false;
    uint32_t ready = (uint32_t)strata_min(past->nodes.used, STRATA_PAST_LENGTH) - node;
    past->ready = (uint32_t)strata_min(strata_min(ready, READY_MOST), HALF - node % HALF);
    move_on(past);
    return true;
}

void strata_past_forget(strata_past_t *past) {
    past->first = past->open = past->next;
    past->quiet = 0;
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
    if (past->next - past->open > past->next - past->first)
        return strata_fail(STRATA_E_CORRUPT, 0, "past: what is open is not known");
    for (uint32_t n = past->first; n != past->next; n++) {
        const strata_past_request_t *request = strata_past_at(past, n);
        if (request->size && !request->until) live += request->size;
        if (n - past->first >= past->open - past->first) continue;
        bool sound = (!strata_past_knows(past, request->below) || strata_past_at(past, request->below)->live < request->live) &&
                     (!strata_past_knows(past, request->level) || strata_past_at(past, request->level)->live == request->live);
        if (!sound) return strata_fail(STRATA_E_CORRUPT, 0, "past: a link leads to the wrong level");
        uint64_t hash = n + 1 == past->open ? past->hash : strata_past_at(past, n + 1)->hash;
        if (hash != strata_past_mix(request->hash, request->key)) return strata_fail(STRATA_E_CORRUPT, 0, "past: a hash is wrong");
    }
    if (live > past->live) return strata_fail(STRATA_E_CORRUPT, 0, "past: more lives than is counted");
    return strata_nodes_validate(&past->nodes);
}
