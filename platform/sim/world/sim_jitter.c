/* A host that stumbles: hold-ups of the host, fixed by the world's seed (docs/profiles.md, "A host that
 * stumbles").
 *
 * Virtual time is cut into slots, each with at most one hold-up. A hash of the seed, the thread and the
 * slot decides if it occurs, when, and how long it takes. So a hold-up belongs to a moment of time,
 * whatever the host does then. All strategies under one seed meet the same hold-ups. */
#include "platform/sim/world/sim_internal.h"

#define SLOT_NS     UINT64_C(1000000)
#define BUSY_SLOTS  256 /* slots of a span in which a neighbor is busy throughout, or not at all */
#define BUSY_ONE_IN 8 /* one span in this many is busy */
#define WAKING_NS   80000 /* a sleep ends this much later than requested */
/* Max slots examined. A longer step ignores the hold-ups at its beginning, because it is idle time. */
#define SLOTS_LOOKED_AT (UINT64_C(1) << 20)
#define LONGEST_NS      UINT64_C(4000000)

typedef struct row {
    uint32_t often; /* slots out of 10,000 that have such a hold-up */
    uint32_t least_ns, most_ns;
} row_t;

static const row_t quiet[] = {{2070, 10000, 20000}, {1320, 20000, 40000}, {123, 40000, 80000}, {10, 80000, 640000}, {0}};
static const row_t busy[] = {{3500, 1000000, LONGEST_NS}, {0}};

static uint64_t hash(uint64_t value) {
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

typedef struct hold_up {
    uint64_t at, ns; /* ns is 0 if there is none */
} hold_up_t;

static hold_up_t hold_up_of(uint64_t seed, uint64_t slot) {
    bool is_busy = hash(seed ^ hash(slot / BUSY_SLOTS)) % BUSY_ONE_IN == 0;
    uint64_t drawn = hash(hash(seed) ^ slot), dice = drawn % 10000, length = hash(drawn);
    for (const row_t *row = is_busy ? busy : quiet; row->often; row++) {
        if (dice < row->often)
            return (hold_up_t){.at = slot * SLOT_NS + (drawn >> 32) % SLOT_NS,
                               .ns = row->least_ns + length % (row->most_ns - row->least_ns + 1)};
        dice -= row->often;
    }
    return (hold_up_t){0};
}

/* Returns the arrival of a thread that would be at `until` without hold-ups. Each hold-up that begins
 * before then delays a thread that works (`works`) by its whole length. A thread that waits is delayed
 * only by a hold-up that outlasts the wait. */
static uint64_t add_delays(strata_sim_t *world, uint64_t from, uint64_t until, bool works) {
    uint64_t seed = hash(world->host_jitter) + sim_thread(world)->index, slot = from / SLOT_NS, last = until / SLOT_NS;
    if (last - slot > SLOTS_LOOKED_AT) slot = last - SLOTS_LOOKED_AT;
    for (; slot <= until / SLOT_NS; slot++) {
        hold_up_t hold_up = hold_up_of(seed, slot);
        if (hold_up.ns == 0 || hold_up.at < from || hold_up.at >= until) continue;
        from = hold_up.at + hold_up.ns; /* hold-ups do not overlap */
        until = works ? until + hold_up.ns : strata_max(until, from);
    }
    return until;
}

static bool applies(const strata_sim_t *world, uint64_t from, uint64_t until) {
    return world->host_jitter != 0 && until > from && until < STRATA_NEVER / 2;
}

uint64_t sim_after_work(strata_sim_t *world, uint64_t from, uint64_t until) {
    return applies(world, from, until) ? add_delays(world, from, until, true) : until;
}

uint64_t sim_after_wait(strata_sim_t *world, uint64_t from, uint64_t until) {
    return applies(world, from, until) ? add_delays(world, from, until, false) : until;
}

uint64_t sim_after_sleep(strata_sim_t *world, uint64_t from, uint64_t until) {
    return applies(world, from, until) ? add_delays(world, from, until + WAKING_NS, false) : until;
}
