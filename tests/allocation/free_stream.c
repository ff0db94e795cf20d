/* Frees that a stream has not reached, and the meter of what is deferred. */
#include "allocation/uses/free_stream.h"

#include "allocation/report/meter.h"
#include "tests/allocation/bench.h"

enum { FREES = 3, LONG = 1000 * 1000 };

typedef struct pending {
    bench_t bench;
    strata_free_stream_t frees;
    uint64_t live;
} pending_t;

/* Blocks of 1, 2 and 3 MiB are freed on a stream that is busy. */
static void begin(pending_t *p) {
    bench_open_cache(&p->bench, 0, NULL);
    p->live = 6 * MIB;
    ASSERT_OK(strata_free_stream_init(&p->frees, p->bench.stack));
    ASSERT_OK(strata_free_stream_make(&p->frees));
    ASSERT_OK(strata_domain_claim(p->bench.domain, p->live));
    strata_domain_count(p->bench.domain, p->live);
    ASSERT_OK(strata_device_work(p->bench.device, p->frees.stream, LONG, NULL, 0));
    for (uint64_t i = 1; i <= FREES; i++) strata_free_stream_note(&p->frees, i * MIB, &p->live);
    EXPECT_EQ(p->live, 0);
    EXPECT_EQ(p->frees.pending_bytes, 6 * MIB);
}

static uint64_t collect(pending_t *p) {
    strata_lock(&p->bench.stack->lock);
    uint64_t freed = strata_free_stream_collect(&p->frees);
    strata_unlock(&p->bench.stack->lock);
    return freed;
}

static void end(pending_t *p) {
    EXPECT_EQ(strata_domain_reserved(p->bench.domain), 0);
    strata_free_stream_destroy(&p->frees);
    bench_close(&p->bench);
}

#define EXPECT_TOLD(place, value, what)                                                                                            \
    do {                                                                                                                           \
        __typeof__(place) before_ = (place);                                                                                       \
        (place) = (__typeof__(place))(value);                                                                                      \
        EXPECT_STATUS(STRATA_E_CORRUPT, strata_free_stream_validate(&p.frees));                                                    \
        EXPECT_CONTAINS(strata_last_error()->text, what);                                                                          \
        (place) = before_;                                                                                                         \
        EXPECT_OK(strata_free_stream_validate(&p.frees));                                                                          \
    } while (0)

TEST(free_stream, validate_finds_planted_faults) {
    pending_t p;
    begin(&p);
    strata_pending_free_t *first = strata_node(&p.frees.frees, p.frees.first);
    EXPECT_OK(strata_free_stream_validate(&p.frees));
    EXPECT_TOLD(first->number, 2, "not in order");
    EXPECT_TOLD(first->bytes, 2 * MIB, "the end or the sum");
    EXPECT_TOLD(first->next, 0, "the end or the sum");
    EXPECT_TOLD(p.frees.last, p.frees.first, "the end or the sum");
    EXPECT_TOLD(p.frees.pending_bytes, 5 * MIB, "the end or the sum");
    EXPECT_EQ(collect(&p), 0);
    strata_free_stream_wait(&p.frees);
    EXPECT_EQ(p.frees.pending_bytes, 0);
    EXPECT_EQ(strata_free_stream_last(&p.frees), NULL);
    end(&p);
}

/* Where the end of the work cannot be marked the host waits for it. */
TEST(free_stream, a_free_that_no_event_marks_is_waited_for) {
    static const strata_device_call_t refused[] = {STRATA_CALL_event_record, STRATA_CALL_event_create};
    for (int i = 0; i < 2; i++) {
        pending_t p;
        begin(&p);
        uint64_t end_of_work = strata_sim_stream_end(p.bench.device, p.frees.stream);
        p.live = MIB;
        ASSERT_OK(strata_domain_claim(p.bench.domain, MIB));
        strata_domain_count(p.bench.domain, MIB);
        strata_events_t *events = &p.bench.domain->events;
        strata_handle_t taken[64];
        uint32_t count = 0;
        while (i == 1 && (taken[count] = strata_events_take(events)) != NULL) count++;
        ASSERT_OK(strata_sim_fail(p.bench.device, refused[i], 1, true, STRATA_E_DEVICE));
        strata_free_stream_note(&p.frees, MIB, &p.live);
        strata_sim_clear_faults(p.bench.device);
        while (count > 0) strata_events_give(events, taken[--count]);
        EXPECT_EQ(p.live, 0);
        EXPECT_GE(strata_sim_now(p.bench.world), end_of_work);
        EXPECT_EQ(strata_domain_reserved(p.bench.domain), 6 * MIB);
        EXPECT_EQ(collect(&p), 6 * MIB);
        end(&p);
    }
}

TEST(meter, a_full_one_forgets_what_passes_first) {
    strata_meter_t meter;
    ASSERT_OK(strata_meter_init(&meter));
    uint32_t capacity = meter.capacity;
    meter.capacity = 2;
    strata_meter_add(&meter, 0, 20, 200);
    strata_meter_add(&meter, 0, 10, 100);
    EXPECT_EQ(strata_meter_peak(&meter), 300);
    strata_meter_add(&meter, 0, 30, 400);
    EXPECT_EQ(strata_meter_peak(&meter), 600);
    EXPECT_EQ(meter.count, 2);
    /* At 25 what was ready at 20 is deferred no more. */
    strata_meter_add(&meter, 25, 40, 8);
    EXPECT_EQ(meter.bytes, 408);
    EXPECT_EQ(strata_meter_peak(&meter), 600);
    meter.capacity = capacity;
    strata_meter_destroy(&meter);
}

/* What is ready at the very moment is deferred no more. */
TEST(meter, what_is_ready_now_does_not_count) {
    strata_meter_t meter;
    ASSERT_OK(strata_meter_init(&meter));
    strata_meter_add(&meter, 10, 20, 100);
    strata_meter_add(&meter, 10, 10, 1000);
    strata_meter_add(&meter, 20, 30, 50);
    EXPECT_EQ(strata_meter_peak(&meter), 100);
    strata_meter_add(&meter, 29, 31, 60);
    EXPECT_EQ(strata_meter_peak(&meter), 110);
    strata_meter_destroy(&meter);
}
