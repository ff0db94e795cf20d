#include "tests/failures/program.h"

#include <stdio.h>

static const struct {
    strata_place_kind_t kind;
    bool owned; /* has streams of its own */
} kinds[FAILING_PLACES] = {{STRATA_PLACE_GPU, true}, {STRATA_PLACE_PINNED, false}, {STRATA_PLACE_MANAGED, true}};

static strata_place_t place_of(uint32_t index) { return strata_place(kinds[index].kind, 0); }

static uint64_t next(failing_program_t *p) {
    p->random ^= p->random << 13;
    p->random ^= p->random >> 7;
    p->random ^= p->random << 17;
    return p->random;
}

static uint64_t below(failing_program_t *p, uint64_t bound) { return (next(p) >> 11) % bound; }

static strata_statistics_t figures_of(failing_program_t *p, uint32_t place) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(p->rig->s, place_of(place), &figures));
    return figures;
}

uint64_t failing_program_quarantined(failing_program_t *p) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < FAILING_PLACES; i++) bytes += figures_of(p, i).quarantined_bytes;
    return bytes;
}

/* ---- bytes ---- */

static unsigned char *bytes_of(failing_program_t *p, const failing_block_t *b) {
    return strata_device_host_view(p->rig->devices[0], (uint64_t)(uintptr_t)b->block.ptr, b->block.size);
}

static void write_marks(failing_program_t *p, const failing_block_t *b) {
    unsigned char *bytes = bytes_of(p, b);
    if (p->lost || !bytes || b->block.size < 2 * sizeof b->mark) return;
    memcpy(bytes, &b->mark, sizeof b->mark);
    memcpy(bytes + b->block.size - sizeof b->mark, &b->mark, sizeof b->mark);
}

static void check_marks(failing_program_t *p, const failing_block_t *b) {
    if (p->lost || b->block.size < 2 * sizeof b->mark) return;
    unsigned char *bytes = bytes_of(p, b);
    if (!bytes) {
        FAIL_TEST("the memory of a live block is gone");
        return;
    }
    EXPECT_EQ(memcmp(bytes, &b->mark, sizeof b->mark), 0);
    EXPECT_EQ(memcmp(bytes + b->block.size - sizeof b->mark, &b->mark, sizeof b->mark), 0);
}

/* ---- answers ---- */

/* Bytes that the device has given and could take back. */
static uint64_t reserved(const strata_statistics_t *figures) { return figures->reserved_bytes - figures->quarantined_bytes; }

/* What failed has changed nothing, but for caches that are smaller and deferred frees that are done (CONTRACTS 7). What a
 * failing device does not take back stays reserved, and is quarantined. */
static void check_refusal(failing_program_t *p, const char *what) {
    for (uint32_t i = 0; i < FAILING_PLACES; i++) {
        strata_statistics_t after = figures_of(p, i), *before = &p->before[i];
        EXPECT_EQ(after.allocated_bytes, before->allocated_bytes);
        EXPECT_EQ(after.requested_bytes, before->requested_bytes);
        EXPECT_EQ(after.live_allocations, before->live_allocations);
        EXPECT_LE(reserved(&after), reserved(before));
        if (!p->from_an_orphan) EXPECT_LE(after.deferred_bytes, before->deferred_bytes);
    }
    failing_program_check(p);
    if (strata_test_has_failed()) FAIL_TEST("after %s answered %s", what, strata_last_error()->text);
}

static bool is_tolerated(const failing_program_t *p, strata_status_t status, strata_status_t also) {
    return status == also || (p->tolerated != STRATA_OK && (status == p->tolerated || status == p->tolerated_too));
}

/* A call that may fail has answered; `also` is an answer that it gives without any fault. */
static bool is_ok(failing_program_t *p, strata_status_t status, strata_status_t also, const char *what) {
    if (status == STRATA_OK) return true;
    p->refused++;
    if (!is_tolerated(p, status, also))
        FAIL_TEST("%s answered %s: %s", what, strata_status_name(status), strata_last_error()->text);
    EXPECT_EQ(strata_last_error()->status, status);
    EXPECT_NE(strata_last_error()->text[0], '\0');
    check_refusal(p, what);
    return false;
}

/* ---- allocate and free ---- */

static size_t some_size(failing_program_t *p) {
    switch (below(p, 36)) {
    case 0: return MIB + (size_t)below(p, 6 * MIB);
    case 1:
    case 2:
    case 3: return 64 * 1024 + (size_t)below(p, MIB);
    case 4:
    case 5: return 0;
    default: return 1 + (size_t)below(p, 64 * 1024);
    }
}

static uint32_t some_place(failing_program_t *p) {
    uint64_t dice = below(p, 10);
    return dice == 0 ? 1 : dice == 1 ? 2 : 0;
}

static void step_allocate(failing_program_t *p) {
    uint32_t place = some_place(p);
    strata_stream_t stream = p->streams[below(p, 2)];
    static const uint32_t flags[] = {0, 0, 0, STRATA_ZERO, STRATA_NO_RETRY, STRATA_NO_GROW};
    strata_allocate_options_t options = {.struct_size = sizeof options,
                                         .size = some_size(p),
                                         .flags = flags[below(p, 6)],
                                         .tag = below(p, 4) ? NULL : "weights",
                                         .pool = below(p, 3) ? 0 : p->pool};
    uint64_t mark = next(p);
    /* Zeros of megabytes would be most of the time of a run. */
    if (options.flags & STRATA_ZERO) options.size %= 128 * 1024;
    if (p->live == FAILING_BLOCKS) return;
    strata_block_t block = {.ref = 77};
    p->from_an_orphan = options.flags & STRATA_ZERO;
    strata_status_t status = strata_allocate_with(p->rig->s, place_of(place), stream, &options, &block);
    /* A lost device is told as such, unless it was not to be asked. */
    bool asks = !(options.flags & STRATA_NO_GROW);
    if (!is_ok(p, status, p->lost && asks ? STRATA_OK : STRATA_E_NO_MEMORY, "allocate")) {
        EXPECT_TRUE(block.ref == 77 && block.ptr == NULL && block.size == 0);
        return;
    }
    EXPECT_GE(block.size, options.size);
    EXPECT_EQ((uintptr_t)block.ptr % 256, 0);
    failing_block_t *b = &p->blocks[p->live++];
    *b = (failing_block_t){.block = block, .requested = options.size, .mark = mark, .place = place, .owners = 1};
    p->places[place].requested += options.size;
    p->places[place].allocated += block.size;
    p->places[place].live++;
    write_marks(p, b);
}

/* A free of a valid ref cannot fail, whatever the device does. */
static void step_free(failing_program_t *p, uint32_t at, uint64_t how) {
    failing_block_t *b = &p->blocks[at], was = *b;
    strata_t s = p->rig->s;
    check_marks(p, b);
    if (--b->owners == 0) {
        p->places[was.place].requested -= was.requested;
        p->places[was.place].allocated -= was.block.size;
        p->places[was.place].live--;
        p->blocks[at] = p->blocks[--p->live];
    }
    if (how == 0 && was.block.ptr) EXPECT_OK(strata_free_pointer(s, was.block.ptr));
    else if (how == 1) EXPECT_OK(strata_free_on(s, was.block.ref, p->streams[below(p, 2)]));
    else if (how == 2) EXPECT_OK(strata_release_ref(s, was.block.ref));
    else EXPECT_OK(strata_free(s, was.block.ref));
    if (was.owners == 1) EXPECT_STATUS(STRATA_E_STALE, strata_free(s, was.block.ref));
}

/* ---- streams ---- */

/* The stream is forgotten wherever it may have been used, destroyed, and another one takes its place: often by its handle. */
static void step_end_stream(failing_program_t *p, uint64_t which) {
    strata_t s = p->rig->s;
    strata_stream_t stream = p->streams[which];
    if (stream) {
        for (uint32_t i = 0; i < FAILING_PLACES; i++)
            if (!is_ok(p, strata_stream_forget(s, place_of(i), stream), STRATA_OK, "stream_forget")) return;
        if (!is_ok(p, strata_stream_destroy(s, p->rig->gpu, stream), STRATA_OK, "stream_destroy")) return;
    }
    p->streams[which] = NULL;
    if (is_ok(p, strata_stream_create(s, p->rig->gpu, 0, &stream), STRATA_OK, "stream_create")) p->streams[which] = stream;
}

static void step_on_block(failing_program_t *p, uint64_t dice) {
    strata_t s = p->rig->s;
    failing_block_t *b = &p->blocks[below(p, p->live)];
    strata_ref_t ref = b->block.ref;
    strata_stream_t stream = p->streams[below(p, 2)];
    if (dice < 14) {
        (void)is_ok(p, strata_record_stream(s, ref, stream), STRATA_OK, "record_stream");
    } else if (dice < 17) {
        (void)is_ok(p, strata_erase_stream(s, ref, stream), STRATA_E_UNSUPPORTED, "erase_stream");
    } else if (dice < 20) {
        if (is_ok(p, strata_retain(s, ref), STRATA_OK, "retain")) b->owners++;
    } else {
        (void)is_ok(p, strata_stream_work(s, p->rig->gpu, stream, 40 * 1000, &ref, 1), STRATA_OK, "work");
    }
}

/* ---- the rest ---- */

static void count_row(const strata_snapshot_row_t *row, void *context) {
    *(uint64_t *)context += row->state == 1 && row->block.size > 0;
}

static void step_ask(failing_program_t *p, uint64_t which) {
    strata_t s = p->rig->s;
    uint32_t place = some_place(p);
    uint64_t seen = 0;
    char text[400];
    size_t needed;
    strata_ref_t victims[4];
    strata_mem_info_t info = {.struct_size = sizeof info};
    switch (which) {
    case 0: (void)is_ok(p, strata_mem_info(s, place_of(place), &info), STRATA_OK, "mem_info"); break;
    case 1: (void)is_ok(p, strata_snapshot(s, place_of(place), count_row, &seen), STRATA_OK, "snapshot"); break;
    case 2: (void)is_ok(p, strata_chunks_text(s, place_of(place), text, sizeof text, &needed), STRATA_OK, "chunks_text"); break;
    case 3: (void)is_ok(p, strata_statistics_json(s, text, sizeof text, &needed), STRATA_OK, "statistics_json"); break;
    case 4: (void)is_ok(p, strata_best_victims(s, place_of(place), MIB, victims, 4, &needed), STRATA_E_NO_MEMORY, "victims"); break;
    case 5: (void)is_ok(p, strata_annotate(s, p->random % 2 ? "matmul" : NULL), STRATA_OK, "annotate"); break;
    default: (void)is_ok(p, strata_step(s), STRATA_OK, "step"); break;
    }
}

static void step_give_back(failing_program_t *p, uint64_t which) {
    strata_t s = p->rig->s;
    strata_place_t place = place_of(some_place(p));
    uint64_t keep = below(p, 8) * MIB;
    if (which == 0) (void)is_ok(p, strata_release(s, place, NULL), STRATA_OK, "release");
    else if (which == 1) (void)is_ok(p, strata_trim(s, place, keep, NULL), STRATA_OK, "trim");
    else (void)is_ok(p, strata_stream_synchronize(s, p->rig->gpu, p->streams[below(p, 2)]), STRATA_OK, "synchronize");
}

void failing_program_begin(failing_program_t *p, rig_t *rig) {
    *p = (failing_program_t){.rig = rig, .random = 0x9e3779b97f4a7c15ull};
    for (int i = 0; i < 2; i++) p->streams[i] = rig_stream(rig);
    if (strata_pool(rig->s, FAILING_POOL, &p->pool) != STRATA_OK) p->pool = 0;
    for (uint32_t i = 0; i < FAILING_PLACES; i++) {
        strata_block_t block = {.ref = 0};
        EXPECT_OK(strata_allocate(rig->s, place_of(i), p->streams[0], 0, &block));
        EXPECT_OK(strata_free(rig->s, block.ref));
    }
}

void failing_program_step(failing_program_t *p) {
    uint64_t dice = below(p, 100), which = below(p, 8);
    rig_advance(p->rig, 3000);
    p->from_an_orphan = false;
    for (uint32_t i = 0; i < FAILING_PLACES; i++) p->before[i] = figures_of(p, i);
    if (dice < 40) step_allocate(p);
    else if (dice < 44) step_give_back(p, which % 3);
    else if (dice < 46) step_end_stream(p, which % 2);
    else if (dice < 50) step_ask(p, which);
    else if (p->live == 0) return;
    else if (dice < 76) step_free(p, (uint32_t)below(p, p->live), which);
    else step_on_block(p, dice - 76);
}

void failing_program_check(failing_program_t *p) {
    for (uint32_t i = 0; i < FAILING_PLACES; i++) {
        strata_statistics_t f = figures_of(p, i);
        EXPECT_EQ(f.allocated_bytes, p->places[i].allocated);
        EXPECT_EQ(f.requested_bytes, p->places[i].requested);
        EXPECT_EQ(f.live_allocations, p->places[i].live);
    }
    EXPECT_OK(strata_validate(p->rig->s));
    for (uint32_t i = 0; i < p->live; i++) check_marks(p, &p->blocks[i]);
}

void failing_program_free_all(failing_program_t *p) {
    while (p->live > 0) step_free(p, p->live - 1, p->live % 4);
    failing_program_check(p);
}

void failing_program_end(failing_program_t *p) {
    rig_t *rig = p->rig;
    p->tolerated = STRATA_OK;
    failing_program_free_all(p);
    rig_advance(rig, 1000 * 1000 * 1000);
    for (uint32_t i = 0; i < FAILING_PLACES; i++) {
        EXPECT_OK(strata_release(rig->s, place_of(i), NULL));
        strata_statistics_t f = figures_of(p, i);
        EXPECT_EQ(f.deferred_bytes, 0);
        if (f.quarantined_bytes == 0) EXPECT_EQ(f.reserved_bytes, 0);
    }
    if (failing_program_quarantined(p) > 0) return;
    for (int i = 0; i < 2; i++) {
        strata_block_t b = rig_allocate(rig, p->streams[i], 30 * MIB);
        EXPECT_OK(strata_free(rig->s, b.ref));
    }
}
