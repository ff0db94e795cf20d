/* Bounds, flags, and who says no. */
#include "tests/facade/out_of_memory/planted.h"

static void plant_nothing(scene_t *scene) { (void)scene; }

static void ask_for_less(scene_t *scene) { scene->request.size = 200 * MIB; }
static void hold_30(scene_t *scene) { (void)scene_hold(scene, NULL, 30 * MIB); }

/* ---- bounds ---- */

static void hold_under_a_limit(scene_t *scene) {
    hold_30(scene);
    EXPECT_OK(strata_set_limit(scene->rig.s, scene->rig.gpu, 50 * MIB));
}
static void raise_the_limit(scene_t *scene) { EXPECT_OK(strata_set_limit(scene->rig.s, scene->rig.gpu, 70 * MIB)); }

/* Three handles of 20 MiB, of six; four are asked for. */
static void hold_handles_under_a_limit(scene_t *scene) {
    (void)scene_hold(scene, NULL, 60 * MIB);
    EXPECT_OK(strata_set_limit(scene->rig.s, scene->rig.gpu, 120 * MIB));
}
static void raise_it_by_a_handle(scene_t *scene) { EXPECT_OK(strata_set_limit(scene->rig.s, scene->rig.gpu, 140 * MIB)); }
static void hold_60(scene_t *scene) { (void)scene_hold(scene, NULL, 60 * MIB); }

static void hold_pinned(scene_t *scene) {
    scene->place = strata_pinned();
    (void)scene_get(scene, scene->place, NULL,
                    &(strata_allocate_options_t){.struct_size = sizeof(strata_allocate_options_t), .size = 3 * MIB});
}

/* A bound that is not all: what the device has is less. */
static void hold_beside_a_pool(scene_t *scene) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 40 * MIB};
    EXPECT_OK(strata_pool(scene->rig.s, "rest", &options.pool));
    (void)scene_get(scene, scene->rig.gpu, NULL, &options);
    hold_30(scene);
}

static void ask_in_pinned(scene_t *scene) { scene->place = strata_pinned(); }

/* ---- flags ---- */

static void forbid_growth(scene_t *scene) { scene->request.flags = STRATA_NO_GROW; }
static void allow_all(scene_t *scene) { scene->request.flags = 0; }
static void idle_and_no_retry(scene_t *scene) {
    scene_drop(scene, scene_hold(scene, scene->streams[0], 40 * MIB));
    scene->request.flags = STRATA_NO_RETRY;
}
static void one_large_block(scene_t *scene) {
    scene_drop(scene, scene_hold(scene, NULL, 60 * MIB));
    scene->request.flags = STRATA_NO_GROW;
}

/* ---- others' words ---- */

static void fail_on_the_host(scene_t *scene) {
    scene->place = strata_host();
    EXPECT_OK(strata_sim_fail(scene->rig.devices[0], STRATA_CALL_host_alloc, 1, true, STRATA_E_NO_MEMORY));
}
static void fail_on_the_device(scene_t *scene) {
    EXPECT_OK(strata_sim_fail(scene->rig.devices[0], STRATA_CALL_malloc, 1, true, STRATA_E_NO_MEMORY));
}
static void recover(scene_t *scene) { strata_sim_clear_faults(scene->rig.devices[0]); }

#define LIMITED "strategy: limited\nstack: [stream_safe, auto_growth, limit: {bytes: 50MiB}, system]\n"
#define BOUND_AND_FULL                                                                                                             \
    "strategy: both\nstack: [auto_growth: {chunk_size: 0}, limit: {bytes: 50MiB}, system]\n"                                       \
    "pools: {rest: {stack: [system]}}\n"
#define CAPPED                                                                                                                     \
    "strategy: capped\nstack: [system]\nplaces:\n  pinned: [auto_growth: {chunk_size: 0}, system: {memory: pinned, cap: 4MiB}]\n"
#define BFC_LIMIT "strategy: region\nstack: [bfc: {memory_limit: 50MiB}, system]\n"
#define SHARE                                                                                                                      \
    "strategy: share\nstack: [system]\nplaces:\n  pinned: [naive_best_fit: {memory: 10MiB, fraction: 0.5}, system: {memory: "      \
    "pinned}]\n"
#define REFUSES      "strategy: refuses\nstack: [auto_growth: {chunk_size: 0}, fault: {above: 32MiB}, system]\n"
#define WHOLE_BLOCKS "strategy: whole\nstack: [caching: {max_split_size: 50MiB}, system]\n"

PLANTED(one_request_is_larger_than_the_device, STRATA_CAUSE_TOO_LARGE, "pytorch", 256 * MIB, 300 * MIB, plant_nothing, ask_for_less,
        NULL, "request at most 256MiB", 0)
PLANTED(a_limit_in_the_middle_of_a_handle, STRATA_CAUSE_PLACE_LIMIT, "pytorch-expandable", GIB, 70 * MIB,
        hold_handles_under_a_limit, raise_it_by_a_handle, NULL, "raise the limit to 140MiB", 0)
PLANTED(a_device_in_the_middle_of_a_handle, STRATA_CAUSE_CHUNK, "pytorch-expandable", 130 * MIB, 70 * MIB, hold_60, scene_drop_all,
        NULL, "free", 0)
PLANTED(a_layer_limit, STRATA_CAUSE_BOUND, LIMITED, GIB, 40 * MIB, hold_30, scene_drop_all, "limit.bytes=70MiB",
        "raise limit.bytes to 70MiB or more (now 50MiB)", 0)
PLANTED(a_layer_limit_on_a_device_that_has_no_more_either, STRATA_CAUSE_BOUND, BOUND_AND_FULL, 80 * MIB, 40 * MIB,
        hold_beside_a_pool, scene_drop_all, NULL, "a higher limit.bytes alone does not help, because the device has 10MiB free", 0)
PLANTED(strata_set_limit, STRATA_CAUSE_PLACE_LIMIT, "strata", GIB, 40 * MIB, hold_under_a_limit, raise_the_limit, NULL,
        "raise the limit to 70MiB or more (strata_set_limit())", 0)
PLANTED(pinned_memorys_cap, STRATA_CAUSE_BOUND, CAPPED, GIB, 3 * MIB, hold_pinned, scene_drop_all, "pinned.system.cap=6MiB",
        "raise pinned.system.cap to 6MiB or more (now 4MiB)", 0)
PLANTED(bfcs_memory_limit, STRATA_CAUSE_BOUND, BFC_LIMIT, GIB, 40 * MIB, hold_30, scene_drop_all, "bfc.memory_limit=128MiB",
        "raise bfc.memory_limit to ", 0)
PLANTED(naive_best_fits_share, STRATA_CAUSE_BOUND, SHARE, GIB, 8 * MIB, ask_in_pinned, NULL, "pinned.naive_best_fit.fraction=1",
        "pinned.naive_best_fit.fraction", 0)
PLANTED(the_request_forbids_growth, STRATA_CAUSE_NO_GROWTH, "strata", GIB, 40 * MIB, forbid_growth, allow_all, NULL,
        "no STRATA_NO_GROW", 0)
PLANTED(the_request_forbids_the_ladder, STRATA_CAUSE_NO_RETRY, "strata", 64 * MIB, 50 * MIB, idle_and_no_retry, allow_all, NULL,
        "no STRATA_NO_RETRY", 0)
PLANTED(max_split_size, STRATA_CAUSE_UNSPLIT, WHOLE_BLOCKS, 64 * MIB, 30 * MIB, one_large_block, allow_all,
        "caching.max_split_size=unlimited", "raise caching.max_split_size", 0)
PLANTED(the_hosts_memory, STRATA_CAUSE_HOST, "strata", GIB, 40 * MIB, fail_on_the_host, recover, NULL, "other users of host memory",
        0)
PLANTED(a_device_that_refuses_what_it_has, STRATA_CAUSE_DEVICE, "pytorch", GIB, 40 * MIB, fail_on_the_device, recover, NULL,
        "see the driver's error", 0)
PLANTED(a_layer_of_another_will, STRATA_CAUSE_LAYER, REFUSES, GIB, 40 * MIB, plant_nothing, NULL, "fault.above=64MiB",
        "a layer refused: fault", 0)
