#include "tests/facade/support/ends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/test.h"

static void nothing_to_leak(const strata_snapshot_row_t *row, void *context) {
    (void)row;
    (void)context;
}

static void nothing_to_tell(const strata_layer_figure_t *figure, void *context) {
    (void)figure;
    (void)context;
}

static void nothing_to_observe(const strata_out_of_memory_t *event, void *context) {
    (void)event;
    (void)context;
}

static uint64_t nothing_to_free(strata_place_t place, size_t size, void *context) {
    (void)place;
    (void)size;
    (void)context;
    return 0;
}

static bool everybody(strata_stream_t stream, void *context) {
    (void)stream;
    (void)context;
    return true;
}

/* What calls write into. */
typedef struct room {
    strata_block_t block;
    strata_stream_t stream;
    strata_statistics_t figures;
    strata_mem_info_t info;
    strata_neighbours_t neighbours;
    strata_cache_t cache;
    strata_ref_t refs[4];
    char text[64];
    uint64_t bytes;
    size_t size;
    uint32_t id;
    bool same;
    strata_place_t place;
    void *base;
    strata_allocator_t allocator;
    strata_graph_pool_info_t pool;
    strata_shared_t shared;
    strata_imported_t imported;
    strata_registration_t registration;
} room_t;

static strata_status_t told_of(strata_status_t status, strata_shared_t *shared) {
    if (status == STRATA_OK) strata_shared_close(shared);
    return status;
}

#define CALLS(X)                                                                                                                   \
    X(strata_allocate(s, place, NULL, 1000, &r.block))                                                                             \
    X(strata_allocate_with(                                                                                                        \
        s, place, stream,                                                                                                          \
        &(strata_allocate_options_t){.struct_size = sizeof(strata_allocate_options_t), .size = 77, .tag = "tag"}, &r.block))       \
    X(strata_retain(s, ref))                                                                                                       \
    X(strata_release_ref(s, ref))                                                                                                  \
    X(strata_block_of(s, ptr, &r.block))                                                                                           \
    X(strata_base_pointer(s, (char *)ptr + 1, &r.block))                                                                           \
    X(strata_allocation_route(s, ref, r.text, sizeof r.text))                                                                      \
    X(strata_place_of(s, ref, &r.place))                                                                                           \
    X(strata_base_of(s, ref, &r.base, &r.size))                                                                                    \
    X(strata_allocator_get(s, place, stream, 0, &r.allocator))                                                                     \
    X(strata_record_stream(s, ref, stream))                                                                                        \
    X(strata_erase_stream(s, ref, stream))                                                                                         \
    X(strata_stream_of(s, ref, &r.stream))                                                                                         \
    X(strata_next_count(s, place, &r.bytes))                                                                                       \
    X(strata_set_safe_frontier(s, place, 1))                                                                                       \
    X(strata_same_stream(s, place, NULL, stream, &r.same))                                                                         \
    X(strata_set_default_stream(s, place, NULL))                                                                                   \
    X(strata_stream_create(s, place, 0, &r.stream))                                                                                \
    X(strata_stream_synchronize(s, place, stream))                                                                                 \
    X(strata_stream_work(s, place, stream, 10, NULL, 0))                                                                           \
    X(strata_release(s, place, &r.bytes))                                                                                          \
    X(strata_release_pool(s, place, STRATA_POOL_ORDINARY, &r.bytes))                                                               \
    X(strata_trim_pool(s, place, STRATA_POOL_ORDINARY, 1, NULL))                                                                   \
    X(strata_trim(s, place, 1, &r.bytes))                                                                                          \
    X(strata_mem_info(s, place, &r.info))                                                                                          \
    X(strata_set_limit(s, place, STRATA_UNLIMITED))                                                                                \
    X(strata_statistics(s, place, stream, &r.figures))                                                                             \
    X(strata_statistics_all(s, place, &r.figures))                                                                                 \
    X(strata_reset_peaks(s, place))                                                                                                \
    X(strata_statistics_json(s, r.text, sizeof r.text, &r.size))                                                                   \
    X(strata_statistics_prometheus(s, r.text, sizeof r.text, &r.size))                                                             \
    X(strata_explain(s, r.text, sizeof r.text, &r.size))                                                                           \
    X(strata_layer_figures(s, place, nothing_to_tell, NULL))                                                                       \
    X(strata_chunks_text(s, place, r.text, sizeof r.text, &r.size))                                                                \
    X(strata_snapshot(s, place, nothing_to_leak, NULL))                                                                            \
    X(strata_chunks_text(s, place, r.text, sizeof r.text, &r.size))                                                                \
    X(strata_cache_below(s, place, stream, 0, &r.cache))                                                                           \
    X(strata_validate(s))                                                                                                          \
    X(strata_add_out_of_memory_observer(s, nothing_to_observe, NULL, &r.id))                                                       \
    X(strata_add_free_memory_callback(s, nothing_to_free, NULL, &r.id))                                                            \
    X(strata_remove_callback(s, 1))                                                                                                \
    X(strata_graph_pool_begin(s, place, stream, &r.bytes))                                                                         \
    X(strata_graph_pool_end(s, place, 1))                                                                                          \
    X(strata_graph_pool_remove(s, place, 1))                                                                                       \
    X(strata_graph_pool_begin_filtered(s, place, everybody, NULL, &r.bytes))                                                       \
    X(strata_graph_pool_describe(s, place, 1, &r.pool))                                                                            \
    X(strata_graph_pools(s, place, &r.bytes, 1, &r.size))                                                                          \
    X(strata_capture_begin(s, place, stream))                                                                                      \
    X(strata_stream_wait(s, place, stream, NULL))                                                                                  \
    X(strata_capture_end(s, place, stream, &r.base))                                                                               \
    X(strata_graph_launch(s, place, &r, stream))                                                                                   \
    X(strata_graph_destroy(s, place, &r))                                                                                          \
    X(strata_pool(s, "pool", &r.bytes))                                                                                            \
    X(strata_pool_begin(s, place, STRATA_POOL_ORDINARY))                                                                           \
    X(strata_pool_current(s, place, &r.bytes))                                                                                     \
    X(strata_pool_of(s, ref, &r.bytes))                                                                                            \
    X(strata_statistics_pool(s, place, 0, &r.figures))                                                                             \
    X(strata_stream_name(s, place, stream, "copy0"))                                                                               \
    X(strata_pool_end(s, place))                                                                                                   \
    X(strata_enable_peer(s, 0, 1))                                                                                                 \
    X(told_of(strata_export(s, ref, &r.shared), &r.shared))                                                                        \
    X(strata_import(s, place, &r.shared, &r.imported))                                                                             \
    X(strata_import_end(s, 1))                                                                                                     \
    X(strata_register(s, ref, &r.registration))                                                                                    \
    X(strata_unregister(s, &r.registration))                                                                                       \
    X(strata_pause(s, place, &(strata_pause_options_t){.struct_size = sizeof(strata_pause_options_t)}, NULL))                      \
    X(strata_resume(s, place, 0, NULL, NULL))                                                                                      \
    X(strata_step(s))                                                                                                              \
    X(strata_annotate(s, "op"))                                                                                                    \
    X(strata_annotate(s, NULL))                                                                                                    \
    X(strata_neighbours(s, ref, &r.neighbours))                                                                                    \
    X(strata_best_victims(s, place, 8, r.refs, 4, &r.size))                                                                        \
    X(strata_shadow_start(s, &(strata_open_options_t){.struct_size = sizeof(strata_open_options_t)}))                              \
    X(strata_shadow_stop(s, r.text, sizeof r.text))                                                                                \
    X(strata_change_strategy(s, NULL))                                                                                             \
    X(strata_free_on(s, ref, stream))                                                                                              \
    X(strata_free(s, ref))                                                                                                         \
    X(strata_free_pointer(s, ptr))                                                                                                 \
    X(strata_free_pointer(s, NULL))                                                                                                \
    X(strata_stream_forget(s, place, stream))                                                                                      \
    X(strata_stream_destroy(s, place, stream))

const char *ends_call(const ends_t *ends, size_t number, strata_status_t *status) {
    strata_t s = ends->s;
    strata_place_t place = ends->place;
    strata_stream_t stream = ends->stream;
    strata_ref_t ref = ends->block.ref;
    void *ptr = ends->block.ptr;
    room_t r = {.figures = {.struct_size = sizeof r.figures},
                .info = {.struct_size = sizeof r.info},
                .neighbours = {.struct_size = sizeof r.neighbours},
                .cache = {.struct_size = sizeof r.cache},
                .pool = {.struct_size = sizeof r.pool},
                .size = sizeof r.text};
    size_t at = 0;
#define CALL(call)                                                                                                                 \
    if (at++ == number) {                                                                                                          \
        *status = call;                                                                                                            \
        return #call;                                                                                                              \
    }
    CALLS(CALL)
#undef CALL
    return NULL;
}

void ends_fill(const ends_t *ends) {
    strata_place_t places[] = {strata_gpu(0), strata_gpu(0), strata_managed(0), strata_pinned(), strata_host()};
    for (size_t i = 0; i < 5; i++) {
        strata_block_t kept, freed;
        if (strata_allocate(ends->s, places[i], i & 1 ? ends->stream : NULL, (size_t)100 << i, &kept) != STRATA_OK) continue;
        EXPECT_OK(strata_allocate(ends->s, places[i], NULL, (size_t)3000 << i, &freed));
        (void)strata_record_stream(ends->s, kept.ref, ends->stream);
        (void)strata_record_stream(ends->s, freed.ref, ends->stream);
        EXPECT_OK(strata_free(ends->s, freed.ref));
    }
}

int ends_in_child(int (*body)(const ends_t *), const ends_t *ends) {
    fflush(NULL);
    int status = -1;
    pid_t child = fork();
    if (child == 0) _exit(body(ends));
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 250;
}

int ends_forked_calls(const ends_t *ends) {
    strata_status_t status = STRATA_OK;
    strata_t other;
    int at = 0;
    for (; ends_call(ends, (size_t)at, &status); at++)
        if (status != STRATA_E_FORKED || strata_last_error()->status != STRATA_E_FORKED) return at + 1;
    for (int mode = 0; mode < 3; mode++)
        if (strata_close(ends->s, (strata_close_mode_t)mode, NULL, NULL) != STRATA_E_FORKED) return at + 1;
    return strata_open(NULL, &other) == STRATA_E_FORKED ? 0 : at + 2;
}
