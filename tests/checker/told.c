#include "tests/checker/told.h"

#include "facade/serve/slow_path.h"

void told_open(told_t *told, const char *preset_or_text) {
    *told = (told_t){0};
    rig_open(&told->rig, preset_or_text, NULL, 0, 0, 1);
    ASSERT_OK(strata_checker_begin(told->rig.world, STRATA_CHECKER_LIFETIMES, &told->checker));
    for (int i = 0; i < TOLD_STREAMS; i++) told->streams[i] = rig_stream(&told->rig);
}

uint64_t told_close(told_t *told, bool expected_none) {
    uint64_t hazards = strata_checker_hazards(told->checker);
    EXPECT_TRUE(strata_checker_complete(told->checker));
    if (expected_none && hazards) FAIL_TEST("%s", strata_checker_report(told->checker, 0));
    strata_checker_end(told->checker);
    rig_close_by_force(&told->rig);
    return hazards;
}

strata_block_t told_allocate(told_t *told, strata_place_t place, strata_stream_t stream, size_t size) {
    strata_block_t block = {0};
    EXPECT_OK(strata_allocate(told->rig.s, place, stream, size, &block));
    strata_checker_block_t told_block = {.name = block.ref,
                                         .device = told->rig.devices[0],
                                         .stream = stream,
                                         .address = (uintptr_t)block.ptr,
                                         .size = block.size,
                                         .ownerless = place == strata_pinned()};
    strata_checker_allocated(told->checker, &told_block);
    return block;
}

void told_work(told_t *told, strata_stream_t stream, uint64_t us, const strata_block_t *block) {
    strata_access_t access = {(uintptr_t)block->ptr, block->size, true};
    strata_checker_expect(told->checker, &block->ref, 1);
    EXPECT_OK(strata_device_work(told->rig.devices[0], stream, us * 1000, &access, 1));
}

void told_borrow(told_t *told, const strata_block_t *block, strata_stream_t stream) {
    bool waits = false;
    EXPECT_OK(strata_facade_record_stream(told->rig.s, block->ref, stream, &waits));
    if (waits) told->unsupported++;
    strata_checker_borrowed(told->checker, block->ref, stream);
}

void told_erase(told_t *told, const strata_block_t *block, strata_stream_t stream) {
    strata_status_t status = strata_erase_stream(told->rig.s, block->ref, stream);
    if (status != STRATA_E_UNSUPPORTED) EXPECT_OK(status);
    strata_checker_erased(told->checker, block->ref, stream);
}

void told_free(told_t *told, const strata_block_t *block) {
    strata_checker_freed(told->checker, block->ref);
    EXPECT_OK(strata_free(told->rig.s, block->ref));
}

void told_free_on(told_t *told, const strata_block_t *block, strata_stream_t stream) {
    strata_checker_freed_on(told->checker, block->ref, stream);
    EXPECT_OK(strata_free_on(told->rig.s, block->ref, stream));
}

void told_order(told_t *told, strata_stream_t stream, strata_stream_t other) {
    strata_device_t *device = told->rig.devices[0];
    strata_handle_t event = NULL;
    EXPECT_OK(strata_device_event_create(device, &event));
    EXPECT_OK(strata_device_event_record(device, event, other));
    EXPECT_OK(strata_device_stream_wait(device, stream, event));
    EXPECT_OK(strata_device_event_destroy(device, event));
}

void told_renew(told_t *told, int stream) {
    EXPECT_OK(strata_stream_forget(told->rig.s, told->rig.gpu, told->streams[stream]));
    EXPECT_OK(strata_stream_forget(told->rig.s, strata_pinned(), told->streams[stream]));
    EXPECT_OK(strata_stream_destroy(told->rig.s, told->rig.gpu, told->streams[stream]));
    told->streams[stream] = rig_stream(&told->rig);
}

/* ---- the program ---- */

enum { HELD = 24 };

typedef struct held {
    strata_block_t block; /* ref 0: none */
    int owner; /* its stream, while that has not been renewed; else -1 */
    bool borrowed[TOLD_STREAMS];
} held_t;

typedef struct playing {
    told_t *told;
    uint64_t random;
    held_t held[HELD];
} playing_t;

static uint64_t below(playing_t *play, uint64_t bound) {
    play->random ^= play->random << 13;
    play->random ^= play->random >> 7;
    play->random ^= play->random << 17;
    return play->random % bound;
}

/* A new block, used by its owner at once. */
static void take(playing_t *play, held_t *held) {
    int owner = (int)below(play, TOLD_STREAMS);
    told_t *told = play->told;
    strata_place_t place = below(play, 5) == 0 ? strata_pinned() : told->rig.gpu;
    *held = (held_t){.owner = owner, .block = told_allocate(told, place, told->streams[owner], (1 + below(play, 4)) << 18)};
    told_work(told, told->streams[owner], 20 + below(play, 300), &held->block);
}

/* Another stream takes part, ordered after the owner; it borrows before its work, or after it. */
static void lend(playing_t *play, held_t *held) {
    told_t *told = play->told;
    int other = (int)below(play, TOLD_STREAMS);
    if (other == held->owner || held->owner < 0) return;
    bool before = below(play, 2) == 0;
    told_order(told, told->streams[other], told->streams[held->owner]);
    if (before) told_borrow(told, &held->block, told->streams[other]);
    told_work(told, told->streams[other], 20 + below(play, 1500), &held->block);
    if (!before) told_borrow(told, &held->block, told->streams[other]);
    held->borrowed[other] = true;
}

/* A borrow goes back once the host has seen its work done. */
static void unlend(playing_t *play, held_t *held) {
    int other = (int)below(play, TOLD_STREAMS);
    if (!held->borrowed[other]) return;
    EXPECT_OK(strata_stream_synchronize(play->told->rig.s, play->told->rig.gpu, play->told->streams[other]));
    told_erase(play->told, &held->block, play->told->streams[other]);
    held->borrowed[other] = false;
}

static void drop(playing_t *play, held_t *held) {
    int other = (int)below(play, TOLD_STREAMS);
    if (below(play, 6) == 0 && held->owner >= 0) told_free_on(play->told, &held->block, play->told->streams[other]);
    else told_free(play->told, &held->block);
    held->block.ref = 0;
}

static void renew(playing_t *play) {
    int stream = (int)below(play, TOLD_STREAMS);
    told_renew(play->told, stream);
    for (int i = 0; i < HELD; i++) {
        if (play->held[i].owner == stream) play->held[i].owner = -1;
        play->held[i].borrowed[stream] = false;
    }
}

void told_program(told_t *told, uint64_t seed, int steps, bool renews) {
    playing_t play = {.told = told, .random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    for (int i = 0; i < steps && !strata_test_has_failed(); i++) {
        held_t *held = &play.held[below(&play, HELD)];
        uint64_t dice = below(&play, 100);
        rig_pass(&told->rig, below(&play, 40) * 1000);
        if (held->block.ref == 0) take(&play, held);
        else if (dice < 40) lend(&play, held);
        else if (dice < 50) unlend(&play, held);
        else if (dice < 98 || !renews) drop(&play, held);
        else renew(&play);
    }
    for (int i = 0; i < HELD; i++)
        if (play.held[i].block.ref) drop(&play, &play.held[i]);
}
