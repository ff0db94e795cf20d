/* Rule 1: declared accesses during the time of one owner. Two that touch the same bytes need an order
 * if one of them is a write. */
#include <stdlib.h>
#include <string.h>

#include "platform/sim/checker/checker_internal.h"

static bool overlaps(const check_access_t *a, const check_access_t *b) { return a->begin < b->end && b->begin < a->end; }

/* A later access replaces an earlier one that precedes it and that it covers. A read does not replace a
 * write. */
static bool stands_for(const check_access_t *later, const check_access_t *earlier, const check_clock_t *clock) {
    return later->begin <= earlier->begin && later->end >= earlier->end && (later->write || !earlier->write) &&
           (later->use.actor == earlier->use.actor || later->write) &&
           check_clock_get(clock, earlier->use.actor) >= earlier->use.epoch;
}

/* The remaining accesses keep the order of their time. */
static void forget(check_life_t *life, size_t index) {
    check_access_t *at = &life->accesses[index];
    memmove(at, at + 1, (--life->access_count - index) * sizeof *at);
}

static void remember(strata_checker_t *checker, check_life_t *life, const check_access_t *access) {
    if (life->access_count == CHECK_REMEMBERED) forget(life, 0);
    if (!life->accesses && !(life->accesses = calloc(CHECK_REMEMBERED, sizeof *life->accesses))) {
        checker->incomplete = true;
        return;
    }
    life->accesses[life->access_count++] = *access;
}

typedef struct racing {
    check_life_t *life;
    const check_touch_t *touch;
    const check_access_t *now;
} racing_t;

/* Checks accesses to the same bytes by another address. Lives there that have ended are earlier owners
 * (rule 7). */
static void race_by_address(strata_checker_t *checker, check_life_t *other, uint64_t shift, void *context) {
    const racing_t *racing = context;
    const check_access_t *now = racing->now;
    for (size_t i = 0; other->alive && i < other->access_count; i++) {
        const check_access_t *old = &other->accesses[i];
        const check_access_t here = {.begin = old->begin + shift, .end = old->end + shift};
        if (check_clock_get(racing->touch->clock, old->use.actor) >= old->use.epoch) continue;
        if (!(old->write || now->write) || !overlaps(&here, now)) continue;
        check_report_history(checker, &(check_fault_t){.kind = STRATA_HAZARD_RACE,
                                                       .rule = 1,
                                                       .life = racing->life,
                                                       .actor = now->use.actor,
                                                       .note = now->use.note,
                                                       .old = &old->use});
        return;
    }
}

void check_race(strata_checker_t *checker, check_life_t *life, const check_touch_t *touch, const check_use_t *use) {
    check_access_t now = {.begin = strata_max(touch->address, life->address), .write = touch->write, .use = *use};
    now.end = strata_min(touch->address + touch->size, life->address + life->size);
    for (size_t i = 0; i < life->access_count;) {
        const check_access_t *old = &life->accesses[i];
        bool ordered = check_clock_get(touch->clock, old->use.actor) >= old->use.epoch;
        if (!ordered && (old->write || now.write) && overlaps(old, &now)) {
            check_report_history(
                checker,
                &(check_fault_t){
                    .kind = STRATA_HAZARD_RACE, .rule = 1, .life = life, .actor = use->actor, .note = use->note, .old = &old->use});
            forget(life, i);
        } else if (stands_for(&now, old, touch->clock)) {
            forget(life, i);
        } else {
            i++;
        }
    }
    check_each_alias(checker, now.begin, now.end - now.begin, race_by_address, &(racing_t){life, touch, &now});
    remember(checker, life, &now);
}
