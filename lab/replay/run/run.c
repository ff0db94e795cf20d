#include "lab/replay/run/run.h"

#include <stdio.h>
#include <string.h>

#include "facade/open/idle.h"
#include "facade/open/life.h"
#include "lab/replay/run/state.h"
#include "lab/replay/timeline/names.h"
#include "platform/host/host_memory.h"

enum { PROGRESS_ROWS = 8192, HAZARDS_SHOWN = 3 };

/* Updates the peak if more is reserved than ever before. */
static void update_peak(strata_running_t *run, size_t rows, uint64_t *most) {
    if (run->measure.reserved <= *most) return;
    *most = run->measure.reserved;
    run->result->peak_row = rows;
}

static strata_run_moment_t moment_of(const strata_running_t *run, size_t rows) {
    return (strata_run_moment_t){
        .trace = run->trace, .timeline = &run->timeline, .facade = run->facade, .rows = rows, .result = run->result, .run = run};
}

static void call_follower(strata_running_t *run, size_t row, uint64_t *chunk_calls) {
    const strata_run_follow_t *follow = run->options->follow;
    strata_measure_sample(&run->measure, row, follow);
    if (!follow->moment) return;
    strata_run_moment_t moment = moment_of(run, row);
    follow->moment(follow->context, &moment, run->measure.chunk_calls != *chunk_calls);
    *chunk_calls = run->measure.chunk_calls;
}

/* Returns true if progress was due. */
static bool report_progress(const strata_running_t *run, size_t row, size_t *reported_row) {
    if (row - *reported_row < PROGRESS_ROWS) return false;
    if (run->options->progress) run->options->progress(run->options->progress_context, row);
    *reported_row = row;
    return true;
}

static size_t run_rows(strata_running_t *run) {
    size_t all = run->trace->count, count = run->options->rows ? strata_min(run->options->rows, all) : all;
    size_t steady = strata_measure_steady_row(count), reported_row = 0, row = 0;
    uint64_t most = 0, chunk_calls = 0;
    bool marked = false;
    strata_measure_rows(&run->measure, all);
    while (row < count) {
        if (row >= steady && !marked) {
            strata_measure_steady(&run->measure);
            marked = true;
        }
        row += strata_run_row(run, row);
        update_peak(run, row, &most);
        if (run->options->follow) call_follower(run, row, &chunk_calls);
        (void)report_progress(run, row, &reported_row);
    }
    if (!marked) strata_measure_steady(&run->measure);
    return row;
}

static void inspect(const strata_running_t *run, size_t rows) {
    strata_run_moment_t moment = moment_of(run, rows);
    if (run->options->inspect && rows > 0) run->options->inspect(run->options->inspect_context, &moment);
}

strata_run_block_t strata_run_block(const strata_run_moment_t *moment, uint32_t lifetime) {
    const strata_served_t *served = &((const strata_running_t *)moment->run)->served[lifetime];
    return (strata_run_block_t){.address = served->address, .granted = served->granted, .live = served->ref != 0};
}

void strata_run_each_live(const strata_run_moment_t *moment, strata_run_live_fn live, void *context) {
    const strata_running_t *run = moment->run;
    for (uint32_t i = 0; i < run->trace->lifetimes; i++)
        if (run->served[i].ref) live(context, run->served[i].address, i);
}

/* ---- one run ----------------------------------------------------------------------------------------------------------- */

const char *strata_run_trace_name(const strata_trace_t *trace) {
    const char *slash = strrchr(trace->path, '/');
    return slash && slash[1] ? slash + 1 : trace->path;
}

static void describe(const strata_running_t *run, strata_figures_t *figures) {
    strata_device_t *device = run->machine.devices[0];
    uint64_t free_bytes = STRATA_FIGURE_NULL, total;
    strcpy(run->result->device, device->name);
    run->result->work_left_out = run->trace->has_work && !device->capabilities.work;
    figures->device = run->result->device;
    figures->gpu_lag_us = run->trace->has_work || !run->machine.world ? STRATA_FIGURE_NULL : run->options->timeline.lag_ns / 1000;
    figures->host_jitter = run->options->target.host_jitter ? run->options->target.host_jitter : STRATA_FIGURE_NULL;
    figures->capacity_bytes = run->options->target.capacity;
    if (figures->capacity_bytes == 0 && strata_device_mem_info(device, &free_bytes, &total) == STRATA_OK)
        figures->capacity_bytes = free_bytes;
}

/* Gives back idle memory while the program does nothing. Returns when to look next. */
static uint64_t check_idle(void *context) {
    strata_running_t *run = context;
    uint64_t due = strata_facade_check_idle(run->facade);
    for (uint32_t i = 0; i < run->machine.count; i++) strata_timeline_check_waits(&run->timeline, i);
    strata_measure_reserved(&run->measure);
    return due;
}

/* Stream 0 means requests that name no stream. It is served what a strategy preallocates for the default stream. */
static strata_status_t open_facade(strata_running_t *run, const strata_strategy_t *strategy) {
    strata_status_t status = strata_facade_begin_on(strategy, run->machine.devices, run->machine.count, 0, &run->facade);
    run->measure.facade = run->facade;
    /* A report reads every block of every stack, and a trace may have thousands of requests that fail. */
    if (status == STRATA_OK) strata_facade_of(run->facade)->reports_unread = run->options->follow == NULL;
    if (status == STRATA_OK) status = strata_measure_deferred(&run->measure);
    if (status == STRATA_OK) status = strata_names_of_streams(strategy, &run->timeline, &run->machine, run->facade);
    if (status == STRATA_OK) status = strata_names_default_streams(&run->timeline, &run->machine, run->facade);
    if (status == STRATA_OK) status = strata_facade_ready(run->facade);
    if (status == STRATA_OK && strata_facade_of(run->facade)->idle_after != STRATA_NEVER) {
        run->timeline.on_advance = check_idle;
        run->timeline.advance_context = run;
    }
    return status == STRATA_OK ? strata_names_of_pools(strategy, run->trace, run->facade, &run->pools) : status;
}

static void restart_measure(strata_running_t *run) {
    strata_measure_begin(&run->measure);
    if (run->options->follow) strata_measure_follow(&run->measure, &run->result->ledger);
}

/* Memory that a strategy gets at its open costs as much as memory that it gets later. If it gets any, the
 * program begins with the open. Calls at the open that get nothing do not count. */
static strata_status_t begin(strata_running_t *run, const strata_strategy_t *strategy) {
    run->measure = (strata_measure_t){
        .trace = run->trace, .machine = &run->machine, .timeline = &run->timeline, .figures = &run->result->figures};
    restart_measure(run);
    strata_status_t status = open_facade(run, strategy);
    if (strata_measure_made_calls(&run->measure)) return status;
    strata_timeline_start(&run->timeline);
    restart_measure(run);
    return status;
}

static strata_status_t prepare(strata_running_t *run, const strata_strategy_t *strategy) {
    const strata_trace_t *trace = run->trace;
    uint32_t devices = trace->devices ? trace->devices : 1;
    strata_status_t status = strata_machine_open(&run->options->target, devices, &run->machine);
    if (status != STRATA_OK) return status;
    describe(run, &run->result->figures);
    if (run->options->check) status = strata_watch_begin(&run->watch, &run->machine, &run->timeline);
    if (status != STRATA_OK) return status;
    size_t least = (size_t)trace->lifetimes + 1;
    run->room = strata_max(run->room, least);
    run->served = strata_host_new(run->room, sizeof *run->served);
    if (!run->served && run->room > least) run->served = strata_host_new(run->room = least, sizeof *run->served);
    run->kernel_times = strata_host_new((size_t)trace->stream_count + 1, sizeof *run->kernel_times);
    if (!run->served || !run->kernel_times) return STRATA_E_HOST_MEMORY;
    strata_host_will_fill(run->served, run->room * sizeof *run->served);
    status = strata_borrows_begin(&run->borrows, run->room);
    strata_steps_begin(&run->steps, trace);
    if (status == STRATA_OK) status = strata_timeline_begin(&run->timeline, trace, &run->machine, &run->options->timeline);
    if (status == STRATA_OK) strata_watch_name_streams(&run->watch);
    return status == STRATA_OK ? begin(run, strategy) : status;
}

/* Sets the number of hazards, and the first ones in words. */
static strata_status_t finish_watch(strata_running_t *run) {
    strata_checker_t *checker = run->watch.checker;
    run->result->figures.hazards = STRATA_FIGURE_NULL;
    if (!checker) return STRATA_OK;
    run->result->figures.hazards = strata_checker_hazards(checker);
    char *to = run->result->first_hazards;
    size_t room = sizeof run->result->first_hazards;
    const char *report;
    for (size_t i = 0; i < HAZARDS_SHOWN && (report = strata_checker_report(checker, i)) != NULL; i++) {
        int written = snprintf(to, room, "%s", report);
        if (written < 0 || (size_t)written >= room) break;
        to += written;
        room -= (size_t)written;
    }
    return strata_checker_complete(checker) ? STRATA_OK
                                            : strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory for the checker");
}

/* After the end of the trace, frees everything that it left live, so that only lost memory remains. */
static void free_all(strata_running_t *run) {
    for (uint32_t i = 0; i < run->trace->lifetimes; i++)
        if (run->served[i].ref) (void)strata_free(run->facade, run->served[i].ref);
    strata_run_ended_empty(&run->result->ended, run->facade);
}

static void clean_up(strata_running_t *run) {
    strata_watch_end(&run->watch);
    if (run->facade && run->options->check) free_all(run);
    if (run->facade) strata_run_ended_close(&run->result->ended, run->facade);
    strata_measure_end(&run->measure);
    if (run->timeline.streams) strata_timeline_end(&run->timeline);
    if (run->facade && run->options->check) strata_run_ended_count(&run->result->ended, &run->machine);
    if (run->machine.devices) strata_machine_close(&run->machine);
    strata_borrows_end(&run->borrows);
    strata_steps_end(&run->steps);
    strata_host_delete(run->served);
    strata_host_delete(run->kernel_times);
    strata_host_delete(run->pools);
    strata_host_delete(run->accesses);
}

/* Completes the result after the last row. */
static strata_status_t finish(strata_running_t *run) {
    strata_run_result_t *result = run->result;
    result->figures.end_ms = (double)strata_timeline_length(&run->timeline) / 1e6;
    strata_measure_finish(&run->measure, &result->host_ns_per_op);
    result->figures.pointer_changes = strata_steps_changes(&run->steps);
    if (run->options->check) strata_run_ended_validate(&result->ended, run->facade);
    return finish_watch(run);
}

strata_status_t strata_run(const strata_trace_t *trace, const strata_strategy_t *strategy, const strata_run_options_t *options,
                           strata_run_result_t *result) {
    *result = (strata_run_result_t){.figures = {.strategy = strategy->name}};
    strata_running_t run = {.trace = trace, .options = options, .result = result};
    strata_status_t status = prepare(&run, strategy);
    if (status == STRATA_OK) {
        inspect(&run, run_rows(&run));
        status = finish(&run);
    }
    clean_up(&run);
    return status;
}

/* ---- while the trace is still being read -------------------------------------------------------------------------------- */

typedef struct fed {
    size_t row; /* the next row */
    size_t reported_row; /* rows done when progress was last reported and the feed was last checked */
    uint64_t most; /* reserved so far */
} fed_t;

/* Returns true if two views agree in everything that a run relies on from its beginning. */
static bool has_same_shape(const strata_trace_t *a, const strata_trace_t *b) {
    return a->stream_count == b->stream_count && a->pool_count == b->pool_count && a->devices == b->devices &&
           a->places == b->places && a->has_work == b->has_work && a->has_steps == b->has_steps;
}

/* Returns the rows so far without a kernel at their end, which may have more rows. */
static size_t whole_rows(const strata_trace_t *trace, bool end) {
    size_t rows = trace->count;
    while (!end && rows > 0 && trace->events[rows - 1].op == STRATA_TRACE_work) rows--;
    return rows;
}

static strata_status_t make_room(strata_running_t *run, size_t lifetimes) {
    size_t more = strata_max(2 * run->room, lifetimes);
    if (lifetimes < run->room) return STRATA_OK;
    strata_served_t *grown = strata_host_resize(run->served, more, sizeof *grown);
    if (!grown) return STRATA_E_HOST_MEMORY;
    memset(grown + run->room, 0, (more - run->room) * sizeof *grown);
    run->served = grown;
    strata_status_t status = strata_borrows_grow(&run->borrows, run->room, more);
    if (status == STRATA_OK) run->room = more;
    return status;
}

/* Stops early if the reader finds a later row invalid. */
static strata_status_t run_until(strata_running_t *run, strata_trace_feed_t *feed, size_t rows, fed_t *at) {
    strata_status_t status = STRATA_OK;
    while (at->row < rows && status == STRATA_OK) {
        size_t begun = at->row;
        at->row += strata_run_row(run, begun);
        update_peak(run, at->row, &at->most);
        status = strata_measure_after(&run->measure, begun);
        if (report_progress(run, at->row, &at->reported_row) && status == STRATA_OK) status = strata_trace_feed_state(feed);
    }
    return status;
}

static strata_status_t run_available(strata_running_t *run, strata_trace_feed_t *feed, strata_trace_t *view, bool end,
                                     bool *outgrown) {
    fed_t at = {.row = 0};
    strata_measure_rows(&run->measure, strata_trace_feed_expected(feed));
    for (;;) {
        strata_status_t status = run_until(run, feed, whole_rows(view, end), &at);
        if (status != STRATA_OK || end) return status;
        /* The cleanup needs the view that the run was prepared for, so `view` changes only if the next one still fits. */
        strata_trace_t next = *view;
        status = strata_trace_feed_wait(feed, &next, &end);
        *outgrown = status == STRATA_OK && !has_same_shape(view, &next);
        if (status != STRATA_OK || *outgrown) return status;
        *view = next;
        status = make_room(run, view->lifetimes);
        if (status != STRATA_OK) return status;
    }
}

size_t strata_run_stacks(const strata_trace_t *trace) {
    enum { KINDS = 4 };
    return KINDS * ((size_t)trace->stream_count + trace->devices + 1) * ((size_t)trace->pool_count + 1);
}

/* Waits for enough rows to show which features the program uses. */
static strata_status_t wait_for_the_first(strata_trace_feed_t *feed, strata_trace_t *view, bool *end) {
    enum { FIRST_ROWS = 16384 };
    strata_status_t status = STRATA_OK;
    *end = false;
    while (status == STRATA_OK && !*end && view->count < FIRST_ROWS) status = strata_trace_feed_wait(feed, view, end);
    return status;
}

strata_status_t strata_run_feed(strata_trace_feed_t *feed, const strata_strategy_t *strategy, const strata_run_options_t *options,
                                bool *outgrown, strata_run_result_t *result) {
    strata_trace_t view = {.count = 0};
    bool end;
    *result = (strata_run_result_t){.figures = {.strategy = strategy->name}};
    *outgrown = false;
    size_t room = strata_trace_feed_expected(feed) / 2 + 1;
    strata_running_t run = {.trace = &view, .options = options, .result = result, .room = room};
    strata_status_t status = wait_for_the_first(feed, &view, &end);
    *outgrown = options->at_once > 1 && options->at_once > STRATA_RUN_STACKS / strata_run_stacks(&view);
    if (status != STRATA_OK || *outgrown) return status;
    if (status == STRATA_OK) status = prepare(&run, strategy);
    if (status == STRATA_OK) status = run_available(&run, feed, &view, end, outgrown);
    if (status == STRATA_OK && !*outgrown) {
        strata_measure_steady_from(&run.measure, strata_measure_steady_row(view.count));
        status = finish(&run);
    }
    clean_up(&run);
    return status;
}
