#include "lab/tools/calibrate/measure.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "platform/arithmetic.h"

#define MIB (UINT64_C(1) << 20)
/* Length of the work that runs beside a free. A free that takes half of it has waited for the work. */
#define WORK_NS (UINT64_C(20) * 1000000)

enum { HANDLES_MAX = 64 };

typedef strata_measure_t measure_t;

static const uint64_t sizes[] = {4096, 64 << 10, MIB, 2 * MIB, 16 * MIB, 128 * MIB, 1024 * MIB};
enum { SIZES = sizeof sizes / sizeof *sizes };
/* Pinning takes half a second per GiB. */
#define PINNED_MAX (128 * MIB)

/* ---- samples and rows ---- */

static uint64_t now(const measure_t *m) { return m->device->clock->now(m->device->clock); }

/* Makes a call, and keeps its time as a sample of the group's row `index`. */
#define TIME(m, index, call)                                                                                                       \
    do {                                                                                                                           \
        if ((m)->status != STRATA_OK) break;                                                                                       \
        strata_samples_t *samples_ = &(m)->group[index];                                                                           \
        uint64_t began_ = now(m);                                                                                                  \
        (m)->status = (call);                                                                                                      \
        uint64_t ended_ = now(m);                                                                                                  \
        if (samples_->count < STRATA_REPEATS_MAX) samples_->values[samples_->count++] = ended_ - began_;                           \
    } while (0)

/* Makes a call that is not measured. */
#define MAKE(m, call)                                                                                                              \
    do {                                                                                                                           \
        if ((m)->status == STRATA_OK) (m)->status = (call);                                                                        \
    } while (0)

static int by_value(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Completes the group's row `index`. */
static void end_row(measure_t *m, size_t index, strata_measured_row_t row) {
    strata_samples_t *samples = &m->group[index];
    size_t count = samples->count;
    samples->count = 0;
    if (count == 0 || m->status != STRATA_OK || m->count == STRATA_ROWS_MAX) return;
    qsort(samples->values, count, sizeof samples->values[0], by_value);
    row.samples = count;
    row.median = samples->values[count / 2];
    row.least = samples->values[0];
    row.most = samples->values[count - 1];
    m->rows[m->count++] = row;
}

static bool goes_on(const measure_t *m, uint64_t repeat) { return m->status == STRATA_OK && repeat < m->repeats; }

/* ---- memory ---- */

static void measure_malloc(measure_t *m, strata_memory_t memory, const char *malloc_name, const char *free_name) {
    for (size_t i = 0; i < SIZES && sizes[i] <= m->budget; i++) {
        for (uint64_t k = 0; goes_on(m, k); k++) {
            strata_address_t address = 0;
            TIME(m, 0, strata_device_malloc(m->device, memory, sizes[i], &address));
            TIME(m, 1, strata_device_free(m->device, memory, address));
        }
        end_row(m, 0, (strata_measured_row_t){.call = malloc_name, .size = sizes[i]});
        end_row(m, 1, (strata_measured_row_t){.call = free_name, .size = sizes[i]});
    }
}

static void measure_prefetch(measure_t *m, strata_handle_t stream) {
    for (size_t i = 0; i < SIZES && sizes[i] <= m->budget; i++) {
        strata_address_t address = 0;
        MAKE(m, strata_device_malloc(m->device, STRATA_MEMORY_MANAGED, sizes[i], &address));
        for (uint64_t k = 0; goes_on(m, k); k++) {
            TIME(m, 0, strata_device_prefetch(m->device, address, sizes[i], false, stream));
            MAKE(m, strata_device_stream_synchronise(m->device, stream));
        }
        MAKE(m, strata_device_free(m->device, STRATA_MEMORY_MANAGED, address));
        end_row(m, 0, (strata_measured_row_t){.call = "prefetch", .size = sizes[i]});
    }
}

static void measure_pinned(measure_t *m) {
    for (size_t i = 0; i < SIZES && sizes[i] <= m->budget && sizes[i] <= PINNED_MAX; i++) {
        for (uint64_t k = 0; goes_on(m, k); k++) {
            strata_address_t address = 0;
            TIME(m, 0, strata_device_host_alloc(m->device, STRATA_MEMORY_PINNED, sizes[i], 4096, 0, &address));
            TIME(m, 1, strata_device_host_free(m->device, STRATA_MEMORY_PINNED, address));
        }
        end_row(m, 0, (strata_measured_row_t){.call = "host_alloc", .size = sizes[i]});
        end_row(m, 1, (strata_measured_row_t){.call = "host_free", .size = sizes[i]});
    }
}

/* A cold pool has nothing and grows. A warm pool serves memory that was freed to it. Returns the bytes that the pool took. */
static uint64_t use_pool(measure_t *m, strata_handle_t pool, uint64_t size, strata_handle_t stream) {
    uint64_t chunk = 0;
    strata_address_t address = 0;
    TIME(m, 0, strata_device_malloc_async(m->device, pool, size, stream, &address));
    MAKE(m, strata_device_pool_get(m->device, pool, STRATA_POOL_RESERVED_CURRENT, &chunk));
    TIME(m, 1, strata_device_free_async(m->device, address, stream));
    TIME(m, 2, strata_device_malloc_async(m->device, pool, size, stream, &address));
    TIME(m, 1, strata_device_free_async(m->device, address, stream));
    MAKE(m, strata_device_stream_synchronise(m->device, stream));
    TIME(m, 3, strata_device_pool_trim(m->device, pool, 0));
    return chunk;
}

static void measure_pool(measure_t *m, strata_handle_t stream) {
    strata_handle_t pool = NULL;
    uint64_t chunk = 0;
    MAKE(m, strata_device_pool_create(m->device, 0, false, &pool));
    MAKE(m, strata_device_pool_set(m->device, pool, STRATA_POOL_RELEASE_THRESHOLD, UINT64_MAX));
    for (size_t i = 0; i < SIZES && sizes[i] <= m->budget; i++) {
        for (uint64_t k = 0; goes_on(m, k); k++) chunk = use_pool(m, pool, sizes[i], stream);
        if (i == 0) m->chunk_bytes = chunk;
        end_row(m, 0, (strata_measured_row_t){.call = "malloc_async_cold", .size = sizes[i], .chunk = chunk});
        end_row(m, 1, (strata_measured_row_t){.call = "free_async", .size = sizes[i]});
        end_row(m, 2, (strata_measured_row_t){.call = "malloc_async", .size = sizes[i]});
        end_row(m, 3, (strata_measured_row_t){.call = "pool_trim", .size = sizes[i], .chunk = chunk});
    }
    MAKE(m, strata_device_pool_destroy(m->device, pool));
}

/* ---- virtual memory ---- */

/* One pass over `count` adjacent handles of `size` bytes. Access and unmapping of all handles are one call each. */
static void use_handles(measure_t *m, uint64_t size, uint64_t count) {
    uint64_t total = size * count;
    strata_device_t *device = m->device;
    strata_address_t range = 0;
    strata_physical_t handles[HANDLES_MAX] = {0};
    TIME(m, 0, strata_device_reserve(device, total, device->capabilities.granularity, &range));
    for (uint64_t i = 0; i < count; i++) {
        TIME(m, 1, strata_device_create(device, size, false, &handles[i]));
        TIME(m, 2, strata_device_map(device, range + i * size, size, handles[i]));
    }
    TIME(m, 3, strata_device_set_access(device, range, total, NULL, 0));
    TIME(m, 4, strata_device_unmap(device, range, total));
    for (uint64_t i = 0; i < count; i++) TIME(m, 5, strata_device_release(device, handles[i]));
    TIME(m, 6, strata_device_unreserve(device, range, total));
}

static void measure_handles(measure_t *m, uint64_t size, uint64_t count) {
    static const char *const names[] = {"reserve", "create", "map", "set_access", "unmap", "release", "unreserve"};
    for (uint64_t k = 0; goes_on(m, k); k++) use_handles(m, size, count);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        end_row(m, n, (strata_measured_row_t){.call = names[n], .size = size, .handles = count});
}

static void measure_virtual(measure_t *m) {
    static const uint64_t counts[] = {1, 8, HANDLES_MAX};
    uint64_t unit = m->device->capabilities.granularity;
    for (size_t i = 0; i < SIZES; i++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts && sizes[i] >= unit; c++) {
            uint64_t size, total;
            bool fits = strata_round_up(sizes[i], unit, &size) && strata_multiply(size, counts[c], &total) && total <= m->budget;
            if (fits) measure_handles(m, size, counts[c]);
        }
}

/* The descriptor is only used by the import that follows, so it need not be inherited or kept. */
static void measure_sharing(measure_t *m) {
    uint64_t unit = m->device->capabilities.granularity;
    strata_physical_t handle = 0, again = 0;
    MAKE(m, strata_device_create(m->device, unit, true, &handle));
    for (uint64_t k = 0; goes_on(m, k); k++) {
        int descriptor = -1;
        TIME(m, 0, strata_device_export_memory(m->device, handle, &descriptor));
        TIME(m, 1, strata_device_import_memory(m->device, descriptor, &again));
        MAKE(m, strata_device_release(m->device, again));
        if (descriptor >= 0) close(descriptor);
    }
    MAKE(m, strata_device_release(m->device, handle));
    end_row(m, 0, (strata_measured_row_t){.call = "export_memory"});
    end_row(m, 1, (strata_measured_row_t){.call = "import_memory"});
}

/* ---- streams, events and the rest ---- */

static void end_rows(measure_t *m, const char *const *names, size_t count) {
    for (size_t n = 0; n < count; n++) end_row(m, n, (strata_measured_row_t){.call = names[n]});
}

static void measure_events(measure_t *m, strata_handle_t stream) {
    static const char *const names[] = {"event_create", "event_record",       "stream_wait",  "event_synchronise",
                                        "event_query",  "stream_synchronise", "stream_query", "event_destroy"};
    for (uint64_t k = 0; goes_on(m, k); k++) {
        strata_handle_t event = NULL;
        TIME(m, 0, strata_device_event_create(m->device, &event));
        TIME(m, 1, strata_device_event_record(m->device, event, stream));
        TIME(m, 2, strata_device_stream_wait(m->device, stream, event));
        TIME(m, 3, strata_device_event_synchronise(m->device, event));
        TIME(m, 4, strata_device_event_query(m->device, event));
        TIME(m, 5, strata_device_stream_synchronise(m->device, stream));
        TIME(m, 6, strata_device_stream_query(m->device, stream));
        TIME(m, 7, strata_device_event_destroy(m->device, event));
    }
    end_rows(m, names, sizeof names / sizeof *names);
}

static void measure_rest(measure_t *m, strata_handle_t stream) {
    static const char *const names[] = {"mem_info", "synchronise", "stream_create", "stream_destroy", "capture_status", "work"};
    const strata_device_capabilities_t *can = &m->device->capabilities;
    for (uint64_t k = 0; goes_on(m, k); k++) {
        uint64_t left, total;
        strata_capture_status_t status;
        strata_handle_t made = NULL;
        TIME(m, 0, strata_device_mem_info(m->device, &left, &total));
        TIME(m, 1, strata_device_synchronise(m->device));
        TIME(m, 2, strata_device_stream_create(m->device, STRATA_STREAM_NON_BLOCKING, 0, &made));
        TIME(m, 3, strata_device_stream_destroy(m->device, made));
        if (can->capture) TIME(m, 4, strata_device_capture_status(m->device, stream, &status, &left));
        if (can->work) TIME(m, 5, strata_device_work(m->device, stream, 1, NULL, 0));
        MAKE(m, strata_device_stream_synchronise(m->device, stream));
    }
    end_rows(m, names, sizeof names / sizeof *names);
}

/* Times a free beside running work of another stream. */
static void measure_waits(measure_t *m, strata_handle_t stream) {
    strata_address_t address = 0;
    MAKE(m, strata_device_malloc(m->device, STRATA_MEMORY_DEVICE, 4096, &address));
    MAKE(m, strata_device_work(m->device, stream, WORK_NS, NULL, 0));
    uint64_t began = now(m);
    MAKE(m, strata_device_free(m->device, STRATA_MEMORY_DEVICE, address));
    m->free_waits = now(m) - began >= WORK_NS / 2;
    MAKE(m, strata_device_stream_synchronise(m->device, stream));
    m->waits_known = m->status == STRATA_OK;
}

strata_status_t strata_measure_all(strata_measure_t *m) {
    const strata_device_capabilities_t *can = &m->device->capabilities;
    uint64_t left = 0;
    strata_handle_t stream = NULL;
    MAKE(m, strata_device_mem_info(m->device, &left, &m->total_bytes));
    MAKE(m, strata_device_stream_create(m->device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    m->budget = left / 2;
    measure_malloc(m, STRATA_MEMORY_DEVICE, "malloc", "free");
    if (can->managed) measure_malloc(m, STRATA_MEMORY_MANAGED, "managed_malloc", "managed_free");
    if (can->managed && can->concurrent_managed) measure_prefetch(m, stream);
    measure_pinned(m);
    if (can->pools) measure_pool(m, stream);
    if (can->virtual_memory) measure_virtual(m);
    if (can->virtual_memory && can->share) measure_sharing(m);
    measure_events(m, stream);
    measure_rest(m, stream);
    if (can->work) measure_waits(m, stream);
    MAKE(m, strata_device_stream_destroy(m->device, stream));
    return m->status;
}

void strata_measure_print(const strata_measure_t *m, strata_output_t *out) {
    strata_output_print(out, "# strata calibrate: %s\n", m->device->name);
    strata_output_print(out, "call,size_bytes,handles,chunk_bytes,samples,median_ns,min_ns,max_ns\n");
    for (size_t i = 0; i < m->count; i++) {
        const strata_measured_row_t *row = &m->rows[i];
        strata_output_print(out, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
                            row->call, row->size, row->handles, row->chunk, row->samples, row->median, row->least, row->most);
    }
}
