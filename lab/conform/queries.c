#include "lab/conform/queries.h"

enum { BLOCKS = 24 };

/* Allocates blocks of many sizes on two streams. Every third of them is freed again, and its ref is set to 0. */
static void fill(rig_t *rig, strata_block_t blocks[BLOCKS]) {
    strata_stream_t streams[] = {NULL, rig_stream(rig)};
    for (int i = 0; i < BLOCKS; i++) blocks[i] = rig_allocate(rig, streams[i % 2], ((size_t)i % 7 + 1) * 40000);
    for (int i = 0; i < BLOCKS; i += 3) {
        EXPECT_OK(strata_free(rig->s, blocks[i].ref));
        blocks[i].ref = 0;
    }
}

static void clear(rig_t *rig, strata_block_t blocks[BLOCKS]) {
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].ref) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    rig_close(rig);
}

void shared_blocks_live_until_the_last_free(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_block_t a = rig_allocate(&rig, NULL, 5000);
    EXPECT_OK(strata_retain(rig.s, a.ref));
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_figures(&rig).live_allocations, 1);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, a.ref));
    rig_close(&rig);
}

typedef struct shown {
    const strata_block_t *blocks;
    bool found[BLOCKS];
    uintptr_t end;
    int unknown;
} shown_t;

static void compare(const strata_snapshot_row_t *row, void *context) {
    shown_t *shown = context;
    bool known = false;
    EXPECT_GE((uintptr_t)row->block.ptr, shown->end);
    shown->end = (uintptr_t)row->block.ptr + row->block.size;
    for (int i = 0; i < BLOCKS && row->state == 1; i++) {
        if (shown->blocks[i].ref != row->block.ref) continue;
        EXPECT_EQ(shown->blocks[i].ptr, row->block.ptr);
        EXPECT_EQ(shown->blocks[i].size, row->block.size);
        EXPECT_FALSE(shown->found[i]);
        known = shown->found[i] = true;
    }
    shown->unknown += row->state == 1 && !known;
}

void a_snapshot_shows_what_is_live(const subject_t *subject) {
    rig_t rig;
    strata_block_t blocks[BLOCKS];
    subject_open(subject, 0, &rig);
    fill(&rig, blocks);
    shown_t shown = {.blocks = blocks};
    EXPECT_OK(strata_snapshot(rig.s, rig.gpu, compare, &shown));
    EXPECT_EQ(shown.unknown, 0);
    for (int i = 0; i < BLOCKS; i++) EXPECT_EQ(shown.found[i], blocks[i].ref != 0);
    clear(&rig, blocks);
}

void addresses_inside_find_their_block(const subject_t *subject) {
    rig_t rig;
    strata_block_t blocks[BLOCKS], found;
    subject_open(subject, 0, &rig);
    fill(&rig, blocks);
    for (int i = 0; i < BLOCKS; i++)
        for (size_t at = 0; at < blocks[i].size && blocks[i].ref; at += blocks[i].size - 1) {
            EXPECT_OK(strata_base_pointer(rig.s, (char *)blocks[i].ptr + at, &found));
            EXPECT_EQ(found.ref, blocks[i].ref);
            EXPECT_EQ(found.ptr, blocks[i].ptr);
            EXPECT_EQ(found.size, blocks[i].size);
        }
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_base_pointer(rig.s, &rig, &found));
    clear(&rig, blocks);
}

/* Victims are live blocks, and freeing them makes the run. */
void neighbours_and_victims_hold(const subject_t *subject) {
    rig_t rig;
    strata_block_t blocks[BLOCKS];
    strata_ref_t victims[BLOCKS];
    size_t count = 0;
    subject_open(subject, 0, &rig);
    fill(&rig, blocks);
    for (int i = 0; i < BLOCKS; i++) {
        strata_neighbours_t n = {.struct_size = sizeof n};
        if (blocks[i].ref == 0) continue;
        EXPECT_OK(strata_neighbours(rig.s, blocks[i].ref, &n));
        EXPECT_GE(n.run, n.free_before + blocks[i].size + n.free_after); /* the rest is around the block itself */
        EXPECT_EQ(n.block.ptr, blocks[i].ptr);
        EXPECT_EQ(n.block.size, blocks[i].size);
        EXPECT_EQ(n.block.ref, blocks[i].ref);
    }
    strata_status_t status = strata_best_victims(rig.s, rig.gpu, 200000, victims, BLOCKS, &count);
    if (status != STRATA_E_NO_MEMORY) EXPECT_OK(status);
    for (size_t v = 0; v < count && status == STRATA_OK; v++) {
        int at = 0;
        while (at < BLOCKS && blocks[at].ref != victims[v]) at++;
        EXPECT_LT(at, BLOCKS);
        if (at == BLOCKS) break;
        EXPECT_OK(strata_free(rig.s, victims[v]));
        blocks[at].ref = 0;
    }
    clear(&rig, blocks);
}

void trim_keeps_what_is_asked(const subject_t *subject) {
    rig_t rig;
    strata_block_t blocks[BLOCKS];
    subject_open(subject, 0, &rig);
    fill(&rig, blocks);
    uint64_t released = 1, reserved = rig_figures(&rig).reserved_bytes;
    EXPECT_OK(strata_trim(rig.s, rig.gpu, UINT64_MAX, &released));
    EXPECT_EQ(released, 0);
    EXPECT_OK(strata_trim(rig.s, rig.gpu, 0, &released));
    /* Layers below a cache may have held more than the cache counts. Idle memory of a driver's pool is not reserved. */
    bool pooled = rig_calls(&rig, STRATA_CALL_malloc_async) > 0;
    EXPECT_LE(rig_figures(&rig).reserved_bytes, reserved - (pooled ? 0 : released));
    EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
    EXPECT_EQ(released, 0);
    clear(&rig, blocks);
}
