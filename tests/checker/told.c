#include "tests/checker/told.h"

#include "facade/serve/slow_path.h"

void checked_open(checked_t *checked, const char *preset_or_text) {
    *checked = (checked_t){0};
    rig_open(&checked->rig, preset_or_text, NULL, 0, 0, 1);
    ASSERT_OK(strata_checker_begin(checked->rig.world, STRATA_CHECKER_LIFETIMES, &checked->checker));
    for (int i = 0; i < CHECKED_STREAMS; i++) checked->streams[i] = rig_stream(&checked->rig);
}

uint64_t checked_close(checked_t *checked, bool expected_none) {
    uint64_t hazards = strata_checker_hazards(checked->checker);
    EXPECT_TRUE(strata_checker_complete(checked->checker));
    if (expected_none && hazards) FAIL_TEST("%s", strata_checker_report(checked->checker, 0));
    strata_checker_end(checked->checker);
    rig_close_by_force(&checked->rig);
    return hazards;
}

strata_block_t checked_allocate(checked_t *checked, strata_place_t place, strata_stream_t stream, size_t size) {
    strata_block_t block = {0};
    EXPECT_OK(strata_allocate(checked->rig.s, place, stream, size, &block));
    strata_checker_block_t checked_block = {.name = block.ref,
                                            .device = checked->rig.devices[0],
                                            .stream = stream,
                                            .address = (uintptr_t)block.ptr,
                                            .size = block.size,
                                            .ownerless = place == strata_pinned()};
    strata_checker_allocated(checked->checker, &checked_block);
    return block;
}

void checked_work(checked_t *checked, strata_stream_t stream, uint64_t us, const strata_block_t *block) {
    strata_access_t access = {(uintptr_t)block->ptr, block->size, true};
    strata_checker_expect(checked->checker, &block->ref, 1);
    EXPECT_OK(strata_device_work(checked->rig.devices[0], stream, us * 1000, &access, 1));
}

void checked_borrow(checked_t *checked, const strata_block_t *block, strata_stream_t stream) {
    bool waits = false;
    EXPECT_OK(strata_facade_record_stream(checked->rig.s, block->ref, stream, &waits));
    if (waits) checked->unsupported++;
    strata_checker_borrowed(checked->checker, block->ref, stream);
}

void checked_erase(checked_t *checked, const strata_block_t *block, strata_stream_t stream) {
    strata_status_t status = strata_erase_stream(checked->rig.s, block->ref, stream);
    if (status != STRATA_E_UNSUPPORTED) EXPECT_OK(status);
    strata_checker_erased(checked->checker, block->ref, stream);
}

void checked_free(checked_t *checked, const strata_block_t *block) {
    strata_checker_freed(checked->checker, block->ref);
    EXPECT_OK(strata_free(checked->rig.s, block->ref));
}

void checked_free_on(checked_t *checked, const strata_block_t *block, strata_stream_t stream) {
    strata_checker_freed_on(checked->checker, block->ref, stream);
    EXPECT_OK(strata_free_on(checked->rig.s, block->ref, stream));
}

void checked_order(checked_t *checked, strata_stream_t stream, strata_stream_t other) {
    strata_device_t *device = checked->rig.devices[0];
    strata_handle_t event = NULL;
    EXPECT_OK(strata_device_event_create(device, &event));
    EXPECT_OK(strata_device_event_record(device, event, other));
    EXPECT_OK(strata_device_stream_wait(device, stream, event));
    EXPECT_OK(strata_device_event_destroy(device, event));
}

void checked_renew(checked_t *checked, int stream) {
    EXPECT_OK(strata_stream_forget(checked->rig.s, checked->rig.gpu, checked->streams[stream]));
    EXPECT_OK(strata_stream_forget(checked->rig.s, strata_pinned(), checked->streams[stream]));
    EXPECT_OK(strata_stream_destroy(checked->rig.s, checked->rig.gpu, checked->streams[stream]));
    checked->streams[stream] = rig_stream(&checked->rig);
}

/* ---- the program ---- */

enum { HELD = 24 };

typedef struct held {
    strata_block_t block; /* ref 0: none */
    int owner; /* its stream, while that has not been renewed; else -1 */
    bool borrowed[CHECKED_STREAMS];
} held_t;

typedef struct playing {
    checked_t *checked;
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
    int owner = (int)below(play, CHECKED_STREAMS);
    checked_t *checked = play->checked;
    strata_place_t place = below(play, 5) == 0 ? strata_pinned() : checked->rig.gpu;
    *held = (held_t){.owner = owner,
                     .block = checked_allocate(checked, place, checked->streams[owner], (1 + below(play, 4)) << 18)};
    checked_work(checked, checked->streams[owner], 20 + below(play, 300), &held->block);
}

/* Another stream takes part, ordered after the owner; it borrows before its work, or after it. */
static void lend(playing_t *play, held_t *held) {
    checked_t *checked = play->checked;
    int other = (int)below(play, CHECKED_STREAMS);
    if (other == held->owner || held->owner < 0) return;
    bool before = below(play, 2) == 0;
    checked_order(checked, checked->streams[other], checked->streams[held->owner]);
    if (before) checked_borrow(checked, &held->block, checked->streams[other]);
    checked_work(checked, checked->streams[other], 20 + below(play, 1500), &held->block);
    if (!before) checked_borrow(checked, &held->block, checked->streams[other]);
    held->borrowed[other] = true;
}

/* A borrow goes back once the host has seen its work done. */
static void unlend(playing_t *play, held_t *held) {
    int other = (int)below(play, CHECKED_STREAMS);
    if (!held->borrowed[other]) return;
    EXPECT_OK(strata_stream_synchronize(play->checked->rig.s, play->checked->rig.gpu, play->checked->streams[other]));
    checked_erase(play->checked, &held->block, play->checked->streams[other]);
    held->borrowed[other] = false;
}

static void drop(playing_t *play, held_t *held) {
    int other = (int)below(play, CHECKED_STREAMS);
    if (below(play, 6) == 0 && held->owner >= 0) checked_free_on(play->checked, &held->block, play->checked->streams[other]);
    else checked_free(play->checked, &held->block);
    held->block.ref = 0;
}

static void renew(playing_t *play) {
    int stream = (int)below(play, CHECKED_STREAMS);
    checked_renew(play->checked, stream);
    for (int i = 0; i < HELD; i++) {
        if (play->held[i].owner == stream) play->held[i].owner = -1;
        play->held[i].borrowed[stream] = false;
    }
}

void checked_program(checked_t *checked, uint64_t seed, int steps, bool renews) {
    playing_t play = {.checked = checked, .random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    for (int i = 0; i < steps && !strata_test_has_failed(); i++) {
        held_t *held = &play.held[below(&play, HELD)];
        uint64_t dice = below(&play, 100);
        rig_advance(&checked->rig, below(&play, 40) * 1000);
        if (held->block.ref == 0) take(&play, held);
        else if (dice < 40) lend(&play, held);
        else if (dice < 50) unlend(&play, held);
        else if (dice < 98 || !renews) drop(&play, held);
        else renew(&play);
    }
    for (int i = 0; i < HELD; i++)
        if (play.held[i].block.ref) drop(&play, &play.held[i]);
}
