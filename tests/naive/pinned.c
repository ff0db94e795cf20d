/* Pinned and host memory under the presets of Paddle: exact figures of the buddy pool and of blocks without a pool. */
#include "tests/harness/owned.h"
#include "tests/naive/naive.h"

/* Of 1 GiB of host memory half may be pinned, in chunks of a 256th of that half: 2 MiB. */
#define MEMORY "pinned.naive_best_fit.memory=1GiB"
#define CHUNK  (2 * MIB)
#define MOST   (512 * MIB)
#define LEAST  (64 * KIB)
#define HEADER ((size_t)64)

typedef struct preset {
    const char *name;
} preset_t;

static const preset_t presets[] = {{"paddle"}, {"paddle-vmm"}, {"cuda_malloc_async"}};

static void open_preset(rig_t *rig, const char *preset) { rig_open(rig, preset, (const char *const[]){MEMORY}, 1, 0, 1); }

static uint64_t reserved(rig_t *rig, strata_place_t place) { return rig_figures_in(rig, place).reserved_bytes; }

/* A block takes its request and a header, rounded up to 64 KiB; a chunk comes when none of the pool has room. */
TEST_EACH(naive_pinned, blocks_are_those_of_the_buddy_pool, preset_t, presets) {
    RIG_BY(rig, open_preset(&rig, row->name));
    strata_block_t a = rig_allocate_in(&rig, strata_pinned(), NULL, 1);
    EXPECT_EQ(a.size, LEAST);
    EXPECT_EQ(reserved(&rig, strata_pinned()), CHUNK);
    strata_block_t b = rig_allocate_in(&rig, strata_pinned(), NULL, LEAST - HEADER);
    EXPECT_EQ(b.size, LEAST);
    strata_block_t c = rig_allocate_in(&rig, strata_pinned(), NULL, LEAST - HEADER + 1);
    EXPECT_EQ(c.size, 2 * LEAST);
    /* A request takes the low end of what is free. */
    EXPECT_EQ((char *)b.ptr, (char *)a.ptr + LEAST);
    EXPECT_EQ((char *)c.ptr, (char *)b.ptr + LEAST);
    strata_block_t rest = rig_allocate_in(&rig, strata_pinned(), NULL, CHUNK - 4 * LEAST - HEADER);
    EXPECT_EQ(reserved(&rig, strata_pinned()), CHUNK);
    strata_block_t more = rig_allocate_in(&rig, strata_pinned(), NULL, CHUNK - HEADER);
    EXPECT_EQ(more.size, CHUNK);
    EXPECT_EQ(reserved(&rig, strata_pinned()), 2 * CHUNK);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_host_alloc), 2);
    RIG_FREE(&rig, a, b, c, rest, more);
    /* Chunks stay until a release. */
    EXPECT_EQ(reserved(&rig, strata_pinned()), 2 * CHUNK);
    EXPECT_OK(strata_release(rig.s, strata_pinned(), NULL));
    EXPECT_EQ(reserved(&rig, strata_pinned()), 0);
}

/* What is larger than a chunk is asked for alone, and goes back with its free. */
TEST_EACH(naive_pinned, huge_blocks_go_back_with_their_free, preset_t, presets) {
    RIG_BY(rig, open_preset(&rig, row->name));
    strata_block_t huge = rig_allocate_in(&rig, strata_pinned(), NULL, CHUNK - HEADER + 1);
    EXPECT_EQ(huge.size, CHUNK + LEAST);
    EXPECT_EQ(reserved(&rig, strata_pinned()), CHUNK + LEAST);
    EXPECT_OK(strata_free(rig.s, huge.ref));
    EXPECT_EQ(reserved(&rig, strata_pinned()), 0);
}

/* The last chunk that fits below the cap is served, and one block more is not, whether of the pool or huge. */
TEST_EACH(naive_pinned, half_of_the_memory_is_the_most, preset_t, presets) {
    strata_block_t none;
    RIG_BY(rig, open_preset(&rig, row->name));
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, strata_pinned(), NULL, MOST, &none), "fraction");
    strata_block_t huge = rig_allocate_in(&rig, strata_pinned(), NULL, MOST - CHUNK - HEADER);
    strata_block_t pooled = rig_allocate_in(&rig, strata_pinned(), NULL, CHUNK - HEADER);
    EXPECT_EQ(reserved(&rig, strata_pinned()), MOST);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, strata_pinned(), NULL, 1, &none));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, strata_pinned(), NULL, CHUNK, &none));
    RIG_FREE(&rig, huge, pooled);
}

/* Without a pool each block of host memory is as large as its request, and nothing stays. */
TEST_EACH(naive_pinned, host_memory_is_asked_for_block_by_block, preset_t, presets) {
    RIG_BY(rig, open_preset(&rig, row->name));
    strata_block_t a = rig_allocate_in(&rig, strata_host(), NULL, 1000), b = rig_allocate_in(&rig, strata_host(), NULL, MIB + 1);
    EXPECT_EQ(a.size, 1000);
    EXPECT_EQ(b.size, MIB + 1);
    EXPECT_EQ(reserved(&rig, strata_host()), MIB + 1001);
    RIG_FREE(&rig, a, b);
    EXPECT_EQ(reserved(&rig, strata_host()), 0);
}

/* A program that has blocks of all places in turn: everything is served, and the pool never has more than a chunk beyond its peak. */
TEST_EACH(naive_pinned, a_program_of_all_places_is_served, preset_t, presets) {
    enum { BLOCKS = 64, STEPS = 4000 };
    RIG_BY(rig, open_preset(&rig, row->name));
    const strata_place_t places[] = {rig.gpu, strata_pinned(), strata_host()};
    strata_block_t blocks[BLOCKS] = {{.ref = 0}};
    uint64_t random = 7;
    for (int i = 0; i < STEPS && !strata_test_has_failed(); i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        strata_block_t *block = &blocks[(random >> 33) % BLOCKS];
        if (block->ref) {
            EXPECT_OK(strata_free(rig.s, block->ref));
            block->ref = 0;
        } else {
            *block = rig_allocate_in(&rig, places[(random >> 45) % 3], NULL, 1 + (size_t)((random >> 20) % (256 * KIB)));
        }
    }
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_LE(reserved(&rig, strata_pinned()), BLOCKS * 320 * KIB + CHUNK);
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].ref) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    EXPECT_OK(strata_validate(rig.s));
}

/* With the flag a chunk is the request, rounded up to 64 KiB, and its high end serves first. */
TEST(naive_pinned, auto_growth_takes_what_is_requested) {
    RIG_BY(rig, rig_open(&rig, "extends: paddle\nplaces:\n  pinned:\n    - auto_growth: {alignment: 64KiB}\n    - system\n", NULL,
                         0, 0, 1));
    strata_block_t a = rig_allocate_in(&rig, strata_pinned(), NULL, 3 * MIB + 1);
    EXPECT_EQ(a.size, 3 * MIB + LEAST);
    EXPECT_EQ(reserved(&rig, strata_pinned()), 3 * MIB + LEAST);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t b = rig_allocate_in(&rig, strata_pinned(), NULL, 1);
    EXPECT_EQ(b.size, LEAST);
    EXPECT_EQ((char *)b.ptr, (char *)a.ptr + 3 * MIB);
    EXPECT_EQ(reserved(&rig, strata_pinned()), 3 * MIB + LEAST);
    EXPECT_OK(strata_free(rig.s, b.ref));
}
