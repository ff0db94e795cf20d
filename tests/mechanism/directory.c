#include "allocation/tables/directory.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "platform/host/host_memory.h"
#include "tests/mechanism/mechanism.h"

#define MIB (1ull << 20)
#define TOP (1ull << STRATA_DIRECTORY_ADDRESS_BITS)

static bool reads(const strata_directory_t *directory, uint64_t address, uint16_t home, uint32_t slot) {
    uint16_t its_home = 0;
    uint32_t its_slot = 0;
    return strata_directory_read(directory, address, &its_home, &its_slot) && its_home == home && its_slot == slot;
}

static bool reads_nothing(const strata_directory_t *directory, uint64_t address) {
    uint16_t home = 0;
    uint32_t slot = 0;
    return !strata_directory_read(directory, address, &home, &slot);
}

/* A test of a directory that has begun, in units of 256 bytes. */
#define TEST_DIRECTORY(name)                                                                                                       \
    static void name##_in(strata_directory_t *directory);                                                                          \
    TEST(directory, name) {                                                                                                        \
        strata_directory_t *directory;                                                                                             \
        ASSERT_OK(strata_directory_new(8, &directory));                                                                            \
        ASSERT_OK(strata_directory_begin(directory));                                                                              \
        name##_in(directory);                                                                                                      \
        strata_directory_delete(directory);                                                                                        \
    }                                                                                                                              \
    static void name##_in(strata_directory_t *directory)

TEST(directory, finds_what_was_written) {
    for (uint32_t shift = 6; shift <= 9; shift++) {
        strata_directory_t *directory;
        uint64_t unit = 1ull << shift, base = 0x7f12345ull << 21;
        ASSERT_OK(strata_directory_new(shift, &directory));
        ASSERT_OK(strata_directory_begin(directory));
        ASSERT_OK(strata_directory_cover(directory, base, 20 * MIB));
        EXPECT_TRUE(reads_nothing(directory, base));
        strata_directory_write(directory, base, 1, 2);
        strata_directory_write(directory, base + unit, 3, 4);
        strata_directory_write(directory, base + 2 * MIB - unit, 65535, STRATA_REF_SLOT_BITS);
        strata_directory_write(directory, base + 2 * MIB, 7, 0xffffff);
        strata_directory_write(directory, base + 20 * MIB - unit, 9, 10);
        EXPECT_TRUE(reads(directory, base, 1, 2));
        EXPECT_TRUE(reads(directory, base + unit, 3, 4));
        EXPECT_TRUE(reads(directory, base + 2 * MIB - unit, 65535, STRATA_REF_SLOT_BITS));
        EXPECT_TRUE(reads(directory, base + 2 * MIB, 7, 0xffffff));
        EXPECT_TRUE(reads(directory, base + 20 * MIB - unit, 9, 10));
        EXPECT_TRUE(reads_nothing(directory, base + 1));
        EXPECT_TRUE(reads_nothing(directory, base + 2 * unit));
        EXPECT_TRUE(reads_nothing(directory, base + 20 * MIB));
        EXPECT_TRUE(reads_nothing(directory, base - unit));
        EXPECT_OK(strata_directory_validate(directory));
        strata_directory_delete(directory);
    }
}

TEST_DIRECTORY(any_address_is_safe_to_ask_for) {
    ASSERT_OK(strata_directory_cover(directory, TOP - 2 * MIB, 2 * MIB));
    ASSERT_OK(strata_directory_cover(directory, 0, 1));
    strata_directory_write(directory, 0, 1, 1);
    strata_directory_write(directory, TOP - 256, 2, 2);
    EXPECT_TRUE(reads(directory, 0, 1, 1));
    EXPECT_TRUE(reads(directory, TOP - 256, 2, 2));
    strata_directory_write(directory, TOP, 3, 3);
    strata_directory_write(directory, 1ull << 40, 3, 3);
    for (int bit = 0; bit < 64; bit++) {
        EXPECT_TRUE(reads_nothing(directory, 1ull << bit));
        EXPECT_TRUE(reads_nothing(directory, UINT64_MAX << bit));
    }
    uint64_t seed = 4;
    for (int i = 0; i < 10000; i++) {
        uint64_t address = random_next(&seed);
        EXPECT_TRUE(reads_nothing(directory, address));
    }
}

TEST(directory, refuses_what_is_out_of_range) {
    strata_directory_t *directory;
    EXPECT_STATUS(STRATA_E_INVALID, strata_directory_new(5, &directory));
    EXPECT_STATUS(STRATA_E_INVALID, strata_directory_new(10, &directory));
    EXPECT_STATUS(STRATA_E_INVALID, strata_directory_new(64, &directory));
    ASSERT_OK(strata_directory_new(8, &directory));
    ASSERT_OK(strata_directory_begin(directory));
    EXPECT_STATUS(STRATA_E_LIMIT, strata_directory_cover(directory, TOP, 256));
    EXPECT_STATUS(STRATA_E_LIMIT, strata_directory_cover(directory, TOP - 256, 512));
    EXPECT_STATUS(STRATA_E_LIMIT, strata_directory_cover(directory, UINT64_MAX - 10, 512));
    EXPECT_STATUS(STRATA_E_LIMIT, strata_directory_cover(directory, 0, UINT64_MAX));
    EXPECT_STATUS(STRATA_E_LIMIT, strata_directory_cover(directory, 0, 0));
    strata_directory_uncover(directory, UINT64_MAX - 10, 512);
    strata_directory_uncover(directory, 5 * MIB, 512);
    EXPECT_OK(strata_directory_validate(directory));
    EXPECT_EQ(directory->used, 1);
    /* The last bytes that there are. */
    EXPECT_OK(strata_directory_cover(directory, TOP - 256, 256));
    EXPECT_EQ(directory->used, 2);
    strata_directory_uncover(directory, TOP - 256, 256);
    strata_directory_delete(directory);
    ASSERT_OK(strata_directory_new(8, &directory));
    ASSERT_OK(strata_directory_begin(directory));
    EXPECT_EQ(directory->used, 1);
    strata_directory_delete(directory);
}

/* The arena is made small here: its true limit is 2 TiB. */
TEST_DIRECTORY(a_range_beyond_the_limit_changes_nothing) {
    directory->capacity = 6;
    ASSERT_OK(strata_directory_cover(directory, 100 * MIB, 6 * MIB));
    strata_directory_write(directory, 100 * MIB, 1, 1);
    EXPECT_STATUS(STRATA_E_LIMIT, strata_directory_cover(directory, 100 * MIB, 12 * MIB));
    EXPECT_EQ(directory->used, 4);
    EXPECT_EQ(directory->leaves[1].covers, 1);
    EXPECT_TRUE(reads(directory, 100 * MIB, 1, 1));
    ASSERT_OK(strata_directory_cover(directory, 100 * MIB, 10 * MIB));
    EXPECT_SAYS(STRATA_E_LIMIT, strata_directory_cover(directory, 300 * MIB, 1), "10 MiB");
    directory->leaves[1].covers = UINT32_MAX;
    EXPECT_STATUS(STRATA_E_LIMIT, strata_directory_cover(directory, 100 * MIB, 1));
    EXPECT_OK(strata_directory_validate(directory));
}

TEST_DIRECTORY(chunks_may_share_a_granule) {
    ASSERT_OK(strata_directory_cover(directory, 64 * MIB, MIB));
    ASSERT_OK(strata_directory_cover(directory, 65 * MIB, 2 * MIB));
    EXPECT_EQ(directory->used, 3);
    strata_directory_write(directory, 65 * MIB, 4, 5);
    strata_directory_uncover(directory, 64 * MIB, MIB);
    EXPECT_TRUE(reads(directory, 65 * MIB, 4, 5));
    strata_directory_uncover(directory, 65 * MIB, 2 * MIB);
    EXPECT_TRUE(reads_nothing(directory, 65 * MIB));
    EXPECT_EQ(directory->free_count, 2);
    EXPECT_OK(strata_directory_validate(directory));
}

TEST_DIRECTORY(a_reused_leaf_is_empty) {
    for (uint64_t round = 0; round < 10; round++) {
        uint64_t base = (round + 1) << 39;
        ASSERT_OK(strata_directory_cover(directory, base, 20 * MIB));
        for (uint64_t at = 0; at < 20 * MIB; at += 64 * 1024) {
            EXPECT_TRUE(reads_nothing(directory, base + at));
            strata_directory_write(directory, base + at, 1, (uint32_t)round + 1);
        }
        EXPECT_TRUE(reads(directory, base + 19 * MIB, 1, (uint32_t)round + 1));
        strata_directory_uncover(directory, base, 20 * MIB);
        EXPECT_TRUE(reads_nothing(directory, base + 19 * MIB));
        EXPECT_OK(strata_directory_validate(directory));
    }
    EXPECT_EQ(directory->used, 11);
}

/* Entries are 1/32 of what is covered: a program that never asks for an address does without. */
TEST(directory, has_no_entries_until_it_begins) {
    strata_directory_t *directory = NULL;
    ASSERT_OK(strata_directory_new(8, &directory));
    ASSERT_OK(strata_directory_cover(directory, 1ull << 40, 64ull << 30));
    strata_directory_uncover(directory, (1ull << 40) + (32ull << 30), 32ull << 30);
    EXPECT_OK(strata_directory_validate(directory));
    bool grows = strata_growing_usable(&directory->entries_range) < strata_growing_max(&directory->entries_range);
    if (grows) {
        EXPECT_LT(strata_growing_usable(&directory->entries_range), 64ull << 20);
        strata_host_fail_at(1, 0);
        EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_directory_begin(directory));
        strata_host_fail_at(0, 0);
    }
    ASSERT_OK(strata_directory_begin(directory));
    strata_directory_write(directory, 1ull << 40, 1, 1);
    EXPECT_TRUE(reads(directory, 1ull << 40, 1, 1));
    ASSERT_OK(strata_directory_cover(directory, (1ull << 40) + (64ull << 30), 1ull << 30));
    strata_directory_write(directory, (1ull << 40) + (65ull << 30) - 256, 2, 3);
    EXPECT_TRUE(reads(directory, (1ull << 40) + (65ull << 30) - 256, 2, 3));
    EXPECT_OK(strata_directory_validate(directory));
    strata_directory_delete(directory);
}

TEST(directory, every_host_allocation_may_fail) {
    strata_directory_t *directory = NULL;
    uint64_t before = strata_host_allocations();
    ASSERT_OK(strata_directory_new(8, &directory));
    ASSERT_OK(strata_directory_begin(directory));
    uint64_t needed = strata_host_allocations() - before;
    EXPECT_GE(needed, 2);
    for (uint64_t k = 1; k <= needed; k++) {
        strata_directory_t *none = NULL;
        strata_host_fail_at(k, 0);
        EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_directory_new(8, &none));
        strata_host_fail_at(0, 0);
        EXPECT_EQ(none, NULL);
    }
    strata_directory_delete(directory);
}

TEST_DIRECTORY(every_host_allocation_of_a_range_may_fail) {
    /* The range lies in two inner nodes; the second one fails. */
    uint64_t edge = (1ull << 39) - 4 * MIB;
    strata_host_fail_at(2, 0);
    EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_directory_cover(directory, edge, 8 * MIB));
    strata_host_fail_at(0, 0);
    EXPECT_EQ(directory->used, 1);
    EXPECT_OK(strata_directory_validate(directory));
    ASSERT_OK(strata_directory_cover(directory, edge, 8 * MIB));
    strata_directory_write(directory, edge + 6 * MIB, 1, 1);
    EXPECT_TRUE(reads(directory, edge + 6 * MIB, 1, 1));
    /* What has its inner nodes and leaves makes no allocation. */
    uint64_t before = strata_host_allocations();
    ASSERT_OK(strata_directory_cover(directory, edge - 4 * MIB, 16 * MIB));
    EXPECT_EQ(strata_host_allocations(), before);
    uint32_t used = directory->used;
    /* Where its ranges come in one piece they have room for all. */
    bool grows = strata_growing_usable(&directory->leaves_range) < strata_growing_max(&directory->leaves_range);
    for (uint64_t k = 1; k <= 2 && grows; k++) {
        strata_host_fail_at(k, 0);
        EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_directory_cover(directory, edge - (k << 20) * 2048, (k << 20) * 1024));
        strata_host_fail_at(0, 0);
        EXPECT_EQ(directory->used, used);
        EXPECT_OK(strata_directory_validate(directory));
    }
    ASSERT_OK(strata_directory_cover(directory, edge - 1024 * MIB, 1024 * MIB));
}

/* Counts the resident pages of an inner node. */
static size_t pages_in_memory(strata_directory_inner_t *inner) {
    enum { PAGE = STRATA_DIRECTORY_PAGE * sizeof *inner->leaf };
    unsigned char there[STRATA_DIRECTORY_PAGES];
    size_t count = 0;
    if (sysconf(_SC_PAGESIZE) != PAGE || mincore(inner, STRATA_DIRECTORY_PAGES * PAGE, there) != 0) return SIZE_MAX;
    for (size_t i = 0; i < STRATA_DIRECTORY_PAGES; i++) count += there[i] & 1;
    return count;
}

/* Covers ranges at ever new addresses, as a device returns them: earlier ranges cost no memory. */
TEST_DIRECTORY(past_addresses_cost_no_memory) {
    const uint64_t page = 2 * MIB * STRATA_DIRECTORY_PAGE;
    ASSERT_OK(strata_directory_cover(directory, 0, MIB)); /* stays covered */
    strata_directory_inner_t *inner = atomic_load(&directory->inners[0]);
    if (pages_in_memory(inner) != 1) TEST_SKIP("the system's pages have another size, or it does not tell which are in memory");
    for (uint64_t at = page - 2 * MIB; at < 100 * page; at += page) {
        ASSERT_OK(strata_directory_cover(directory, at, 4 * MIB)); /* on two pages */
        EXPECT_EQ(pages_in_memory(inner), at < page ? 2 : 3);
        strata_directory_write(directory, at, 1, 7);
        EXPECT_TRUE(reads(directory, at, 1, 7));
        strata_directory_uncover(directory, at, 4 * MIB);
        EXPECT_EQ(pages_in_memory(inner), 1);
        EXPECT_TRUE(reads_nothing(directory, at));
        ASSERT_OK(strata_directory_cover(directory, at, 4 * MIB)); /* the page is used again */
        EXPECT_TRUE(reads_nothing(directory, at));
        strata_directory_uncover(directory, at, 4 * MIB);
    }
    EXPECT_OK(strata_directory_validate(directory));
}

/* Ranges across the edges of inner nodes: the nodes needed at one time suffice for all addresses. */
TEST_DIRECTORY(idle_nodes_are_reused) {
    uint64_t before = strata_host_allocations();
    for (uint64_t node = 1; node < 300; node++) {
        uint64_t edge = node << STRATA_DIRECTORY_INNER_SHIFT;
        ASSERT_OK(strata_directory_cover(directory, edge - 2 * MIB, 4 * MIB));
        strata_directory_write(directory, edge, 1, (uint32_t)node);
        EXPECT_TRUE(reads(directory, edge, 1, (uint32_t)node));
        EXPECT_TRUE(reads_nothing(directory, edge - 2 * MIB));
        if (node % 50 == 0) EXPECT_OK(strata_directory_validate(directory));
        strata_directory_uncover(directory, edge - 2 * MIB, 4 * MIB);
        EXPECT_TRUE(reads_nothing(directory, edge));
    }
    EXPECT_EQ(strata_host_allocations() - before, 2);
    uint32_t nodes = 0;
    for (const strata_directory_inner_t *inner = directory->first_inner; inner; inner = inner->next) nodes += inner->idle;
    EXPECT_EQ(nodes, 2);
    EXPECT_OK(strata_directory_validate(directory));
    EXPECT_CAUGHT(strata_directory_validate(directory), directory->first_inner->idle, false);
    EXPECT_CAUGHT(strata_directory_validate(directory), directory->first_inner->pages, 1);
}

/* Against an array of counts and entries, over a few granules on both sides of an inner node's edge. */
TEST_DIRECTORY(random_program) {
    enum { GRANULES = 24, STEPS = 6000, CHUNKS = 40, PLACES = GRANULES * 16 };
    const uint64_t base = (1ull << 39) - (GRANULES / 2) * 2 * MIB, step_bytes = 2 * MIB / 16;
    uint64_t seed = 21, at[CHUNKS], length[CHUNKS];
    uint32_t covers[GRANULES] = {0}, written[PLACES] = {0}, count = 0;
    for (uint32_t step = 1; step <= STEPS; step++) {
        uint64_t dice = random_below(&seed, 100);
        if (dice < 30 && count < CHUNKS) {
            at[count] = random_below(&seed, PLACES);
            length[count] = 1 + random_below(&seed, (PLACES - at[count] < 80 ? PLACES - at[count] : 80));
            ASSERT_OK(strata_directory_cover(directory, base + at[count] * step_bytes, length[count] * step_bytes));
            for (uint64_t g = at[count] / 16; g <= (at[count] + length[count] - 1) / 16; g++) covers[g]++;
            count++;
        } else if (dice < 60 && count) {
            uint32_t i = (uint32_t)random_below(&seed, count--);
            strata_directory_uncover(directory, base + at[i] * step_bytes, length[i] * step_bytes);
            for (uint64_t g = at[i] / 16; g <= (at[i] + length[i] - 1) / 16; g++) {
                if (--covers[g] == 0) memset(&written[g * 16], 0, 16 * sizeof *written);
            }
            at[i] = at[count];
            length[i] = length[count];
        } else {
            uint64_t place = random_below(&seed, PLACES);
            strata_directory_write(directory, base + place * step_bytes, 5, step);
            if (covers[place / 16]) written[place] = step;
        }
        uint64_t place = random_below(&seed, PLACES), address = base + place * step_bytes;
        EXPECT_TRUE(written[place] ? reads(directory, address, 5, written[place]) : reads_nothing(directory, address));
        if (step % 300 == 0) ASSERT_OK(strata_directory_validate(directory));
    }
}

TEST_DIRECTORY(validate_finds_planted_faults) {
    ASSERT_OK(strata_directory_cover(directory, 0, 20 * MIB));
    strata_directory_uncover(directory, 4 * MIB, 6 * MIB); /* leaves 3, 4, 5 */
    strata_directory_inner_t *inner = atomic_load(&directory->inners[0]);
    strata_directory_leaf_t *leaves = directory->leaves;
    uint32_t head = directory->free_head, middle = leaves[head].next, end = leaves[middle].next;
    EXPECT_EQ(leaves[end].next, 0);
    EXPECT_CAUGHT(strata_directory_validate(directory), leaves[1].covers, 0); /* a covered leaf looks free */
    EXPECT_CAUGHT(strata_directory_validate(directory), leaves[middle].covers, 1); /* a free one covered */
    EXPECT_CAUGHT(strata_directory_validate(directory), leaves[2].granule, 0); /* two leaves, one granule */
    EXPECT_CAUGHT(strata_directory_validate(directory), leaves[2].granule, UINT32_MAX);
    EXPECT_CAUGHT(strata_directory_validate(directory), directory->free_count, 2);
    EXPECT_CAUGHT(strata_directory_validate(directory), directory->free_count, 4);
    EXPECT_CAUGHT(strata_directory_validate(directory), directory->free_head, middle);
    EXPECT_CAUGHT(strata_directory_validate(directory), leaves[middle].next, 0); /* a lost link */
    EXPECT_CAUGHT(strata_directory_validate(directory), leaves[middle].next, head); /* a circle */
    EXPECT_CAUGHT(strata_directory_validate(directory), leaves[middle].next, 1); /* into a covered leaf */
    EXPECT_CAUGHT(strata_directory_validate(directory), leaves[middle].next, 1u << 30);
    EXPECT_CAUGHT(strata_directory_validate(directory), leaves[end].next, head);
    EXPECT_CAUGHT(strata_directory_validate(directory), directory->used, 9);
    EXPECT_CAUGHT(strata_directory_validate(directory), directory->used, 0);
    EXPECT_CAUGHT(strata_directory_validate(directory), inner->leaf[0], 0); /* a missing leaf */
    EXPECT_CONTAINS(strata_last_error()->text, "page 0 of inner node 0 of the directory counts 7 links, but has 6");
    EXPECT_CAUGHT(strata_directory_validate(directory), inner->covered[0], 8);
    EXPECT_CAUGHT(strata_directory_validate(directory), inner->covered[1], 1);
    EXPECT_CAUGHT(strata_directory_validate(directory), inner->leaf[0], 2); /* the leaf of another granule */
    EXPECT_CAUGHT(strata_directory_validate(directory), inner->leaf[100], 7); /* a second link to a leaf */
    EXPECT_CAUGHT(strata_directory_validate(directory), inner->leaf[100], 1u << 30); /* a link to no leaf */
    uint64_t granule = leaves[1].granule;
    EXPECT_CAUGHT(strata_directory_validate(directory), directory->near[granule % STRATA_DIRECTORY_NEAR],
                  granule << STRATA_DIRECTORY_LEAF_BITS | 2); /* the short way leads elsewhere */
    _Atomic uint64_t *entries = &directory->entries[(uint64_t)middle << directory->entry_bits];
    EXPECT_CAUGHT(strata_directory_validate(directory), entries[17], 5); /* a free leaf is not empty */
}

enum { THREADS = 4, ROUNDS = 300, BLOCKS = 64 };

typedef struct worker {
    pthread_t thread;
    strata_directory_t *directory;
    uint64_t base; /* neighbours share the granule at their border */
    uint16_t home;
    uint64_t seed;
    uint32_t wrong;
} worker_t;

/* Covers a chunk, writes, reads its own entries and, as a hint, others'. */
static void *work(void *context) {
    worker_t *worker = context;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        uint64_t size = 3 * MIB;
        if (strata_directory_cover(worker->directory, worker->base, size) != STRATA_OK) worker->wrong++;
        for (uint64_t i = 0; i < BLOCKS; i++)
            strata_directory_write(worker->directory, worker->base + i * (size / BLOCKS), worker->home, round);
        for (uint64_t i = 0; i < BLOCKS; i++)
            worker->wrong += !reads(worker->directory, worker->base + i * (size / BLOCKS), worker->home, round);
        for (uint64_t i = 0; i < BLOCKS; i++) {
            uint16_t home;
            uint32_t slot;
            uint64_t address = random_below(&worker->seed, THREADS * 3 * MIB / 256) * 256 + 100 * MIB;
            if (strata_directory_read(worker->directory, address, &home, &slot))
                worker->wrong += home >= THREADS || slot == 0 || slot > ROUNDS;
        }
        strata_directory_uncover(worker->directory, worker->base, size);
    }
    return NULL;
}

TEST_DIRECTORY(threads_cover_write_and_read) {
    worker_t workers[THREADS];
    for (uint16_t i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.directory = directory, .base = 100 * MIB + i * 3 * MIB, .home = i, .seed = i + 1u};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) FAIL_TEST("thread %d did not start", i);
    }
    for (uint16_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        EXPECT_EQ(workers[i].wrong, 0);
    }
    EXPECT_OK(strata_directory_validate(directory));
    EXPECT_EQ(directory->free_count, directory->used - 1);
}
