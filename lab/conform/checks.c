/* Checks that every layer and every preset must pass, whatever else it does. */
#include "lab/conform/checks.h"
#include "facade/figures/figures.h"
#include "lab/conform/queries.h"
#include "lab/conform/requests.h"
#include "lab/conform/rows.h"

#define LONG (1000ull * 1000)

/* ---- serving ---- */

static void zero_size(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_stream_t streams[2] = {NULL, rig_stream(&rig)};
    uint64_t asked = subject_requests(subject, &rig);
    for (int i = 0; i < 2; i++) {
        strata_block_t a = rig_allocate(&rig, streams[i], 0), b = rig_allocate(&rig, streams[i], 0);
        EXPECT_TRUE(a.ptr == NULL && b.ptr == NULL && a.size == 0);
        EXPECT_NE(a.ref, b.ref);
        EXPECT_OK(strata_free(rig.s, a.ref));
        EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, a.ref));
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
    EXPECT_EQ(subject_requests(subject, &rig), asked);
    rig_close(&rig);
}

static void two_live_blocks_differ(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_stream_t streams[2] = {NULL, rig_stream(&rig)};
    for (int i = 0; i < 4; i++) {
        size_t size = i < 2 ? 8 : 1000;
        strata_block_t a = rig_allocate(&rig, streams[i % 2], size), b = rig_allocate(&rig, streams[i % 2], size);
        EXPECT_FALSE(rig_overlap(&a, &b));
        EXPECT_NE(a.ref, b.ref);
        EXPECT_OK(strata_free(rig.s, b.ref));
        EXPECT_OK(strata_free(rig.s, a.ref));
    }
    rig_close(&rig);
}

static void random_sizes_are_aligned_and_large_enough(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    uint64_t random = conform_random(7);
    for (int i = 0; i < 100; i++) {
        uint64_t dice = conform_draw(&random);
        size_t size = 1 + (size_t)(dice >> dice % 31) % (9 * MIB);
        strata_block_t b = rig_allocate(&rig, NULL, size);
        EXPECT_GE(b.size, size);
        EXPECT_EQ((uintptr_t)b.ptr % 256, 0);
        EXPECT_NE(b.ptr, NULL);
        if (i % 3) EXPECT_OK(strata_free(rig.s, b.ref));
        else EXPECT_OK(strata_free_pointer(rig.s, b.ptr));
    }
    rig_close(&rig);
}

/* The facade also refuses a block that a layer served at a misaligned address. So a refusal is correct only
 * above the alignment that the layers declare. */
static void larger_alignments_are_served_or_refused(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    uint64_t served = rig_stack(&rig, NULL)->group->plan->alignment;
    for (size_t alignment = 1; alignment <= 4 * MIB; alignment *= 2) {
        strata_allocate_options_t options = {.struct_size = sizeof options, .size = 1000 + alignment % 511, .alignment = alignment};
        strata_block_t before = rig_allocate(&rig, NULL, 700), b = {.ref = 3};
        strata_status_t status = strata_allocate_with(rig.s, rig.gpu, NULL, &options, &b);
        /* A layer may need a larger piece to find such an address. */
        if (status == STRATA_E_NO_MEMORY) conform_judge_refusal(&rig, options.size + alignment, status);
        bool refused = alignment > 256 && alignment > served;
        if (status != (refused ? STRATA_E_UNSUPPORTED : STRATA_OK))
            FAIL_TEST("an alignment of %zu returned %s, although the layers declare up to %" PRIu64 ": %s", alignment,
                      strata_status_name(status), served, status == STRATA_OK ? "" : strata_last_error()->text);
        if (status == STRATA_OK) {
            EXPECT_EQ((uintptr_t)b.ptr % alignment, 0);
            EXPECT_GE(b.size, options.size);
            EXPECT_FALSE(rig_overlap(&b, &before));
            EXPECT_OK(strata_free(rig.s, b.ref));
        }
        EXPECT_OK(strata_free(rig.s, before.ref));
    }
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
    rig_close(&rig);
}

typedef struct live {
    strata_block_t blocks[64];
    size_t requested[64];
    uint32_t count, refused;
    uint64_t random;
} live_t;

static bool overlaps(const live_t *live, const strata_block_t *b) {
    for (uint32_t i = 0; i < live->count; i++)
        if (rig_overlap(&live->blocks[i], b)) return true;
    return false;
}

static void borrow(rig_t *rig, strata_ref_t ref, strata_stream_t stream) { EXPECT_OK(strata_record_stream(rig->s, ref, stream)); }

/* One operation of a random program of two streams. An out-of-memory error is not a fault. */
static void step(rig_t *rig, live_t *live, const strata_stream_t *streams) {
    uint64_t dice = conform_draw(&live->random);
    size_t size = 1 + (size_t)(dice * 7919) % (dice % 9 ? 20000 : 2 * MIB);
    if (live->count < 64 && dice % 100 < 52) {
        strata_block_t b;
        strata_status_t status = strata_allocate(rig->s, rig->gpu, streams[dice % 2], size, &b);
        live->refused += status == STRATA_E_NO_MEMORY;
        if (status == STRATA_E_NO_MEMORY) conform_judge_refusal(rig, size, status);
        if (status == STRATA_E_NO_MEMORY) return;
        if (status != STRATA_OK) rig_expect_served(rig, size, status);
        if (status != STRATA_OK) return;
        EXPECT_FALSE(overlaps(live, &b));
        EXPECT_EQ((uintptr_t)b.ptr % 256, 0);
        live->requested[live->count] = size;
        live->blocks[live->count++] = b;
    } else if (live->count > 0) {
        uint32_t at = (uint32_t)(dice % live->count);
        strata_block_t b = live->blocks[at];
        live->requested[at] = live->requested[live->count - 1];
        live->blocks[at] = live->blocks[--live->count];
        if (dice % 5 == 0) borrow(rig, b.ref, streams[dice % 2]);
        if (dice % 7 == 0) rig_work(rig, streams[dice % 2], 20 * 1000, b.ref);
        if (dice % 11 == 0) EXPECT_OK(strata_free_on(rig->s, b.ref, streams[(dice + 1) % 2]));
        else EXPECT_OK(strata_free(rig->s, b.ref));
    }
}

static void check_sums(rig_t *rig, const live_t *live) {
    uint64_t requested = 0, allocated = 0;
    for (uint32_t i = 0; i < live->count; i++) {
        requested += live->requested[i];
        allocated += live->blocks[i].size;
    }
    strata_statistics_t f = rig_figures(rig);
    EXPECT_EQ(f.requested_bytes, requested);
    EXPECT_EQ(f.allocated_bytes, allocated);
    EXPECT_EQ(f.live_allocations, live->count);
    EXPECT_EQ(f.allocations - f.frees, live->count);
    EXPECT_LE(f.allocated_bytes + f.deferred_bytes, f.reserved_bytes);
    EXPECT_LE(f.reserved_bytes, f.peak_reserved_bytes);
    EXPECT_GE(f.peak_allocated_bytes, f.allocated_bytes);
}

static void free_all(rig_t *rig, live_t *live) {
    while (live->count > 0) EXPECT_OK(strata_free(rig->s, live->blocks[--live->count].ref));
}

static void random_program(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_stream_t streams[2] = {rig_stream(&rig), rig_stream(&rig)};
    live_t live = {.random = conform_random(3)};
    for (int i = 0; i < 2000 && !strata_test_has_failed(); i++) {
        step(&rig, &live, streams);
        rig_advance(&rig, 5000);
        if (i % 50 == 0) EXPECT_OK(strata_validate(rig.s));
        if (i % 50 == 25) check_sums(&rig, &live);
        if (!subject->may_refuse) EXPECT_EQ(live.refused, 0); /* there is memory for all of it */
        if (i % 500 == 499) EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    }
    free_all(&rig, &live);
    check_sums(&rig, &live);
    rig_close(&rig);
}

/* Serves as many blocks as a program that runs for long, in one cache. */
static void thousands_of_blocks_come_and_go(const subject_t *subject) {
    enum { MAX_LIVE = 1000, SERVED = STRIDE > 1 ? 400 : 4000 };
    static strata_block_t live[MAX_LIVE];
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_stream_t stream = rig_stream(&rig);
    uint64_t random = conform_random(13);
    uint32_t count = 0;
    for (uint32_t served = 0; served < SERVED && !strata_test_has_failed();) {
        uint64_t dice = conform_draw(&random);
        if (count < MAX_LIVE && dice % 100 < 60) {
            live[count] = rig_allocate(&rig, stream, 1 + dice * 7919 % 65536);
            count++;
            served++;
        } else if (count > 0) {
            uint32_t at = (uint32_t)(dice % count);
            EXPECT_OK(strata_free(rig.s, live[at].ref));
            live[at] = live[--count];
        }
    }
    EXPECT_OK(strata_validate(rig.s));
    while (count > 0) EXPECT_OK(strata_free(rig.s, live[--count].ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    rig_close(&rig);
}

/* Returns true if a decorator requests more than it was asked for. The place has these bytes reserved, but no stack has. */
static bool requests_more(const subject_t *subject) {
    if (subject->requests_more) return true;
    for (int i = 0; i < SUBJECT_LAYERS && subject->layers[i]; i++) {
        const strata_layer_type_t *type = subject->layers[i];
        if (type->role == STRATA_DECORATOR && !(type->passes & STRATA_TRAIT_EXACT_SIZE)) return true;
    }
    return false;
}

/* Returns the bytes reserved by caches of all streams. They count for the place, and for no stream. */
static uint64_t reserved_for_all(rig_t *rig) {
    uint64_t reserved = 0;
    STRATA_DOMAIN_EACH(rig_domain(rig), stack) {
        strata_statistics_t figures = {0};
        if (stack->is_shared) strata_facade_stack_figures(stack, &figures);
        reserved += figures.reserved_bytes;
    }
    return reserved;
}

static void statistics_are_sums(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_stream_t streams[2] = {rig_stream(&rig), rig_stream(&rig)};
    strata_block_t a = rig_allocate(&rig, streams[0], 1000), b = rig_allocate(&rig, streams[1], 3000);
    /* The third is the default stream's, because its stack may have preallocated. */
    strata_statistics_t of[3], all = rig_figures(&rig);
    for (int i = 0; i < 3; i++) {
        of[i] = (strata_statistics_t){.struct_size = sizeof of[i]};
        EXPECT_OK(strata_statistics(rig.s, rig.gpu, i < 2 ? streams[i] : NULL, &of[i]));
        EXPECT_EQ(of[i].live_allocations, i < 2);
    }
    uint64_t reserved = of[0].reserved_bytes + of[1].reserved_bytes + of[2].reserved_bytes;
    EXPECT_EQ(of[0].requested_bytes, 1000);
    EXPECT_EQ(of[1].requested_bytes, 3000);
    EXPECT_EQ(of[0].requested_bytes + of[1].requested_bytes, all.requested_bytes);
    EXPECT_EQ(of[0].allocated_bytes + of[1].allocated_bytes, all.allocated_bytes);
    EXPECT_LE(reserved, all.reserved_bytes);
    if (!requests_more(subject)) EXPECT_EQ(reserved + reserved_for_all(&rig), all.reserved_bytes);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_free(rig.s, b.ref));
    rig_close(&rig);
}

/* ---- giving back ---- */

static void release_returns_everything(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_stream_t streams[2] = {rig_stream(&rig), rig_stream(&rig)};
    live_t live = {.random = conform_random(11)};
    for (int i = 0; i < 300; i++) step(&rig, &live, streams);
    free_all(&rig, &live);
    rig_advance(&rig, 100 * LONG);
    uint64_t released = 0;
    strata_sim_figures_t figures;
    strata_sim_figures(rig.devices[0], &figures);
    /* A driver's pool keeps more memory than the place has reserved of it. */
    uint64_t used = figures.used_bytes;
    EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
    strata_sim_figures(rig.devices[0], &figures);
    EXPECT_LE(released, used);
    strata_sim_figures(rig.devices[0], &figures);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    EXPECT_EQ(figures.used_bytes, 0);
    rig_close(&rig);
}

static void close_by_force_gives_everything_back(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_stream_t streams[2] = {rig_stream(&rig), rig_stream(&rig)};
    live_t live = {.random = conform_random(5)};
    for (int i = 0; i < 200; i++) step(&rig, &live, streams);
    EXPECT_GT(live.count, 0);
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    rig_close_by_force(&rig);
}

static void stale_refs_are_told(const subject_t *subject) {
    rig_t rig, other;
    subject_open(subject, 0, &rig);
    subject_open(subject, 0, &other);
    strata_block_t a = rig_allocate(&rig, NULL, 5000);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(other.s, a.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_record_stream(other.s, a.ref, NULL));
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, a.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_record_stream(rig.s, a.ref, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_erase_stream(rig.s, a.ref, NULL));
    strata_block_t again = rig_allocate(&rig, NULL, 5000);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_figures(&rig).live_allocations, 1);
    EXPECT_OK(strata_free(rig.s, again.ref));
    rig_close(&rig);
    rig_close(&other);
}

/* ---- borrows ---- */

static void borrows_are_honoured_or_waited_for(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 50000);
    EXPECT_OK(strata_record_stream(rig.s, a.ref, borrower));
    bool waited_for = rig_figures(&rig).borrows_waited > 0;
    bool at_use = subject->at_use || (subject->preset && strncmp(subject->preset, "paddle", 6) == 0);
    rig_work(&rig, borrower, LONG, a.ref);
    /* `event: use` covers only work submitted before the call, so the borrow is recorded again. */
    if (at_use) EXPECT_OK(strata_record_stream(rig.s, a.ref, borrower));
    uint64_t done = strata_sim_stream_end(rig.devices[0], borrower);
    EXPECT_OK(strata_free(rig.s, a.ref));
    /* A layer above that keeps freed blocks delays the wait. No stream gets the block before it. */
    if (!waited_for || rig_figures(&rig).host_waits == 0) {
        strata_block_t b = rig_allocate(&rig, owner, 50000);
        rig_work(&rig, owner, 1, b.ref);
        EXPECT_TRUE(b.ptr != a.ptr || strata_sim_stream_end(rig.devices[0], owner) >= done);
        EXPECT_EQ(rig_figures(&rig).host_waits, 0);
        EXPECT_OK(strata_free(rig.s, b.ref));
    } else {
        EXPECT_GE(strata_sim_now(rig.world), done);
        EXPECT_EQ(rig_figures(&rig).host_waits, 1);
    }
    rig_close(&rig);
}

/* ---- failing ---- */

static void out_of_memory_leaves_everything_as_it_was(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 64 * MIB, &rig);
    strata_block_t blocks[64], none = {.ref = 3};
    uint32_t count = 0;
    while (count < 64 && strata_allocate(rig.s, rig.gpu, NULL, 10 * MIB, &blocks[count]) == STRATA_OK) count++;
    if (count < 2) conform_judge_refusal(&rig, 10 * MIB, STRATA_E_NO_MEMORY);
    EXPECT_GE(count, 2);
    EXPECT_LE(count, 6);
    strata_statistics_t before = rig_figures(&rig);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 60 * MIB, &none));
    strata_statistics_t after = rig_figures(&rig);
    EXPECT_EQ(none.ref, 3);
    EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
    EXPECT_EQ(after.requested_bytes, before.requested_bytes);
    EXPECT_EQ(after.live_allocations, count);
    EXPECT_LE(after.reserved_bytes, before.reserved_bytes);
    EXPECT_OK(strata_validate(rig.s));
    while (count > 0) EXPECT_OK(strata_free(rig.s, blocks[--count].ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    none = rig_allocate(&rig, NULL, 60 * MIB);
    EXPECT_OK(strata_free(rig.s, none.ref));
    rig_close(&rig);
}

static void no_grow_asks_for_nothing(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_block_t kept = rig_allocate(&rig, NULL, 4096), b;
    EXPECT_OK(strata_free(rig.s, kept.ref));
    uint64_t asked = subject_requests(subject, &rig);
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 4096, .flags = STRATA_NO_GROW};
    strata_status_t status = strata_allocate_with(rig.s, rig.gpu, NULL, &options, &b);
    EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_NO_MEMORY);
    if (status == STRATA_OK) EXPECT_OK(strata_free(rig.s, b.ref));
    options.size = 100ull << 30; /* more than the device has, so no cache can hold it */
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig.s, rig.gpu, NULL, &options, &b));
    EXPECT_EQ(subject_requests(subject, &rig), asked);
    EXPECT_EQ(rig_figures(&rig).recoveries, 0);
    rig_close(&rig);
}

static void no_retry_climbs_no_ladder(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 64 * MIB, &rig);
    strata_block_t b;
    uint64_t now = strata_sim_now(rig.world);
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 65 * MIB, .flags = STRATA_NO_RETRY};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig.s, rig.gpu, NULL, &options, &b));
    EXPECT_EQ(rig_figures(&rig).recoveries, 0);
    EXPECT_LT(strata_sim_now(rig.world) - now, 10 * LONG);
    rig_close(&rig);
}

/* Runs a short program in which the k-th call of the bottom fails. Returns how often memory was requested from the bottom. */
static uint64_t run_failing(const subject_t *subject, uint64_t k, bool onward, strata_status_t status) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_stream_t streams[2] = {rig_stream(&rig), rig_stream(&rig)};
    live_t live = {.random = conform_random(23)};
    uint64_t asked = subject_requests(subject, &rig);
    subject_fail(subject, &rig, k, onward, status);
    for (uint32_t i = 0; i < 60; i++) {
        size_t size = (i % 7 + 1) * MIB;
        strata_statistics_t before = rig_figures(&rig);
        strata_block_t b = {.ref = 3};
        strata_status_t got = strata_allocate(rig.s, rig.gpu, streams[i % 2], size, &b);
        strata_statistics_t after = rig_figures(&rig);
        if (got != status) rig_expect_served(&rig, size, got);
        if (got == STRATA_OK) {
            live.requested[live.count] = size;
            live.blocks[live.count++] = b;
        } else {
            EXPECT_EQ(b.ref, 3);
            EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
            EXPECT_EQ(after.requested_bytes, before.requested_bytes);
            EXPECT_LE(after.reserved_bytes, before.reserved_bytes);
        }
        if (i % 3 == 2 && live.count > 0) EXPECT_OK(strata_free(rig.s, live.blocks[--live.count].ref));
        if (i % 20 == 19) EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
        EXPECT_OK(strata_validate(rig.s));
    }
    asked = subject_requests(subject, &rig) - asked;
    subject_fail(subject, &rig, 0, false, status);
    check_sums(&rig, &live);
    strata_block_t b = rig_allocate(&rig, streams[0], 9 * MIB);
    EXPECT_OK(strata_free(rig.s, b.ref));
    free_all(&rig, &live);
    rig_close(&rig);
    return asked;
}

/* Tries every k, or every seventh with sanitizers. A drawn stack may request each of thousands of handles, so
 * only its second call and perhaps one more are tried. */
static void the_bottom_fails(const subject_t *subject, strata_status_t status) {
    uint64_t asked = run_failing(subject, 0, false, status);
    /* A cache may get most of the device as its first chunk, and then asks once. A drawn one may have asked
     * when it was opened. */
    EXPECT_TRUE(asked > 0 || subject->drawn);
    uint64_t first = subject->drawn ? 2 : 1, step = subject->drawn ? 29 + asked / 2 : STRIDE > 1 ? 7 : 1;
    for (uint64_t k = first; k <= asked && !strata_test_has_failed(); k += step)
        for (int onward = 0; onward < 2; onward++) (void)run_failing(subject, k, onward != 0, status);
}

static void the_bottom_is_out_of_memory_at_every_call(const subject_t *subject) { the_bottom_fails(subject, STRATA_E_NO_MEMORY); }

static void the_bottom_refuses_every_call(const subject_t *subject) { the_bottom_fails(subject, STRATA_E_DEVICE); }

const check_t checks[] = {
#define ROW(check, text) {#check, check, text},
    CHECKS(ROW)
#undef ROW
        {NULL, NULL, NULL},
};
