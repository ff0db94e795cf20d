/* Which calls wait for running work, as a real GPU showed (docs/profiles.md, "Which calls wait"): a kernel of 150 ms on a stream of
 * its own, the call beside it. tests/sim holds the profiles against the rows, tests/gpu the GPU that is there. */
#ifndef STRATA_TESTS_PLATFORM_BESIDE_H
#define STRATA_TESTS_PLATFORM_BESIDE_H

#include "platform/device.h"
#include "tests/harness/test.h"

#define BESIDE_KERNEL UINT64_C(150000000)
#define BESIDE_UNIT   (UINT64_C(2) << 20) /* the granularity of every device so far, or a multiple of it */
#define BESIDE_LARGE  (UINT64_C(64) << 20) /* nothing keeps as much idle */

/* What the calls work on, made before the kernel begins, and what they make. What is given back is set to 0. */
typedef struct beside {
    strata_device_t *device;
    strata_handle_t running, stream, brief, event, made_stream, made_event;
    strata_address_t small, large, managed, pinned, host, warm, cold, range, mapped, made_device, made_managed, made_pinned,
        made_range;
    strata_physical_t handle, of_mapped, made_handle;
    bool in_range, unmapped;
} beside_t;

static inline void beside_open(beside_t *b, strata_device_t *d) {
    *b = (beside_t){.device = d};
    strata_handle_t *streams[] = {&b->running, &b->stream, &b->brief};
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_device_stream_create(d, STRATA_STREAM_NON_BLOCKING, 0, streams[i]));
    EXPECT_OK(strata_device_event_create(d, &b->event));
    EXPECT_OK(strata_device_malloc(d, STRATA_MEMORY_DEVICE, 4096, &b->small));
    EXPECT_OK(strata_device_malloc(d, STRATA_MEMORY_DEVICE, BESIDE_LARGE, &b->large));
    EXPECT_OK(strata_device_malloc(d, STRATA_MEMORY_MANAGED, 2 * BESIDE_UNIT, &b->managed));
    EXPECT_OK(strata_device_host_alloc(d, STRATA_MEMORY_PINNED, 1 << 20, 64, 0, &b->pinned));
    EXPECT_OK(strata_device_host_alloc(d, STRATA_MEMORY_HOST, 1 << 20, 64, 0, &b->host));
    EXPECT_OK(strata_device_malloc_async(d, NULL, 1 << 20, b->stream, &b->warm));
    EXPECT_OK(strata_device_reserve(d, BESIDE_UNIT, 0, &b->range));
    EXPECT_OK(strata_device_create(d, BESIDE_UNIT, false, &b->handle));
    EXPECT_OK(strata_device_reserve(d, BESIDE_UNIT, 0, &b->mapped));
    EXPECT_OK(strata_device_create(d, BESIDE_UNIT, false, &b->of_mapped));
    EXPECT_OK(strata_device_map(d, b->mapped, BESIDE_UNIT, b->of_mapped));
    EXPECT_OK(strata_device_set_access(d, b->mapped, BESIDE_UNIT, NULL, 0));
    EXPECT_OK(strata_device_work(d, b->running, BESIDE_KERNEL, NULL, 0));
}

/* The calls, each on what is there for it. */
static inline strata_status_t beside_free(beside_t *b, strata_memory_t memory, strata_address_t *address) {
    strata_address_t given = *address;
    *address = 0;
    bool host = memory == STRATA_MEMORY_PINNED || memory == STRATA_MEMORY_HOST;
    return host ? strata_device_host_free(b->device, memory, given) : strata_device_free(b->device, memory, given);
}
static inline strata_status_t beside_end(beside_t *b, strata_handle_t *stream) {
    strata_handle_t ended = *stream;
    *stream = NULL;
    return strata_device_stream_destroy(b->device, ended);
}
static inline strata_status_t beside_release(beside_t *b, strata_physical_t *handle) {
    strata_physical_t released = *handle;
    *handle = 0;
    return strata_device_release(b->device, released);
}
static inline strata_status_t beside_unreserve(beside_t *b, strata_address_t *range) {
    strata_address_t given = *range;
    *range = 0;
    return strata_device_unreserve(b->device, given, BESIDE_UNIT);
}
static inline strata_status_t beside_unmap(beside_t *b) {
    b->unmapped = true;
    return strata_device_unmap(b->device, b->mapped, BESIDE_UNIT);
}
static inline strata_status_t beside_map(beside_t *b) {
    b->in_range = true;
    return strata_device_map(b->device, b->range, BESIDE_UNIT, b->handle);
}
static inline strata_status_t beside_free_async(beside_t *b, strata_address_t *address) {
    strata_address_t given = *address;
    *address = 0;
    return strata_device_free_async(b->device, given, b->stream);
}
static inline strata_status_t beside_mem_info(beside_t *b) {
    uint64_t left, total;
    return strata_device_mem_info(b->device, &left, &total);
}

/* X(name, whether it waits, the call): `b` is what it works on, `d` its device. */
#define BESIDE_CALLS(X)                                                                                                            \
    X(free_small, true, beside_free(b, STRATA_MEMORY_DEVICE, &b->small))                                                           \
    X(free_large, true, beside_free(b, STRATA_MEMORY_DEVICE, &b->large))                                                           \
    X(free_managed, true, beside_free(b, STRATA_MEMORY_MANAGED, &b->managed))                                                      \
    X(free_pinned, true, beside_free(b, STRATA_MEMORY_PINNED, &b->pinned))                                                         \
    X(synchronise, true, strata_device_synchronise(d))                                                                             \
    X(malloc_device, false, strata_device_malloc(d, STRATA_MEMORY_DEVICE, BESIDE_LARGE, &b->made_device))                          \
    X(malloc_managed, false, strata_device_malloc(d, STRATA_MEMORY_MANAGED, BESIDE_LARGE, &b->made_managed))                       \
    X(alloc_pinned, false, strata_device_host_alloc(d, STRATA_MEMORY_PINNED, 1 << 20, 64, 0, &b->made_pinned))                     \
    X(free_host, false, beside_free(b, STRATA_MEMORY_HOST, &b->host))                                                              \
    X(create, false, strata_device_create(d, BESIDE_UNIT, false, &b->made_handle))                                                 \
    X(map, false, beside_map(b))                                                                                                   \
    X(set_access, false, strata_device_set_access(d, b->mapped, BESIDE_UNIT, NULL, 0))                                             \
    X(unmap, false, beside_unmap(b))                                                                                               \
    X(release, false, beside_release(b, &b->handle))                                                                               \
    X(malloc_async_cold, false, strata_device_malloc_async(d, NULL, BESIDE_LARGE, b->stream, &b->cold))                            \
    X(free_async, false, beside_free_async(b, &b->warm))                                                                           \
    X(pool_trim, false, strata_device_pool_trim(d, NULL, 0))                                                                       \
    X(event_create, false, strata_device_event_create(d, &b->made_event))                                                          \
    X(event_record, false, strata_device_event_record(d, b->event, b->stream))                                                     \
    X(stream_create, false, strata_device_stream_create(d, STRATA_STREAM_BLOCKING, 0, &b->made_stream))                            \
    X(stream_destroy, false, beside_end(b, &b->brief))                                                                             \
    X(running_stream_destroy, false, beside_end(b, &b->running))                                                                   \
    X(mem_info, false, beside_mem_info(b))                                                                                         \
    X(reserve, false, strata_device_reserve(d, BESIDE_UNIT, 0, &b->made_range))                                                    \
    X(unreserve, false, beside_unreserve(b, &b->range))

#define BESIDE_FUNCTION(name, waits, call)                                                                                         \
    static inline strata_status_t beside_call_##name(beside_t *b) {                                                                \
        strata_device_t *d = b->device;                                                                                            \
        (void)d;                                                                                                                   \
        return call;                                                                                                               \
    }
BESIDE_CALLS(BESIDE_FUNCTION)
#undef BESIDE_FUNCTION

typedef struct beside_row {
    const char *name;
    bool waits;
    strata_status_t (*make)(beside_t *);
} beside_row_t;

static const beside_row_t beside_rows[] = {
#define BESIDE_ROW(name, waits, call) {#name, waits, beside_call_##name},
    BESIDE_CALLS(BESIDE_ROW)
#undef BESIDE_ROW
};
enum { BESIDE_ROWS = sizeof beside_rows / sizeof *beside_rows };

/* Gives back all that is left, after the work. */
static inline void beside_close(beside_t *b) {
    strata_device_t *d = b->device;
    EXPECT_OK(strata_device_synchronise(d));
    strata_address_t *in_order[] = {&b->warm, &b->cold};
    struct {
        strata_memory_t memory;
        strata_address_t *address;
    } kept[] = {{STRATA_MEMORY_DEVICE, &b->small},         {STRATA_MEMORY_DEVICE, &b->large},
                {STRATA_MEMORY_DEVICE, &b->made_device},   {STRATA_MEMORY_MANAGED, &b->managed},
                {STRATA_MEMORY_MANAGED, &b->made_managed}, {STRATA_MEMORY_PINNED, &b->pinned},
                {STRATA_MEMORY_PINNED, &b->made_pinned},   {STRATA_MEMORY_HOST, &b->host}};
    for (int i = 0; i < 2; i++)
        if (*in_order[i]) EXPECT_OK(beside_free_async(b, in_order[i]));
    for (int i = 0; i < (int)(sizeof kept / sizeof *kept); i++)
        if (*kept[i].address) EXPECT_OK(beside_free(b, kept[i].memory, kept[i].address));
    if (b->in_range) EXPECT_OK(strata_device_unmap(d, b->range, BESIDE_UNIT));
    if (!b->unmapped) EXPECT_OK(beside_unmap(b));
    strata_physical_t *handles[] = {&b->handle, &b->of_mapped, &b->made_handle};
    strata_address_t *ranges[] = {&b->range, &b->mapped, &b->made_range};
    strata_handle_t *streams[] = {&b->running, &b->stream, &b->brief, &b->made_stream}, events[] = {b->event, b->made_event};
    for (int i = 0; i < 3; i++) {
        if (*handles[i]) EXPECT_OK(beside_release(b, handles[i]));
        if (*ranges[i]) EXPECT_OK(beside_unreserve(b, ranges[i]));
    }
    for (int i = 0; i < 4; i++)
        if (*streams[i]) EXPECT_OK(beside_end(b, streams[i]));
    for (int i = 0; i < 2; i++)
        if (events[i]) EXPECT_OK(strata_device_event_destroy(d, events[i]));
}

#endif
