/* Streams, each with its own timeline. The legacy stream is ordered with every blocking stream, in both
 * directions. */
#include <stdlib.h>

#include "platform/sim/world/checker_hooks.h"

static _Atomic uint64_t stream_ids;

void sim_stream_init(sim_device_t *device, sim_stream_t *stream, strata_stream_flags_t flags) {
    stream->device = device;
    stream->flags = flags;
    stream->id = atomic_fetch_add(&stream_ids, 1) + 1;
}

static sim_stream_t *own_stream(sim_device_t *device) {
    uint64_t thread = sim_thread_number();
    for (sim_stream_t *at = device->own; at; at = at->next_own)
        if (at->thread == thread) return at;
    sim_stream_t *stream = calloc(1, sizeof *stream);
    if (!stream) {
        sim_no_host_memory();
        return NULL;
    }
    sim_stream_init(device, stream, STRATA_STREAM_BLOCKING);
    stream->thread = thread;
    stream->next_own = device->own;
    return device->own = stream;
}

sim_stream_t *sim_stream(sim_device_t *device, strata_handle_t handle) {
    uintptr_t value = (uintptr_t)handle;
    if (value <= 1) return &device->legacy;
    if (value == 2) return own_stream(device);
    return sim_handle_find(device, SIM_STREAM, value, STRATA_E_UNKNOWN_STREAM);
}

sim_stream_t *sim_stream_for_work(sim_device_t *device, strata_handle_t handle) {
    sim_stream_t *stream = sim_stream(device, handle);
    if (!stream || !stream->legacy || !device->blocking_captures) return stream;
    sim_captures_invalidate(device, true);
    strata_fail(STRATA_E_CAPTURE, SIM_CU_CAPTURE_IMPLICIT,
                "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: the legacy stream orders with a blocking stream that is captured");
    return NULL;
}

uint64_t sim_stream_order(const sim_stream_t *stream) {
    if (stream->flags == STRATA_STREAM_NON_BLOCKING) return stream->end;
    return strata_max(stream->end, stream->legacy ? stream->device->blocking_end : stream->device->legacy.end);
}

void sim_stream_extend(sim_stream_t *stream, uint64_t end) {
    sim_device_t *device = stream->device;
    stream->end = strata_max(stream->end, end);
    device->end = strata_max(device->end, end);
    if (stream->flags == STRATA_STREAM_BLOCKING) device->blocking_end = strata_max(device->blocking_end, end);
}

uint64_t sim_submit(sim_stream_t *stream, uint64_t duration) {
    uint64_t start = strata_max(sim_now(stream->device), sim_stream_order(stream)), end;
    if (!strata_add(start, duration, &end) || end == STRATA_NEVER) end = STRATA_NEVER - 1;
    sim_stream_extend(stream, end);
    stream->operations++;
    return end;
}

/* Keeps the followed streams in order, the latest first. The one followed longest ago is dropped, which
 * only costs reuse. */
void sim_stream_follow(sim_stream_t *stream, uint64_t stream_id, uint64_t operations) {
    sim_followed_t entry = {stream_id, operations};
    for (size_t i = 0; i < SIM_FOLLOWED; i++) {
        sim_followed_t old = stream->followed[i];
        stream->followed[i] = entry;
        if (old.stream_id == stream_id) {
            stream->followed[0].operations = strata_max(old.operations, operations);
            return;
        }
        entry = old;
    }
}

strata_status_t sim_op_stream_create(strata_device_t *base, strata_stream_flags_t flags, int priority, strata_handle_t *out) {
    sim_device_t *device = sim_of(base);
    if (flags != STRATA_STREAM_BLOCKING && flags != STRATA_STREAM_NON_BLOCKING)
        return strata_fail(STRATA_E_INVALID, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: stream flags %d", (int)flags);
    strata_status_t status = sim_begin(device, STRATA_CALL_stream_create);
    if (status != STRATA_OK) return status;
    sim_stream_t *stream = calloc(1, sizeof *stream);
    if (!stream || !sim_handle_new(device, SIM_STREAM, stream, &stream->handle)) {
        free(stream);
        return sim_end(device, sim_no_host_memory());
    }
    sim_charge(device, &device->world->profile.stream_create, 0);
    sim_stream_init(device, stream, flags);
    stream->priority = priority < SIM_PRIORITY_FIRST  ? SIM_PRIORITY_FIRST
                       : priority > SIM_PRIORITY_LAST ? SIM_PRIORITY_LAST
                                                      : priority;
    *out = (strata_handle_t)(uintptr_t)stream->handle;
    return sim_end(device, STRATA_OK);
}

/* Waits for nothing: submitted work continues, and the device's own end covers all of it. */
static strata_status_t stream_destroy(sim_device_t *device, strata_handle_t handle) {
    sim_stream_t *stream = sim_stream(device, handle);
    if (!stream) return strata_last_error()->status;
    if (!stream->handle)
        return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_HANDLE,
                           "CUDA_ERROR_INVALID_HANDLE: a default stream cannot be destroyed");
    sim_charge(device, &device->world->profile.stream_destroy, 0);
    if (stream->capture) sim_capture_stream_destroyed(stream);
    check_on_stream_destroyed(stream);
    sim_handle_drop(device, SIM_STREAM, stream->handle);
    free(stream);
    return STRATA_OK;
}

strata_status_t sim_op_stream_destroy(strata_device_t *base, strata_handle_t handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_stream_destroy);
    if (status != STRATA_OK) return status;
    return sim_end(device, stream_destroy(device, handle));
}

/* Returns the end of the work for which the host waits: the stream's own, and for the legacy stream
 * that of all blocking streams too. */
static uint64_t visible_end(const sim_stream_t *stream) { return stream->legacy ? sim_stream_order(stream) : stream->end; }

/* Returns the stream of a query or a wait, or NULL with the error set. */
static sim_stream_t *observed_stream(sim_device_t *device, strata_handle_t handle, const char *what) {
    sim_stream_t *stream = sim_stream_for_work(device, handle);
    if (stream && stream->capture) {
        sim_capture_refuse(stream, what);
        return NULL;
    }
    return stream;
}

strata_status_t sim_op_stream_query(strata_device_t *base, strata_handle_t handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_stream_query);
    if (status != STRATA_OK) return status;
    sim_stream_t *stream = observed_stream(device, handle, "query");
    if (!stream) return sim_end(device, strata_last_error()->status);
    bool done = visible_end(stream) <= sim_now(device);
    if (done) check_on_synchronised(stream);
    sim_charge(device, &device->world->profile.event_query, 0);
    return sim_end(device, done ? STRATA_OK : STRATA_E_NOT_READY);
}

strata_status_t sim_op_stream_synchronise(strata_device_t *base, strata_handle_t handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_stream_synchronise);
    if (status != STRATA_OK) return status;
    sim_stream_t *stream = observed_stream(device, handle, "synchronise");
    if (!stream) return sim_end(device, strata_last_error()->status);
    sim_stall(device, visible_end(stream));
    check_on_synchronised(stream);
    sim_charge(device, &device->world->profile.synchronise, 0);
    sim_pools_synchronised(device);
    return sim_end(device, STRATA_OK);
}

void sim_device_wait(sim_device_t *device) {
    sim_stall(device, device->end);
    atomic_fetch_add_explicit(&device->waits, 1, memory_order_relaxed);
}

bool sim_free_wait(sim_device_t *device) {
    if (device->world->profile.free_waits) sim_device_wait(device);
    return device->world->profile.free_waits;
}

strata_status_t sim_op_synchronise(strata_device_t *base) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_synchronise);
    if (status != STRATA_OK) return status;
    if (device->captures) return sim_end(device, sim_capture_refuse_device(device, "synchronise"));
    sim_device_wait(device);
    check_on_device_done(device);
    sim_charge(device, &device->world->profile.synchronise, 0);
    sim_pools_synchronised(device);
    return sim_end(device, STRATA_OK);
}

strata_status_t sim_op_stream_id(strata_device_t *base, strata_handle_t handle, uint64_t *id) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_stream_id);
    if (status != STRATA_OK) return status;
    sim_stream_t *stream = sim_stream(device, handle);
    if (!stream) return sim_end(device, strata_last_error()->status);
    *id = stream->id;
    return sim_end(device, STRATA_OK);
}

static strata_status_t work(sim_device_t *device, strata_handle_t handle, uint64_t duration, const strata_access_t *accesses,
                            size_t count) {
    sim_stream_t *stream = sim_stream_for_work(device, handle);
    if (!stream) return strata_last_error()->status;
    sim_charge(device, &device->world->profile.launch, 0);
    if (stream->capture) return sim_capture_work(stream, duration, accesses, count);
    uint64_t end = sim_submit(stream, duration);
    check_on_work(stream, accesses, count);
    for (size_t i = 0; i < count; i++) {
        if (sim_touch(device, accesses[i].address, accesses[i].size, end)) continue;
        sim_mark_lost(device, SIM_CU_ILLEGAL_ADDRESS);
        return strata_fail(STRATA_E_DEVICE_LOST, SIM_CU_ILLEGAL_ADDRESS,
                           "CUDA_ERROR_ILLEGAL_ADDRESS: work accesses 0x%llx, %llu bytes, which it must not",
                           (unsigned long long)accesses[i].address, (unsigned long long)accesses[i].size);
    }
    return STRATA_OK;
}

strata_status_t sim_op_work(strata_device_t *base, strata_handle_t stream, uint64_t duration, const strata_access_t *accesses,
                            size_t count) {
    sim_device_t *device = sim_of(base);
    if (count && !accesses) return strata_fail(STRATA_E_INVALID, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: no accesses");
    strata_status_t status = sim_begin(device, STRATA_CALL_work);
    if (status != STRATA_OK) return status;
    return sim_end(device, work(device, stream, duration, accesses, count));
}

/* Extends the stream as by work submitted now that ends at `end`. */
static void keep_busy(sim_stream_t *stream, uint64_t end) {
    sim_stream_extend(stream, strata_max(strata_min(end, STRATA_NEVER - 1), sim_stream_order(stream)));
}

void sim_streams_submit_promised(strata_sim_t *world) {
    for (sim_stream_t *stream = world->promised; stream; stream = stream->next_promised) {
        keep_busy(stream, stream->promised);
        stream->promised = 0;
    }
    world->promised = NULL;
}

strata_sim_stream_t *strata_sim_stream_find(strata_device_t *base, strata_handle_t handle) {
    sim_device_t *device = sim_of(base);
    strata_lock(&device->world->lock);
    sim_stream_t *stream = sim_stream(device, handle);
    strata_unlock(&device->world->lock);
    return stream;
}

void strata_sim_stream_promise(strata_sim_stream_t *stream, uint64_t end) {
    strata_sim_t *world = stream->device->world;
    if (end <= stream->promised) return;
    if (!stream->promised) {
        stream->next_promised = world->promised;
        world->promised = stream;
    }
    stream->promised = end;
}

strata_status_t strata_sim_stream_busy_until(strata_device_t *base, strata_handle_t handle, uint64_t end) {
    sim_device_t *device = sim_of(base);
    strata_lock(&device->world->lock);
    sim_streams_submit_promised(device->world);
    sim_stream_t *stream = sim_stream(device, handle);
    if (stream) keep_busy(stream, end);
    strata_unlock(&device->world->lock);
    return stream ? STRATA_OK : strata_last_error()->status;
}

uint64_t strata_sim_stream_end(strata_device_t *base, strata_handle_t handle) {
    sim_device_t *device = sim_of(base);
    strata_lock(&device->world->lock);
    sim_streams_submit_promised(device->world);
    sim_stream_t *stream = sim_stream(device, handle);
    uint64_t end = stream ? visible_end(stream) : 0;
    strata_unlock(&device->world->lock);
    return end;
}

int strata_sim_stream_priority(strata_device_t *base, strata_handle_t handle) {
    sim_device_t *device = sim_of(base);
    strata_lock(&device->world->lock);
    sim_stream_t *stream = sim_stream(device, handle);
    int priority = stream ? stream->priority : 0;
    strata_unlock(&device->world->lock);
    return priority;
}

uint64_t strata_sim_device_end(strata_device_t *base) {
    sim_device_t *device = sim_of(base);
    strata_lock(&device->world->lock);
    sim_streams_submit_promised(device->world);
    uint64_t end = device->end;
    strata_unlock(&device->world->lock);
    return end;
}

uint64_t strata_sim_device_waits(strata_device_t *base) { return atomic_load_explicit(&sim_of(base)->waits, memory_order_relaxed); }

void sim_streams_end(sim_device_t *device) {
    for (uint32_t i = 0; i < device->slots[SIM_STREAM].count; i++) free(device->slots[SIM_STREAM].items[i]);
    for (uint32_t i = 0; i < device->slots[SIM_EVENT].count; i++) {
        if (device->slots[SIM_EVENT].items[i]) check_event_end(device->slots[SIM_EVENT].items[i]);
        free(device->slots[SIM_EVENT].items[i]);
    }
    for (sim_stream_t *at = device->own, *next; at; at = next) {
        next = at->next_own;
        free(at);
    }
}
