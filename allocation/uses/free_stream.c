#include "allocation/uses/free_stream.h"

static strata_device_t *device_of(const strata_free_stream_t *self) { return self->uses->stack->domain->device; }

/* The entry has one hold as long as the stream exists. */
static bool adopt(strata_free_stream_t *self, strata_stream_t stream) {
    if (self->user == 0 && (self->user = strata_users_make(&self->uses->users, stream)) != 0) {
        strata_user_at(&self->uses->users, self->user)->holds = 1;
        self->stream = stream;
    }
    return self->user != 0 && self->stream == stream;
}

/* If two threads create the stream concurrently, one destroys its own. */
bool strata_free_stream_make(strata_free_stream_t *self, strata_call_t *call) {
    strata_stream_t stream;
    if (self->user) return true;
    strata_unlocked_t opened = strata_call_unlock(call);
    bool made = strata_device_stream_create(device_of(self), STRATA_STREAM_NON_BLOCKING, 0, &stream) == STRATA_OK;
    strata_call_lock(call, opened);
    if (made && !adopt(self, stream)) {
        opened = strata_call_unlock(call);
        (void)strata_device_stream_destroy(device_of(self), stream);
        strata_call_lock(call, opened);
    }
    return self->user != 0;
}

/* Returns whether an event was last recorded in a capture. A stream that waits for such an event joins
 * the capture. The query is skipped on a device that can predict when the event will pass. */
static bool is_captured(strata_device_t *device, strata_handle_t event) {
    if (strata_device_event_ready_at(device, event) != UINT64_MAX) return false;
    return strata_device_event_query(device, event) == STRATA_E_CAPTURE;
}

bool strata_free_stream_wait_for(strata_free_stream_t *self, strata_stream_t stream) {
    strata_device_t *device = device_of(self);
    strata_events_t *events = self->uses->users.events;
    strata_handle_t event;
    while ((event = strata_events_acquire(events)) == NULL)
        if (strata_events_ensure(events, 4) != STRATA_OK) return false;
    bool done = strata_device_event_record(device, event, stream) == STRATA_OK && !is_captured(device, event) &&
                strata_device_stream_wait(device, self->stream, event) == STRATA_OK;
    strata_events_release(events, event);
    return done;
}

uint32_t strata_free_stream_note(strata_free_stream_t *self, uint64_t bytes, strata_call_t *call) {
    uint32_t use = strata_uses_append(self->uses, self->user, bytes, call);
    self->frees += use != 0;
    if (use == 0) strata_free_stream_synchronise(self, call);
    return use;
}

void strata_free_stream_synchronise(strata_free_stream_t *self, strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    (void)strata_device_stream_synchronise(device_of(self), self->stream);
    strata_call_lock(call, opened);
}

strata_handle_t strata_free_stream_last(const strata_free_stream_t *self) {
    const strata_user_t *user = strata_user_at(&self->uses->users, self->user);
    return user->first ? strata_use_at(self->uses, user->last)->event : NULL;
}

void strata_free_stream_destroy(strata_free_stream_t *self) {
    if (self->user) (void)strata_device_stream_destroy(device_of(self), self->stream);
}
