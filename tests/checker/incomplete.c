/* Refuses each allocation of host memory by the checker and the simulator in turn. If the checker could not record something, its
 * verdict is incomplete, and nothing is left allocated. The simulator takes its host memory from malloc(), calloc() and realloc(), so the
 * linker passes those calls through here. */
#include <stdlib.h>

#include "tests/checker/watched.h"

#define A(w) ((w)->streams[0])
#define B(w) ((w)->streams[1])
#define C(w) ((w)->streams[2])

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

/* The allocation to refuse, counted from now: 1 is the next, and 0 or less is none. `live` counts what the thread has not freed. */
static _Thread_local int64_t refuse_at, live;

static bool refuses(void) { return refuse_at > 0 && --refuse_at == 0; }

static void *counted(void *memory) {
    live += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t size) { return refuses() ? NULL : counted(__real_malloc(size)); }

void *__wrap_calloc(size_t count, size_t size) { return refuses() ? NULL : counted(__real_calloc(count, size)); }

void *__wrap_realloc(void *memory, size_t size) {
    if (refuses()) return NULL;
    void *grown = __real_realloc(memory, size);
    return memory ? grown : counted(grown);
}

void __wrap_free(void *memory) {
    live -= memory != NULL;
    __real_free(memory);
}

/* A program returns false if the device refuses a call. Such a call has reported that host memory was refused. */
typedef struct program {
    const char *name;
    bool (*run)(watched_t *w);
} program_t;

static bool works(watched_t *w, strata_address_t address, strata_handle_t stream, bool write) {
    strata_access_t access = {address, MIB, write};
    return strata_device_work(w->device, stream, 100 * US, &access, 1) == STRATA_OK;
}

static bool reuse(watched_t *w) {
    const uint64_t expected[] = {1};
    serve(w, 1, 0, A(w));
    strata_checker_borrowed(w->checker, 1, B(w));
    strata_checker_expect(w->checker, expected, 1);
    if (!works(w, w->chunk, A(w), true)) return false;
    strata_checker_expect(w->checker, NULL, 0);
    if (!works(w, w->chunk, C(w), false)) return false;
    strata_checker_freed(w->checker, 1); /* The work above still runs, and no borrow covers it. */
    serve(w, 2, 0, B(w));
    return works(w, w->chunk, B(w), true);
}

static bool race(watched_t *w) { return works(w, w->chunk, A(w), true) && works(w, w->chunk, B(w), true); }

static bool pass_by_event(watched_t *w) {
    strata_handle_t event = NULL;
    return strata_device_event_create(w->device, &event) == STRATA_OK && works(w, w->chunk, A(w), true) &&
           strata_device_event_record(w->device, event, A(w)) == STRATA_OK &&
           strata_device_stream_wait(w->device, B(w), event) == STRATA_OK && works(w, w->chunk, B(w), true) &&
           strata_device_event_synchronise(w->device, event) == STRATA_OK;
}

static bool pass_by_key(watched_t *w) {
    strata_checker_publish(w->checker, 1);
    strata_checker_publish(w->checker, 2);
    strata_checker_observe(w->checker, 1);
    strata_checker_host_access(w->checker, w->chunk, 64, true);
    return true;
}

static bool many_streams(watched_t *w) {
    for (int i = 0; i < 12; i++) {
        strata_handle_t stream = NULL;
        if (strata_device_stream_create(w->device, STRATA_STREAM_NON_BLOCKING, 0, &stream) != STRATA_OK) return false;
        if (!works(w, w->chunk, stream, false)) return false;
    }
    return true;
}

static bool many_notes(watched_t *w) {
    for (int i = 0; i < 1100; i++)
        if (!works(w, w->chunk, A(w), true)) return false;
    return true;
}

static bool fill_in_part(watched_t *w) {
    strata_address_t memory = 0;
    return strata_device_malloc(w->device, STRATA_MEMORY_DEVICE, 4 * MIB, &memory) == STRATA_OK && works(w, memory, A(w), true) &&
           strata_device_fill(w->device, memory + MIB / 2, 1, MIB, B(w)) == STRATA_OK &&
           strata_device_free(w->device, STRATA_MEMORY_DEVICE, memory) == STRATA_OK;
}

static bool map_again(watched_t *w, bool pausing) {
    mapped_t m = {0};
    bool works_on = strata_device_reserve(w->device, 2 * MIB, 0, &m.address) == STRATA_OK &&
                    strata_device_create(w->device, 2 * MIB, false, &m.physical) == STRATA_OK;
    for (int i = 0; works_on && i < 2; i++) {
        if (pausing) strata_checker_pausing(w->checker, true);
        works_on = strata_device_map(w->device, m.address, 2 * MIB, m.physical) == STRATA_OK &&
                   strata_device_set_access(w->device, m.address, 2 * MIB, NULL, 0) == STRATA_OK;
        if (pausing) strata_checker_pausing(w->checker, false);
        works_on = works_on && works(w, m.address, A(w), true) && strata_device_synchronise(w->device) == STRATA_OK;
        if (pausing) strata_checker_pausing(w->checker, true);
        works_on = works_on && strata_device_unmap(w->device, m.address, 2 * MIB) == STRATA_OK;
        if (pausing) strata_checker_pausing(w->checker, false);
    }
    return works_on;
}

static bool unmap(watched_t *w) { return map_again(w, false); }
static bool pause_memory(watched_t *w) { return map_again(w, true); }

static bool launch_graph(watched_t *w) {
    strata_handle_t graph = NULL;
    strata_capture_status_t status;
    uint64_t capture = 0;
    strata_address_t memory = 0;
    if (strata_device_malloc(w->device, STRATA_MEMORY_DEVICE, 2 * MIB, &memory) != STRATA_OK) return false;
    if (strata_device_capture_begin(w->device, A(w), STRATA_CAPTURE_RELAXED) != STRATA_OK) return false;
    if (strata_device_capture_status(w->device, A(w), &status, &capture) != STRATA_OK) return false;
    strata_checker_capture_pool(w->checker, capture, 5);
    if (!works(w, memory, A(w), true) || !works(w, w->chunk, A(w), false)) return false;
    if (strata_device_capture_end(w->device, A(w), &graph) != STRATA_OK) return false;
    if (strata_device_graph_launch(w->device, graph, B(w)) != STRATA_OK) return false;
    if (strata_device_free(w->device, STRATA_MEMORY_DEVICE, memory) != STRATA_OK) return false;
    return strata_device_graph_launch(w->device, graph, B(w)) == STRATA_OK;
}

static const program_t programs[] = {
    {"reuse", reuse},
    {"race", race},
    {"pass_by_event", pass_by_event},
    {"pass_by_key", pass_by_key},
    {"many_streams", many_streams},
    {"many_notes", many_notes},
    {"fill_in_part", fill_in_part},
    {"unmap", unmap},
    {"pause_memory", pause_memory},
    {"launch_graph", launch_graph},
};

/* Returns true if the program made fewer allocations than this. */
static bool runs_whole(const program_t *program, int64_t refused) {
    watched_t w;
    int64_t before = live;
    watched_open(&w, STRATA_CHECKER_ALL);
    refuse_at = refused;
    bool done = program->run(&w), whole = refuse_at > 0;
    refuse_at = 0;
    if (whole) EXPECT_TRUE(done);
    if (done && strata_checker_complete(w.checker) != whole)
        FAIL_TEST("%s, refused allocation %lld: the verdict is %scomplete", program->name, (long long)refused, whole ? "in" : "");
    strata_checker_end(w.checker);
    fixture_close(&w.sim);
    if (live != before)
        FAIL_TEST("%s, refused allocation %lld: %lld allocations are left", program->name, (long long)refused,
                  (long long)(live - before));
    return whole;
}

TEST_EACH(checker_incomplete, each_refusal_of_host_memory_is_told_and_leaks_nothing, program_t, programs) {
    int64_t refused = 1;
    (void)strata_fail(STRATA_E_HOST_MEMORY, 0, "The error of a thread takes memory once.");
    while (!runs_whole(row, refused)) refused++;
    EXPECT_GT(refused, 1);
}
