#include "lab/replay/timeline/timeline.h"

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

static uint64_t now_of(const strata_timeline_t *timeline) {
    return timeline->clock ? atomic_load_explicit(timeline->clock, memory_order_relaxed) : strata_real_now();
}

static strata_device_t *device_of(const strata_timeline_t *timeline, uint32_t device) { return timeline->machine->devices[device]; }

/* ---- begin and end ----------------------------------------------------------------------------------------------------- */

static strata_status_t create_streams(strata_timeline_t *timeline) {
    for (uint32_t i = 0; i < timeline->trace->stream_count; i++) {
        const strata_trace_stream_t *stream = &timeline->trace->streams[i];
        strata_timeline_stream_t *made = &timeline->streams[i];
        strata_device_t *device = device_of(timeline, stream->device);
        strata_status_t status = STRATA_OK;
        made->device = stream->device;
        if (!timeline->options.legacy_default || stream->number != 0)
            status = strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &made->handle);
        if (status != STRATA_OK) return status;
        if (timeline->machine->world) made->simulated = strata_sim_stream_find(device, made->handle);
    }
    return STRATA_OK;
}

strata_status_t strata_timeline_begin(strata_timeline_t *timeline, const strata_trace_t *trace, const strata_machine_t *machine,
                                      const strata_timeline_options_t *options) {
    *timeline = (strata_timeline_t){.trace = trace, .machine = machine, .options = *options};
    if (machine->world) {
        timeline->clock = strata_sim_clock(machine->world);
        timeline->steady = strata_sim_steady_clock(machine->world);
        timeline->lags = !trace->has_work;
    }
    timeline->streams = strata_host_new(trace->stream_count + 1, sizeof *timeline->streams);
    timeline->devices = strata_host_new(machine->count, sizeof *timeline->devices);
    strata_status_t status = timeline->streams && timeline->devices ? create_streams(timeline) : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK) strata_timeline_start(timeline);
    else strata_timeline_end(timeline);
    return status;
}

void strata_timeline_start(strata_timeline_t *timeline) {
    const strata_trace_t *trace = timeline->trace;
    timeline->began = now_of(timeline);
    if (trace->count > 0) timeline->time_us = trace->events[0].time_us;
    for (uint32_t i = 0; i < trace->stream_count; i++) timeline->streams[i].drained = timeline->began;
    for (uint32_t i = 0; i < timeline->machine->count; i++) {
        timeline->devices[i].drained = timeline->began;
        timeline->devices[i].last = STRATA_TRACE_NO_STREAM;
    }
}

void strata_timeline_end(strata_timeline_t *timeline) {
    for (uint32_t i = 0; timeline->streams && i < timeline->trace->stream_count; i++) {
        if (timeline->streams[i].handle)
            strata_device_stream_destroy(device_of(timeline, timeline->streams[i].device), timeline->streams[i].handle);
    }
    for (uint32_t i = 0; timeline->devices && i < timeline->machine->count; i++) {
        if (timeline->devices[i].event) strata_device_event_destroy(device_of(timeline, i), timeline->devices[i].event);
    }
    strata_host_delete(timeline->streams);
    strata_host_delete(timeline->devices);
    timeline->streams = NULL;
    timeline->devices = NULL;
}

/* ---- the host ---------------------------------------------------------------------------------------------------------- */

/* Lets real time pass. The thread sleeps as long as sleeping is exact enough and spins for the rest. */
static void wait_real_time(const strata_timeline_t *timeline, uint64_t delta_ns) {
    enum { AWAKE_NS = 200000 };
    strata_clock_t *clock = device_of(timeline, 0)->clock;
    uint64_t until = strata_real_now() + delta_ns;
    if (delta_ns > 2 * AWAKE_NS) clock->sleep_until(clock, until - AWAKE_NS);
    while (strata_real_now() < until) {}
}

static void advance(strata_timeline_t *timeline, uint64_t until) {
    uint64_t due;
    while ((due = timeline->on_advance(timeline->advance_context)) <= until) strata_sim_advance_to(timeline->machine->world, due);
    strata_sim_advance_to(timeline->machine->world, until);
}

void strata_timeline_advance(strata_timeline_t *timeline, uint64_t delta_ns) {
    if (delta_ns == 0) return;
    if (!timeline->machine->world) {
        if (timeline->trace->has_work && device_of(timeline, 0)->capabilities.work) wait_real_time(timeline, delta_ns);
        return;
    }
    uint64_t paid = strata_min(delta_ns, timeline->credit);
    timeline->credit -= paid;
    if (timeline->on_advance) advance(timeline, now_of(timeline) + delta_ns - paid);
    else strata_sim_advance_by(timeline->machine->world, delta_ns - paid);
}

/* ---- the GPU, if the trace has no work --------------------------------------------------------------------------------- */

/* Returns the stream in use that ends its work last, which is the one waited for longest ago. */
static uint32_t find_last(const strata_timeline_t *timeline, uint32_t device) {
    uint32_t last = STRATA_TRACE_NO_STREAM;
    for (uint32_t i = 0; i < timeline->trace->stream_count; i++) {
        const strata_timeline_stream_t *stream = &timeline->streams[i];
        if (stream->device != device || stream->holders == 0) continue;
        if (last == STRATA_TRACE_NO_STREAM || stream->drained < timeline->streams[last].drained) last = i;
    }
    return last;
}

static uint32_t last_of(strata_timeline_t *timeline, uint32_t device) {
    uint32_t *last = &timeline->devices[device].last;
    if (*last != STRATA_TRACE_NO_STREAM && timeline->streams[*last].holders == 0) *last = find_last(timeline, device);
    return *last;
}

void strata_timeline_use_several(strata_timeline_t *timeline, uint32_t stream) {
    const strata_timeline_stream_t *at = &timeline->streams[stream];
    if (at->holders > 0) strata_timeline_keep_busy(timeline, at);
    uint32_t last = last_of(timeline, at->device);
    if (last != STRATA_TRACE_NO_STREAM && last != stream) strata_timeline_keep_busy(timeline, &timeline->streams[last]);
}

static uint64_t count(strata_device_t *device, strata_device_call_t call) {
    return atomic_load_explicit(&device->calls[call], memory_order_relaxed);
}

bool strata_timeline_update_waits(strata_timeline_t *timeline, uint32_t device) {
    strata_device_t *at = device_of(timeline, device);
    strata_timeline_device_t *known = &timeline->devices[device];
    known->made = atomic_load_explicit(&at->made, memory_order_relaxed);
    if (!timeline->lags) return false;
    uint64_t waits = strata_sim_device_waits(at);
    uint64_t stream_waits = count(at, STRATA_CALL_stream_synchronise);
    bool stream_waited = stream_waits != known->stream_waits;
    if (waits != known->waits) known->drained = now_of(timeline);
    known->waits = waits;
    known->stream_waits = stream_waits;
    return stream_waited;
}

void strata_timeline_drained(strata_timeline_t *timeline, uint32_t stream) {
    strata_timeline_device_t *device = &timeline->devices[timeline->streams[stream].device];
    timeline->streams[stream].drained = now_of(timeline);
    if (device->last == stream) device->last = find_last(timeline, timeline->streams[stream].device);
}

/* ---- the program's own calls ------------------------------------------------------------------------------------------- */

typedef struct own_call {
    strata_device_t *device;
    bool timed;
    strata_sim_figures_t before;
} own_call_t;

static own_call_t own_begin(strata_timeline_t *timeline, uint32_t device) {
    own_call_t call = {.device = device_of(timeline, device)};
    call.timed = call.device->timed;
    call.device->timed = false;
    if (timeline->machine->world) strata_sim_figures(call.device, &call.before);
    return call;
}

/* Memory that a pool returns during a wait of the program counts as the strategy's, because its threshold caused that. */
static void own_end(strata_timeline_t *timeline, const own_call_t *call) {
    call->device->timed = call->timed;
    if (!timeline->machine->world) return;
    strata_sim_figures_t after;
    strata_sim_figures(call->device, &after);
    uint64_t returned = after.pool_return_ns - call->before.pool_return_ns;
    uint64_t cost = after.device_call_ns - call->before.device_call_ns - returned;
    timeline->credit += cost;
    timeline->own.call_ns += cost;
    timeline->own.stall_ns += after.stall_ns - call->before.stall_ns;
}

strata_status_t strata_timeline_work(strata_timeline_t *timeline, uint32_t stream, uint64_t duration_ns,
                                     const strata_access_t *accesses, size_t count_of) {
    uint32_t device = timeline->streams[stream].device;
    if (!device_of(timeline, device)->capabilities.work) return STRATA_OK;
    own_call_t call = own_begin(timeline, device);
    strata_status_t status = strata_device_work(call.device, timeline->streams[stream].handle, duration_ns, accesses, count_of);
    timeline->own.calls[STRATA_CALL_work]++;
    own_end(timeline, &call);
    return status;
}

static strata_status_t order(strata_timeline_t *timeline, strata_device_t *device, uint32_t stream, uint32_t other) {
    strata_handle_t *event = &timeline->devices[timeline->streams[stream].device].event;
    strata_status_t status = *event ? STRATA_OK : strata_device_event_create(device, event);
    if (status == STRATA_OK) status = strata_device_event_record(device, *event, timeline->streams[other].handle);
    if (status != STRATA_OK) return status;
    timeline->own.calls[STRATA_CALL_event_record]++;
    timeline->own.calls[STRATA_CALL_stream_wait]++;
    return strata_device_stream_wait(device, timeline->streams[stream].handle, *event);
}

strata_status_t strata_timeline_wait(strata_timeline_t *timeline, uint32_t stream, uint32_t other) {
    strata_timeline_use(timeline, other);
    own_call_t call = own_begin(timeline, timeline->streams[stream].device);
    strata_status_t status = order(timeline, call.device, stream, other);
    own_end(timeline, &call);
    return status;
}

strata_status_t strata_timeline_sync(strata_timeline_t *timeline, uint32_t stream) {
    strata_timeline_stream_t *at = &timeline->streams[stream];
    strata_timeline_use(timeline, stream);
    own_call_t call = own_begin(timeline, at->device);
    strata_status_t status = strata_device_stream_synchronise(call.device, at->handle);
    timeline->own.calls[STRATA_CALL_stream_synchronise]++;
    own_end(timeline, &call);
    strata_timeline_check_waits(timeline, at->device);
    if (timeline->lags) strata_timeline_drained(timeline, stream);
    return status;
}

strata_status_t strata_timeline_sync_device(strata_timeline_t *timeline, uint32_t device) {
    uint32_t last = timeline->lags ? last_of(timeline, device) : STRATA_TRACE_NO_STREAM;
    if (last != STRATA_TRACE_NO_STREAM) strata_timeline_keep_busy(timeline, &timeline->streams[last]);
    own_call_t call = own_begin(timeline, device);
    strata_status_t status = strata_device_synchronise(call.device);
    timeline->own.calls[STRATA_CALL_synchronise]++;
    own_end(timeline, &call);
    strata_timeline_check_waits(timeline, device);
    return status;
}

uint64_t strata_timeline_elapsed(const strata_timeline_t *timeline) { return now_of(timeline) - timeline->began; }

uint64_t strata_timeline_length(strata_timeline_t *timeline) {
    uint64_t end = now_of(timeline);
    for (uint32_t i = 0; i < timeline->machine->count; i++) {
        if (timeline->machine->world) {
            end = strata_max(end, strata_sim_device_end(device_of(timeline, i)));
        } else {
            strata_timeline_sync_device(timeline, i);
        }
    }
    return (timeline->machine->world ? end : now_of(timeline)) - timeline->began;
}
