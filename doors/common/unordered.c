#include "doors/common/unordered.h"

#include <pthread.h>
#include <string.h>

#include "doors/common/refs.h"
#include "facade/registry/facade.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"

enum { FIRST_ROOM = 256, MAX_PENDING = 65536 };

typedef struct pending {
    strata_ref_t ref;
    size_t size;
} pending_t;

struct strata_unordered {
    strata_t facade;
    strata_place_t place;
    strata_stream_t stream; /* belongs to this object; NULL in places without owner streams */
    pthread_mutex_t mutex; /* guards the fields below; never held across a call of the library */
    pthread_cond_t drained; /* signaled when `draining` becomes false */
    pending_t *list; /* in the order of the frees */
    size_t count, room;
    strata_refs_t pending_refs; /* the refs of the list; twice the capacity of the list */
    uint64_t bytes;
    bool draining; /* a thread waits for the device, or frees the blocks after the wait */
};

static bool has_owner(strata_place_t place) { return !strata_place_is_ownerless(strata_place_kind(place)); }

strata_status_t strata_unordered_new(strata_t facade, strata_place_t place, strata_unordered_t **unordered) {
    strata_unordered_t *made = strata_host_new(1, sizeof *made);
    if (!made) return STRATA_E_HOST_MEMORY;
    made->facade = facade;
    made->place = place;
    strata_status_t status = has_owner(place) ? strata_stream_create(facade, place, 0, &made->stream) : STRATA_OK;
    if (status != STRATA_OK) {
        strata_host_delete(made);
        return status;
    }
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->drained, NULL);
    *unordered = made;
    return STRATA_OK;
}

void strata_unordered_delete(strata_unordered_t *self) {
    if (!self) return;
    pthread_mutex_destroy(&self->mutex);
    pthread_cond_destroy(&self->drained);
    strata_host_delete(self->list);
    strata_host_delete(self->pending_refs.slots);
    strata_host_delete(self);
}

/* ---- waiting ---- */

/* The number of captures that the program began, and of device waits in progress. The two never overlap, because a wait would break
 * the capture. */
static pthread_mutex_t wait_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards both */
static pthread_cond_t wait_ended = PTHREAD_COND_INITIALIZER; /* signaled when `waiting` decreases */
static uint64_t captures, waiting;

void strata_unordered_capture_begins(void) {
    pthread_mutex_lock(&wait_mutex);
    captures++;
    while (waiting) pthread_cond_wait(&wait_ended, &wait_mutex);
    pthread_mutex_unlock(&wait_mutex);
}

void strata_unordered_capture_ends(void) {
    pthread_mutex_lock(&wait_mutex);
    captures -= captures > 0;
    pthread_mutex_unlock(&wait_mutex);
}

static bool begin_wait(void) {
    pthread_mutex_lock(&wait_mutex);
    bool may = captures == 0;
    waiting += may;
    pthread_mutex_unlock(&wait_mutex);
    return may;
}

static void end_wait(void) {
    pthread_mutex_lock(&wait_mutex);
    waiting--;
    pthread_cond_broadcast(&wait_ended);
    pthread_mutex_unlock(&wait_mutex);
}

/* Waits for all work of the place's device, or of all devices for host memory, because any device may use that. */
static strata_status_t wait_for_devices(strata_unordered_t *self) {
    strata_domain_t *domain;
    strata_facade_t *facade = strata_facade_of(self->facade);
    if (!facade) return strata_last_error()->status;
    strata_status_t status = strata_facade_domain(facade, self->place, &domain);
    if (status != STRATA_OK) return status;
    if (!begin_wait()) return strata_fail(STRATA_E_CAPTURE, 0, "a stream is being captured, so its device cannot be waited for");
    bool done = has_owner(self->place) ? strata_domain_wait_for_own(domain) : strata_domain_wait_for_all(domain);
    end_wait();
    return done ? STRATA_OK : strata_last_error()->status;
}

/* One thread settles at a time. Only this thread removes entries, from the front. Other threads append. Returns the number of
 * entries. */
static size_t begin_drain(strata_unordered_t *self) {
    pthread_mutex_lock(&self->mutex);
    while (self->draining) pthread_cond_wait(&self->drained, &self->mutex);
    self->draining = true;
    size_t count = self->count;
    pthread_mutex_unlock(&self->mutex);
    return count;
}

static pending_t entry_at(strata_unordered_t *self, size_t i) {
    pthread_mutex_lock(&self->mutex);
    pending_t entry = self->list[i];
    pthread_mutex_unlock(&self->mutex);
    return entry;
}

static void end_drain(strata_unordered_t *self, size_t removed, uint64_t bytes) {
    pthread_mutex_lock(&self->mutex);
    self->count -= removed;
    self->bytes -= bytes;
    for (size_t i = 0; i < removed; i++) strata_refs_remove(&self->pending_refs, self->list[i].ref);
    if (removed) memmove(self->list, self->list + removed, self->count * sizeof *self->list);
    self->draining = false;
    pthread_cond_broadcast(&self->drained);
    pthread_mutex_unlock(&self->mutex);
}

strata_status_t strata_unordered_drain(strata_unordered_t *self, uint64_t *freed) {
    size_t count = begin_drain(self);
    strata_status_t status = count ? wait_for_devices(self) : STRATA_OK;
    if (status != STRATA_OK) count = 0;
    uint64_t bytes = 0, given_up = 0;
    for (size_t i = 0; i < count; i++) {
        pending_t entry = entry_at(self, i);
        /* This fails only if the block was freed directly through the facade after it entered the list. */
        if (strata_free(self->facade, entry.ref) == STRATA_OK) bytes += entry.size;
        given_up += entry.size;
    }
    end_drain(self, count, given_up);
    if (freed) *freed = bytes;
    return status;
}

uint64_t strata_unordered_pending(strata_unordered_t *self) {
    pthread_mutex_lock(&self->mutex);
    uint64_t bytes = self->bytes;
    pthread_mutex_unlock(&self->mutex);
    return bytes;
}

/* ---- allocate ---- */

static strata_status_t request(strata_unordered_t *self, size_t size, uint32_t flags, strata_block_t *block) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .flags = flags};
    return strata_allocate_with(self->facade, self->place, self->stream, &options, block);
}

/* Waits for the own stream, because a block from a cache or a driver pool may be ready only in that stream's order. */
static strata_status_t wait_until_ready(strata_unordered_t *self, strata_block_t *block) {
    strata_status_t status = has_owner(self->place) ? strata_stream_synchronize(self->facade, self->place, self->stream)
                                                    : STRATA_OK;
    if (status != STRATA_OK) (void)strata_free(self->facade, block->ref);
    return status;
}

strata_status_t strata_unordered_allocate(strata_unordered_t *self, size_t size, strata_block_t *block) {
    strata_block_t served;
    strata_status_t status = STRATA_E_NO_MEMORY;
    if (strata_unordered_pending(self) >= size) {
        status = request(self, size, STRATA_NO_GROW | STRATA_NO_RETRY | STRATA_NO_REPORT, &served);
        if (status == STRATA_E_NO_MEMORY) (void)strata_unordered_drain(self, NULL);
    }
    if (status == STRATA_E_NO_MEMORY) status = request(self, size, 0, &served);
    if (status == STRATA_OK) status = wait_until_ready(self, &served);
    if (status == STRATA_OK) *block = served;
    return status;
}

/* ---- free ---- */

bool strata_unordered_is_pending(strata_unordered_t *self, strata_ref_t ref) {
    pthread_mutex_lock(&self->mutex);
    bool pending = strata_refs_contain(&self->pending_refs, ref);
    pthread_mutex_unlock(&self->mutex);
    return pending;
}

/* Grows the list to `room` entries, unless another thread has already grown it. Returns false if host memory is exhausted. */
static bool make_room(strata_unordered_t *self, size_t room) {
    pending_t *list = strata_host_new(room, sizeof *list);
    strata_refs_t pending_refs = {strata_host_new(2 * room, sizeof(strata_ref_t)), 2 * room};
    bool made = list && pending_refs.slots;
    pthread_mutex_lock(&self->mutex);
    if (made && self->room < room) {
        pending_t *old = self->list;
        strata_ref_t *old_slots = self->pending_refs.slots;
        for (size_t i = 0; i < self->count; i++) {
            list[i] = old[i];
            strata_refs_add(&pending_refs, old[i].ref);
        }
        self->list = list;
        self->pending_refs = pending_refs;
        self->room = room;
        list = old;
        pending_refs.slots = old_slots;
    }
    pthread_mutex_unlock(&self->mutex);
    strata_host_delete(list);
    strata_host_delete(pending_refs.slots);
    return made;
}

/* Returns E_INVALID if the ref is in the list already, and E_HOST_MEMORY if the list is full and cannot grow. */
static strata_status_t append(strata_unordered_t *self, pending_t entry) {
    for (;;) {
        pthread_mutex_lock(&self->mutex);
        bool again = strata_refs_contain(&self->pending_refs, entry.ref), fits = self->count < self->room;
        size_t wanted = self->room ? 2 * self->room : FIRST_ROOM;
        if (fits && !again) {
            self->list[self->count++] = entry;
            strata_refs_add(&self->pending_refs, entry.ref);
            self->bytes += entry.size;
        }
        pthread_mutex_unlock(&self->mutex);
        if (again) return strata_fail(STRATA_E_INVALID, 0, "the block was freed already");
        if (fits) return STRATA_OK;
        if (!make_room(self, wanted)) return STRATA_E_HOST_MEMORY;
    }
}

static bool many_are_pending(strata_unordered_t *self) {
    pthread_mutex_lock(&self->mutex);
    bool many = self->count >= MAX_PENDING;
    pthread_mutex_unlock(&self->mutex);
    return many;
}

strata_status_t strata_unordered_free(strata_unordered_t *self, const strata_block_t *block) {
    strata_status_t status = append(self, (pending_t){block->ref, block->size});
    if (many_are_pending(self)) (void)strata_unordered_drain(self, NULL);
    if (status != STRATA_E_HOST_MEMORY) return status;
    status = wait_for_devices(self);
    return status == STRATA_OK ? strata_free(self->facade, block->ref) : status;
}
