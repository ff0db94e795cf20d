/* What each device call costs on a GPU, by size, as CSV: the figures of a cost profile for the simulator.
 *
 *     device_calls [gpu:N] [--repeats N]
 *
 * Each row is the median, least and most of the repeats, in nanoseconds of the host; `handles` is how many physical handles one
 * call covered. Ends with 77 where there is no GPU. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/arithmetic.h"
#include "platform/clock.h"
#include "platform/cuda/cuda.h"

enum { NO_GPU = 77, REPEATS_MAX = 1000, HANDLES_MAX = 64 };

static strata_device_t *device;
static int repeats = 50;
static uint64_t budget; /* bytes that one row may have allocated at a time */

typedef struct row {
    uint64_t samples[REPEATS_MAX];
    int count;
} row_t;

/* One row a call; those of one group are filled in the same loop. */
static row_t rows[8];

static void must(strata_status_t status, const char *what) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "device_calls: %s: %s: %s\n", what, strata_status_name(status), strata_last_error()->text);
    exit(1);
}

#define TIME(row, call)                                                                                                            \
    do {                                                                                                                           \
        uint64_t began_ = strata_real_now();                                                                                       \
        strata_status_t status_ = (call);                                                                                          \
        uint64_t ended_ = strata_real_now();                                                                                       \
        must(status_, #call);                                                                                                      \
        if ((row)->count < REPEATS_MAX) (row)->samples[(row)->count++] = ended_ - began_;                                          \
    } while (0)

static int by_value(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void print_row(const char *call, uint64_t size, uint64_t handles, row_t *row) {
    qsort(row->samples, (size_t)row->count, sizeof row->samples[0], by_value);
    if (row->count)
        printf("%s,%" PRIu64 ",%" PRIu64 ",%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", call, size, handles, row->count,
               row->samples[row->count / 2], row->samples[0], row->samples[row->count - 1]);
    fflush(stdout);
    row->count = 0;
}

static const uint64_t sizes[] = {4096, 64 << 10, 1 << 20, 2 << 20, 16 << 20, 128 << 20, UINT64_C(1) << 30};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void measure_malloc(strata_memory_t memory, const char *malloc_name, const char *free_name) {
    for (size_t i = 0; i < SIZES && sizes[i] <= budget; i++) {
        for (int k = 0; k < repeats; k++) {
            strata_address_t address;
            TIME(&rows[0], strata_device_malloc(device, memory, sizes[i], &address));
            TIME(&rows[1], strata_device_free(device, memory, address));
        }
        print_row(malloc_name, sizes[i], 0, &rows[0]);
        print_row(free_name, sizes[i], 0, &rows[1]);
    }
}

static void measure_pinned(void) {
    for (size_t i = 0; i < SIZES && sizes[i] <= budget && sizes[i] <= UINT64_C(128) << 20; i++) {
        for (int k = 0; k < repeats; k++) {
            strata_address_t address;
            TIME(&rows[0], strata_device_host_alloc(device, STRATA_MEMORY_PINNED, sizes[i], 4096, 0, &address));
            TIME(&rows[1], strata_device_host_free(device, STRATA_MEMORY_PINNED, address));
        }
        print_row("host_alloc", sizes[i], 0, &rows[0]);
        print_row("host_free", sizes[i], 0, &rows[1]);
    }
}

/* Cold: the pool has nothing and grows. Warm: it serves what it was given back. */
static void measure_pool(strata_handle_t stream) {
    strata_handle_t pool;
    must(strata_device_pool_create(device, 0, false, &pool), "pool_create");
    must(strata_device_pool_set(device, pool, STRATA_POOL_RELEASE_THRESHOLD, UINT64_MAX), "pool_set");
    for (size_t i = 0; i < SIZES && sizes[i] <= budget; i++) {
        for (int k = 0; k < repeats; k++) {
            strata_address_t address;
            TIME(&rows[0], strata_device_malloc_async(device, pool, sizes[i], stream, &address));
            TIME(&rows[1], strata_device_free_async(device, address, stream));
            TIME(&rows[2], strata_device_malloc_async(device, pool, sizes[i], stream, &address));
            TIME(&rows[1], strata_device_free_async(device, address, stream));
            must(strata_device_stream_synchronise(device, stream), "stream_synchronise");
            TIME(&rows[3], strata_device_pool_trim(device, pool, 0));
        }
        print_row("malloc_async_cold", sizes[i], 0, &rows[0]);
        print_row("free_async", sizes[i], 0, &rows[1]);
        print_row("malloc_async", sizes[i], 0, &rows[2]);
        print_row("pool_trim", sizes[i], 0, &rows[3]);
    }
    must(strata_device_pool_destroy(device, pool), "pool_destroy");
}

/* One pass over `count` handles of `size` next to each other: access and unmapping of all in one call. */
static void measure_handles(uint64_t size, uint64_t count) {
    uint64_t total = size * count;
    strata_address_t range;
    strata_physical_t handles[HANDLES_MAX];
    TIME(&rows[0], strata_device_reserve(device, total, device->capabilities.granularity, &range));
    for (uint64_t i = 0; i < count; i++) {
        TIME(&rows[1], strata_device_create(device, size, false, &handles[i]));
        TIME(&rows[2], strata_device_map(device, range + i * size, size, handles[i]));
    }
    TIME(&rows[3], strata_device_set_access(device, range, total, NULL, 0));
    TIME(&rows[4], strata_device_unmap(device, range, total));
    for (uint64_t i = 0; i < count; i++) TIME(&rows[5], strata_device_release(device, handles[i]));
    TIME(&rows[6], strata_device_unreserve(device, range, total));
}

static void measure_virtual(void) {
    static const char *const names[] = {"reserve", "create", "map", "set_access", "unmap", "release", "unreserve"};
    static const uint64_t counts[] = {1, 8, HANDLES_MAX};
    uint64_t unit = device->capabilities.granularity;
    for (size_t i = 0; i < SIZES; i++) {
        if (sizes[i] < unit) continue;
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            uint64_t size, total;
            if (!strata_round_up(sizes[i], unit, &size) || !strata_multiply(size, counts[c], &total)) continue;
            if (total > budget) continue;
            for (int k = 0; k < repeats; k++) measure_handles(size, counts[c]);
            for (size_t n = 0; n < sizeof names / sizeof *names; n++) print_row(names[n], size, counts[c], &rows[n]);
        }
    }
}

static void measure_events(strata_handle_t stream) {
    strata_handle_t event;
    for (int k = 0; k < repeats; k++) {
        TIME(&rows[0], strata_device_event_create(device, &event));
        TIME(&rows[1], strata_device_event_record(device, event, stream));
        TIME(&rows[2], strata_device_stream_wait(device, stream, event));
        TIME(&rows[3], strata_device_event_synchronise(device, event));
        TIME(&rows[4], strata_device_event_query(device, event));
        TIME(&rows[5], strata_device_stream_synchronise(device, stream));
        TIME(&rows[6], strata_device_stream_query(device, stream));
        TIME(&rows[7], strata_device_event_destroy(device, event));
    }
    static const char *const names[] = {"event_create", "event_record",       "stream_wait",  "event_synchronise",
                                        "event_query",  "stream_synchronise", "stream_query", "event_destroy"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) print_row(names[n], 0, 0, &rows[n]);
}

static void measure_rest(strata_handle_t stream) {
    for (int k = 0; k < repeats; k++) {
        uint64_t left, total;
        strata_capture_status_t status;
        strata_handle_t made;
        TIME(&rows[0], strata_device_mem_info(device, &left, &total));
        TIME(&rows[1], strata_device_synchronise(device));
        TIME(&rows[2], strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &made));
        TIME(&rows[3], strata_device_stream_destroy(device, made));
        if (device->capabilities.stream_ids) TIME(&rows[4], strata_device_stream_id(device, stream, &left));
        if (device->capabilities.capture) TIME(&rows[5], strata_device_capture_status(device, stream, &status, &left));
    }
    static const char *const names[] = {"mem_info",       "synchronise", "stream_create",
                                        "stream_destroy", "stream_id",   "capture_status"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) print_row(names[n], 0, 0, &rows[n]);
}

static int usage(void) {
    fprintf(stderr, "usage: device_calls [gpu:N] [--repeats 1..%d]\n", REPEATS_MAX);
    return 2;
}

/* `text` from `prefix` on as a number up to `most`. */
static bool number(const char *text, const char *prefix, unsigned long most, unsigned long *value) {
    char *end;
    if (strncmp(text, prefix, strlen(prefix)) != 0 || text[strlen(prefix)] < '0' || text[strlen(prefix)] > '9') return false;
    *value = strtoul(text + strlen(prefix), &end, 10);
    return *end == '\0' && *value <= most;
}

int main(int argc, char **argv) {
    unsigned long ordinal = 0, given;
    for (int i = 1; i < argc; i++) {
        if (number(argv[i], "gpu:", 63, &ordinal)) continue;
        if (strcmp(argv[i], "--repeats") != 0 || ++i == argc || !number(argv[i], "", REPEATS_MAX, &given) || given == 0)
            return usage();
        repeats = (int)given;
    }
    if (strata_cuda_open((uint32_t)ordinal, &device) != STRATA_OK) {
        fprintf(stderr, "device_calls: no GPU to measure: %s\n", strata_last_error()->text);
        return NO_GPU;
    }
    uint64_t left, total;
    strata_handle_t stream;
    must(strata_device_mem_info(device, &left, &total), "mem_info");
    must(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &stream), "stream_create");
    budget = left / 2;
    printf("# %s\ncall,size_bytes,handles,samples,median_ns,min_ns,max_ns\n", device->name);
    measure_malloc(STRATA_MEMORY_DEVICE, "malloc", "free");
    if (device->capabilities.managed) measure_malloc(STRATA_MEMORY_MANAGED, "managed_malloc", "managed_free");
    measure_pinned();
    if (device->capabilities.pools) measure_pool(stream);
    if (device->capabilities.virtual_memory) measure_virtual();
    measure_events(stream);
    measure_rest(stream);
    must(strata_device_stream_destroy(device, stream), "stream_destroy");
    strata_device_close(device);
    return 0;
}
