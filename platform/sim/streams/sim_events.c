/* Events. An event holds the time at which its stream's work before the record is done. Recording again
 * does not change earlier waits. */
#include <stdlib.h>
#include <string.h>

#include "platform/sim/world/checker_hooks.h"

static sim_event_t *own_event(sim_device_t *device, strata_handle_t handle) {
    return sim_handle_find(device, SIM_EVENT, (uintptr_t)handle, STRATA_E_DEVICE);
}

/* Returns an event of any device of the world, since a stream may wait for another device's event. */
static sim_event_t *any_event(sim_device_t *device, strata_handle_t handle) {
    sim_device_t *owner = sim_handle_owner(device->world, (uintptr_t)handle);
    return own_event(owner ? owner : device, handle);
}

strata_status_t sim_op_event_create(strata_device_t *base, strata_handle_t *out) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_event_create);
    if (status != STRATA_OK) return status;
    uint64_t handle;
    sim_event_t *event = calloc(1, sizeof *event);
    if (!event || !sim_handle_new(device, SIM_EVENT, event, &handle)) {
        free(event);
        return sim_end(device, sim_no_host_memory());
    }
    sim_charge(device, &device->world->profile.event_create, 0);
    event->device = device;
    *out = (strata_handle_t)(uintptr_t)handle;
    return sim_end(device, STRATA_OK);
}

strata_status_t sim_op_event_destroy(strata_device_t *base, strata_handle_t handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_event_destroy);
    if (status != STRATA_OK) return status;
    sim_event_t *event = own_event(device, handle);
    if (!event) return sim_end(device, STRATA_E_DEVICE);
    sim_charge(device, &device->world->profile.event_destroy, 0);
    sim_handle_drop(device, SIM_EVENT, (uintptr_t)handle);
    check_event_end(event);
    free(event);
    return sim_end(device, STRATA_OK);
}

static strata_status_t record(sim_device_t *device, strata_handle_t event_handle, strata_handle_t stream_handle) {
    sim_event_t *event = own_event(device, event_handle);
    if (!event) return STRATA_E_DEVICE;
    sim_stream_t *stream = sim_stream_for_work(device, stream_handle);
    if (!stream) return strata_last_error()->status;
    uint64_t called = sim_now(device);
    sim_charge(device, &device->world->profile.event_record, 0);
    if (stream->capture) {
        strata_status_t status = sim_capture_record(stream, event);
        if (status == STRATA_OK) check_event_end(event);
        return status;
    }
    check_on_record(stream, event);
    uint64_t before = sim_stream_order(stream);
    sim_stream_extend(stream, before);
    event->at = strata_max(before, called);
    event->capture_id = 0;
    event->stream_id = stream->id;
    event->operations = ++stream->operations;
    return STRATA_OK;
}

strata_status_t sim_op_event_record(strata_device_t *base, strata_handle_t event, strata_handle_t stream) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_event_record);
    if (status != STRATA_OK) return status;
    return sim_end(device, record(device, event, stream));
}

/* Returns the event of a query or a wait, or NULL with the error set. */
static sim_event_t *observed_event(sim_device_t *device, strata_handle_t handle, strata_status_t *status) {
    sim_event_t *event = own_event(device, handle);
    *status = event ? STRATA_OK : STRATA_E_DEVICE;
    if (!event || !event->capture_id) return event;
    *status = strata_fail(STRATA_E_CAPTURE, SIM_CU_CAPTURED_EVENT,
                          "CUDA_ERROR_CAPTURED_EVENT: the event was last recorded in a capture");
    return NULL;
}

/* E_NOT_READY is a result, not a failure, so the thread's last error is unchanged. */
strata_status_t sim_op_event_query(strata_device_t *base, strata_handle_t handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_event_query);
    if (status != STRATA_OK) return status;
    sim_event_t *event = observed_event(device, handle, &status);
    if (!event) return sim_end(device, status);
    bool passed = event->at <= sim_now(device);
    if (passed) check_on_passed(event);
    sim_charge(device, &device->world->profile.event_query, 0);
    return sim_end(device, passed ? STRATA_OK : STRATA_E_NOT_READY);
}

strata_status_t sim_op_event_synchronise(strata_device_t *base, strata_handle_t handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_event_synchronise);
    if (status != STRATA_OK) return status;
    sim_event_t *event = observed_event(device, handle, &status);
    if (!event) return sim_end(device, status);
    sim_stall(device, event->at);
    check_on_passed(event);
    sim_charge(device, &device->world->profile.synchronise, 0);
    sim_pools_synchronised(device);
    return sim_end(device, STRATA_OK);
}

uint64_t sim_op_event_ready_at(strata_device_t *base, strata_handle_t handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status;
    strata_lock(&device->world->lock);
    sim_event_t *event = observed_event(device, handle, &status);
    uint64_t at = event ? event->at : STRATA_NEVER;
    strata_unlock(&device->world->lock);
    return at;
}

bool sim_op_event_is_captured(strata_device_t *base, strata_handle_t handle) {
    sim_device_t *device = sim_of(base);
    strata_lock(&device->world->lock);
    const sim_event_t *event = own_event(device, handle);
    bool captured = event && event->capture_id;
    strata_unlock(&device->world->lock);
    return captured;
}

static strata_status_t stream_wait(sim_device_t *device, strata_handle_t stream_handle, strata_handle_t event_handle) {
    sim_event_t *event = any_event(device, event_handle);
    if (!event) return STRATA_E_DEVICE;
    sim_stream_t *stream = sim_stream_for_work(device, stream_handle);
    if (!stream) return strata_last_error()->status;
    sim_charge(device, &device->world->profile.stream_wait, 0);
    if (stream->capture || event->capture_id) return sim_capture_wait(stream, event);
    sim_stream_extend(stream, strata_max(event->at, sim_stream_order(stream)));
    stream->operations++;
    if (event->stream_id) sim_stream_follow(stream, event->stream_id, event->operations);
    check_on_wait(stream, event);
    return STRATA_OK;
}

strata_status_t sim_op_stream_wait(strata_device_t *base, strata_handle_t stream, strata_handle_t event) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_stream_wait);
    if (status != STRATA_OK) return status;
    return sim_end(device, stream_wait(device, stream, event));
}
