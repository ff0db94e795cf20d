/* The counted wrappers around device calls: everything that all calls have in common. */
#include "platform/device.h"

#include <string.h>

#include "platform/arithmetic.h"
#include "platform/ranges/ranges.h"

static const struct {
    const char *name;
    bool quick, shown;
} calls[STRATA_DEVICE_CALLS] = {
#define STRATA_DEVICE_CALL_ROW(name, quick, shown) {#name, quick, shown},
    STRATA_DEVICE_CALL_MAP(STRATA_DEVICE_CALL_ROW)
#undef STRATA_DEVICE_CALL_ROW
};

const char *strata_device_call_name(strata_device_call_t call) { return calls[call].name; }

bool strata_device_call_shown(strata_device_call_t call) { return calls[call].shown; }

void strata_device_init(strata_device_t *device, const strata_device_operations_t *operations, uint32_t ordinal,
                        strata_clock_t *clock) {
    memset(device, 0, sizeof *device);
    device->operations = operations;
    device->ordinal = ordinal;
    device->clock = clock;
}

/* A call under way. */
typedef struct under_way {
    strata_device_call_t call;
    uint64_t real; /* 0 if the call is not timed */
    uint64_t clock, waiting; /* set if there is a ledger */
} under_way_t;

static under_way_t begin(strata_device_t *device, strata_device_call_t call) {
    under_way_t at = {.call = call};
    if (!calls[call].quick) strata_lock_assert_none(calls[call].name);
    atomic_fetch_add_explicit(&device->calls[call], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&device->made, 1, memory_order_relaxed);
    if (!device->timed) return at;
    at.real = strata_real_now();
    if (!device->ledger) return at;
    at.clock = device->clock->now(device->clock);
    at.waiting = device->ledger->waiting_ns;
    return at;
}

static void note_in_ledger(strata_device_t *device, const under_way_t *at) {
    strata_device_ledger_t *ledger = device->ledger;
    uint64_t took = device->clock->now(device->clock) - at->clock, waited = ledger->waiting_ns - at->waiting;
    ledger->made[at->call]++;
    ledger->ns[at->call] += took;
    ledger->waited_ns[at->call] += waited;
    ledger->own_ns += took - strata_min(waited, took);
}

static void count_timed(strata_device_t *device, const under_way_t *at) {
    if (!at->real) return;
    atomic_fetch_add_explicit(&device->timed_calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&device->host_ns, strata_real_now() - at->real, memory_order_relaxed);
}

static void end(strata_device_t *device, const under_way_t *at) {
    if (at->real && device->ledger) note_in_ledger(device, at);
    count_timed(device, at);
}

#define CALL(name, arguments)                                                                                                      \
    under_way_t began_ = begin(device, STRATA_CALL_##name);                                                                        \
    strata_status_t answer_ = device->operations->name arguments;                                                                  \
    end(device, &began_);                                                                                                          \
    return answer_

/* The host waits in this call, so a profiler gets a range for it. */
#define WAIT(name, arguments)                                                                                                      \
    strata_range_begin(STRATA_RANGE_wait, 0);                                                                                      \
    under_way_t began_ = begin(device, STRATA_CALL_##name);                                                                        \
    strata_status_t answer_ = device->operations->name arguments;                                                                  \
    end(device, &began_);                                                                                                          \
    strata_range_end();                                                                                                            \
    return answer_

strata_status_t strata_device_malloc(strata_device_t *device, strata_memory_t memory, uint64_t size, strata_address_t *address) {
    CALL(malloc, (device, memory, size, address));
}

strata_status_t strata_device_free(strata_device_t *device, strata_memory_t memory, strata_address_t address) {
    CALL(free, (device, memory, address));
}

strata_status_t strata_device_host_alloc(strata_device_t *device, strata_memory_t memory, uint64_t size, uint64_t alignment,
                                         uint32_t flags, strata_address_t *address) {
    CALL(host_alloc, (device, memory, size, alignment, flags, address));
}

strata_status_t strata_device_host_free(strata_device_t *device, strata_memory_t memory, strata_address_t address) {
    CALL(host_free, (device, memory, address));
}

strata_status_t strata_device_mem_info(strata_device_t *device, uint64_t *free, uint64_t *total) {
    CALL(mem_info, (device, free, total));
}

strata_status_t strata_device_malloc_async(strata_device_t *device, strata_handle_t pool, uint64_t size, strata_handle_t stream,
                                           strata_address_t *address) {
    CALL(malloc_async, (device, pool, size, stream, address));
}

strata_status_t strata_device_free_async(strata_device_t *device, strata_address_t address, strata_handle_t stream) {
    CALL(free_async, (device, address, stream));
}

strata_status_t strata_device_pool_create(strata_device_t *device, uint64_t max_size, bool shareable, strata_handle_t *pool) {
    CALL(pool_create, (device, max_size, shareable, pool));
}

strata_status_t strata_device_pool_destroy(strata_device_t *device, strata_handle_t pool) { CALL(pool_destroy, (device, pool)); }

strata_status_t strata_device_pool_default(strata_device_t *device, strata_handle_t *pool) { CALL(pool_default, (device, pool)); }

strata_status_t strata_device_pool_set(strata_device_t *device, strata_handle_t pool, strata_pool_attribute_t attribute,
                                       uint64_t value) {
    CALL(pool_set, (device, pool, attribute, value));
}

strata_status_t strata_device_pool_get(strata_device_t *device, strata_handle_t pool, strata_pool_attribute_t attribute,
                                       uint64_t *value) {
    CALL(pool_get, (device, pool, attribute, value));
}

strata_status_t strata_device_pool_trim(strata_device_t *device, strata_handle_t pool, uint64_t keep) {
    CALL(pool_trim, (device, pool, keep));
}

strata_status_t strata_device_pool_set_access(strata_device_t *device, strata_handle_t pool, uint32_t peer) {
    CALL(pool_set_access, (device, pool, peer));
}

strata_status_t strata_device_reserve(strata_device_t *device, uint64_t size, uint64_t alignment, strata_address_t *address) {
    CALL(reserve, (device, size, alignment, address));
}

strata_status_t strata_device_unreserve(strata_device_t *device, strata_address_t address, uint64_t size) {
    CALL(unreserve, (device, address, size));
}

strata_status_t strata_device_create(strata_device_t *device, uint64_t size, bool shareable, strata_physical_t *handle) {
    CALL(create, (device, size, shareable, handle));
}

strata_status_t strata_device_release(strata_device_t *device, strata_physical_t handle) { CALL(release, (device, handle)); }

strata_status_t strata_device_map(strata_device_t *device, strata_address_t address, uint64_t size, strata_physical_t handle) {
    CALL(map, (device, address, size, handle));
}

strata_status_t strata_device_unmap(strata_device_t *device, strata_address_t address, uint64_t size) {
    CALL(unmap, (device, address, size));
}

strata_status_t strata_device_set_access(strata_device_t *device, strata_address_t address, uint64_t size, const uint32_t *peers,
                                         size_t peer_count) {
    CALL(set_access, (device, address, size, peers, peer_count));
}

strata_status_t strata_device_stream_create(strata_device_t *device, strata_stream_flags_t flags, int priority,
                                            strata_handle_t *stream) {
    CALL(stream_create, (device, flags, priority, stream));
}

strata_status_t strata_device_stream_destroy(strata_device_t *device, strata_handle_t stream) {
    CALL(stream_destroy, (device, stream));
}

strata_status_t strata_device_stream_query(strata_device_t *device, strata_handle_t stream) {
    CALL(stream_query, (device, stream));
}

strata_status_t strata_device_stream_synchronise(strata_device_t *device, strata_handle_t stream) {
    WAIT(stream_synchronise, (device, stream));
}

strata_status_t strata_device_stream_wait(strata_device_t *device, strata_handle_t stream, strata_handle_t event) {
    CALL(stream_wait, (device, stream, event));
}

strata_status_t strata_device_stream_id(strata_device_t *device, strata_handle_t stream, uint64_t *id) {
    CALL(stream_id, (device, stream, id));
}

strata_status_t strata_device_synchronise(strata_device_t *device) { WAIT(synchronise, (device)); }

strata_status_t strata_device_event_create(strata_device_t *device, strata_handle_t *event) { CALL(event_create, (device, event)); }

strata_status_t strata_device_event_destroy(strata_device_t *device, strata_handle_t event) {
    CALL(event_destroy, (device, event));
}

strata_status_t strata_device_event_record(strata_device_t *device, strata_handle_t event, strata_handle_t stream) {
    CALL(event_record, (device, event, stream));
}

strata_status_t strata_device_event_query(strata_device_t *device, strata_handle_t event) { CALL(event_query, (device, event)); }

strata_status_t strata_device_event_synchronise(strata_device_t *device, strata_handle_t event) {
    WAIT(event_synchronise, (device, event));
}

strata_status_t strata_device_fill(strata_device_t *device, strata_address_t address, uint8_t byte, uint64_t size,
                                   strata_handle_t stream) {
    CALL(fill, (device, address, byte, size, stream));
}

strata_status_t strata_device_copy(strata_device_t *device, strata_address_t address, void *host, uint64_t size, bool to_host,
                                   strata_handle_t stream) {
    CALL(copy, (device, address, host, size, to_host, stream));
}

strata_status_t strata_device_prefetch(strata_device_t *device, strata_address_t address, uint64_t size, bool to_host,
                                       strata_handle_t stream) {
    CALL(prefetch, (device, address, size, to_host, stream));
}

strata_status_t strata_device_advise(strata_device_t *device, strata_address_t address, uint64_t size, strata_advice_t advice,
                                     bool host) {
    CALL(advise, (device, address, size, advice, host));
}

strata_status_t strata_device_capture_begin(strata_device_t *device, strata_handle_t stream, strata_capture_mode_t mode) {
    CALL(capture_begin, (device, stream, mode));
}

strata_status_t strata_device_capture_end(strata_device_t *device, strata_handle_t stream, strata_handle_t *graph) {
    CALL(capture_end, (device, stream, graph));
}

strata_status_t strata_device_capture_status(strata_device_t *device, strata_handle_t stream, strata_capture_status_t *status,
                                             uint64_t *id) {
    CALL(capture_status, (device, stream, status, id));
}

strata_status_t strata_device_capture_follows(strata_device_t *device, strata_handle_t stream, strata_handle_t other,
                                              uint64_t *id) {
    CALL(capture_follows, (device, stream, other, id));
}

strata_status_t strata_device_graph_on_destroy(strata_device_t *device, strata_handle_t stream, void (*callback)(void *),
                                               void *context) {
    CALL(graph_on_destroy, (device, stream, callback, context));
}

strata_status_t strata_device_graph_launch(strata_device_t *device, strata_handle_t graph, strata_handle_t stream) {
    CALL(graph_launch, (device, graph, stream));
}

strata_status_t strata_device_graph_destroy(strata_device_t *device, strata_handle_t graph) {
    CALL(graph_destroy, (device, graph));
}

strata_status_t strata_device_can_access_peer(strata_device_t *device, uint32_t peer, bool *can) {
    CALL(can_access_peer, (device, peer, can));
}

strata_status_t strata_device_enable_peer(strata_device_t *device, uint32_t peer) { CALL(enable_peer, (device, peer)); }

strata_status_t strata_device_export_memory(strata_device_t *device, strata_physical_t handle, int *descriptor) {
    CALL(export_memory, (device, handle, descriptor));
}

strata_status_t strata_device_import_memory(strata_device_t *device, int descriptor, strata_physical_t *handle) {
    CALL(import_memory, (device, descriptor, handle));
}

strata_status_t strata_device_work(strata_device_t *device, strata_handle_t stream, uint64_t duration_ns,
                                   const strata_access_t *accesses, size_t count) {
    CALL(work, (device, stream, duration_ns, accesses, count));
}

uint64_t strata_device_event_ready_at(strata_device_t *device, strata_handle_t event) {
    under_way_t at = {.real = device->timed ? strata_real_now() : 0};
    uint64_t ready_at = device->operations->event_ready_at(device, event);
    count_timed(device, &at);
    return ready_at;
}

bool strata_device_event_is_captured(strata_device_t *device, strata_handle_t event) {
    under_way_t at = {.real = device->timed ? strata_real_now() : 0};
    bool captured = device->operations->event_is_captured(device, event);
    count_timed(device, &at);
    return captured;
}

void *strata_device_host_view(strata_device_t *device, strata_address_t address, uint64_t size) {
    return device->operations->host_view(device, address, size);
}

void strata_device_close(strata_device_t *device) {
    strata_lock_assert_none("close");
    device->operations->close(device);
}
