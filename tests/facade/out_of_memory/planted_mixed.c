/* Two things that stand in the way at once: advice for the one alone would be false. */
#include "tests/facade/out_of_memory/planted.h"

#define MS (1000ull * 1000)

/* ---- a bound below what is asked ---- */

static void limit_to_50(scene_t *scene) { EXPECT_OK(strata_set_limit(scene->rig.s, scene->rig.gpu, 50 * MIB)); }
static void ask_for_50(scene_t *scene) { scene->request.size = 50 * MIB; }
static void plant_nothing(scene_t *scene) { (void)scene; }

static void hold_three(scene_t *scene) {
    for (int i = 0; i < 3; i++) (void)scene_hold(scene, NULL, 60 * MIB);
}

static void limit_managed(scene_t *scene) {
    (void)scene_hold(scene, NULL, 100 * MIB);
    scene->place = strata_managed(0);
    EXPECT_OK(strata_set_limit(scene->rig.s, scene->place, 50 * MIB));
}
static void raise_managed(scene_t *scene) { EXPECT_OK(strata_set_limit(scene->rig.s, scene->place, 60 * MIB)); }

/* ---- what waits, beside what is live ---- */

static void free_at_work(scene_t *scene, uint32_t i) {
    strata_block_t *block = &scene->blocks[i];
    EXPECT_OK(strata_record_stream(scene->rig.s, block->ref, scene->streams[1]));
    rig_work(&scene->rig, scene->streams[1], 100 * MS, block->ref);
    scene_drop(scene, block);
}

static void hold_sixteen(scene_t *scene) {
    scene->stream = scene->streams[0];
    for (int i = 0; i < 16; i++) (void)scene_hold(scene, scene->stream, 4 * MIB);
}
static void every_other_at_work(scene_t *scene) {
    hold_sixteen(scene);
    for (uint32_t i = 0; i < 16; i += 2) free_at_work(scene, i);
}
static void most_free_and_one_at_work(scene_t *scene) {
    hold_sixteen(scene);
    free_at_work(scene, 0);
    for (uint32_t i = 2; i < 16; i += 2) scene_drop(scene, &scene->blocks[i]);
}
static void every_other_and_no_retry(scene_t *scene) {
    every_other_at_work(scene);
    scene->request.flags = STRATA_NO_RETRY;
}
static void neighbours_at_work(scene_t *scene) {
    hold_sixteen(scene);
    for (uint32_t i = 4; i < 8; i++) free_at_work(scene, i);
    scene_drop(scene, &scene->blocks[8]);
}
static void chunks_at_work(scene_t *scene) {
    scene->stream = scene->streams[0];
    for (int i = 0; i < 3; i++) (void)scene_hold(scene, scene->stream, 20 * MIB);
    for (uint32_t i = 0; i < 2; i++) free_at_work(scene, i);
}
static void forgotten_in_pieces(scene_t *scene) {
    hold_sixteen(scene);
    rig_work(&scene->rig, scene->streams[0], 100 * MS, scene->blocks[1].ref);
    for (uint32_t i = 0; i < 16; i += 2) scene_drop(scene, &scene->blocks[i]);
    EXPECT_OK(strata_stream_forget(scene->rig.s, scene->rig.gpu, scene->streams[0]));
    scene->stream = scene->streams[1];
}
static void forgotten_neighbours(scene_t *scene) {
    neighbours_at_work(scene);
    EXPECT_OK(strata_stream_forget(scene->rig.s, scene->rig.gpu, scene->streams[0]));
    scene->stream = NULL;
}
static void counts_in_pieces(scene_t *scene) {
    for (int i = 0; i < 15; i++) (void)scene_hold(scene, NULL, 4 * MIB);
    for (uint32_t i = 0; i < 15; i += 2) scene_drop(scene, &scene->blocks[i]);
    scene->request.freed_before = 1;
}
static void move_the_frontier_and_drop_all(scene_t *scene) {
    uint64_t count;
    scene_drop_all(scene);
    EXPECT_OK(strata_next_count(scene->rig.s, scene->rig.gpu, &count));
    EXPECT_OK(strata_set_safe_frontier(scene->rig.s, scene->rig.gpu, count));
}
static void wait_for_the_work(scene_t *scene) {
    EXPECT_OK(strata_stream_synchronize(scene->rig.s, scene->rig.gpu, scene->streams[1]));
}
static void let_time_pass_and_drop_all(scene_t *scene) {
    rig_advance(&scene->rig, 200 * MS);
    scene_drop_all(scene);
}
static void wait_and_drop_all(scene_t *scene) {
    wait_for_the_work(scene);
    scene_drop_all(scene);
}

/* ---- a capture, beside pieces that would not go back without it ---- */

static void gaps_in_a_capture(scene_t *scene) {
    for (int i = 0; i < 15; i++) (void)scene_hold(scene, NULL, 4 * MIB);
    for (int i = 0; i < 15; i += 2) scene_drop(scene, &scene->blocks[i]);
    scene_capture(scene, true);
}

#define ONE_CHUNK_WAITS "strategy: waits\nstack: [retry: {timeout: 2ms}, stream_safe, auto_growth: {chunk_size: 64MiB}, system]\n"
#define CHUNKS_WAIT     "strategy: waits\nstack: [retry: {timeout: 2ms}, stream_safe, auto_growth: {chunk_size: 0}, system]\n"
#define FALLS_BACK                                                                                                                 \
    "strategy: spills\nstack: [auto_growth, fallback: {stacks: [[system], [limit: {bytes: 128MiB}, system: {memory: "              \
    "managed}]]}]\n"

PLANTED_WITHOUT("request at most 256MiB", more_than_the_device_has_under_a_limit, STRATA_CAUSE_TOO_LARGE, "pytorch", 256 * MIB,
                300 * MIB, limit_to_50, ask_for_50, NULL, "request at most 50MiB, as strata_set_limit() allows", 0)
PLANTED_WITHOUT("or free as much", more_than_strata_set_limit_allows, STRATA_CAUSE_PLACE_LIMIT, "pytorch", 256 * MIB, 60 * MIB,
                limit_to_50, ask_for_50, NULL, "request at most 50MiB: this limit serves no more", 0)
PLANTED_WITHOUT("or free as much", more_than_a_limit_layer_allows, STRATA_CAUSE_BOUND,
                "strategy: limited\nstack: [caching, limit: {bytes: 50MiB}, system]\n", 256 * MIB, 60 * MIB, plant_nothing,
                ask_for_50, "limit.bytes=60MiB", "raise limit.bytes to 60MiB or more", 0)
PLANTED_WITHOUT("the device has 0 free", managed_memory_is_larger_than_the_device, STRATA_CAUSE_BOUND,
                "strategy: spills\nstack: [limit: {bytes: 512MiB}, system: {memory: managed}]\n", 128 * MIB, 600 * MIB, hold_three,
                NULL, "limit.bytes=780MiB", "raise limit.bytes to 780MiB or more (now 512MiB)", 0)
PLANTED_WITHOUT("alone does not", managed_memory_under_a_limit_on_a_full_device, STRATA_CAUSE_PLACE_LIMIT, "system", 128 * MIB,
                60 * MIB, limit_managed, raise_managed, NULL, "raise the limit to 60MiB or more (strata_set_limit())", 0)
PLANTED_WITHOUT("at most", a_bound_of_what_is_fallen_back_to, STRATA_CAUSE_BOUND, FALLS_BACK, 128 * MIB, 160 * MIB, hold_three,
                NULL, "limit.bytes=220MiB", "raise limit.bytes to 220MiB or more (now 128MiB)", 0)
PLANTED_WITHOUT("repeat the request", pieces_at_work_between_live_blocks, STRATA_CAUSE_FRAGMENTATION, ONE_CHUNK_WAITS, 70 * MIB,
                20 * MIB, every_other_at_work, wait_and_drop_all, NULL, "Once those streams finish, the largest run has 4MiB", 0)
PLANTED_WITHOUT("STRATA_NO_RETRY", pieces_at_work_and_no_retry, STRATA_CAUSE_FRAGMENTATION, ONE_CHUNK_WAITS, 70 * MIB, 20 * MIB,
                every_other_and_no_retry, wait_and_drop_all, NULL, "Once those streams finish, the largest run has 4MiB", 0)
PLANTED(pieces_free_and_at_work, STRATA_CAUSE_FRAGMENTATION, ONE_CHUNK_WAITS, 70 * MIB, 20 * MIB, most_free_and_one_at_work,
        wait_and_drop_all, NULL,
        ": 32MiB of live blocks keep 1 chunk in use\n  try: free 8MiB in 2 blocks to make a run of 20MiB: 8MiB in 2 by ", 0)
PLANTED(neighbours_at_work_beside_a_free_block, STRATA_CAUSE_WAITING, ONE_CHUNK_WAITS, 70 * MIB, 20 * MIB, neighbours_at_work,
        wait_for_the_work, NULL, "repeat the request", 0)
PLANTED(whole_chunks_at_work, STRATA_CAUSE_WAITING, CHUNKS_WAIT, 64 * MIB, 40 * MIB, chunks_at_work, wait_for_the_work, NULL,
        "repeat the request", 0)
PLANTED_WITHOUT("capture", gaps_of_caching_in_a_capture, STRATA_CAUSE_FRAGMENTATION,
                "strategy: gaps\nstack: [caching: {large_segment: 60MiB}, system]\n", 66 * MIB, 20 * MIB, gaps_in_a_capture,
                scene_drop_all, NULL, "to make a run of 20MiB", 0)
PLANTED_WITHOUT("capture", gaps_of_bfc_in_a_capture, STRATA_CAUSE_FRAGMENTATION,
                "strategy: gaps\nstack: [bfc: {allow_growth: false, memory_limit: 60MiB}, system]\n", 66 * MIB, 20 * MIB,
                gaps_in_a_capture, scene_drop_all, NULL, "to make a run of 20MiB", 0)
PLANTED_WITHOUT("repeat the request", a_forgotten_stream_in_pieces, STRATA_CAUSE_FORGOTTEN, ONE_CHUNK_WAITS, 70 * MIB, 20 * MIB,
                forgotten_in_pieces, let_time_pass_and_drop_all, NULL, "once the work is done, the largest run has 4MiB", 0)
PLANTED(a_forgotten_streams_neighbours_at_work, STRATA_CAUSE_WAITING, ONE_CHUNK_WAITS, 70 * MIB, 20 * MIB, forgotten_neighbours,
        wait_for_the_work, NULL, "repeat the request", 0)
PLANTED_WITHOUT("strata_set_safe_frontier", frees_under_counts_in_pieces, STRATA_CAUSE_FRAGMENTATION,
                "strategy: counts\nstack: [bfc: {timestamps: true, memory_limit: 60MiB, allow_growth: false}, system]\n", 64 * MIB,
                20 * MIB, counts_in_pieces, move_the_frontier_and_drop_all, NULL,
                "Once a frontier passes them, the largest run has 4MiB", 0)
