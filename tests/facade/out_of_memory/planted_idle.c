/* Memory that is idle, and serves the request all the same not. */
#include "tests/facade/out_of_memory/planted.h"

/* ---- fragmentation: every other block of a full device freed ---- */

static void fill_with_gaps(scene_t *scene) {
    size_t size = 4 * MIB;
    strata_block_t block;
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .flags = STRATA_NO_RETRY, .tag = "weights"};
    while (scene->count < 16 && strata_allocate_with(scene->rig.s, scene->rig.gpu, NULL, &options, &block) == STRATA_OK)
        scene->blocks[scene->count++] = block;
    for (uint32_t i = 0; i < scene->count; i += 2) scene_drop(scene, &scene->blocks[i]);
}

/* As strata_best_victims() names them. */
static void free_victims(scene_t *scene) {
    strata_ref_t victims[PLANTED_BLOCKS];
    size_t count = 0;
    EXPECT_OK(strata_best_victims(scene->rig.s, scene->rig.gpu, scene->request.size, victims, PLANTED_BLOCKS, &count));
    EXPECT_GE(count, 1);
    for (size_t i = 0; i < count; i++) EXPECT_OK(strata_free(scene->rig.s, victims[i]));
}

#define CACHE(layers) "strategy: pieces\nstack: [" layers ", system]\n"

/* ---- another's ---- */

/* 4 MiB of a chunk of 40 live, the rest idle. */
static void most_of_a_chunk_idle(scene_t *scene, strata_stream_t stream, uint64_t pool) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 36 * MIB, .pool = pool};
    strata_block_t *large = scene_get(scene, scene->rig.gpu, stream, &options);
    options.size = 4 * MIB;
    (void)scene_get(scene, scene->rig.gpu, stream, &options);
    scene_drop(scene, large);
}

static void idle_in_a_stream(scene_t *scene) { most_of_a_chunk_idle(scene, scene->streams[0], 0); }
static void one_in_a_large_segment(scene_t *scene) { (void)scene_hold(scene, scene->streams[0], 4 * MIB); }
static void idle_in_a_pool(scene_t *scene) {
    EXPECT_OK(strata_pool(scene->rig.s, "other", &scene->pool));
    most_of_a_chunk_idle(scene, NULL, scene->pool);
}
static void idle_in_a_kept_pool(scene_t *scene) {
    idle_in_a_pool(scene);
    scene_drop_all(scene);
}
static void give_up_the_pool(scene_t *scene) {
    uint64_t released = 0;
    EXPECT_OK(strata_release_pool(scene->rig.s, scene->rig.gpu, scene->pool, &released));
    EXPECT_EQ(released, 40 * MIB);
}

static void hold_by_itself(scene_t *scene) { most_of_a_chunk_idle(scene, NULL, 0); }
static void idle_in_a_thread(scene_t *scene) { scene_hold_in_thread(scene, hold_by_itself); }

/* Segments of 2 MiB, each with one small block. */
static void small_blocks_everywhere(scene_t *scene) {
    strata_block_t filler[15 * 4];
    for (int i = 0; i < 15 * 4; i++) filler[i] = rig_allocate(&scene->rig, NULL, 512 * 1024);
    for (int i = 0; i < 15 * 4; i++)
        if (i % 4 == 0) scene->blocks[scene->count++] = filler[i];
        else EXPECT_OK(strata_free(scene->rig.s, filler[i].ref));
}

/* ---- captures and counts ---- */

static strata_graph_t graph;

static void kept_for_a_graph(scene_t *scene) {
    rig_t *rig = &scene->rig;
    strata_stream_t stream = rig_stream(rig);
    EXPECT_OK(strata_graph_pool_begin(rig->s, rig->gpu, stream, &scene->pool));
    EXPECT_OK(strata_capture_begin(rig->s, rig->gpu, stream));
    strata_block_t block = rig_allocate(rig, stream, 40 * MIB);
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_OK(strata_capture_end(rig->s, rig->gpu, stream, &graph));
    EXPECT_OK(strata_graph_pool_end(rig->s, rig->gpu, scene->pool));
    EXPECT_OK(strata_graph_pool_remove(rig->s, rig->gpu, scene->pool));
}
static void destroy_the_graph(scene_t *scene) { EXPECT_OK(strata_graph_destroy(scene->rig.s, scene->rig.gpu, graph)); }

static void freed_under_a_count(scene_t *scene) {
    strata_block_t *freed[3];
    (void)scene_hold(scene, NULL, 2 * MIB);
    for (int i = 0; i < 3; i++) freed[i] = scene_hold(scene, NULL, 15 * MIB);
    for (int i = 0; i < 3; i++) scene_drop(scene, freed[i]);
    scene->request.freed_before = 1;
}
static void move_the_frontier(scene_t *scene) {
    uint64_t count;
    EXPECT_OK(strata_next_count(scene->rig.s, scene->rig.gpu, &count));
    EXPECT_OK(strata_set_safe_frontier(scene->rig.s, scene->rig.gpu, count));
}

#define ONE_CHUNK "auto_growth: {chunk_size: 40MiB}, system"

PLANTED(fragmentation_of_auto_growth, STRATA_CAUSE_FRAGMENTATION, CACHE("auto_growth: {chunk_size: 64MiB}"), 64 * MIB, 10 * MIB,
        fill_with_gaps, free_victims, "auto_growth.chunk_size=4MiB",
        "free 4MiB in 1 block to make a run of 10MiB: 4MiB in 1 by weights", 0)
PLANTED(fragmentation_of_caching, STRATA_CAUSE_FRAGMENTATION, "pytorch", 60 * MIB, 6 * MIB, fill_with_gaps, free_victims, NULL,
        "to make a run of 6MiB", 0)
PLANTED(fragmentation_of_bfc, STRATA_CAUSE_FRAGMENTATION, CACHE("bfc: {allow_growth: false, memory_limit: 64MiB}"), 64 * MIB,
        10 * MIB, fill_with_gaps, free_victims, NULL, "to make a run of 10MiB", 0)
PLANTED(fragmentation_of_naive_best_fit, STRATA_CAUSE_FRAGMENTATION, CACHE("naive_best_fit: {initial: 64MiB}"), 80 * MIB, 30 * MIB,
        fill_with_gaps, scene_drop_all, NULL, "free", 0)
PLANTED(fragmentation_under_buffered, STRATA_CAUSE_FRAGMENTATION, CACHE("buffered, auto_growth: {chunk_size: 64MiB}"), 64 * MIB,
        10 * MIB, fill_with_gaps, scene_drop_all, NULL, "free", 0)
PLANTED(idle_in_another_streams_stack, STRATA_CAUSE_IDLE_IN_STREAM, CACHE("auto_growth: {chunk_size: 40MiB}"), 64 * MIB, 30 * MIB,
        idle_in_a_stream, scene_drop_all, NULL, "on the stream that has it", 0)
PLANTED(idle_in_another_streams_bank, STRATA_CAUSE_IDLE_IN_STREAM, CACHE("caching: {large_segment: 40MiB}"), 64 * MIB, 30 * MIB,
        one_in_a_large_segment, scene_drop_all, NULL, "on the stream that has it", 0)
PLANTED(idle_in_another_pool, STRATA_CAUSE_IDLE_IN_POOL,
        "strategy: pools\nstack: [" ONE_CHUNK "]\npools: {other: [" ONE_CHUNK "]}\n", 64 * MIB, 30 * MIB, idle_in_a_pool,
        scene_drop_all, NULL, "from the pool that has it", 0)
PLANTED(idle_in_a_pool_that_keeps_its_chunks, STRATA_CAUSE_KEPT,
        "strategy: pools\nstack: [" ONE_CHUNK "]\npools: {other: {keep: true, stack: [" ONE_CHUNK "]}}\n", 64 * MIB, 30 * MIB,
        idle_in_a_kept_pool, give_up_the_pool, NULL, "strata_release_pool()", 0)
PLANTED(idle_in_another_thread, STRATA_CAUSE_IDLE_IN_THREAD, CACHE("thread_local: {initial: 48MiB, reallocate: 8MiB}"), 64 * MIB,
        30 * MIB, idle_in_a_thread, scene_drop_all, NULL, "in the thread that has it", 0)
PLANTED(idle_where_small_requests_are_served, STRATA_CAUSE_SIZES, CACHE("caching"), 32 * MIB, 12 * MIB, small_blocks_everywhere,
        scene_drop_all, NULL, "free the blocks that keep those chunks in use", 0)
PLANTED(a_graph, STRATA_CAUSE_CAPTURED, "pytorch", 64 * MIB, 50 * MIB, kept_for_a_graph, destroy_the_graph, NULL, "destroy graphs",
        0)
PLANTED(frees_under_counts, STRATA_CAUSE_COUNTED, CACHE("bfc: {timestamps: true, memory_limit: 47MiB, allow_growth: false}"),
        64 * MIB, 40 * MIB, freed_under_a_count, move_the_frontier, NULL, "strata_set_safe_frontier()", 0)
