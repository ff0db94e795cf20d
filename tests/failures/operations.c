#include "tests/failures/operations.h"

#include <string.h>

#define CACHED  "stack: [stream_safe, auto_growth_vmm, vmm]\n"
#define CHUNKS  "stack: [stream_safe, auto_growth: {chunk_size: 8MiB}, vmm]\n"
#define POOLS   CACHED "pools: {weights: {stack: [stream_safe, auto_growth: {chunk_size: 4MiB}, vmm]}}\n"
#define REGIONS "stack: [bfc: {coalesce_regions: true, max_region: 8MiB}, vmm]\n"

/* ---- blocks ---- */

static strata_status_t allocate(operated_t *o, uint32_t i, size_t size, uint32_t flags) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .flags = flags};
    strata_block_t block = {.ref = 0};
    strata_status_t status = strata_allocate_with(o->rig.s, o->rig.gpu, o->stream, &options, &block);
    if (status == STRATA_OK) o->blocks[i] = block;
    return status;
}

static void give(operated_t *o, uint32_t i) {
    if (o->blocks[i].ref) EXPECT_OK(strata_free(o->rig.s, o->blocks[i].ref));
    o->blocks[i].ref = 0;
}

static void give_all(operated_t *o) {
    for (uint32_t i = 0; i < OPERATION_BLOCKS; i++) give(o, i);
}

/* Ranges of addresses, which a refused growth leaves to the next one, are there already. */
static void hold_some(operated_t *o) {
    EXPECT_OK(allocate(o, 8, 4 * MIB, 0));
    EXPECT_OK(allocate(o, 9, 100, 0));
}

static strata_status_t ask_little(operated_t *o) { return allocate(o, 0, 300 * 1024, 0); }
static strata_status_t ask_much(operated_t *o) { return allocate(o, 0, 40 * MIB, 0); }
static strata_status_t ask_zeros(operated_t *o) { return allocate(o, 0, 3 * MIB, STRATA_ZERO); }

/* Every second of many blocks is free, and a view of three of these holes is in use. The next request is served by a view of other
 * holes, or by growth beside them. */
static void leave_holes(operated_t *o) {
    for (uint32_t i = 8; i < OPERATION_BLOCKS; i++) EXPECT_OK(allocate(o, i, 4 * MIB, 0));
    for (uint32_t i = 8; i < OPERATION_BLOCKS; i += 2) give(o, i);
    EXPECT_OK(allocate(o, 1, 10 * MIB, 0));
}

static strata_status_t ask_over_holes(operated_t *o) { return allocate(o, 0, 10 * MIB, 0); }
static strata_status_t ask_beyond_holes(operated_t *o) { return allocate(o, 0, 45 * MIB, 0); }

/* ---- going back ---- */

static void leave_idle(operated_t *o) {
    for (uint32_t i = 0; i < 3; i++) EXPECT_OK(allocate(o, i, 8 * MIB, 0));
    for (uint32_t i = 0; i < 3; i++) give(o, i);
}

static void leave_a_view_idle(operated_t *o) {
    leave_holes(o);
    EXPECT_OK(ask_over_holes(o));
    give(o, 0);
}

static strata_status_t release(operated_t *o) { return strata_release(o->rig.s, o->rig.gpu, NULL); }
static strata_status_t trim(operated_t *o) { return strata_trim(o->rig.s, o->rig.gpu, 8 * MIB, NULL); }
static strata_status_t set_limit(operated_t *o) { return strata_set_limit(o->rig.s, o->rig.gpu, 4 * MIB); }
static void lift_limit(operated_t *o) {
    EXPECT_OK(strata_set_limit(o->rig.s, o->rig.gpu, STRATA_UNLIMITED));
    give_all(o);
}

static void hold_two(operated_t *o) {
    EXPECT_OK(allocate(o, 0, 8 * MIB, 0));
    EXPECT_OK(allocate(o, 1, 3 * MIB, 0));
}

static void use_elsewhere(operated_t *o) {
    hold_two(o);
    rig_borrow(&o->rig, o->blocks[0].ref, o->other, 1000);
}

static strata_status_t free_one(operated_t *o) {
    give(o, 0);
    return STRATA_OK;
}

static void wait_and_give(operated_t *o) {
    EXPECT_OK(strata_stream_synchronize(o->rig.s, o->rig.gpu, o->other));
    give_all(o);
}

/* ---- streams ---- */

/* A stream with a block in use, an idle one, and one whose free waits for another stream. */
static void use_a_stream(operated_t *o) {
    strata_stream_t served = o->stream;
    o->stream = o->other = rig_stream(&o->rig);
    for (uint32_t i = 0; i < 3; i++) EXPECT_OK(allocate(o, i, (3 + i) * MIB, 0));
    o->stream = served;
    rig_borrow(&o->rig, o->blocks[1].ref, o->stream, 1000);
    give(o, 1);
    give(o, 2);
}

static strata_status_t forget_stream(operated_t *o) { return strata_stream_forget(o->rig.s, o->rig.gpu, o->other); }
static strata_status_t destroy_stream(operated_t *o) { return strata_stream_destroy(o->rig.s, o->rig.gpu, o->other); }

/* The stream is known to nobody, but not destroyed yet. */
static void forget_a_stream(operated_t *o) {
    use_a_stream(o);
    EXPECT_OK(forget_stream(o));
}

static void end_stream(operated_t *o) {
    EXPECT_OK(strata_stream_synchronize(o->rig.s, o->rig.gpu, o->stream));
    EXPECT_OK(forget_stream(o));
    EXPECT_OK(destroy_stream(o));
    o->other = rig_stream(&o->rig);
    give_all(o);
}

/* It is destroyed already, unless that was refused. */
static void end_destroyed(operated_t *o) {
    EXPECT_OK(strata_stream_synchronize(o->rig.s, o->rig.gpu, o->stream));
    o->other = rig_stream(&o->rig);
    give_all(o);
}

/* ---- pauses ---- */

static strata_status_t pause_with(operated_t *o, uint32_t contents) {
    strata_pause_options_t options = {
        .struct_size = sizeof options, .pool = STRATA_POOL_EVERY, .contents = contents, .directory = "/tmp", .staging = 4 * MIB};
    return strata_pause(o->rig.s, o->rig.gpu, &options, NULL);
}

static strata_status_t drop_contents(operated_t *o) { return pause_with(o, STRATA_PAUSE_DROP); }
static strata_status_t keep_pinned(operated_t *o) { return pause_with(o, STRATA_PAUSE_PINNED); }
static strata_status_t keep_in_a_file(operated_t *o) { return pause_with(o, STRATA_PAUSE_FILE); }
static strata_status_t resume(operated_t *o) { return strata_resume(o->rig.s, o->rig.gpu, STRATA_POOL_EVERY, NULL, NULL); }

static void resume_and_give(operated_t *o) {
    EXPECT_OK(resume(o));
    give_all(o);
}

static void hold_a_view(operated_t *o) {
    for (uint32_t i = 8; i < 16; i++) EXPECT_OK(allocate(o, i, 4 * MIB, 0));
    for (uint32_t i = 8; i < 16; i += 2) give(o, i);
    EXPECT_OK(ask_over_holes(o));
    for (uint32_t i = 9; i < 16; i += 4) give(o, i);
}

static void sleep_dropped(operated_t *o) {
    hold_a_view(o);
    EXPECT_OK(drop_contents(o));
}

static void sleep_pinned(operated_t *o) {
    hold_two(o);
    EXPECT_OK(keep_pinned(o));
}

static void sleep_in_a_file(operated_t *o) {
    hold_two(o);
    EXPECT_OK(keep_in_a_file(o));
}

static void hold_in_pools(operated_t *o) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 3 * MIB};
    EXPECT_OK(strata_pool(o->rig.s, "weights", &options.pool));
    hold_two(o);
    EXPECT_OK(strata_allocate_with(o->rig.s, o->rig.gpu, o->stream, &options, &o->blocks[2]));
}

static void sleep_in_pools(operated_t *o) {
    hold_in_pools(o);
    EXPECT_OK(keep_pinned(o));
}

/* ---- sharing ---- */

static strata_status_t export_one(operated_t *o) { return strata_export(o->rig.s, o->blocks[0].ref, &o->shared); }

static void end_export(operated_t *o) {
    strata_shared_close(&o->shared);
    give_all(o);
}

static strata_status_t export_again(operated_t *o) { return strata_export(o->rig.s, o->blocks[0].ref, &o->again); }

static void end_exports(operated_t *o) {
    strata_shared_close(&o->again);
    end_export(o);
}

static void offer(operated_t *o) {
    EXPECT_OK(allocate(o, 0, 10 * MIB, 0));
    EXPECT_OK(export_one(o));
}

static strata_status_t import(operated_t *o) { return strata_import(o->rig.s, o->rig.gpu, &o->shared, &o->imported); }

static void end_import(operated_t *o) {
    if (o->imported.id) EXPECT_OK(strata_import_end(o->rig.s, o->imported.id));
    o->imported.id = 0;
    end_export(o);
}

static void offer_a_view(operated_t *o) {
    hold_a_view(o);
    EXPECT_OK(export_one(o));
}

static void have_imported(operated_t *o) {
    offer_a_view(o);
    EXPECT_OK(import(o));
}

/* The same block is imported already. */
static void have_imported_twice(operated_t *o) {
    have_imported(o);
    o->imported_before = o->imported;
    EXPECT_OK(import(o));
}

static strata_status_t end_one_import(operated_t *o) {
    uint64_t id = o->imported.id;
    o->imported.id = 0;
    return strata_import_end(o->rig.s, id);
}

/* What the device refused to end is offered with the next end. */
static void end_another_import(operated_t *o) {
    if (!o->imported.id) EXPECT_OK(import(o));
    end_import(o);
}

static void end_both_imports(operated_t *o) {
    if (o->imported_before.id) EXPECT_OK(strata_import_end(o->rig.s, o->imported_before.id));
    o->imported_before.id = 0;
    end_import(o);
}

static void have_imported_before(operated_t *o) {
    have_imported(o);
    o->imported_before = o->imported;
    o->imported.id = 0;
}

static strata_status_t register_one(operated_t *o) { return strata_register(o->rig.s, o->blocks[0].ref, &o->registration); }

static void unregister(operated_t *o) {
    if (o->registration.size) EXPECT_OK(strata_unregister(o->rig.s, &o->registration));
    o->registration.size = 0;
    give_all(o);
}

static strata_status_t enable_peer(operated_t *o) { return strata_enable_peer(o->rig.s, 0, 1); }

/* The place has the peer already, and new handles. */
static void have_peer(operated_t *o) {
    hold_two(o);
    EXPECT_OK(enable_peer(o));
    EXPECT_OK(allocate(o, 8, 8 * MIB, 0));
}

static void offer_and_import(operated_t *o) {
    hold_two(o);
    EXPECT_OK(export_one(o));
    EXPECT_OK(import(o));
}

static void have_peer_and_import(operated_t *o) {
    offer_and_import(o);
    EXPECT_OK(enable_peer(o));
}

static void have_peer_of_a_pool(operated_t *o) {
    hold_two(o);
    EXPECT_OK(enable_peer(o));
}

/* ---- graphs ---- */

static strata_status_t begin_pool(operated_t *o) { return strata_graph_pool_begin(o->rig.s, o->rig.gpu, o->stream, &o->pool); }

static void end_pool(operated_t *o) {
    if (o->pool) EXPECT_OK(strata_graph_pool_end(o->rig.s, o->rig.gpu, o->pool));
    if (o->pool) EXPECT_OK(strata_graph_pool_remove(o->rig.s, o->rig.gpu, o->pool));
    o->pool = 0;
    give_all(o);
}

static void open_pool(operated_t *o) { EXPECT_OK(begin_pool(o)); }
static strata_status_t close_pool(operated_t *o) { return strata_graph_pool_end(o->rig.s, o->rig.gpu, o->pool); }

/* The pool is begun again. */
static void have_pool(operated_t *o) {
    EXPECT_OK(begin_pool(o));
    EXPECT_OK(strata_graph_pool_end(o->rig.s, o->rig.gpu, o->pool));
}

static void remove_pool(operated_t *o) {
    (void)strata_graph_pool_end(o->rig.s, o->rig.gpu, o->pool); /* it was begun again, or not */
    while (strata_graph_pool_remove(o->rig.s, o->rig.gpu, o->pool) == STRATA_OK) {}
    o->pool = 0;
    give_all(o);
}

static void begin_capture(operated_t *o) {
    EXPECT_OK(allocate(o, 1, 2 * MIB, 0));
    EXPECT_OK(begin_pool(o));
    EXPECT_OK(strata_capture_begin(o->rig.s, o->rig.gpu, o->stream));
}

static strata_status_t ask_inside(operated_t *o) { return allocate(o, 0, 3 * MIB, 0); }

static void end_capture(operated_t *o) {
    if (o->graph == NULL) EXPECT_OK(strata_capture_end(o->rig.s, o->rig.gpu, o->stream, &o->graph));
    EXPECT_OK(strata_graph_destroy(o->rig.s, o->rig.gpu, o->graph));
    o->graph = NULL;
    end_pool(o);
}

/* ---- states of a pool ---- */

static void fill_pool(operated_t *o) {
    EXPECT_OK(begin_pool(o));
    for (uint32_t i = 0; i < 2; i++) EXPECT_OK(allocate(o, i, 3 * MIB, 0));
    EXPECT_OK(strata_graph_pool_end(o->rig.s, o->rig.gpu, o->pool));
}

static strata_status_t take_checkpoint(operated_t *o) {
    return strata_graph_pool_checkpoint(o->rig.s, o->rig.gpu, o->pool, &o->checkpoint);
}

static void drop_checkpoint(operated_t *o) {
    strata_graph_checkpoint_drop(o->checkpoint);
    o->checkpoint = NULL;
    remove_pool(o);
}

/* What was live at the checkpoint is free, and another block is live. */
static void leave_the_checkpoint(operated_t *o) {
    fill_pool(o);
    EXPECT_OK(take_checkpoint(o));
    give(o, 0);
    give(o, 1);
    EXPECT_OK(begin_pool(o));
    EXPECT_OK(allocate(o, 8, 2 * MIB, 0));
    EXPECT_OK(strata_graph_pool_end(o->rig.s, o->rig.gpu, o->pool));
}

static void note_change(const strata_block_t *block, bool live, void *context) {
    operated_t *o = context;
    if (live) o->blocks[o->restored++] = *block;
    else o->blocks[8].ref = 0;
}

static strata_status_t restore_checkpoint(operated_t *o) {
    o->restored = 0;
    return strata_graph_pool_restore(o->rig.s, o->rig.gpu, o->checkpoint, note_change, o);
}

/* ---- pinned memory ---- */

static strata_status_t ask_pinned(operated_t *o, uint32_t i, size_t size) {
    strata_block_t block = {.ref = 0};
    strata_status_t status = strata_allocate(o->rig.s, strata_pinned(), NULL, size, &block);
    if (status == STRATA_OK) o->blocks[i] = block;
    return status;
}

/* A chunk of the buddy pool is there, all of it in use. */
static void hold_pinned(operated_t *o) {
    for (uint32_t i = 8; i < 10; i++) EXPECT_OK(ask_pinned(o, i, 3 * MIB));
}

static strata_status_t ask_pinned_huge(operated_t *o) { return ask_pinned(o, 0, 300 * MIB); }
static strata_status_t release_pinned(operated_t *o) { return strata_release(o->rig.s, strata_pinned(), NULL); }

static void leave_pinned(operated_t *o) {
    hold_pinned(o);
    EXPECT_OK(ask_pinned_huge(o));
    give_all(o);
}

static void give_all_pinned(operated_t *o) {
    give_all(o);
    EXPECT_OK(release_pinned(o));
}

/* ---- what is for good ---- */

static strata_status_t use_pinned(operated_t *o) { return ask_pinned(o, 0, 5000); }

static strata_status_t change_strategy(operated_t *o) {
    strata_open_options_t options = {.struct_size = sizeof options, .preset = "strata", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    return strata_change_strategy(o->rig.s, &options);
}

/* ---- the table ---- */

/* A request that was served and could not be filled counts, and so does its free. */
static const char *const fills[] = {"gpu allocations", "gpu frees", "gpu cache_hits", NULL};
/* Pinned memory took the bytes until the refusal. */
static const char *const copies[] = {"pinned allocations", "pinned frees", "pinned cache_hits", NULL};
static const char *const tables[] = {"host allocations", "host mapped", "ranges", "bytes of reserved addresses", NULL};

const operation_t operations[] = {
    {"little", NULL, hold_some, ask_little, .undo = give_all},
    {"much", NULL, hold_some, ask_much, .undo = give_all},
    {"zeros", NULL, hold_some, ask_zeros, .undo = give_all, .differs = fills},
    {"over_holes", NULL, leave_holes, ask_over_holes, .undo = give_all},
    {"beyond_holes", NULL, leave_holes, ask_beyond_holes, .undo = give_all},
    {"release", NULL, leave_idle, release, .undo = give_all},
    {"release_of_views", NULL, leave_a_view_idle, release, .undo = give_all},
    {"trim", NULL, leave_idle, trim, .undo = give_all},
    {"limit", NULL, leave_idle, set_limit, .undo = lift_limit},
    {"free_elsewhere", NULL, use_elsewhere, free_one, .undo = wait_and_give},
    {"little_of_regions", REGIONS, hold_some, ask_little, .undo = give_all},
    {"much_of_regions", REGIONS, hold_some, ask_much, .undo = give_all},
    {"release_of_regions", REGIONS, leave_idle, release, .undo = give_all},
    {"trim_of_regions", REGIONS, leave_idle, trim, .undo = give_all},
    {"pinned", "paddle", hold_pinned, ask_pinned_huge, .undo = give_all_pinned},
    {"release_of_pinned", "paddle", leave_pinned, release_pinned, .undo = give_all_pinned},
    {"forget_a_stream", NULL, use_a_stream, forget_stream, .undo = end_stream, .ends_layers = true},
    {"destroy_a_stream", "strata", forget_a_stream, destroy_stream, .undo = end_destroyed},
    {"pause_dropped", CACHED, hold_two, drop_contents, .undo = resume_and_give},
    {"pause_pinned", CACHED, hold_two, keep_pinned, .undo = resume_and_give, .differs = copies},
    {"pause_pinned_in_chunks", CHUNKS, hold_two, keep_pinned, .undo = resume_and_give, .differs = copies},
    {"pause_in_a_file", CACHED, hold_two, keep_in_a_file, .undo = resume_and_give, .differs = copies},
    {"pause_of_a_view", CACHED, hold_a_view, drop_contents, .undo = resume_and_give},
    {"resume_of_a_view", CACHED, sleep_dropped, resume, .undo = resume_and_give},
    {"resume_pinned", CACHED, sleep_pinned, resume, .undo = resume_and_give, .differs = copies},
    {"resume_of_a_file", CACHED, sleep_in_a_file, resume, .undo = resume_and_give, .differs = copies},
    {"pause_of_pools", POOLS, hold_in_pools, keep_pinned, .undo = resume_and_give, .differs = copies},
    {"resume_of_pools", POOLS, sleep_in_pools, resume, .undo = resume_and_give, .differs = copies},
    {"export", CACHED, hold_two, export_one, .undo = end_export},
    {"export_in_chunks", CHUNKS, hold_two, export_one, .undo = end_export},
    {"export_again", CACHED, offer, export_again, .undo = end_exports},
    {"import", CACHED, offer, import, .undo = end_import},
    {"export_of_a_view", CACHED, hold_a_view, export_one, .undo = end_export},
    {"import_of_a_view", CACHED, offer_a_view, import, .undo = end_import},
    {"end_of_an_import", CACHED, have_imported, end_one_import, .undo = end_another_import},
    {"import_again", CACHED, have_imported_before, import, .undo = end_both_imports},
    {"end_of_one_of_two_imports", CACHED, have_imported_twice, end_one_import, .undo = end_both_imports},
    {"register_a_view", CACHED, hold_a_view, register_one, .undo = unregister},
    {"register", CACHED, hold_two, register_one, .undo = unregister},
    {"begin_pool", NULL, NULL, begin_pool, .undo = end_pool, .wants_pools = true},
    {"first_pool", "strata", NULL, begin_pool, .undo = end_pool, .is_for_good = true, .wants_pools = true, .differs = tables},
    {"begin_pool_again", NULL, have_pool, begin_pool, .undo = remove_pool, .wants_pools = true},
    {"end_of_a_pool", NULL, open_pool, close_pool, .undo = remove_pool, .wants_pools = true},
    {"inside_a_capture", NULL, begin_capture, ask_inside, .undo = end_capture, .wants_pools = true, .differs = tables},
    {"checkpoint", "strata", fill_pool, take_checkpoint, .undo = drop_checkpoint, .wants_pools = true},
    {"restore", "strata", leave_the_checkpoint, restore_checkpoint, .undo = drop_checkpoint, .wants_pools = true},
    {"restore_of_segments", "pytorch", leave_the_checkpoint, restore_checkpoint, .undo = drop_checkpoint, .wants_pools = true},
    {"restore_of_chunks", "paddle", leave_the_checkpoint, restore_checkpoint, .undo = drop_checkpoint, .wants_pools = true},
    {"first_export", CACHED, hold_two, export_one, .undo = end_export, .is_for_good = true, .differs = tables},
    {"first_import", CACHED, offer_a_view, import, .undo = end_import, .is_for_good = true, .differs = tables},
    {"first_of_a_pool", "cuda_malloc_async", NULL, ask_little, .undo = give_all, .is_for_good = true, .differs = tables},
    {"first_of_regions", REGIONS, NULL, ask_much, .undo = give_all, .is_for_good = true, .differs = tables},
    {"enable_peer", CACHED, hold_a_view, enable_peer, .undo = give_all, .is_for_good = true, .differs = tables},
    {"enable_peer_with_imports", CACHED, offer_and_import, enable_peer, .undo = end_import, .is_for_good = true, .differs = tables},
    {"enable_peer_again", CACHED, have_peer, enable_peer, .undo = give_all, .is_for_good = true, .differs = tables},
    {"enable_peer_again_with_imports", CACHED, have_peer_and_import, enable_peer, .undo = end_import, .is_for_good = true,
     .differs = tables},
    {"enable_peer_of_a_pool_again", "cuda_malloc_async", have_peer_of_a_pool, enable_peer, .undo = give_all, .is_for_good = true,
     .differs = tables},
    {"enable_peer_of_a_pool", "cuda_malloc_async", hold_two, enable_peer, .undo = give_all, .is_for_good = true, .differs = tables},
    {"first_use_of_a_place", "strata", NULL, use_pinned, .undo = give_all_pinned, .is_for_good = true, .differs = tables},
    {"change_strategy", "strata-malloc", leave_idle, change_strategy, .undo = NULL, .is_for_good = true, .ends_layers = true,
     .differs = tables},
};
const size_t operation_count = COUNT(operations);
