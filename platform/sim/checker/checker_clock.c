/* Vector clocks, and the actors that have one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/sim/checker/checker_internal.h"

static bool grow_clock(strata_checker_t *checker, check_clock_t *clock, uint32_t count) {
    if (count <= clock->count) return true;
    uint32_t room = 4;
    while (room < count) room *= 2;
    uint64_t *more = realloc(clock->at, room * sizeof *more);
    if (!more) {
        checker->incomplete = true;
        return false;
    }
    memset(more + clock->count, 0, (room - clock->count) * sizeof *more);
    clock->at = more;
    clock->count = room;
    return true;
}

bool check_clock_join(strata_checker_t *checker, check_clock_t *to, const check_clock_t *from) {
    bool learned = false;
    if (!grow_clock(checker, to, from->count)) return false;
    for (uint32_t i = 0; i < from->count; i++) {
        if (from->at[i] <= to->at[i]) continue;
        to->at[i] = from->at[i];
        learned = true;
    }
    return learned;
}

bool check_clock_raise(strata_checker_t *checker, check_clock_t *to, uint32_t actor, uint64_t count) {
    if (!grow_clock(checker, to, actor + 1) || to->at[actor] >= count) return false;
    to->at[actor] = count;
    return true;
}

void check_clock_end(check_clock_t *clock) {
    free(clock->at);
    *clock = (check_clock_t){0};
}

check_actor_t *check_actor(strata_checker_t *checker, uint32_t actor) { return &checker->actors[actor]; }

uint32_t check_actor_new(strata_checker_t *checker, int32_t device, const char *label) {
    void *actors = checker->actors;
    if (!sim_room(&actors, checker->actor_count, sizeof *checker->actors)) {
        checker->incomplete = true;
        return 0;
    }
    checker->actors = actors;
    check_actor_t *actor = &checker->actors[checker->actor_count];
    *actor = (check_actor_t){.device = device, .version = 1};
    snprintf(actor->label, sizeof actor->label, "%s", label);
    return checker->actor_count++;
}

uint32_t check_host(strata_checker_t *checker) {
    sim_thread_t *thread = sim_thread(checker->world);
    char label[CHECK_LABEL];
    if (thread->actor) return thread->actor;
    snprintf(label, sizeof label, "thread %llu", (unsigned long long)thread->number);
    if (check_rule(checker, 3)) return thread->actor = check_actor_new(checker, -1, label);
    if (!checker->only_host) checker->only_host = check_actor_new(checker, -1, "the host");
    return thread->actor = checker->only_host;
}

uint32_t check_stream(strata_checker_t *checker, sim_stream_t *stream) {
    char label[CHECK_LABEL];
    if (stream->actor) return stream->actor;
    if (stream->legacy) snprintf(label, sizeof label, "the legacy stream");
    else if (stream->thread) snprintf(label, sizeof label, "a thread's own stream");
    /* Handles are recycled; the number is the stream's own. */
    else snprintf(label, sizeof label, "stream 0x%llx #%u", (unsigned long long)stream->handle, checker->actor_count);
    stream->actor = check_actor_new(checker, (int32_t)stream->device->base.ordinal, label);
    check_actor_t *actor = check_actor(checker, stream->actor);
    actor->legacy = stream->legacy;
    actor->blocking = stream->flags == STRATA_STREAM_BLOCKING || !check_rule(checker, 4);
    return stream->actor;
}

void check_clock_copy(strata_checker_t *checker, check_clock_t *to, const check_clock_t *from) {
    if (!grow_clock(checker, to, from->count)) return;
    if (from->count) memcpy(to->at, from->at, from->count * sizeof *to->at);
    if (to->count > from->count) memset(to->at + from->count, 0, (to->count - from->count) * sizeof *to->at);
}
