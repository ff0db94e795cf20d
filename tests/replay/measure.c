/* What is measured, counted by hand: no allocator, only a device and its clock. */
#include "lab/replay/run/measure.h"

#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

enum { CLOCK_NS = 20, OPERATIONS = 3, ASKED = 4, EACH_NS = 100 };

static uint64_t inside(const strata_machine_t *machine) { return atomic_load(&machine->devices[0]->host_ns); }

static void ask(strata_device_t *device, strata_handle_t event) {
    EXPECT_OK(strata_device_event_record(device, event, NULL));
    EXPECT_OK(strata_device_event_query(device, event));
    strata_device_event_ready_at(device, event);
    EXPECT_OK(strata_device_stream_query(device, NULL));
}

/* The clock is read twice for an operation and for each time that it asks the device: of either pair one reading lies outside. */
TEST(measure, reading_the_clock_is_not_the_allocators_own_time) {
    strata_target_t target = {.profile = strata_sim_profile("h100")};
    strata_timeline_options_t options = {0};
    strata_machine_t machine;
    strata_timeline_t timeline;
    strata_figures_t figures = {0};
    strata_handle_t event;
    double own_ns;
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(COLUMNS);
    ASSERT_NE(trace, NULL);
    ASSERT_OK(strata_machine_open(&target, 1, &machine));
    ASSERT_OK(strata_device_event_create(machine.devices[0], &event));
    ASSERT_OK(strata_timeline_begin(&timeline, trace, &machine, &options));
    strata_measure_t measure = {.trace = trace, .machine = &machine, .timeline = &timeline, .figures = &figures};
    strata_measure_begin(&measure);
    measure.clock_ns = CLOCK_NS;
    ask(machine.devices[0], event); /* the open's */
    strata_measure_rows(&measure, trace->count);
    uint64_t before = inside(&machine);
    ask(machine.devices[0], event);
    EXPECT_OK(strata_timeline_sync_device(&timeline, 0)); /* the program's, which is not timed */
    measure.wall_ns = inside(&machine) - before + CLOCK_NS * (OPERATIONS + ASKED) + EACH_NS * OPERATIONS;
    measure.timed = OPERATIONS;
    strata_measure_finish(&measure, &own_ns);
    EXPECT_NEAR(own_ns, EACH_NS, 1e-9);
    EXPECT_OK(strata_device_event_destroy(machine.devices[0], event));
    strata_timeline_end(&timeline);
    strata_machine_close(&machine);
}

TEST(measure, an_operation_that_was_not_made_took_no_time) {
    strata_target_t target = {.profile = strata_sim_profile("h100")};
    strata_timeline_options_t options = {0};
    strata_machine_t machine;
    strata_timeline_t timeline;
    strata_figures_t figures = {0};
    double own_ns = 1;
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(COLUMNS);
    ASSERT_NE(trace, NULL);
    ASSERT_OK(strata_machine_open(&target, 1, &machine));
    ASSERT_OK(strata_timeline_begin(&timeline, trace, &machine, &options));
    strata_measure_t measure = {.trace = trace, .machine = &machine, .timeline = &timeline, .figures = &figures};
    strata_measure_begin(&measure);
    strata_measure_rows(&measure, trace->count);
    measure.wall_ns = inside(&machine) + EACH_NS;
    strata_measure_finish(&measure, &own_ns);
    EXPECT_EQ(own_ns, 0);
    strata_timeline_end(&timeline);
    strata_machine_close(&machine);
}

/* Operations that are timed, of those of a trace of so many rows, on a simulated device. */
static uint64_t timed_of(size_t rows, bool followed) {
    strata_target_t target = {.profile = strata_sim_profile("h100")};
    strata_timeline_options_t options = {0};
    strata_machine_t machine;
    strata_timeline_t timeline;
    strata_figures_t figures = {0};
    strata_device_ledger_t ledger;
    uint64_t timed = 0;
    strata_trace_t trace = {.count = 0};
    EXPECT_OK(strata_machine_open(&target, 1, &machine));
    EXPECT_OK(strata_timeline_begin(&timeline, &trace, &machine, &options));
    trace.count = rows;
    strata_measure_t measure = {.trace = &trace, .machine = &machine, .timeline = &timeline, .figures = &figures};
    strata_measure_begin(&measure);
    if (followed) strata_measure_follow(&measure, &ledger);
    strata_measure_rows(&measure, rows);
    for (size_t i = 0; i < rows; i++) {
        bool is = strata_measure_is_timed(&measure);
        EXPECT_EQ(machine.devices[0]->timed, is);
        timed += is;
    }
    strata_timeline_end(&timeline);
    strata_machine_close(&machine);
    return timed;
}

/* Who follows wants to know of every call. */
TEST(measure, of_many_rows_a_sample_is_timed) {
    EXPECT_EQ(timed_of(100000, false), 100000);
    EXPECT_NEAR((double)timed_of(1000000, false), 65536, 10000);
    EXPECT_NEAR((double)timed_of(200000, false), 65536, 10000);
    EXPECT_EQ(timed_of(1000000, true), 1000000);
}

/* The device calls' time after row k is k + 1: whichever row turns out to begin the last third, the time before it is known. */
TEST(measure, the_moments_that_may_begin_the_last_third_are_remembered) {
    enum { MOMENTS = 20000 };
    strata_machine_t machine = {.count = 0};
    strata_timeline_t timeline = {.trace = NULL};
    strata_measure_t measure = {.machine = &machine, .timeline = &timeline};
    for (size_t row = 0; row < MOMENTS && !strata_test_has_failed(); row++) {
        size_t steady = strata_measure_steady_row(row + 1);
        timeline.own.call_ns = 0 - (uint64_t)(row + 1);
        ASSERT_OK(strata_measure_add_point(&measure, row));
        strata_measure_steady_from(&measure, steady);
        EXPECT_EQ(measure.steady.call_ns, steady);
    }
    EXPECT_LT(measure.point_capacity, MOMENTS);
    strata_measure_end(&measure);
}
