#include "allocation/tables/nodes.h"

#include <sys/mman.h>

#include "platform/host/host_memory.h"
#include "tests/mechanism/mechanism.h"

#define TEST_NODES(name, ...)                                                                                                      \
    TEST_WITH(nodes, name, strata_nodes_t, nodes, strata_nodes_destroy, ASSERT_OK(strata_nodes_init(nodes, __VA_ARGS__)))

TEST_NODES(are_reused_last_in_first_out, 24, 3) {
    uint32_t a = strata_nodes_acquire(nodes), b = strata_nodes_acquire(nodes), c = strata_nodes_acquire(nodes);
    EXPECT_TRUE(a && b && c && a != b && b != c && a != c);
    EXPECT_EQ(strata_nodes_acquire(nodes), 0);
    EXPECT_EQ((unsigned char *)strata_node(nodes, b) - (unsigned char *)strata_node(nodes, a), 24);
    strata_nodes_release(nodes, a);
    strata_nodes_release(nodes, c);
    EXPECT_EQ(strata_nodes_acquire(nodes), c);
    EXPECT_EQ(strata_nodes_acquire(nodes), a);
    EXPECT_EQ(strata_nodes_acquire(nodes), 0);
}

TEST(nodes, a_table_that_ended_has_no_memory) {
    strata_nodes_t nodes;
    unsigned char state;
    ASSERT_OK(strata_nodes_init(&nodes, 16, 100));
    void *memory = nodes.memory;
    EXPECT_EQ(mincore(memory, 1, &state), 0);
    strata_nodes_destroy(&nodes);
    EXPECT_EQ(mincore(memory, 1, &state), -1);
}

TEST(nodes, refuse_sizes_that_cannot_be) {
    strata_nodes_t nodes;
    EXPECT_STATUS(STRATA_E_INVALID, strata_nodes_init(&nodes, 0, 10));
    EXPECT_STATUS(STRATA_E_INVALID, strata_nodes_init(&nodes, 12, 10));
    EXPECT_STATUS(STRATA_E_INVALID, strata_nodes_init(&nodes, 16, 0));
    EXPECT_STATUS(STRATA_E_INVALID, strata_nodes_init(&nodes, SIZE_MAX - 7, 1000));
    strata_host_fail_at(1, 0);
    EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_nodes_init(&nodes, 16, 10));
    strata_host_fail_at(0, 0);
}

TEST_NODES(validate_finds_planted_faults, 16, 100) {
    for (int i = 0; i < 10; i++) strata_nodes_acquire(nodes);
    for (uint32_t node = 2; node <= 8; node += 2) strata_nodes_release(nodes, node);
    uint32_t *end = strata_node(nodes, 2), *middle = strata_node(nodes, 6);
    EXPECT_CAUGHT(strata_nodes_validate(nodes), nodes->unused, 3);
    EXPECT_CAUGHT(strata_nodes_validate(nodes), nodes->unused, 5);
    EXPECT_CAUGHT(strata_nodes_validate(nodes), nodes->unused, 11);
    EXPECT_CAUGHT(strata_nodes_validate(nodes), nodes->used, 8);
    EXPECT_CAUGHT(strata_nodes_validate(nodes), nodes->used, 0);
    EXPECT_CAUGHT(strata_nodes_validate(nodes), nodes->used, 1000);
    EXPECT_CAUGHT(strata_nodes_validate(nodes), nodes->capacity, 1u << 30);
    EXPECT_CAUGHT(strata_nodes_validate(nodes), nodes->free_head, 6);
    EXPECT_CAUGHT(strata_nodes_validate(nodes), *middle, 0); /* a lost link */
    EXPECT_CAUGHT(strata_nodes_validate(nodes), *middle, 8); /* a circle */
    EXPECT_CAUGHT(strata_nodes_validate(nodes), *middle, 500); /* never taken */
    EXPECT_CAUGHT(strata_nodes_validate(nodes), *end, 4);
}

/* Each node holds its own number while it is taken: two holders would overwrite each other. */
TEST(nodes, random_takes_and_gives) {
    enum { NODES = 300 };
    strata_nodes_t nodes;
    uint64_t seed = 9;
    uint32_t held[NODES], count = 0;
    ASSERT_OK(strata_nodes_init(&nodes, 40, NODES));
    for (int step = 0; step < 20000; step++) {
        if (random_below(&seed, 100) < 51) {
            uint32_t node = strata_nodes_acquire(&nodes);
            EXPECT_EQ(node == 0, count == NODES);
            if (node == 0) continue;
            memset(strata_node(&nodes, node), (int)(node & 0xff), 40);
            held[count++] = node;
        } else if (count) {
            uint32_t i = (uint32_t)random_below(&seed, count), node = held[i];
            const unsigned char *bytes = strata_node(&nodes, node);
            for (int b = 0; b < 40; b++) EXPECT_EQ(bytes[b], node & 0xff);
            held[i] = held[--count];
            strata_nodes_release(&nodes, node);
        }
        if (step % 64 == 0) ASSERT_OK(strata_nodes_validate(&nodes));
    }
    EXPECT_OK(strata_nodes_validate(&nodes));
    strata_nodes_destroy(&nodes);
}
