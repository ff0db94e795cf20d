/* Carries out the rows of a trace, with a function for each kind. */
#include <stdio.h>

#include "facade/serve/slow_path.h"
#include "lab/replay/run/state.h"
#include "platform/host/host_memory.h"

/* Only the facade's code is timed. With many rows only a sample is timed, because reading the clock takes as
 * long as the call. */
#define TIMED(run, status, call)                                                                                                   \
    do {                                                                                                                           \
        bool timed_ = strata_measure_is_timed(&(run)->measure);                                                                    \
        uint64_t began_ = timed_ ? strata_real_now() : 0;                                                                          \
        (status) = (call);                                                                                                         \
        if (timed_) strata_measure_timed(&(run)->measure, began_);                                                                 \
        (run)->result->figures.operations++;                                                                                       \
    } while (0)

static strata_handle_t handle_of(const strata_running_t *run, uint32_t stream) { return run->timeline.streams[stream].handle; }

static bool of_device(const strata_trace_event_t *event) {
    return event->place == STRATA_PLACE_GPU || event->place == STRATA_PLACE_MANAGED;
}

static void note_failed(strata_running_t *run, const strata_trace_event_t *event, strata_status_t status) {
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

/* In places without an owner, the stream of an alloc is the first borrower. The legacy stream's handle is
 * NULL, which means no stream in a request, so its borrow is recorded here. */
static void borrow_by_legacy(strata_running_t *run, const strata_trace_event_t *event) {
    strata_status_t status = strata_record_stream(run->facade, run->served[event->id].ref, NULL);
    if (status != STRATA_OK) note_failed(run, event, status);
    strata_watch_borrow(&run->watch, event);
}

static void run_alloc(strata_running_t *run, const strata_trace_event_t *event) {
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
    strata_timeline_check_waits(&run->timeline, device);
    strata_status_t compared = strata_steps_alloc(&run->steps, event, status == STRATA_OK ? (uint64_t)(uintptr_t)block.ptr : 0);
    if (status != STRATA_OK) {
        note_failed(run, event, status);
        return;
    }
    if (compared != STRATA_OK) note_failed(run, event, compared);
    run->served[event->id] = (strata_served_t){.ref = block.ref,
                                               .address = (uint64_t)(uintptr_t)block.ptr,
                                               .requested = event->value,
                                               .granted = block.size,
                                               .stream = event->stream};
    run->result->figures.live_at_end++;
    strata_timeline_hold(&run->timeline, event->stream);
    strata_watch_alloc(&run->watch, event, run->served[event->id].address, block.size);
    if (!of_device(event) && !stream) borrow_by_legacy(run, event);
    if (of_device(event)) strata_measure_live(&run->measure, event->value, block.size);
    else strata_measure_host_live(&run->measure, (strata_place_kind_t)event->place, event->value);
}

static void note_last_use(strata_running_t *run, uint32_t lifetime, uint32_t stream) {
    strata_timeline_use(&run->timeline, stream);
    strata_watch_last_use(&run->watch, lifetime, stream);
}

/* Marks a block as used until now by its owner and its borrowers, before its free. */
static void note_last_uses(strata_running_t *run, const strata_served_t *served, uint32_t lifetime) {
    note_last_use(run, lifetime, served->stream);
    for (uint32_t at = run->borrows.first[lifetime]; at != STRATA_BORROWS_END; at = run->borrows.all[at].next)
        note_last_use(run, lifetime, run->borrows.all[at].stream);
}

static void drop_uses(strata_running_t *run, const strata_served_t *served, uint32_t lifetime, bool waited) {
    uint32_t stream;
    strata_timeline_drop(&run->timeline, served->stream);
    if (run->borrows.first[lifetime] == STRATA_BORROWS_END) return;
    while (strata_borrows_pop(&run->borrows, lifetime, &stream)) {
        if (waited) strata_timeline_drained(&run->timeline, stream);
        strata_timeline_drop(&run->timeline, stream);
    }
}

static void run_free(strata_running_t *run, const strata_trace_event_t *event) {
    strata_served_t *served = &run->served[event->id];
    uint32_t device = run->timeline.streams[served->stream].device;
    strata_status_t status;
    note_last_uses(run, served, event->id);
    bool on_another = event->stream != served->stream;
    if (on_another) note_last_use(run, event->id, event->stream);
    strata_watch_free(&run->watch, event, on_another);
    if (!on_another) {
        TIMED(run, status, strata_free(run->facade, served->ref));
    } else {
        TIMED(run, status, strata_free_on(run->facade, served->ref, handle_of(run, event->stream)));
    }
    bool waited = strata_timeline_check_waits(&run->timeline, device);
    drop_uses(run, served, event->id, waited);
    if (status != STRATA_OK) {
        note_failed(run, event, status);
        return;
    }
    run->result->figures.live_at_end--;
    if (of_device(event)) strata_measure_dead(&run->measure, served->requested, served->granted);
    else strata_measure_host_dead(&run->measure, (strata_place_kind_t)event->place, served->requested);
    served->ref = 0;
}

static void run_borrow(strata_running_t *run, const strata_trace_event_t *event) {
    strata_status_t status;
    bool waits = false;
    strata_timeline_use(&run->timeline, event->stream);
    TIMED(run, status, strata_facade_record_stream(run->facade, run->served[event->id].ref, handle_of(run, event->stream), &waits));
    if (status != STRATA_OK) {
        note_failed(run, event, status);
        return;
    }
    if (waits) run->result->figures.borrows_waited++;
    strata_watch_borrow(&run->watch, event);
    bool added = false;
    if (!run->trace->has_work && event->stream != run->served[event->id].stream)
        status = strata_borrows_add(&run->borrows, event->id, event->stream, &added);
    if (status == STRATA_E_HOST_MEMORY) note_failed(run, event, status);
    if (added) strata_timeline_hold(&run->timeline, event->stream);
}

static void run_unborrow(strata_running_t *run, const strata_trace_event_t *event) {
    strata_status_t status;
    bool first = !of_device(event) && event->stream == run->served[event->id].stream;
    if (first && !run->trace->has_work) return; /* the stream uses the block until the free */
    TIMED(run, status, strata_erase_stream(run->facade, run->served[event->id].ref, handle_of(run, event->stream)));
    if (status != STRATA_OK && status != STRATA_E_UNSUPPORTED) note_failed(run, event, status);
    strata_watch_unborrow(&run->watch, event);
    if (strata_borrows_remove(&run->borrows, event->id, event->stream)) strata_timeline_drop(&run->timeline, event->stream);
}

static void run_release(strata_running_t *run, const strata_trace_event_t *event) {
    strata_place_t place = strata_measure_place(&run->machine, (strata_place_kind_t)event->place, event->other);
    strata_status_t status;
    TIMED(run, status, strata_release(run->facade, place, NULL));
    strata_timeline_check_waits(&run->timeline, event->other);
    if (status != STRATA_OK) note_failed(run, event, status);
}

/* Passes a mark on. A strategy may ignore it. */
static void run_step(strata_running_t *run, const strata_trace_event_t *event) {
    strata_status_t status;
    TIMED(run, status, strata_step(run->facade));
    if (status != STRATA_OK && status != STRATA_E_UNSUPPORTED) note_failed(run, event, status);
    strata_steps_step(&run->steps);
}

/* ---- the program's own actions ----------------------------------------------------------------------------------------- */

static strata_status_t add_access(strata_running_t *run, size_t count, uint32_t lifetime) {
    const strata_served_t *served = &run->served[lifetime];
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

/* Consecutive rows with equal stream and time are one kernel. If other rows are in between, the later rows
 * are further blocks of that kernel and take no further time. Returns the number of rows used. */
static size_t run_work(strata_running_t *run, size_t row) {
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
    if (status != STRATA_OK) note_failed(run, first, status);
    return rows;
}

static void run_wait(strata_running_t *run, const strata_trace_event_t *event) {
    strata_status_t status = strata_timeline_wait(&run->timeline, event->stream, event->other);
    if (status != STRATA_OK) note_failed(run, event, status);
}

static void run_sync(strata_running_t *run, const strata_trace_event_t *event) {
    bool all = event->stream == STRATA_TRACE_NO_STREAM;
    strata_status_t status = all ? strata_timeline_sync_device(&run->timeline, event->other)
                                 : strata_timeline_sync(&run->timeline, event->stream);
    if (status != STRATA_OK) note_failed(run, event, status);
}

/* ---- rows -------------------------------------------------------------------------------------------------------------- */

size_t strata_run_row(strata_running_t *run, size_t row) {
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
    default: break; /* a pool row needs no action, because the pool is passed with its alloc */
    }
    strata_measure_reserved(&run->measure);
    return 1;
}
