/* Memory that is in use: by work, by live blocks, by others. */
#include "strata/share.h"
#include "tests/facade/out_of_memory/planted.h"

#include <unistd.h>

#define MS (1000ull * 1000)

/* ---- by work ---- */

static void lend_and_free(scene_t *scene) {
    strata_block_t *block = scene_hold(scene, scene->streams[0], 40 * MIB);
    EXPECT_OK(strata_record_stream(scene->rig.s, block->ref, scene->streams[1]));
    rig_work(&scene->rig, scene->streams[1], 100 * MS, block->ref);
    scene_drop(scene, block);
    scene->stream = scene->streams[0];
}
static void wait_for_the_borrower(scene_t *scene) {
    EXPECT_OK(strata_stream_synchronize(scene->rig.s, scene->rig.gpu, scene->streams[1]));
}

static void forget_at_work(scene_t *scene) {
    strata_block_t *block = scene_hold(scene, scene->streams[1], 40 * MIB);
    (void)scene_hold(scene, scene->streams[1], MIB);
    rig_work(&scene->rig, scene->streams[1], 100 * MS, block->ref);
    scene_drop(scene, block);
    EXPECT_OK(strata_stream_forget(scene->rig.s, scene->rig.gpu, scene->streams[1]));
}
static void let_time_pass(scene_t *scene) { rig_advance(&scene->rig, 200 * MS); }

/* ---- by live blocks ---- */

static void hold_all(scene_t *scene) { (void)scene_hold(scene, NULL, 60 * MIB); }

static void leak_in_each_step(scene_t *scene) {
    strata_allocate_options_t weights = {.struct_size = sizeof weights, .size = 8 * MIB, .tag = "weights"};
    (void)scene_get(scene, scene->rig.gpu, NULL, &weights);
    for (int step = 0; step < 5; step++) {
        EXPECT_OK(strata_annotate(scene->rig.s, "attention"));
        (void)scene_hold(scene, NULL, 10 * MIB);
        EXPECT_OK(strata_annotate(scene->rig.s, NULL));
        EXPECT_OK(strata_step(scene->rig.s));
    }
}

/* A thread that holds nothing yet might free: it is waited for. */
static void hold_in_a_thread(scene_t *scene) { scene_hold_in_thread(scene, hold_all); }

/* Takes longer than the timeout of the request that calls it. */
static uint64_t free_nothing_slowly(strata_place_t place, size_t size, void *context) {
    (void)place;
    (void)size;
    (void)context;
    usleep(8 * 1000);
    return 0;
}
static void hold_in_a_thread_beside_a_slow_callback(scene_t *scene) {
    hold_in_a_thread(scene);
    EXPECT_OK(strata_add_free_memory_callback(scene->rig.s, free_nothing_slowly, NULL, NULL));
}

/* ---- by others, or by the size of chunks ---- */

static void plant_nothing(scene_t *scene) { (void)scene; }
static void hold_half(scene_t *scene) { (void)scene_hold(scene, NULL, 30 * MIB); }

/* Managed memory moves out of the way: it is not what is missing, nor another program's. */
static void idle_in_managed(scene_t *scene) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 5 * GIB};
    scene_drop(scene, scene_get(scene, strata_managed(0), NULL, &options));
    (void)scene_hold(scene, NULL, 3 * GIB);
}

/* What is idle in pieces would do with what is free, but is too little to be blamed. */
static void crumbs_beside_live_blocks(scene_t *scene) {
    (void)scene_hold(scene, NULL, 40 * MIB);
    strata_block_t *crumb = scene_hold(scene, NULL, MIB);
    (void)scene_hold(scene, NULL, MIB);
    scene_drop(scene, crumb);
}

/* A message that nobody has read keeps the block in use. */
static strata_shared_t message;
static void send_and_free(scene_t *scene) {
    strata_block_t *block = scene_hold(scene, NULL, 40 * MIB);
    message = (strata_shared_t){0};
    EXPECT_OK(strata_export(scene->rig.s, block->ref, &message));
    scene_drop(scene, block);
}
static void drop_the_message(scene_t *scene) {
    (void)scene;
    strata_shared_close(&message);
}

#define EXACT "auto_growth: {chunk_size: 0}, system"

PLANTED(a_borrower_at_work_waited_for_too_short_a_time, STRATA_CAUSE_WAITING,
        "strategy: waits\nstack: [retry: {timeout: 2ms}, stream_safe, " EXACT "]\n", 64 * MIB, 40 * MIB, lend_and_free,
        wait_for_the_borrower, "retry.timeout=1s", "raise retry.timeout (now 2ms)", 0)
PLANTED(a_borrower_at_work_never_waited_for, STRATA_CAUSE_WAITING, "strategy: waits\nstack: [stream_safe, " EXACT "]\n", 64 * MIB,
        40 * MIB, lend_and_free, wait_for_the_borrower, NULL, "`out_of_memory:` with a timeout", 0)
PLANTED(a_forgotten_stream_at_work, STRATA_CAUSE_FORGOTTEN,
        "strategy: waits\nstack: [retry: {timeout: 2ms}, stream_safe, auto_growth: {chunk_size: 50MiB}, system]\n", 64 * MIB,
        40 * MIB, forget_at_work, let_time_pass, "retry.timeout=1s", "raise retry.timeout (now 2ms)", 0)
PLANTED(live_blocks, STRATA_CAUSE_FULL, "pytorch", 64 * MIB, 20 * MIB, hold_all, scene_drop_all, NULL, "free some memory", 0)
PLANTED(live_blocks_where_handles_still_come, STRATA_CAUSE_FULL, "pytorch-expandable", 120 * MIB, 80 * MIB, hold_all,
        scene_drop_all, NULL, "free some memory", 0)
PLANTED(live_blocks_where_many_handles_still_come, STRATA_CAUSE_FULL, "paddle-vmm", 120 * MIB, 80 * MIB, hold_all, scene_drop_all,
        NULL, "free some memory", 0)
PLANTED(one_operators_blocks_step_after_step, STRATA_CAUSE_LEAK, "pytorch", 90 * MIB, 50 * MIB, leak_in_each_step, scene_drop_all,
        NULL, "find out why attention keeps its blocks", 0)
PLANTED(another_threads_blocks, STRATA_CAUSE_TIMED_OUT, "strategy: threads\nstack: [retry: {timeout: 5ms}, " EXACT "]\n", 64 * MIB,
        20 * MIB, hold_in_a_thread, scene_drop_all, NULL, "raise retry.timeout (now 5ms)", 0)
PLANTED(another_threads_blocks_beside_a_slow_callback, STRATA_CAUSE_TIMED_OUT,
        "strategy: threads\nstack: [retry: {timeout: 5ms}, " EXACT "]\n", 64 * MIB, 20 * MIB,
        hold_in_a_thread_beside_a_slow_callback, scene_drop_all, NULL, "raise retry.timeout (now 5ms)", 0)
PLANTED(another_program, STRATA_CAUSE_OTHERS, "strata", 8 * GIB, 4 * GIB, plant_nothing, NULL, NULL,
        "end other users of the device", 6 * GIB)
PLANTED(a_chunk_that_is_larger_than_the_request, STRATA_CAUSE_CHUNK,
        "strategy: chunks\nstack: [auto_growth: {chunk_size: 64MiB}, system]\n", 64 * MIB + 36 * MIB, 36 * MIB, hold_half,
        scene_drop_all, "auto_growth.smaller_growth=true", "auto_growth.smaller_growth: true", 0)
PLANTED(live_blocks_beside_idle_managed_memory, STRATA_CAUSE_FULL, "strata", 8 * GIB, 6 * GIB, idle_in_managed, scene_drop_all,
        NULL, "used by others 0.48GiB", 0)
PLANTED(live_blocks_beside_crumbs, STRATA_CAUSE_FULL, "strategy: crumbs\nstack: [auto_growth: {chunk_size: 2MiB}, system]\n",
        64 * MIB, 23 * MIB, crumbs_beside_live_blocks, scene_drop_all, NULL, "free some memory", 0)
PLANTED(a_block_that_another_process_uses, STRATA_CAUSE_LIMBO,
        "strategy: sent\nstack: [stream_safe, auto_growth, vmm: {registrable: true}]\n", 64 * MIB, 40 * MIB, send_and_free,
        drop_the_message, NULL, "end the imports of those blocks", 0)
