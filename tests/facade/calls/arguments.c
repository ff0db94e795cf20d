/* What cannot be meant is refused by name, and nothing happens. */
#include "tests/facade/support/fixture.h"

/* The fault's name is in the text, and nothing has changed. */
#define REFUSED(call, word)                                                                                                        \
    do {                                                                                                                           \
        EXPECT_STATUS(STRATA_E_INVALID, call);                                                                                     \
        EXPECT_CONTAINS(strata_last_error()->text, word);                                                                          \
    } while (0)

/* Likewise, and the text begins with the function that the program called, not with one of those after it. */
#define REFUSED_BY(call, word)                                                                                                     \
    do {                                                                                                                           \
        REFUSED(call, word);                                                                                                       \
        EXPECT_EQ(strncmp(strata_last_error()->text, #call ":", strcspn(#call, "(")), 0);                                          \
        EXPECT_EQ(strata_last_error()->text[strcspn(#call, "(")], ':');                                                            \
    } while (0)

static void row(const strata_snapshot_row_t *it, void *context) {
    (void)it;
    (void)context;
}

static const char named[] = "stack: [stream_safe, auto_growth, system]\npools: {weights: {stack: [system]}}\n";

TEST_RIG(facade_arguments, no_room_for_an_answer_is_refused, 0, named) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 100};
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    REFUSED_BY(strata_open(NULL, NULL), "strata_open");
    REFUSED_BY(strata_allocate(rig->s, rig->gpu, NULL, MIB, NULL), "`block` is NULL");
    REFUSED_BY(strata_allocate(rig->s, rig->gpu, NULL, 0, NULL), "`block` is NULL");
    REFUSED_BY(strata_allocate_with(rig->s, rig->gpu, NULL, &options, NULL), "`block` is NULL");
    REFUSED_BY(strata_allocate_with(rig->s, rig->gpu, NULL, NULL, &block), "`options` is NULL");
    REFUSED_BY(strata_next_count(rig->s, rig->gpu, NULL), "`count` is NULL");
    REFUSED_BY(strata_block_of(rig->s, block.ptr, NULL), "`block` is NULL");
    REFUSED_BY(strata_base_pointer(rig->s, block.ptr, NULL), "`block` is NULL");
    REFUSED_BY(strata_allocation_route(rig->s, block.ref, NULL, 10), "`text` is NULL");
    REFUSED_BY(strata_stream_of(rig->s, block.ref, NULL), "`stream` is NULL");
    REFUSED_BY(strata_same_stream(rig->s, rig->gpu, NULL, NULL, NULL), "`same` is NULL");
    REFUSED_BY(strata_stream_create(rig->s, rig->gpu, 0, NULL), "`stream` is NULL");
    REFUSED_BY(strata_mem_info(rig->s, rig->gpu, NULL), "strata_mem_info");
    REFUSED_BY(strata_statistics(rig->s, rig->gpu, NULL, NULL), "strata_statistics");
    REFUSED_BY(strata_statistics_all(rig->s, rig->gpu, NULL), "strata_statistics_all");
    REFUSED_BY(strata_statistics_pool(rig->s, rig->gpu, STRATA_POOL_ORDINARY, NULL), "strata_statistics_pool");
    REFUSED_BY(strata_statistics_json(rig->s, NULL, 10, NULL), "`text` is NULL");
    REFUSED_BY(strata_statistics_prometheus(rig->s, NULL, 10, NULL), "`text` is NULL");
    REFUSED_BY(strata_explain(rig->s, NULL, 10, NULL), "`text` is NULL");
    REFUSED_BY(strata_chunks_text(rig->s, rig->gpu, NULL, 10, NULL), "`text` is NULL");
    REFUSED_BY(strata_cache_below(rig->s, rig->gpu, NULL, 0, NULL), "strata_cache_below");
    REFUSED_BY(strata_pool(rig->s, "weights", NULL), "`pool` is NULL");
    REFUSED_BY(strata_pool_current(rig->s, rig->gpu, NULL), "`pool` is NULL");
    REFUSED_BY(strata_pool_of(rig->s, block.ref, NULL), "`pool` is NULL");
    REFUSED_BY(strata_neighbours(rig->s, block.ref, NULL), "`neighbours` is NULL");
    REFUSED_BY(strata_best_victims(rig->s, rig->gpu, MIB, NULL, 0, NULL), "`count` is NULL");
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
}

static bool any_stream(strata_stream_t stream, void *context) { return stream == context; }

TEST_RIG(facade_arguments, no_room_for_what_allocators_and_graphs_answer_is_refused, 0, named) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 100};
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    strata_allocator_t allocator;
    uint64_t pool = 0;
    void *base;
    size_t size;
    EXPECT_OK(strata_allocator_get(rig->s, rig->gpu, NULL, 0, &allocator));
    REFUSED_BY(strata_allocator_get(rig->s, rig->gpu, NULL, 0, NULL), "`allocator` is NULL");
    REFUSED_BY(strata_allocator_allocate(allocator, 100, NULL), "`block` is NULL");
    REFUSED_BY(strata_allocator_allocate_with(allocator, NULL, &block), "`options` is NULL");
    REFUSED_BY(strata_allocator_allocate_with(allocator, &options, NULL), "`block` is NULL");
    REFUSED_BY(strata_allocator_statistics(allocator, NULL), "`statistics` is NULL");
    REFUSED_BY(strata_allocator_describe(allocator, NULL), "`info` is NULL");
    REFUSED_BY(strata_place_of(rig->s, block.ref, NULL), "`place` is NULL");
    REFUSED_BY(strata_base_of(rig->s, block.ref, NULL, &size), "`base` is NULL");
    REFUSED_BY(strata_base_of(rig->s, block.ref, &base, NULL), "`size` is NULL");
    REFUSED_BY(strata_graph_pool_begin(rig->s, rig->gpu, NULL, NULL), "`pool` is NULL");
    REFUSED_BY(strata_graph_pool_begin_filtered(rig->s, rig->gpu, NULL, NULL, &pool), "`filter` is NULL");
    REFUSED_BY(strata_graph_pool_begin_filtered(rig->s, rig->gpu, any_stream, NULL, NULL), "`pool` is NULL");
    REFUSED_BY(strata_graph_pool_describe(rig->s, rig->gpu, 1, NULL), "`info` is NULL");
    REFUSED_BY(strata_graph_pools(rig->s, rig->gpu, NULL, 0, NULL), "`count` is NULL");
    REFUSED_BY(strata_graph_pools(rig->s, rig->gpu, NULL, 1, &size), "`pools` is NULL");
    REFUSED_BY(strata_capture_end(rig->s, rig->gpu, NULL, NULL), "`graph` is NULL");
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
}

TEST_RIG(facade_arguments, what_is_asked_for_by_nothing_is_refused, 0, named) {
    size_t count;
    uint64_t pool;
    (void)rig_allocate(rig, NULL, MIB);
    REFUSED(strata_stream_name(rig->s, rig->gpu, rig_stream(rig), NULL), "`name` is NULL");
    REFUSED(strata_stream_work(rig->s, rig->gpu, NULL, 10, NULL, 2), "`refs` is NULL");
    REFUSED(strata_layer_figures(rig->s, rig->gpu, NULL, NULL), "`figure` is NULL");
    REFUSED(strata_snapshot(rig->s, rig->gpu, NULL, NULL), "`row` is NULL");
    REFUSED(strata_add_out_of_memory_observer(rig->s, NULL, NULL, NULL), "`observer` is NULL");
    REFUSED(strata_add_free_memory_callback(rig->s, NULL, NULL, NULL), "`callback` is NULL");
    REFUSED(strata_pool(rig->s, NULL, &pool), "`name` is NULL");
    REFUSED(strata_best_victims(rig->s, rig->gpu, MIB, NULL, 4, &count), "`victims` is NULL");
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
}

TEST_RIG(facade_arguments, what_may_be_left_out_may_be_null, 0, named) {
    size_t needed;
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    EXPECT_OK(strata_free_pointer(rig->s, NULL));
    EXPECT_OK(strata_stream_work(rig->s, rig->gpu, NULL, 10, NULL, 0));
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_OK(strata_trim(rig->s, rig->gpu, 0, NULL));
    EXPECT_OK(strata_statistics_json(rig->s, NULL, 0, &needed));
    EXPECT_OK(strata_statistics_prometheus(rig->s, NULL, 0, &needed));
    EXPECT_OK(strata_explain(rig->s, NULL, 0, NULL));
    EXPECT_OK(strata_chunks_text(rig->s, rig->gpu, NULL, 0, &needed));
    EXPECT_OK(strata_allocation_route(rig->s, block.ref, NULL, 0));
    EXPECT_OK(strata_annotate(rig->s, NULL));
    EXPECT_OK(strata_snapshot(rig->s, rig->gpu, row, NULL));
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
}

TEST_RIG(facade_arguments, settings_that_are_not_there_are_refused, 0, named) {
    strata_t opened = 0;
    const char *const one[] = {"retry.timeout=1ms", NULL};
    const struct {
        const char *const *set;
        size_t count;
        const char *word;
    } rows[] = {{NULL, 1, "`set` is NULL"},
                {one + 1, 1, "`set[0]` is NULL"},
                {one, 2, "`set[1]` is NULL"},
                {one, (size_t)1 << 60, "`set_count`"},
                {NULL, SIZE_MAX, "`set_count`"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strata_open_options_t options = {
            .struct_size = sizeof options, .preset = "strata", .devices = "sim", .set = rows[i].set, .set_count = rows[i].count};
        REFUSED_BY(strata_open(&options, &opened), rows[i].word);
        REFUSED_BY(strata_change_strategy(rig->s, &options), rows[i].word);
    }
    EXPECT_EQ(opened, 0);
}

/* A size of no version: never set, one byte short of the first, or beyond any. */
TEST_RIG(facade_arguments, a_struct_of_no_size_is_refused, 0, named) {
    strata_t opened = 0;
    strata_allocator_t allocator;
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    EXPECT_OK(strata_allocator_get(rig->s, rig->gpu, NULL, 0, &allocator));
    static const size_t sizes[] = {0, 7, 4097, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        strata_open_options_t open = {.struct_size = sizes[i], .preset = "system", .devices = "sim"};
        strata_allocate_options_t allocate = {.struct_size = sizes[i], .size = 100};
        strata_mem_info_t info = {.struct_size = sizes[i]};
        strata_statistics_t statistics = {.struct_size = sizes[i]};
        strata_cache_t cache = {.struct_size = sizes[i]};
        strata_neighbours_t neighbours = {.struct_size = sizes[i]};
        strata_allocator_info_t allocator_info = {.struct_size = sizes[i]};
        strata_graph_pool_info_t pool_info = {.struct_size = sizes[i]};
        strata_block_t none = {.ref = 5};
        REFUSED_BY(strata_open(&open, &opened), "struct_size");
        REFUSED_BY(strata_change_strategy(rig->s, &open), "struct_size");
        REFUSED_BY(strata_allocate_with(rig->s, rig->gpu, NULL, &allocate, &none), "struct_size");
        REFUSED_BY(strata_mem_info(rig->s, rig->gpu, &info), "struct_size");
        REFUSED(strata_statistics(rig->s, rig->gpu, NULL, &statistics), "struct_size");
        REFUSED_BY(strata_cache_below(rig->s, rig->gpu, NULL, 0, &cache), "struct_size");
        REFUSED_BY(strata_neighbours(rig->s, block.ref, &neighbours), "struct_size");
        REFUSED_BY(strata_allocator_allocate_with(allocator, &allocate, &none), "struct_size");
        REFUSED_BY(strata_allocator_describe(allocator, &allocator_info), "struct_size");
        REFUSED_BY(strata_graph_pool_describe(rig->s, rig->gpu, 1, &pool_info), "struct_size");
        EXPECT_EQ(none.ref, 5);
    }
    EXPECT_EQ(opened, 0);
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
}

TEST_RIG(facade_arguments, a_flag_or_a_mode_that_there_is_not_is_refused, 0, named) {
    strata_t opened = 0;
    (void)rig_allocate(rig, NULL, MIB);
    strata_block_t none = {.ref = 5};
    for (uint32_t bit = 4; bit < 32; bit++) {
        strata_open_options_t open = {.struct_size = sizeof open, .preset = "system", .devices = "sim", .flags = 1u << bit};
        strata_allocate_options_t allocate = {.struct_size = sizeof allocate, .size = 100, .flags = 1u << bit};
        REFUSED(strata_open(&open, &opened), "STRATA_OPEN_CHECK_CAPTURES");
        REFUSED(strata_change_strategy(rig->s, &open), "STRATA_OPEN_CHECK_CAPTURES");
        if (allocate.flags > STRATA_NO_REPORT)
            REFUSED(strata_allocate_with(rig->s, rig->gpu, NULL, &allocate, &none), "STRATA_NO_GROW");
    }
    REFUSED(strata_close(rig->s, (strata_close_mode_t)77, NULL, NULL), "77");
    REFUSED(strata_close(rig->s, (strata_close_mode_t)-1, NULL, NULL), "-1");
    EXPECT_EQ(none.ref, 5);
    EXPECT_EQ(opened, 0);
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
}
