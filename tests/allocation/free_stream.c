/* Frees that a stream has not reached, and the uses that they wait in. */
#include "allocation/uses/free_stream.h"

#include "tests/allocation/bench.h"

enum { FREES = 3, LONG = 1000 * 1000 };

typedef struct pending {
    bench_t bench;
    strata_uses_t uses;
    strata_free_stream_t frees;
} pending_t;

static strata_call_t enter(pending_t *p) {
    strata_call_t call = {.stack = p->bench.stack};
    strata_lock(&p->bench.stack->lock);
    call.held[0] = p->bench.stack;
    return call;
}

static bool note(pending_t *p, uint64_t bytes) {
    strata_call_t call = enter(p);
    bool waits = strata_free_stream_note(&p->frees, bytes, &call) != 0;
    (void)strata_call_unlock(&call);
    return waits;
}

/* Blocks of 1, 2 and 3 MiB are freed on a stream that is busy. */
static void begin(pending_t *p) {
    bench_open_cache(&p->bench, 0, NULL);
    ASSERT_OK(strata_uses_init(&p->uses, p->bench.stack, STRATA_USES_BY_STREAM));
    p->frees = (strata_free_stream_t){.uses = &p->uses};
    strata_call_t call = enter(p);
    EXPECT_TRUE(strata_free_stream_make(&p->frees, &call));
    (void)strata_call_unlock(&call);
    ASSERT_OK(strata_device_work(p->bench.device, p->frees.stream, LONG, NULL, 0));
    for (uint64_t i = 1; i <= FREES; i++) EXPECT_TRUE(note(p, i * MIB));
    EXPECT_EQ(p->uses.pending_bytes, 6 * MIB);
}

static uint64_t collect(pending_t *p) {
    strata_record_t *record;
    uint64_t bytes, freed = 0;
    strata_call_t call = enter(p);
    for (uint32_t done = strata_uses_poll(&p->uses); strata_uses_pop_done(&p->uses, &done, &record, &bytes); freed += bytes)
        EXPECT_EQ(record, NULL);
    (void)strata_call_unlock(&call);
    return freed;
}

static void synchronise(pending_t *p) {
    strata_call_t call = enter(p);
    strata_free_stream_synchronise(&p->frees, &call);
    (void)strata_call_unlock(&call);
}

static void end(pending_t *p) {
    strata_free_stream_destroy(&p->frees);
    strata_uses_destroy(&p->uses);
    bench_close(&p->bench);
}

#define EXPECT_TOLD(place, value, what)                                                                                            \
    do {                                                                                                                           \
        __typeof__(place) before_ = (place);                                                                                       \
        (place) = (__typeof__(place))(value);                                                                                      \
        EXPECT_STATUS(STRATA_E_CORRUPT, strata_uses_validate(&p.uses, "bench"));                                                   \
        EXPECT_CONTAINS(strata_last_error()->text, what);                                                                          \
        (place) = before_;                                                                                                         \
        EXPECT_OK(strata_uses_validate(&p.uses, "bench"));                                                                         \
    } while (0)

TEST(uses, validate_finds_planted_faults) {
    OPENED(pending_t, p, end, begin(&p));
    strata_use_t *first = strata_use_at(&p.uses, p.uses.first);
    strata_user_t *user = strata_user_at(&p.uses.users, p.frees.user);
    EXPECT_OK(strata_uses_validate(&p.uses, "bench"));
    EXPECT_TOLD(first->prev_waiting, 2, "the list of deferred frees is broken");
    EXPECT_TOLD(first->next_waiting, 0, "the end of the list of deferred frees");
    EXPECT_TOLD(p.uses.last, p.uses.first, "the end of the list of deferred frees");
    EXPECT_TOLD(first->bytes, 2 * MIB, "the sum of deferred bytes");
    EXPECT_TOLD(p.uses.pending_bytes, 5 * MIB, "the sum of deferred bytes");
    EXPECT_TOLD(p.bench.stack->figures.deferred_bytes, MIB, "the sum of deferred bytes");
    EXPECT_TOLD(first->next, first->next_waiting, "two blocks wait for one use");
    EXPECT_TOLD(first->next, p.uses.nodes.used, "a block's list of uses is broken");
    EXPECT_TOLD(first->unfinished, 2, "a block waits without a use");
    EXPECT_TOLD(first->counted, false, "a block waits without a use");
    EXPECT_TOLD(first->unobservable, true, "a block waits without a use");
    EXPECT_TOLD(first->state, STRATA_USE_UNOBSERVABLE, "a block waits without a use");
    EXPECT_TOLD(first->event, NULL, "a use has no event");
    EXPECT_TOLD(first->user, 0, "a use of another stream");
    EXPECT_TOLD(first->next_of_user, 0, "the end of a stream's uses");
    EXPECT_TOLD(first->next_of_user, p.uses.nodes.used, "a stream's list of uses is broken");
    EXPECT_TOLD(user->first, 0, "the end of a stream's uses");
    EXPECT_TOLD(user->last, p.uses.first, "the end of a stream's uses");
    EXPECT_TOLD(user->prev_awaited, p.frees.user, "the list of awaited streams is broken");
    EXPECT_TOLD(p.uses.last_awaited, 0, "the end of the list of awaited streams");
    EXPECT_TOLD(p.uses.users.index.count, 5, "");
    EXPECT_TOLD(p.uses.nodes.unused, 5, "");
    EXPECT_EQ(collect(&p), 0);
    synchronise(&p);
    EXPECT_EQ(collect(&p), 6 * MIB);
    EXPECT_EQ(p.uses.pending_bytes, 0);
    EXPECT_EQ(strata_free_stream_last(&p.frees), NULL);
}

/* Where the end of the work cannot be marked the host waits for it. */
TEST(free_stream, a_free_that_no_event_marks_is_waited_for) {
    static const strata_device_call_t refused[] = {STRATA_CALL_event_record, STRATA_CALL_event_create};
    for (int i = 0; i < 2; i++) {
        OPENED(pending_t, p, end, begin(&p));
        uint64_t end_of_work = strata_sim_stream_end(p.bench.device, p.frees.stream);
        strata_events_t *events = &p.bench.domain->events;
        strata_handle_t taken[64];
        uint32_t count = 0;
        while (i == 1 && (taken[count] = strata_events_acquire(events)) != NULL) count++;
        ASSERT_OK(strata_sim_fail(p.bench.device, refused[i], 1, true, STRATA_E_DEVICE));
        EXPECT_FALSE(note(&p, MIB));
        strata_sim_clear_faults(p.bench.device);
        while (count > 0) strata_events_release(events, taken[--count]);
        EXPECT_GE(strata_sim_now(p.bench.world), end_of_work);
        EXPECT_EQ(p.frees.frees, FREES);
        EXPECT_EQ(collect(&p), 6 * MIB);
        EXPECT_OK(strata_uses_validate(&p.uses, "bench"));
    }
}
