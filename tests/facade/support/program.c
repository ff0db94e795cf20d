#include "tests/facade/support/program.h"

static uint64_t next(program_t *program) {
    program->random ^= program->random << 13;
    program->random ^= program->random >> 7;
    program->random ^= program->random << 17;
    return program->random;
}

static uint64_t below(program_t *program, uint64_t bound) { return next(program) % bound; }

void program_begin(program_t *program, rig_t *rig) {
    *program = (program_t){.rig = rig, .random = 0x9e3779b97f4a7c15ull};
    for (int i = 0; i < 2; i++) program->streams[i] = rig_stream(rig);
}

/* A call that is allowed to fail has answered. */
static bool is_ok(program_t *program, strata_status_t status, const char *what) {
    if (status == STRATA_OK) return true;
    program->failures++;
    bool tolerated = status == STRATA_E_NO_MEMORY || (program->tolerated != STRATA_OK && status == program->tolerated) ||
                     (program->host_may_fail && status == STRATA_E_HOST_MEMORY);
    if (!tolerated) FAIL_TEST("%s answered %s: %s", what, strata_status_name(status), strata_last_error()->text);
    return false;
}

/* ---- bytes ---- */

static void write_marks(program_t *program, const program_block_t *b) {
    unsigned char *bytes = strata_device_host_view(program->rig->devices[0], (uint64_t)(uintptr_t)b->block.ptr, b->block.size);
    if (!bytes) return;
    memcpy(bytes, &b->mark, sizeof b->mark);
    memcpy(bytes + b->block.size - sizeof b->mark, &b->mark, sizeof b->mark);
}

static void check_marks(program_t *program, const program_block_t *b) {
    if (!program->rig->devices[0]->capabilities.contents) return;
    unsigned char *bytes = strata_device_host_view(program->rig->devices[0], (uint64_t)(uintptr_t)b->block.ptr, b->block.size);
    if (!bytes) {
        FAIL_TEST("the memory of a live block is gone");
        return;
    }
    EXPECT_EQ(memcmp(bytes, &b->mark, sizeof b->mark), 0);
    EXPECT_EQ(memcmp(bytes + b->block.size - sizeof b->mark, &b->mark, sizeof b->mark), 0);
}

/* ---- operations ---- */

static size_t some_size(program_t *program) {
    switch (below(program, 16)) {
    case 0: return MIB + (size_t)below(program, 6 * MIB);
    case 1: return 64 * 1024 + (size_t)below(program, MIB);
    default: return 1 + (size_t)below(program, 64 * 1024);
    }
}

/* A request that fails leaves everything as it was, but for caches (CONTRACTS 7). */
static void check_refusal(program_t *program, const strata_statistics_t *before) {
    strata_statistics_t after = rig_figures(program->rig);
    EXPECT_EQ(after.allocated_bytes, before->allocated_bytes);
    EXPECT_EQ(after.requested_bytes, before->requested_bytes);
    EXPECT_EQ(after.live_allocations, before->live_allocations);
    /* What the device did not take back stays reserved. */
    EXPECT_LE(after.reserved_bytes - after.quarantined_bytes, before->reserved_bytes - before->quarantined_bytes);
    EXPECT_LE(after.deferred_bytes, before->deferred_bytes);
    program_check(program);
}

static void step_allocate(program_t *program) {
    size_t size = some_size(program);
    strata_stream_t stream = program->streams[below(program, 2)];
    uint64_t mark = next(program);
    if (program->live == PROGRAM_BLOCKS) return;
    rig_t *rig = program->rig;
    strata_statistics_t before = rig_figures(rig);
    strata_block_t block = {.ref = 77};
    if (!is_ok(program, strata_allocate(rig->s, rig->gpu, stream, size, &block), "allocate")) {
        EXPECT_EQ(block.ref, 77);
        check_refusal(program, &before);
        return;
    }
    EXPECT_GE(block.size, size);
    EXPECT_EQ((uintptr_t)block.ptr % 256, 0);
    program_block_t *b = &program->blocks[program->live++];
    *b = (program_block_t){.block = block, .requested = size, .mark = mark};
    program->requested += size;
    program->allocated += block.size;
    write_marks(program, b);
}

static void drop(program_t *program, uint32_t at, strata_stream_t *on) {
    program_block_t b = program->blocks[at];
    check_marks(program, &b);
    program->blocks[at] = program->blocks[--program->live];
    program->requested -= b.requested;
    program->allocated -= b.block.size;
    /* A free of a valid ref cannot fail, whatever the device does. */
    EXPECT_OK(on ? strata_free_on(program->rig->s, b.block.ref, *on) : strata_free(program->rig->s, b.block.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(program->rig->s, b.block.ref));
}

static void step_wait(program_t *program, uint64_t which) {
    rig_t *rig = program->rig;
    strata_stream_t stream = program->streams[below(program, 2)];
    if (which == 0) (void)is_ok(program, strata_release(rig->s, rig->gpu, NULL), "release");
    else (void)is_ok(program, strata_stream_synchronize(rig->s, rig->gpu, stream), "synchronize");
}

/* A use may be taken back once its work is done. */
static void erase(program_t *program, strata_ref_t ref, strata_stream_t stream) {
    rig_t *rig = program->rig;
    if (!is_ok(program, strata_stream_synchronize(rig->s, rig->gpu, stream), "synchronize")) return;
    (void)is_ok(program, strata_erase_stream(rig->s, ref, stream), "erase_stream");
}

/* Who works on another's block has borrowed it. */
static void work(program_t *program, strata_ref_t ref, strata_stream_t stream) {
    rig_t *rig = program->rig;
    if (!is_ok(program, strata_record_stream(rig->s, ref, stream), "record_stream")) return;
    (void)is_ok(program, strata_stream_work(rig->s, rig->gpu, stream, 40 * 1000, &ref, 1), "work");
}

void program_step(program_t *program) {
    rig_t *rig = program->rig;
    uint64_t dice = below(program, 100), at = below(program, PROGRAM_BLOCKS);
    strata_stream_t stream = program->streams[below(program, 2)];
    rig_advance(rig, 3000);
    if (dice < 40) {
        step_allocate(program);
    } else if (dice < 43) {
        step_wait(program, below(program, 3));
    } else if (program->live == 0) {
        return;
    } else if (dice < 72) {
        drop(program, (uint32_t)(at % program->live), NULL);
    } else if (dice < 75) {
        drop(program, (uint32_t)(at % program->live), &stream);
    } else if (dice < 88) {
        strata_ref_t ref = program->blocks[at % program->live].block.ref;
        (void)is_ok(program, strata_record_stream(rig->s, ref, stream), "record_stream");
    } else if (dice < 91) {
        erase(program, program->blocks[at % program->live].block.ref, stream);
    } else {
        work(program, program->blocks[at % program->live].block.ref, stream);
    }
}

void program_run(program_t *program, uint32_t operations) {
    for (uint32_t i = 0; i < operations && !strata_test_has_failed(); i++) program_step(program);
}

void program_check(program_t *program) {
    strata_statistics_t f = rig_figures(program->rig);
    EXPECT_EQ(f.allocated_bytes, program->allocated);
    EXPECT_EQ(f.requested_bytes, program->requested);
    EXPECT_EQ(f.live_allocations, program->live);
    EXPECT_OK(strata_validate(program->rig->s));
    for (uint32_t i = 0; i < program->live; i++) check_marks(program, &program->blocks[i]);
}

void program_finish(program_t *program) {
    while (program->live > 0) drop(program, program->live - 1, NULL);
    program_check(program);
}
