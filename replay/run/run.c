#include "replay/run/run.h"

#include <stdio.h>
#include <string.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "replay/run/borrows.h"
#include "replay/run/measure.h"
#include "replay/run/steps.h"
#include "replay/run/watch.h"
#include "replay/timeline/names.h"

enum { PROGRESS_ROWS = 8192, HAZARDS_TOLD = 3 };

/* What the facade gave for an alloc. */
typedef struct served {
    strata_ref_t ref; /* 0: not served, or freed */
    uint64_t address;
    uint64_t requested, granted;
    uint32_t stream; /* the owner: index of the trace's streams */
} served_t;

typedef struct run {
    const strata_trace_t *trace;
    const strata_run_options_t *options;
    strata_machine_t machine;
    strata_timeline_t timeline;
    strata_measure_t measure;
    strata_watch_t watch;
    strata_steps_t steps;
    strata_t facade;
    served_t *served; /* by lifetime */
    uint64_t *pools; /* the strategy's pools, by those of the trace; 0: it has none. NULL: no pool at all */
    strata_borrows_t borrows; /* of live blocks, if the trace has no work */
    uint64_t *kernel_times; /* by stream: time of its last kernel + 1 */
    strata_access_t *accesses;
    size_t access_capacity;
    strata_run_result_t *result;
} run_t;

/* Only the facade's code is timed; of many rows a sample, since reading the clock takes as long as the call. */
#define TIMED(run, status, call)                                                                                                   \
    do {                                                                                                                           \
        bool timed_ = strata_measure_is_timed(&(run)->measure);                                                                    \
        uint64_t began_ = timed_ ? strata_real_now() : 0;                                                                          \
        (status) = (call);                                                                                                         \
        if (timed_) strata_measure_timed(&(run)->measure, began_);                                                                 \
        (run)->result->figures.operations++;                                                                                       \
    } while (0)

static strata_handle_t handle_of(const run_t *run, uint32_t stream) { return run->timeline.streams[stream].handle; }

static bool of_device(const strata_trace_event_t *event) {
    return event->place == STRATA_PLACE_GPU || event->place == STRATA_PLACE_MANAGED;
}

static void failed(run_t *run, const strata_trace_event_t *event, strata_status_t status) {
    run->result->figures.failed_operations++;
    const strata_run_follow_t *follow = run->options->follow;
    if (status == STRATA_E_NO_MEMORY) {
        run->result->figures.oom_count++;
        if (follow)
            follow->refused(follow->context, (size_t)(event - run->trace->events) + 1, strata_timeline_elapsed(&run->timeline),
                            event, strata_last_error()->text);
    } else if (!*run->result->first_failure) {
        snprintf(run->result->first_failure, sizeof run->result->first_failure, "%s:%u: %s failed: %.800s", run->trace->path,
                 event->line, strata_trace_op_name((strata_trace_op_t)event->op), strata_last_error()->text);
    }
}

/* ---- operations of the allocator --------------------------------------------------------------------------------------- */

/* In places without an owner the stream of an alloc is the first borrower. The legacy stream's handle means that there is none. */
static void borrow_by_legacy(run_t *run, const strata_trace_event_t *event) {
    strata_status_t status = strata_record_stream(run->facade, run->served[event->id].ref, NULL);
    if (status != STRATA_OK) failed(run, event, status);
    strata_watch_borrow(&run->watch, event);
}

static void run_alloc(run_t *run, const strata_trace_event_t *event) {
    uint32_t device = run->timeline.streams[event->stream].device;
    strata_place_t place = strata_measure_place(&run->machine, (strata_place_kind_t)event->place, device);
    strata_handle_t stream = handle_of(run, event->stream);
    strata_block_t block;
    strata_status_t status;
    strata_timeline_use(&run->timeline, event->stream);
    uint64_t pool = run->pools && event->pool != STRATA_TRACE_NO_POOL ? run->pools[event->pool] : 0;
    if (event->align || pool || event->tag) {
        strata_allocate_options_t options = {.struct_size = sizeof options,
                                             .size = (size_t)event->value,
                                             .alignment = event->align ? (size_t)1 << event->align : 0,
                                             .pool = pool,
                                             .tag = event->tag ? run->trace->tags[event->tag] : NULL};
        TIMED(run, status, strata_allocate_with(run->facade, place, stream, &options, &block));
    } else {
        TIMED(run, status, strata_allocate(run->facade, place, stream, (size_t)event->value, &block));
    }
    strata_timeline_see_waits(&run->timeline, device);
    strata_steps_alloc(&run->steps, event, status == STRATA_OK ? (uint64_t)(uintptr_t)block.ptr : 0);
    if (status != STRATA_OK) {
        failed(run, event, status);
        return;
    }
    run->served[event->id] = (served_t){.ref = block.ref,
                                        .address = (uint64_t)(uintptr_t)block.ptr,
                                        .requested = event->value,
                                        .granted = block.size,
                                        .stream = event->stream};
    run->result->figures.live_at_end++;
    strata_timeline_hold(&run->timeline, event->stream);
    strata_watch_alloc(&run->watch, event, run->served[event->id].address, block.size);
    if (!of_device(event) && !stream) borrow_by_legacy(run, event);
    if (of_device(event)) strata_measure_live(&run->measure, event->value, block.size);
}

static void use_a_last_time(run_t *run, uint32_t lifetime, uint32_t stream) {
    strata_timeline_use(&run->timeline, stream);
    strata_watch_last_use(&run->watch, lifetime, stream);
}

/* Before a free: whoever used the block has used it until now. */
static void use_until_now(run_t *run, const served_t *served, uint32_t lifetime) {
    use_a_last_time(run, lifetime, served->stream);
    for (uint32_t at = run->borrows.first[lifetime]; at != STRATA_BORROWS_END; at = run->borrows.all[at].next)
        use_a_last_time(run, lifetime, run->borrows.all[at].stream);
}

static void use_no_more(run_t *run, const served_t *served, uint32_t lifetime, bool waited) {
    uint32_t stream;
    strata_timeline_drop(&run->timeline, served->stream);
    if (run->borrows.first[lifetime] == STRATA_BORROWS_END) return;
    while (strata_borrows_take(&run->borrows, lifetime, &stream)) {
        if (waited) strata_timeline_drained(&run->timeline, stream);
        strata_timeline_drop(&run->timeline, stream);
    }
}

static void run_free(run_t *run, const strata_trace_event_t *event) {
    served_t *served = &run->served[event->id];
    uint32_t device = run->timeline.streams[served->stream].device;
    strata_status_t status;
    use_until_now(run, served, event->id);
    bool on_another = event->stream != served->stream;
    if (on_another) use_a_last_time(run, event->id, event->stream);
    strata_watch_free(&run->watch, event, on_another);
    if (!on_another) {
        TIMED(run, status, strata_free(run->facade, served->ref));
    } else {
        TIMED(run, status, strata_free_on(run->facade, served->ref, handle_of(run, event->stream)));
    }
    bool waited = strata_timeline_see_waits(&run->timeline, device);
    use_no_more(run, served, event->id, waited);
    if (status != STRATA_OK) {
        failed(run, event, status);
        return;
    }
    run->result->figures.live_at_end--;
    if (of_device(event)) strata_measure_dead(&run->measure, served->requested, served->granted);
    served->ref = 0;
}

static void run_borrow(run_t *run, const strata_trace_event_t *event) {
    strata_status_t status;
    bool waits = false;
    strata_timeline_use(&run->timeline, event->stream);
    TIMED(run, status, strata_facade_record_stream(run->facade, run->served[event->id].ref, handle_of(run, event->stream), &waits));
    if (status != STRATA_OK) {
        failed(run, event, status);
        return;
    }
    if (waits) run->result->figures.borrows_waited++;
    strata_watch_borrow(&run->watch, event);
    bool added = false;
    if (!run->trace->has_work && event->stream != run->served[event->id].stream)
        status = strata_borrows_add(&run->borrows, event->id, event->stream, &added);
    if (status == STRATA_E_HOST_MEMORY) failed(run, event, status);
    if (added) strata_timeline_hold(&run->timeline, event->stream);
}

static void run_unborrow(run_t *run, const strata_trace_event_t *event) {
    strata_status_t status;
    bool first = !of_device(event) && event->stream == run->served[event->id].stream;
    if (first && !run->trace->has_work) return; /* it uses the block until the free */
    TIMED(run, status, strata_erase_stream(run->facade, run->served[event->id].ref, handle_of(run, event->stream)));
    if (status != STRATA_OK && status != STRATA_E_UNSUPPORTED) failed(run, event, status);
    strata_watch_unborrow(&run->watch, event);
    if (strata_borrows_remove(&run->borrows, event->id, event->stream)) strata_timeline_drop(&run->timeline, event->stream);
}

static void run_release(run_t *run, const strata_trace_event_t *event) {
    strata_place_t place = strata_measure_place(&run->machine, (strata_place_kind_t)event->place, event->other);
    strata_status_t status;
    TIMED(run, status, strata_release(run->facade, place, NULL));
    strata_timeline_see_waits(&run->timeline, event->other);
    if (status != STRATA_OK) failed(run, event, status);
}

/* A mark that a strategy may use or ignore. */
static void run_step(run_t *run, const strata_trace_event_t *event) {
    strata_status_t status;
    TIMED(run, status, strata_step(run->facade));
    if (status != STRATA_OK && status != STRATA_E_UNSUPPORTED) failed(run, event, status);
    strata_steps_step(&run->steps);
}

/* ---- the program's own actions ----------------------------------------------------------------------------------------- */

static strata_status_t add_access(run_t *run, size_t count, uint32_t lifetime) {
    const served_t *served = &run->served[lifetime];
    if (count == run->access_capacity) {
        size_t capacity = count ? count * 2 : 64;
        strata_access_t *grown = strata_host_resize(run->accesses, capacity, sizeof *grown);
        if (!grown) return STRATA_E_HOST_MEMORY;
        run->accesses = grown;
        run->access_capacity = capacity;
    }
    run->accesses[count] = (strata_access_t){.address = served->address, .size = served->requested};
    return strata_watch_access(&run->watch, count, lifetime);
}

/* Consecutive rows of equal stream and time are one kernel. After other rows in between, such rows are further blocks that the
 * kernel touches, and take no further time. Returns how many rows were used. */
static size_t run_work(run_t *run, size_t row) {
    const strata_trace_event_t *first = &run->trace->events[row], *event = first;
    size_t rows = 0, count = 0;
    strata_status_t status = STRATA_OK;
    for (; row + rows < run->trace->count && status == STRATA_OK; rows++) {
        event = first + rows;
        if (event->op != STRATA_TRACE_work || event->stream != first->stream || event->time_us != first->time_us) break;
        if (event->id == STRATA_TRACE_NONE || !run->served[event->id].ref || !of_device(event)) continue;
        if (run->served[event->id].requested == 0) continue;
        status = add_access(run, count, event->id);
        count++;
    }
    bool goes_on = run->kernel_times[first->stream] == first->time_us + 1;
    run->kernel_times[first->stream] = first->time_us + 1;
    strata_watch_kernel(&run->watch, count);
    if (status == STRATA_OK)
        status = strata_timeline_work(&run->timeline, first->stream, goes_on ? 0 : first->value * 1000, run->accesses, count);
    if (status != STRATA_OK) failed(run, first, status);
    return rows;
}

static void run_wait(run_t *run, const strata_trace_event_t *event) {
    strata_status_t status = strata_timeline_wait(&run->timeline, event->stream, event->other);
    if (status != STRATA_OK) failed(run, event, status);
}

static void run_sync(run_t *run, const strata_trace_event_t *event) {
    bool all = event->stream == STRATA_TRACE_NO_STREAM;
    strata_status_t status = all ? strata_timeline_sync_device(&run->timeline, event->other)
                                 : strata_timeline_sync(&run->timeline, event->stream);
    if (status != STRATA_OK) failed(run, event, status);
}

/* ---- rows -------------------------------------------------------------------------------------------------------------- */

/* Carries out a row, or the rows of one kernel; returns how many. */
static size_t run_row(run_t *run, size_t row) {
    const strata_trace_event_t *event = &run->trace->events[row];
    strata_timeline_move(&run->timeline, event->time_us);
    strata_watch_row(&run->watch, event);
    if (event->op == STRATA_TRACE_work) return run_work(run, row);
    bool of_a_live_id = event->id == STRATA_TRACE_NONE || event->op == STRATA_TRACE_alloc || run->served[event->id].ref != 0;
    if (!of_a_live_id) return 1;
    switch ((strata_trace_op_t)event->op) {
    case STRATA_TRACE_alloc: run_alloc(run, event); break;
    case STRATA_TRACE_free: run_free(run, event); break;
    case STRATA_TRACE_borrow: run_borrow(run, event); break;
    case STRATA_TRACE_unborrow: run_unborrow(run, event); break;
    case STRATA_TRACE_wait: run_wait(run, event); break;
    case STRATA_TRACE_sync: run_sync(run, event); break;
    case STRATA_TRACE_step: run_step(run, event); break;
    case STRATA_TRACE_release: run_release(run, event); break;
    default: break; /* the pool of an alloc is passed with it */
    }
    strata_measure_reserved(&run->measure);
    return 1;
}

/* Whether more is reserved than ever before. */
static void see_peak(run_t *run, size_t rows, uint64_t *most) {
    if (run->measure.reserved <= *most) return;
    *most = run->measure.reserved;
    run->result->peak_row = rows;
}

static strata_run_moment_t moment_of(const run_t *run, size_t rows) {
    return (strata_run_moment_t){
        .trace = run->trace, .timeline = &run->timeline, .facade = run->facade, .rows = rows, .result = run->result, .run = run};
}

static void tell_follower(run_t *run, size_t row, uint64_t *chunk_calls) {
    const strata_run_follow_t *follow = run->options->follow;
    strata_measure_sample(&run->measure, row, follow);
    if (!follow->moment) return;
    strata_run_moment_t moment = moment_of(run, row);
    follow->moment(follow->context, &moment, run->measure.chunk_calls != *chunk_calls);
    *chunk_calls = run->measure.chunk_calls;
}

static size_t run_rows(run_t *run) {
    size_t all = run->trace->count, count = run->options->rows ? strata_min(run->options->rows, all) : all;
    size_t steady = count - count / 3, told = 0, row = 0;
    uint64_t most = 0, chunk_calls = 0;
    bool marked = false;
    strata_measure_rows(&run->measure);
    while (row < count) {
        if (row >= steady && !marked) {
            strata_measure_steady(&run->measure);
            marked = true;
        }
        row += run_row(run, row);
        see_peak(run, row, &most);
        if (run->options->follow) tell_follower(run, row, &chunk_calls);
        if (run->options->progress && row - told >= PROGRESS_ROWS) {
            run->options->progress(run->options->progress_context, row);
            told = row;
        }
    }
    if (!marked) strata_measure_steady(&run->measure);
    return row;
}

static void look(const run_t *run, size_t rows) {
    strata_run_moment_t moment = moment_of(run, rows);
    if (run->options->look && rows > 0) run->options->look(run->options->look_context, &moment);
}

strata_run_block_t strata_run_block(const strata_run_moment_t *moment, uint32_t lifetime) {
    const served_t *served = &((const run_t *)moment->run)->served[lifetime];
    return (strata_run_block_t){.address = served->address, .granted = served->granted, .live = served->ref != 0};
}

void strata_run_each_live(const strata_run_moment_t *moment, strata_run_live_fn live, void *context) {
    const run_t *run = moment->run;
    for (uint32_t i = 0; i < run->trace->lifetimes; i++)
        if (run->served[i].ref) live(context, run->served[i].address, i);
}

/* ---- one run ----------------------------------------------------------------------------------------------------------- */

const char *strata_run_trace_name(const strata_trace_t *trace) {
    const char *slash = strrchr(trace->path, '/');
    return slash && slash[1] ? slash + 1 : trace->path;
}

static void describe(const run_t *run, strata_figures_t *figures) {
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

/* What idleness gives back, while the program does nothing. */
static uint64_t look_for_idleness(void *context) {
    run_t *run = context;
    uint64_t due = strata_facade_look_for_idleness(run->facade);
    for (uint32_t i = 0; i < run->machine.count; i++) strata_timeline_see_waits(&run->timeline, i);
    strata_measure_reserved(&run->measure);
    return due;
}

/* Stream 0 means requests that name no stream: what a strategy preallocates for the default stream is served to it. */
static strata_status_t open_facade(run_t *run, const strata_strategy_t *strategy) {
    strata_status_t status = strata_facade_begin_on(strategy, run->machine.devices, run->machine.count, 0, &run->facade);
    run->measure.facade = run->facade;
    if (status == STRATA_OK) status = strata_measure_deferred(&run->measure);
    if (status == STRATA_OK) status = strata_names_of_streams(strategy, &run->timeline, &run->machine, run->facade);
    if (status == STRATA_OK) status = strata_names_default_streams(&run->timeline, &run->machine, run->facade);
    if (status == STRATA_OK) status = strata_facade_ready(run->facade);
    if (status == STRATA_OK && strata_facade_of(run->facade)->idle_after != STRATA_NEVER) {
        run->timeline.passes = look_for_idleness;
        run->timeline.passes_context = run;
    }
    return status == STRATA_OK ? strata_names_of_pools(strategy, run->trace, run->facade, &run->pools) : status;
}

static void measure_from_now(run_t *run) {
    strata_measure_begin(&run->measure);
    if (run->options->follow) strata_measure_follow(&run->measure, &run->result->ledger);
}

/* What a strategy gets at its open costs the same as what it gets later: then the program begins with the open. Calls at the open
 * that get nothing do not count. */
static strata_status_t begin(run_t *run, const strata_strategy_t *strategy) {
    run->measure = (strata_measure_t){
        .trace = run->trace, .machine = &run->machine, .timeline = &run->timeline, .figures = &run->result->figures};
    measure_from_now(run);
    strata_status_t status = open_facade(run, strategy);
    if (strata_measure_made_calls(&run->measure)) return status;
    strata_timeline_start(&run->timeline);
    measure_from_now(run);
    return status;
}

static strata_status_t prepare(run_t *run, const strata_strategy_t *strategy) {
    const strata_trace_t *trace = run->trace;
    uint32_t devices = trace->devices ? trace->devices : 1;
    strata_status_t status = strata_machine_open(&run->options->target, devices, &run->machine);
    if (status != STRATA_OK) return status;
    describe(run, &run->result->figures);
    if (run->options->check) status = strata_watch_begin(&run->watch, &run->machine, &run->timeline);
    if (status != STRATA_OK) return status;
    run->served = strata_host_new((size_t)trace->lifetimes + 1, sizeof *run->served);
    run->kernel_times = strata_host_new((size_t)trace->stream_count + 1, sizeof *run->kernel_times);
    if (!run->served || !run->kernel_times) return STRATA_E_HOST_MEMORY;
    strata_host_will_fill(run->served, (size_t)trace->lifetimes * sizeof *run->served);
    status = strata_borrows_begin(&run->borrows, trace->lifetimes);
    if (status == STRATA_OK) status = strata_steps_begin(&run->steps, trace);
    if (status == STRATA_OK) status = strata_timeline_begin(&run->timeline, trace, &run->machine, &run->options->timeline);
    if (status == STRATA_OK) strata_watch_name_streams(&run->watch);
    return status == STRATA_OK ? begin(run, strategy) : status;
}

/* The verdict, and the first hazards in words. */
static strata_status_t finish_watch(run_t *run) {
    strata_checker_t *checker = run->watch.checker;
    run->result->figures.hazards = STRATA_FIGURE_NULL;
    if (!checker) return STRATA_OK;
    run->result->figures.hazards = strata_checker_hazards(checker);
    char *to = run->result->first_hazards;
    size_t room = sizeof run->result->first_hazards;
    const char *report;
    for (size_t i = 0; i < HAZARDS_TOLD && (report = strata_checker_report(checker, i)) != NULL; i++) {
        int written = snprintf(to, room, "%s", report);
        if (written < 0 || (size_t)written >= room) break;
        to += written;
        room -= (size_t)written;
    }
    return strata_checker_complete(checker) ? STRATA_OK : strata_fail(STRATA_E_HOST_MEMORY, 0, "no host memory left to check");
}

/* After the end of the trace everything that it left live is given back, so that only lost memory remains. */
static void empty(run_t *run) {
    for (uint32_t i = 0; i < run->trace->lifetimes; i++)
        if (run->served[i].ref) (void)strata_free(run->facade, run->served[i].ref);
    strata_run_ended_empty(&run->result->ended, run->facade);
}

static void clean_up(run_t *run) {
    strata_watch_end(&run->watch);
    if (run->facade && run->options->check) empty(run);
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

strata_status_t strata_run(const strata_trace_t *trace, const strata_strategy_t *strategy, const strata_run_options_t *options,
                           strata_run_result_t *result) {
    *result = (strata_run_result_t){.figures = {.strategy = strategy->name}};
    run_t run = {.trace = trace, .options = options, .result = result};
    strata_status_t status = prepare(&run, strategy);
    if (status == STRATA_OK) {
        look(&run, run_rows(&run));
        result->figures.end_ms = (double)strata_timeline_length(&run.timeline) / 1e6;
        strata_measure_finish(&run.measure, &result->host_ns_per_op);
        result->figures.pointer_changes = strata_steps_changes(&run.steps);
        if (options->check) strata_run_ended_validate(&result->ended, run.facade);
        status = finish_watch(&run);
    }
    clean_up(&run);
    return status;
}
