/* An address that a graph had belongs to the last that was served there. The layer counts live bytes from the request to the free. */
#include "allocation/domain/driver_memory.h"
#include "allocation/tables/index.h"
#include "tests/graphs/graphs.h"

TEST(graph_driver_memory, who_is_served_last_has_the_address) {
    rig_t rig;
    rig_open(&rig, "cuda_malloc_async", NULL, 0, 0, 1);
    strata_domain_t *domain = rig_domain(&rig);
    strata_driver_memory_served(domain, 4096);
    uint32_t first = strata_driver_memory_new(domain, 7), second = strata_driver_memory_new(domain, 8);
    EXPECT_TRUE(strata_driver_memory_is_of(domain, first, 7));
    EXPECT_FALSE(strata_driver_memory_is_of(domain, first, 8));
    strata_driver_memory_set_address(domain, first, 4096);
    strata_driver_memory_served(domain, 8192);
    EXPECT_FALSE(strata_driver_memory_is_freed(domain, first));
    strata_driver_memory_set_address(domain, second, 4096);
    EXPECT_TRUE(strata_driver_memory_is_freed(domain, first));
    EXPECT_FALSE(strata_driver_memory_is_freed(domain, second));
    EXPECT_OK(strata_domain_claim(domain, NULL, 512));
    EXPECT_OK(strata_domain_book(domain, 4096, 512));
    EXPECT_TRUE(strata_driver_memory_is_freed(domain, second));
    strata_domain_uncover(domain, 4096, 512);
    strata_domain_discount(domain, 512);
    strata_driver_memory_delete(domain, first);
    strata_driver_memory_delete(domain, second);
    EXPECT_EQ(strata_driver_memory_new(domain, 9), second);
    EXPECT_FALSE(strata_driver_memory_is_freed(domain, second));
    rig_close(&rig);
}

/* The entry serves another capture, at another address: what was known of the first one is forgotten. */
TEST(graph_driver_memory, an_entry_that_serves_again_knows_nothing_of_its_first_address) {
    rig_t rig;
    rig_open(&rig, "cuda_malloc_async", NULL, 0, 0, 1);
    strata_domain_t *domain = rig_domain(&rig);
    uint32_t first = strata_driver_memory_new(domain, 7);
    for (int gone = 0; gone < 2; gone++) {
        strata_driver_memory_set_address(domain, first, 4096);
        if (gone) strata_driver_memory_served(domain, 4096);
        EXPECT_EQ(strata_driver_memory_is_freed(domain, first), gone);
        strata_driver_memory_delete(domain, first);
        ASSERT_EQ(strata_driver_memory_new(domain, 8), first);
        EXPECT_TRUE(strata_driver_memory_is_of(domain, first, 8));
        EXPECT_FALSE(strata_driver_memory_is_freed(domain, first));
        strata_driver_memory_set_address(domain, first, 4096ull * 3);
        strata_driver_memory_served(domain, 4096);
        EXPECT_FALSE(strata_driver_memory_is_freed(domain, first));
        strata_driver_memory_served(domain, 4096ull * 3);
        EXPECT_TRUE(strata_driver_memory_is_freed(domain, first));
        strata_driver_memory_delete(domain, first);
        ASSERT_EQ(strata_driver_memory_new(domain, 7), first);
    }
    strata_driver_memory_delete(domain, first);
    rig_close(&rig);
}

/* Two addresses of one hash: what ends one entry leaves the other alone, whichever is looked at first. */
static void end_one_of_two(int ended, bool deleted) {
    static const uint64_t addresses[] = {4096, 0xd20f7526c00};
    rig_t rig;
    uint32_t entries[2];
    rig_open(&rig, "cuda_malloc_async", NULL, 0, 0, 1);
    strata_domain_t *domain = rig_domain(&rig);
    for (int i = 0; i < 2; i++) {
        entries[i] = strata_driver_memory_new(domain, 7);
        strata_driver_memory_set_address(domain, entries[i], addresses[i]);
    }
    EXPECT_FALSE(strata_driver_memory_is_freed(domain, entries[0]));
    if (deleted) strata_driver_memory_delete(domain, entries[ended]);
    else strata_driver_memory_served(domain, addresses[ended]);
    if (deleted) EXPECT_EQ(strata_driver_memory_new(domain, 8), entries[ended]);
    else EXPECT_TRUE(strata_driver_memory_is_freed(domain, entries[ended]));
    strata_driver_memory_set_address(domain, entries[ended], 8192);
    EXPECT_FALSE(strata_driver_memory_is_freed(domain, entries[!ended]));
    strata_driver_memory_served(domain, addresses[!ended]);
    EXPECT_TRUE(strata_driver_memory_is_freed(domain, entries[!ended]));
    for (int i = 0; i < 2; i++) strata_driver_memory_delete(domain, entries[i]);
    rig_close(&rig);
}

TEST(graph_driver_memory, addresses_of_one_hash_are_two) {
    ASSERT_EQ(strata_index_hash(4096, 0), strata_index_hash(0xd20f7526c00, 0));
    for (int ended = 0; ended < 2; ended++)
        for (int deleted = 0; deleted < 2; deleted++) end_one_of_two(ended, deleted);
}

TEST(graph_driver_memory, many_of_one_capture_are_told_apart) {
    enum { MANY = 20000 };
    rig_t rig;
    rig_open(&rig, "cuda_malloc_async", NULL, 0, 0, 1);
    strata_domain_t *domain = rig_domain(&rig);
    for (uint32_t i = 1; i <= MANY; i++) {
        ASSERT_EQ(strata_driver_memory_new(domain, 1), i);
        strata_driver_memory_set_address(domain, i, i * 512ull);
    }
    for (uint32_t i = 2; i <= MANY; i += 2) strata_driver_memory_served(domain, i * 512ull);
    for (uint32_t i = 1; i <= MANY; i++) EXPECT_EQ(strata_driver_memory_is_freed(domain, i), i % 2 == 0);
    for (uint32_t i = 1; i <= MANY; i++) strata_driver_memory_delete(domain, i);
    rig_close(&rig);
}

static void add_live(const strata_layer_figure_t *figure, void *context) {
    if (strcmp(figure->name, "live_bytes") == 0) *(uint64_t *)context += figure->value;
}

static uint64_t live_bytes(captured_t *c) {
    uint64_t live = 0;
    EXPECT_OK(strata_layer_figures(c->rig.s, c->rig.gpu, add_live, &live));
    return live;
}

/* Freed by a node, after the capture, or refused: a block is live from its request to its free. */
TEST(graph_driver_memory, what_is_live_is_counted_from_the_request_to_the_free) {
    captured_t c;
    strata_block_t blocks[3], none;
    captured_open(&c, "cuda_malloc_async");
    captured_begin(&c);
    for (uint64_t i = 0; i < 3; i++) {
        blocks[i] = rig_allocate(&c.rig, c.stream, MIB << i);
        EXPECT_EQ(live_bytes(&c), (MIB << (i + 1)) - MIB);
    }
    ASSERT_OK(strata_sim_fail(c.rig.devices[0], STRATA_CALL_malloc_async, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(c.rig.s, c.rig.gpu, c.stream, 8 * MIB, &none));
    EXPECT_EQ(live_bytes(&c), 7 * MIB);
    EXPECT_OK(strata_free(c.rig.s, blocks[0].ref));
    EXPECT_EQ(live_bytes(&c), 6 * MIB);
    ASSERT_OK(strata_sim_fail(c.rig.devices[0], STRATA_CALL_free_async, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(c.rig.s, blocks[1].ref));
    EXPECT_EQ(live_bytes(&c), 4 * MIB);
    captured_end(&c);
    captured_launch(&c);
    EXPECT_OK(strata_free(c.rig.s, blocks[2].ref));
    EXPECT_EQ(live_bytes(&c), 0);
    captured_destroy(&c);
    captured_close(&c);
}
