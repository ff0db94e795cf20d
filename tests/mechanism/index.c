#include "allocation/tables/index.h"

#include "tests/mechanism/mechanism.h"

typedef struct entry {
    uint64_t unused;
    uint64_t key;
    strata_index_link_t link;
    uint32_t in;
} entry_t;

enum { NODES = 2000 };

typedef struct table {
    strata_nodes_t nodes;
    strata_index_t index;
} table_t;

static bool open_table(table_t *table) {
    if (strata_nodes_init(&table->nodes, sizeof(entry_t), 1 << 16) != STRATA_OK) return false;
    strata_index_init(&table->index, &table->nodes, offsetof(entry_t, link));
    return true;
}

static entry_t *at(table_t *table, uint32_t node) { return strata_node(&table->nodes, node); }

static uint32_t put(table_t *table, uint64_t key, uint32_t hash) {
    strata_growing_grow_if_marked();
    uint32_t node = strata_nodes_acquire(&table->nodes);
    at(table, node)->key = key;
    at(table, node)->in = 1;
    strata_index_add(&table->index, node, hash);
    return node;
}

static void drop(table_t *table, uint32_t node) {
    strata_index_remove(&table->index, node);
    at(table, node)->in = 0;
    strata_nodes_release(&table->nodes, node);
}

static uint32_t find(table_t *table, uint64_t key, uint32_t hash) {
    uint32_t node = strata_index_first(&table->index, hash);
    while (node && at(table, node)->key != key) node = strata_index_next(&table->index, node);
    return node;
}

static void close_table(table_t *table) { strata_nodes_destroy(&table->nodes); }

#define TEST_TABLE(name) TEST_WITH(index, name, table_t, table, close_table, ASSERT_TRUE(open_table(table)))

TEST_TABLE(finds_each_of_many_with_one_hash) {
    uint32_t nodes[NODES];
    EXPECT_EQ(find(table, 0, 7), 0);
    for (uint32_t i = 0; i < NODES; i++) nodes[i] = put(table, i, 7);
    for (uint32_t i = 0; i < NODES; i += 3) drop(table, nodes[i]);
    ASSERT_OK(strata_index_validate(&table->index));
    for (uint32_t i = 0; i < NODES; i++) EXPECT_EQ(find(table, i, 7), i % 3 ? nodes[i] : 0);
    EXPECT_EQ(find(table, 1, 8), 0);
}

/* Hashes of 6 bits collide, and so do those that differ above the bits that choose a chain. A node goes out and comes in again for
 * another key while its head is that of others. */
TEST(index, random_adds_and_removals) {
    enum { KEYS = 900 };
    static uint32_t held[KEYS];
    for (uint32_t shift = 0; shift < 32; shift += 26) {
        table_t table;
        uint64_t seed = 5 + shift;
        memset(held, 0, sizeof held);
        ASSERT_TRUE(open_table(&table));
        for (int step = 0; step < 20000; step++) {
            uint32_t key = (uint32_t)random_below(&seed, KEYS), hash = key % 64 << shift;
            EXPECT_EQ(find(&table, key, hash), held[key]);
            if (held[key]) drop(&table, held[key]);
            held[key] = held[key] ? 0 : put(&table, key, hash);
            if (step % 256 == 0) ASSERT_OK(strata_index_validate(&table.index));
        }
        strata_nodes_destroy(&table.nodes);
    }
}

TEST_TABLE(a_look_up_passes_few_of_many) {
    uint32_t nodes[NODES];
    for (uint32_t i = 0; i < NODES; i++) nodes[i] = put(table, i, strata_index_hash(4096ull * i, 0));
    EXPECT_EQ(table->index.examined, 0);
    for (uint32_t i = 0; i < NODES; i++) EXPECT_EQ(find(table, i, strata_index_hash(4096ull * i, 0)), nodes[i]);
    EXPECT_LE(table->index.examined, 3 * NODES);
    for (uint32_t i = 0; i < NODES; i++) drop(table, nodes[i]);
    EXPECT_LE(table->index.examined, 5 * NODES);
    EXPECT_EQ(table->index.count, 0);
    EXPECT_OK(strata_index_validate(&table->index));
}

TEST_TABLE(validate_finds_planted_faults) {
    for (uint32_t i = 0; i < 20; i++) put(table, i, i);
    strata_index_link_t *link = &at(table, 8)->link;
    ASSERT_NE(link->head, 0);
    EXPECT_CAUGHT(strata_index_validate(&table->index), link->hash, 5);
    EXPECT_CAUGHT(strata_index_validate(&table->index), link->head, 0);
    EXPECT_CAUGHT(strata_index_validate(&table->index), link->head, 3);
    EXPECT_CAUGHT(strata_index_validate(&table->index), link->head, 999);
    EXPECT_CAUGHT(strata_index_validate(&table->index), link->next, 8); /* a circle */
    EXPECT_CAUGHT(strata_index_validate(&table->index), table->index.count, 19);
    EXPECT_CAUGHT(strata_index_validate(&table->index), table->index.count, 21);
    EXPECT_CAUGHT(strata_index_validate(&table->index), table->index.chains, 0);
    EXPECT_CAUGHT(strata_index_validate(&table->index), table->index.chains, 99);
    EXPECT_CAUGHT(strata_index_validate(&table->index), table->index.mask, 15);
    EXPECT_CAUGHT(strata_index_validate(&table->index), table->index.mask, 63);
}
