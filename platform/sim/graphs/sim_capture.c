/* Capture of streams. Device calls count as made in relaxed mode (platform/device.h), so memory calls
 * never break a capture. */
#include <stdlib.h>
#include <string.h>

#include "platform/sim/graphs/sim_graph.h"
#include "platform/sim/world/checker_hooks.h"

static strata_status_t refuse(int64_t code, const char *text) { return strata_fail(STRATA_E_CAPTURE, code, "%s", text); }

static strata_status_t invalidated(void) {
    return refuse(SIM_CU_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: the capture is already invalidated");
}

static strata_status_t add_stream(sim_capture_t *capture, sim_stream_t *stream) {
    if (capture->count == SIM_CAPTURE_STREAMS)
        return strata_fail(STRATA_E_LIMIT, 0, "a simulated capture holds at most %d streams", SIM_CAPTURE_STREAMS);
    stream->capture = capture;
    stream->capture_index = (uint32_t)capture->count;
    capture->streams[capture->count++] = stream;
    stream->device->blocking_captures += stream->flags == STRATA_STREAM_BLOCKING;
    return STRATA_OK;
}

static void remove_stream(sim_stream_t *stream) {
    stream->device->blocking_captures -= stream->flags == STRATA_STREAM_BLOCKING;
    stream->capture->streams[stream->capture_index] = NULL;
    stream->capture = NULL;
}

/* Ends a capture. Its graph now belongs to the caller. */
static void capture_drop(sim_capture_t *capture) {
    for (size_t i = 0; i < capture->count; i++)
        if (capture->streams[i]) remove_stream(capture->streams[i]);
    for (sim_capture_t **link = &capture->graph->device->captures; *link; link = &(*link)->next) {
        if (*link != capture) continue;
        *link = capture->next;
        break;
    }
    atomic_fetch_sub(&capture->graph->device->base.captures, 1);
    free(capture);
}

static void capture_abandon(sim_capture_t *capture) {
    sim_graph_t *graph = capture->graph;
    capture_drop(capture);
    sim_graph_drop(graph);
}

strata_status_t sim_capture_refuse(sim_stream_t *stream, const char *what) {
    stream->capture->invalid = true;
    return strata_fail(STRATA_E_CAPTURE, SIM_CU_CAPTURE_UNSUPPORTED,
                       "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: %s of a stream that is captured", what);
}

strata_status_t sim_capture_refuse_free(sim_stream_t *stream, strata_address_t address) {
    if (stream->capture->invalid) return invalidated();
    stream->capture->invalid = true;
    return strata_fail(STRATA_E_CAPTURE, SIM_CU_CAPTURE_ISOLATION,
                       "CUDA_ERROR_STREAM_CAPTURE_ISOLATION: a capture frees 0x%llx, which no graph allocated",
                       (unsigned long long)address);
}

strata_status_t sim_capture_refuse_device(sim_device_t *device, const char *what) {
    sim_captures_invalidate(device, false);
    return strata_fail(STRATA_E_CAPTURE, SIM_CU_CAPTURE_UNSUPPORTED,
                       "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: %s of a device while one of its streams is captured", what);
}

static bool has_blocking(const sim_capture_t *capture) {
    for (size_t i = 0; i < capture->count; i++)
        if (capture->streams[i] && capture->streams[i]->flags == STRATA_STREAM_BLOCKING) return true;
    return false;
}

void sim_captures_invalidate(sim_device_t *device, bool blocking_only) {
    for (sim_capture_t *capture = device->captures; capture; capture = capture->next)
        if (!blocking_only || has_blocking(capture)) capture->invalid = true;
}

void sim_capture_stream_destroyed(sim_stream_t *stream) {
    sim_capture_t *capture = stream->capture;
    bool began_it = stream->capture_index == 0;
    capture->invalid = true;
    remove_stream(stream);
    if (began_it) capture_abandon(capture);
}

void sim_captures_end(sim_device_t *device) {
    while (device->captures) capture_abandon(device->captures);
    sim_slots_t *graphs = &device->slots[SIM_GRAPH];
    for (uint32_t i = 0; i < graphs->count; i++) {
        if (graphs->items[i]) sim_graph_drop(graphs->items[i]);
        graphs->items[i] = NULL;
    }
}

/* ---- operations of captured streams ---- */

static void step(sim_capture_t *capture, uint32_t index, uint64_t duration) {
    uint64_t then;
    capture->seen[index][index]++;
    capture->time[index] = strata_add(capture->time[index], duration, &then) ? then : STRATA_NEVER - 1;
}

strata_status_t sim_capture_step(sim_stream_t *stream, uint64_t duration) {
    if (stream->capture->invalid) return invalidated();
    step(stream->capture, stream->capture_index, duration);
    return STRATA_OK;
}

strata_status_t sim_capture_work(sim_stream_t *stream, uint64_t duration, const strata_access_t *accesses, size_t count) {
    strata_status_t status = sim_capture_step(stream, duration);
    if (status == STRATA_OK) check_on_captured(stream, accesses, count);
    return status;
}

strata_status_t sim_capture_fill(sim_stream_t *stream, strata_address_t address, uint8_t byte, uint64_t size) {
    if (stream->capture->invalid) return invalidated();
    if (!sim_graph_add_fill(stream->capture->graph, (sim_fill_t){.address = address, .size = size, .byte = byte}))
        return sim_no_host_memory();
    strata_status_t status = sim_capture_step(stream, 0);
    if (status == STRATA_OK) check_on_captured(stream, &(strata_access_t){address, size, true}, 1);
    return status;
}

strata_status_t sim_capture_record(sim_stream_t *stream, sim_event_t *event) {
    const sim_capture_t *capture = stream->capture;
    if (capture->invalid) return invalidated();
    event->capture_id = capture->graph->id;
    event->capture_at = capture->time[stream->capture_index];
    memcpy(event->seen, capture->seen[stream->capture_index], sizeof event->seen);
    return STRATA_OK;
}

static sim_capture_t *capture_of(sim_device_t *device, uint64_t id) {
    for (sim_capture_t *capture = device->captures; capture; capture = capture->next)
        if (capture->graph->id == id) return capture;
    return NULL;
}

/* Refuses an illegal wait that involves a capture. Returns OK for a legal one. */
static strata_status_t check_wait(sim_stream_t *stream, const sim_event_t *event, sim_capture_t *capture) {
    if (!event->capture_id) {
        stream->capture->invalid = true;
        return refuse(SIM_CU_CAPTURE_ISOLATION,
                      "CUDA_ERROR_STREAM_CAPTURE_ISOLATION: a captured stream would wait for work outside its capture");
    }
    if (!capture) return refuse(SIM_CU_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT: the event's capture has ended");
    if (stream->device != event->device)
        return strata_fail(STRATA_E_UNSUPPORTED, SIM_CU_NOT_SUPPORTED,
                           "CUDA_ERROR_NOT_SUPPORTED: a simulated capture stays on one device");
    if (stream->capture && stream->capture != capture) {
        stream->capture->invalid = capture->invalid = true;
        return refuse(SIM_CU_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE: two captures would merge");
    }
    if (capture->invalid) return invalidated();
    if (stream->legacy) {
        capture->invalid = true;
        return refuse(SIM_CU_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: the legacy stream cannot be captured");
    }
    return STRATA_OK;
}

strata_status_t sim_capture_wait(sim_stream_t *stream, const sim_event_t *event) {
    if (!event->capture_id && !event->stream_id) return STRATA_OK; /* never recorded, so there is nothing to wait for */
    sim_capture_t *capture = event->capture_id ? capture_of(event->device, event->capture_id) : NULL;
    strata_status_t status = check_wait(stream, event, capture);
    if (status == STRATA_OK && !stream->capture) status = add_stream(capture, stream);
    if (status != STRATA_OK) return status;
    uint32_t index = stream->capture_index;
    for (size_t i = 0; i < SIM_CAPTURE_STREAMS; i++) capture->seen[index][i] = strata_max(capture->seen[index][i], event->seen[i]);
    capture->time[index] = strata_max(capture->time[index], event->capture_at);
    step(capture, index, 0);
    return STRATA_OK;
}

/* ---- the calls ---- */

static strata_status_t begin(sim_device_t *device, strata_handle_t handle, strata_capture_mode_t mode) {
    sim_stream_t *stream = sim_stream(device, handle);
    if (!stream) return strata_last_error()->status;
    if (stream->legacy)
        return refuse(SIM_CU_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: the legacy stream cannot be captured");
    if (stream->capture) return refuse(SIM_CU_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE: the stream is already being captured");
    sim_capture_t *capture = calloc(1, sizeof *capture);
    sim_graph_t *graph = sim_graph_new(device, ++device->world->next_capture);
    if (!capture || !graph) {
        free(capture);
        free(graph);
        return sim_no_host_memory();
    }
    capture->graph = graph;
    capture->mode = mode;
    capture->thread = sim_thread_number();
    capture->next = device->captures;
    device->captures = capture;
    atomic_fetch_add(&device->base.captures, 1);
    return add_stream(capture, stream);
}

strata_status_t sim_op_capture_begin(strata_device_t *base, strata_handle_t stream, strata_capture_mode_t mode) {
    sim_device_t *device = sim_of(base);
    if ((unsigned)mode > STRATA_CAPTURE_RELAXED)
        return strata_fail(STRATA_E_INVALID, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: capture mode %d", (int)mode);
    strata_status_t status = sim_begin(device, STRATA_CALL_capture_begin);
    if (status != STRATA_OK) return status;
    return sim_end(device, begin(device, stream, mode));
}

/* Returns true if the stream that began the capture is ordered after all work of the others. */
static bool is_joined(const sim_capture_t *capture) {
    for (size_t i = 1; i < capture->count; i++)
        if (capture->seen[0][i] != capture->seen[i][i]) return false;
    return true;
}

static strata_status_t capture_end(sim_device_t *device, strata_handle_t handle, strata_handle_t *out) {
    sim_stream_t *stream = sim_stream(device, handle);
    if (!stream) return strata_last_error()->status;
    sim_capture_t *capture = stream->capture;
    if (!capture) return refuse(SIM_CU_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE: the stream is not being captured");
    if (stream->capture_index != 0)
        return refuse(SIM_CU_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED: another stream began this capture");
    if (capture->mode != STRATA_CAPTURE_RELAXED && capture->thread != sim_thread_number())
        return refuse(SIM_CU_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: another thread began this capture");
    strata_status_t status = STRATA_OK;
    uint64_t number;
    sim_graph_t *graph = capture->graph;
    if (capture->invalid) status = invalidated();
    else if (!is_joined(capture))
        status = refuse(SIM_CU_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED: a forked stream was not joined");
    else if (!sim_handle_new(device, SIM_GRAPH, graph, &number)) status = sim_no_host_memory();
    graph->duration = capture->time[0];
    capture_drop(capture);
    if (status != STRATA_OK) {
        sim_graph_drop(graph);
        return status;
    }
    *out = (strata_handle_t)(uintptr_t)number;
    return STRATA_OK;
}

strata_status_t sim_op_capture_end(strata_device_t *base, strata_handle_t stream, strata_handle_t *graph) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_capture_end);
    if (status != STRATA_OK) return status;
    return sim_end(device, capture_end(device, stream, graph));
}

strata_status_t sim_op_capture_status(strata_device_t *base, strata_handle_t handle, strata_capture_status_t *answer,
                                      uint64_t *id) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_capture_status);
    if (status != STRATA_OK) return status;
    const sim_stream_t *stream = sim_stream(device, handle);
    if (!stream) return sim_end(device, strata_last_error()->status);
    sim_charge(device, &device->world->profile.capture_status, 0);
    const sim_capture_t *capture = stream->capture;
    *answer = STRATA_CAPTURE_NONE;
    if (capture) *answer = capture->invalid ? STRATA_CAPTURE_INVALIDATED : STRATA_CAPTURE_ACTIVE;
    if (stream->legacy && device->blocking_captures) *answer = STRATA_CAPTURE_IMPLICIT;
    if (id) *id = capture ? capture->graph->id : 0;
    return sim_end(device, STRATA_OK);
}

static uint64_t follows(const sim_stream_t *stream, const sim_stream_t *other) {
    const sim_capture_t *capture = stream->capture;
    if (!capture || capture != other->capture || capture->invalid) return 0;
    uint32_t own = stream->capture_index, others = other->capture_index;
    return capture->seen[own][others] == capture->seen[others][others] ? capture->graph->id : 0;
}

strata_status_t sim_op_capture_follows(strata_device_t *base, strata_handle_t handle, strata_handle_t other_handle, uint64_t *id) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_capture_follows);
    if (status != STRATA_OK) return status;
    const sim_stream_t *stream = sim_stream(device, handle), *other = stream ? sim_stream(device, other_handle) : NULL;
    if (!other) return sim_end(device, strata_last_error()->status);
    sim_charge(device, &device->world->profile.capture_status, 0);
    *id = follows(stream, other);
    return sim_end(device, STRATA_OK);
}

static strata_status_t on_destroy(sim_device_t *device, strata_handle_t handle, void (*call)(void *), void *context) {
    const sim_stream_t *stream = sim_stream(device, handle);
    if (!stream) return strata_last_error()->status;
    if (!stream->capture) return refuse(SIM_CU_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE: the stream is not being captured");
    sim_callback_t *callback = calloc(1, sizeof *callback);
    if (!callback) return sim_no_host_memory();
    *callback = (sim_callback_t){.next = stream->capture->graph->callbacks, .call = call, .context = context};
    stream->capture->graph->callbacks = callback;
    return STRATA_OK;
}

strata_status_t sim_op_graph_on_destroy(strata_device_t *base, strata_handle_t stream, void (*call)(void *), void *context) {
    sim_device_t *device = sim_of(base);
    if (!call) return strata_fail(STRATA_E_INVALID, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: no callback");
    strata_status_t status = sim_begin(device, STRATA_CALL_graph_on_destroy);
    if (status != STRATA_OK) return status;
    return sim_end(device, on_destroy(device, stream, call, context));
}
