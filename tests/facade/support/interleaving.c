#include "tests/facade/support/interleaving.h"

typedef struct deed {
    between_fn act;
    void *context;
} deed_t;

static void *do_it(void *argument) {
    const deed_t *deed = argument;
    deed->act(deed->context);
    return NULL;
}

static void act_elsewhere(between_fn act, void *context) {
    deed_t deed = {act, context};
    in_another_thread(do_it, &deed);
}

/* ---- in front of a device call ---- */

static const strata_device_operations_t *real_after(strata_device_t *device, strata_device_call_t call) {
    /* The table is the first member, and stands in memory that the test writes. */
    between_t *between = (between_t *)(uintptr_t)device->operations;
    if (call != between->call || between->acted) return between->real;
    between->acted = true;
    act_elsewhere(between->act, between->context);
    return between->real;
}

static strata_status_t event_create(strata_device_t *device, strata_handle_t *event) {
    return real_after(device, STRATA_CALL_event_create)->event_create(device, event);
}

static strata_status_t stream_create(strata_device_t *device, strata_stream_flags_t flags, int priority, strata_handle_t *stream) {
    return real_after(device, STRATA_CALL_stream_create)->stream_create(device, flags, priority, stream);
}

static strata_status_t allocate(strata_device_t *device, strata_memory_t memory, uint64_t size, strata_address_t *address) {
    return real_after(device, STRATA_CALL_malloc)->malloc(device, memory, size, address);
}

static strata_status_t event_synchronise(strata_device_t *device, strata_handle_t event) {
    return real_after(device, STRATA_CALL_event_synchronise)->event_synchronise(device, event);
}

static strata_status_t synchronise(strata_device_t *device) {
    strata_status_t status = ((between_t *)(uintptr_t)device->operations)->real->synchronise(device);
    (void)real_after(device, STRATA_CALL_synchronise);
    return status;
}

static strata_status_t free_async(strata_device_t *device, strata_address_t address, strata_handle_t stream) {
    strata_status_t status = ((between_t *)(uintptr_t)device->operations)->real->free_async(device, address, stream);
    (void)real_after(device, STRATA_CALL_free_async);
    return status;
}

static strata_status_t host_free(strata_device_t *device, strata_memory_t memory, strata_address_t address) {
    strata_status_t status = ((between_t *)(uintptr_t)device->operations)->real->host_free(device, memory, address);
    (void)real_after(device, STRATA_CALL_host_free);
    return status;
}

static strata_status_t stream_synchronise(strata_device_t *device, strata_handle_t stream) {
    return real_after(device, STRATA_CALL_stream_synchronise)->stream_synchronise(device, stream);
}

static strata_status_t capture_status(strata_device_t *device, strata_handle_t stream, strata_capture_status_t *status,
                                      uint64_t *id) {
    return real_after(device, STRATA_CALL_capture_status)->capture_status(device, stream, status, id);
}

void between_begin(between_t *between, rig_t *rig, strata_device_call_t call, between_fn act, void *context) {
    strata_device_t *device = rig->devices[0];
    *between = (between_t){
        .table = *device->operations, .real = device->operations, .device = device, .call = call, .act = act, .context = context};
    between->table.event_create = event_create;
    between->table.stream_create = stream_create;
    between->table.malloc = allocate;
    between->table.event_synchronise = event_synchronise;
    between->table.synchronise = synchronise;
    between->table.stream_synchronise = stream_synchronise;
    between->table.capture_status = capture_status;
    between->table.free_async = free_async;
    between->table.host_free = host_free;
    device->operations = &between->table;
}

bool between_end(between_t *between) {
    between->device->operations = between->real;
    return between->acted;
}

/* ---- in front of a lock ---- */

static bool is_heard(const strata_lock_observer_t *observer) { return observer && atomic_load(&observer->active); }

/* The caller has read nothing yet that the lock guards. */
static void acquired(strata_lock_observer_t *self, strata_lock_t *lock) {
    before_lock_t *before = (before_lock_t *)self;
    if (pthread_equal(before->caller, pthread_self()) && before->left > 0 && --before->left == 0) {
        strata_lock_release(lock);
        act_elsewhere(before->act, before->context);
        strata_lock_acquire(lock);
    }
    if (is_heard(before->real)) before->real->acquired(before->real, lock);
}

static void releasing(strata_lock_observer_t *self, strata_lock_t *lock) {
    const before_lock_t *before = (const before_lock_t *)self;
    if (is_heard(before->real)) before->real->releasing(before->real, lock);
}

void before_lock_begin(before_lock_t *before, strata_lock_t *lock, uint32_t n, between_fn act, void *context) {
    *before = (before_lock_t){.observer = {.acquired = acquired, .releasing = releasing},
                              .real = lock->observer,
                              .lock = lock,
                              .caller = pthread_self(),
                              .left = n,
                              .act = act,
                              .context = context};
    strata_lock_observer_activate(&before->observer);
    strata_lock_observe(lock, &before->observer);
}

bool before_lock_end(before_lock_t *before) {
    /* The observer is another one if the stack was closed in between. */
    if (before->lock->observer == &before->observer) strata_lock_observe(before->lock, before->real);
    return before->left == 0;
}
