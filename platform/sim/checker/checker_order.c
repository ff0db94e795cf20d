/* The happens-before order of streams, events and host threads (rules 1 to 4). */
#include <stdlib.h>

#include "platform/sim/checker/checker_internal.h"

/* The checker's part of an event: the clock of its stream at the record. */
struct sim_recorded {
    check_clock_t clock;
    uint32_t actor;
    uint64_t number;
};

void check_actor_join(strata_checker_t *checker, uint32_t actor, const check_clock_t *clock) {
    check_actor_t *at = check_actor(checker, actor);
    if (&at->clock != clock && check_clock_join(checker, &at->clock, clock)) at->version++;
}

uint64_t check_tick(strata_checker_t *checker, uint32_t actor) {
    check_actor_t *at = check_actor(checker, actor);
    uint64_t count = check_clock_get(&at->clock, actor) + 1;
    check_clock_raise(checker, &at->clock, actor, count);
    at->version++;
    return count;
}

/* ---- the order before a stream's next operation ---- */

/* Rule 4: the legacy stream's next operation comes after all blocking streams, destroyed ones too. So
 * does a host thread that waited for the legacy stream. */
static void join_blocking(strata_checker_t *checker, uint32_t actor, const sim_device_t *device) {
    for (uint32_t i = 1; i < checker->actor_count; i++) {
        const check_actor_t *at = check_actor(checker, i);
        bool ordered = at->device == (int32_t)device->base.ordinal && at->blocking && !at->destroyed;
        if (ordered) check_actor_join(checker, actor, &at->clock);
    }
    check_actor_join(checker, actor, &checker->done_blocking[device->base.ordinal]);
}

static void join_legacy(strata_checker_t *checker, uint32_t stream, uint32_t legacy) {
    check_actor_t *at = check_actor(checker, stream);
    const check_actor_t *order = check_actor(checker, legacy);
    if (legacy == 0 || at->legacy_version == order->version) return;
    at->legacy_version = order->version;
    check_actor_join(checker, stream, &order->clock);
}

uint32_t check_begin_operation(strata_checker_t *checker, sim_stream_t *stream) {
    uint32_t actor = check_stream(checker, stream), host = check_host(checker);
    check_actor_t *at = check_actor(checker, actor);
    const check_actor_t *caller = check_actor(checker, host);
    if (at->host != host || at->host_version != caller->version) {
        at->host = host;
        at->host_version = caller->version;
        check_actor_join(checker, actor, &caller->clock);
    }
    if (at->legacy) join_blocking(checker, actor, stream->device);
    else if (at->blocking) join_legacy(checker, actor, stream->device->legacy.actor);
    return actor;
}

/* A destroyed stream leaves its clock to its device, since only a wait for the whole device covers its
 * work. The legacy stream comes after it only from its next operation on, because it passes its clock
 * on to every blocking stream. */
void check_on_stream_destroyed(sim_stream_t *stream) {
    strata_checker_t *checker = stream->device->world->checker;
    if (!checker || !stream->actor) return;
    uint32_t ordinal = stream->device->base.ordinal;
    check_actor_t *at = check_actor(checker, stream->actor);
    at->destroyed = true;
    check_clock_join(checker, &checker->done[ordinal], &at->clock);
    if (at->blocking) check_clock_join(checker, &checker->done_blocking[ordinal], &at->clock);
    check_clock_end(&at->clock);
}

const check_clock_t *check_clock_of(const strata_checker_t *checker, uint32_t actor) {
    const check_actor_t *at = &checker->actors[actor];
    return at->destroyed ? &checker->done[at->device] : &at->clock;
}

/* ---- events (rule 2) ---- */

void check_event_end(sim_event_t *event) {
    if (event->recorded) check_clock_end(&event->recorded->clock);
    free(event->recorded);
    event->recorded = NULL;
}

void check_on_record(sim_stream_t *stream, sim_event_t *event) {
    strata_checker_t *checker = stream->device->world->checker;
    if (!checker) return;
    if (!event->recorded) event->recorded = calloc(1, sizeof *event->recorded);
    if (!event->recorded) {
        checker->incomplete = true;
        return;
    }
    if (!event->recorded->number) event->recorded->number = ++checker->events;
    uint32_t actor = check_begin_operation(checker, stream);
    event->recorded->actor = actor;
    check_clock_copy(checker, &event->recorded->clock, &check_actor(checker, actor)->clock);
    check_note(checker, CHECK_NOTE_RECORDED, actor, 0, event->recorded->number);
}

/* Returns the clock of an event. Without rule 2 that is everything its stream has by now. */
static const check_clock_t *event_clock(strata_checker_t *checker, const struct sim_recorded *recorded) {
    return check_rule(checker, 2) ? &recorded->clock : check_clock_of(checker, recorded->actor);
}

void check_on_wait(sim_stream_t *stream, const sim_event_t *event) {
    strata_checker_t *checker = stream->device->world->checker;
    if (!checker || stream->capture || !event->recorded) return;
    uint32_t actor = check_begin_operation(checker, stream);
    check_actor_join(checker, actor, event_clock(checker, event->recorded));
    check_note(checker, CHECK_NOTE_WAITED, actor, 0, event->recorded->number);
}

/* ---- operations that a host thread has seen complete (rule 3) ---- */

void check_on_passed(const sim_event_t *event) {
    strata_checker_t *checker = event->device->world->checker;
    if (!checker || !event->recorded) return;
    uint32_t host = check_host(checker);
    check_actor_join(checker, host, event_clock(checker, event->recorded));
    check_note(checker, CHECK_NOTE_PASSED, host, 0, event->recorded->number);
}

void check_on_synchronised(sim_stream_t *stream) {
    strata_checker_t *checker = stream->device->world->checker;
    if (!checker) return;
    uint32_t actor = check_stream(checker, stream), host = check_host(checker);
    if (stream->legacy) join_blocking(checker, host, stream->device);
    check_actor_join(checker, host, &check_actor(checker, actor)->clock);
    check_note(checker, CHECK_NOTE_SYNCHRONISED, actor, 0, 0);
}

void check_on_device_done(sim_device_t *device) {
    strata_checker_t *checker = device->world->checker;
    if (!checker) return;
    uint32_t host = check_host(checker);
    int32_t ordinal = (int32_t)device->base.ordinal;
    for (uint32_t i = 1; i < checker->actor_count; i++) {
        const check_actor_t *at = check_actor(checker, i);
        if (at->device == ordinal && !at->destroyed) check_actor_join(checker, host, &at->clock);
    }
    check_actor_join(checker, host, &checker->done[ordinal]);
    check_note(checker, CHECK_NOTE_DEVICE, host, 0, 0);
}

/* ---- edges between host threads (rule 3) ---- */

static check_clock_t *clock_of(strata_checker_t *checker, check_map_t *map, uint64_t key) {
    uint64_t *index = check_map_at(map, key, true);
    void *clocks = checker->clocks;
    if (index && *index) return &checker->clocks[*index - 1];
    if (!index || !sim_room(&clocks, checker->clock_count, sizeof *checker->clocks)) {
        checker->incomplete = true;
        return NULL;
    }
    checker->clocks = clocks;
    checker->clocks[checker->clock_count] = (check_clock_t){0};
    *index = ++checker->clock_count;
    return &checker->clocks[*index - 1];
}

static void acquire_clock(strata_checker_t *checker, check_map_t *map, uint64_t key) {
    const uint64_t *index = check_map_at(map, key, false);
    if (index && *index) check_actor_join(checker, check_host(checker), &checker->clocks[*index - 1]);
}

static void release_clock(strata_checker_t *checker, check_map_t *map, uint64_t key) {
    uint32_t host = check_host(checker);
    check_clock_t *clock = clock_of(checker, map, key);
    if (clock) check_clock_join(checker, clock, &check_actor(checker, host)->clock);
}

void check_on_lock(strata_sim_t *world, const strata_lock_t *lock) {
    strata_lock(&world->lock);
    acquire_clock(world->checker, &world->checker->locks, (uintptr_t)lock);
    strata_unlock(&world->lock);
}

void check_on_unlock(strata_sim_t *world, const strata_lock_t *lock) {
    strata_lock(&world->lock);
    release_clock(world->checker, &world->checker->locks, (uintptr_t)lock);
    strata_unlock(&world->lock);
}

void strata_checker_publish(strata_checker_t *checker, uint64_t key) {
    strata_lock(&checker->world->lock);
    release_clock(checker, &checker->keys, key);
    strata_unlock(&checker->world->lock);
}

void strata_checker_observe(strata_checker_t *checker, uint64_t key) {
    strata_lock(&checker->world->lock);
    acquire_clock(checker, &checker->keys, key);
    strata_unlock(&checker->world->lock);
}
