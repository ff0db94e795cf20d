#include "allocation/tables/order.h"

#include "tests/mechanism/mechanism.h"

typedef struct entry {
    uint64_t unused;
    strata_order_link_t link;
} entry_t;

enum { NODES = 2000 };

typedef struct table {
    strata_nodes_t nodes;
    strata_order_t order;
} table_t;

static bool open_table(table_t *table) {
    if (strata_nodes_init(&table->nodes, sizeof(entry_t), 1 << 16) != STRATA_OK) return false;
    strata_order_init(&table->order, &table->nodes, offsetof(entry_t, link));
    return true;
}

static uint32_t put(table_t *table, strata_order_key_t key) {
    strata_growing_grow_if_marked();
    uint32_t node = strata_nodes_acquire(&table->nodes);
    strata_order_add(&table->order, node, &key);
    return node;
}

static uint32_t find(table_t *table, strata_order_key_t key) { return strata_order_find(&table->order, &key); }

static void drop(table_t *table, uint32_t node) {
    strata_order_remove(&table->order, node);
    strata_nodes_release(&table->nodes, node);
}

static void close_table(table_t *table) { strata_nodes_destroy(&table->nodes); }

#define TEST_TABLE(name) TEST_WITH(order, name, table_t, table, close_table, ASSERT_TRUE(open_table(table)))

TEST_TABLE(the_first_word_that_differs_decides) {
    static const strata_order_key_t keys[] = {{0, 0, 1}, {0, 0, 2}, {0, UINT64_MAX, 0}, {1, 0, 0},
                                              {1, 5, 9}, {1, 6, 0}, {UINT64_MAX, 0, 0}};
    enum { KEYS = sizeof keys / sizeof *keys };
    uint32_t nodes[KEYS], i = 0;
    for (uint32_t k = 0; k < KEYS; k++) nodes[k * 3 % KEYS] = put(table, keys[k * 3 % KEYS]);
    for (uint32_t node = table->order.first[0]; node; node = strata_order_next(&table->order, node)) EXPECT_EQ(node, nodes[i++]);
    EXPECT_EQ(i, KEYS);
    EXPECT_EQ(find(table, (strata_order_key_t){0, 0, 0}), 0);
    EXPECT_EQ(find(table, (strata_order_key_t){1, 5, 8}), 0);
    EXPECT_EQ(find(table, (strata_order_key_t){UINT64_MAX, 1, 0}), 0);
}

static void expect_all(table_t *table, const uint32_t *held, uint32_t count) {
    uint32_t node = table->order.first[0];
    for (uint32_t key = 0; key < count; key++) {
        if (held[key] == 0) continue;
        EXPECT_EQ(node, held[key]);
        node = node ? strata_order_next(&table->order, node) : 0;
    }
    EXPECT_EQ(node, 0);
}

TEST_TABLE(random_adds_and_removals) {
    enum { KEYS = 600 };
    static uint32_t held[KEYS];
    uint64_t seed = 3;
    for (int step = 0; step < 20000; step++) {
        uint32_t i = (uint32_t)random_below(&seed, KEYS);
        strata_order_key_t key = {i / 100, i / 10 % 10, i % 10};
        EXPECT_EQ(find(table, key), held[i]);
        if (held[i]) drop(table, held[i]);
        held[i] = held[i] ? 0 : put(table, key);
        if (step % 256) continue;
        ASSERT_OK(strata_order_validate(&table->order));
        expect_all(table, held, KEYS);
    }
}

TEST_TABLE(the_neighbours_of_a_key_whether_one_stands_there_or_not) {
    uint32_t nodes[100];
    for (uint32_t i = 0; i < 100; i++) nodes[i * 37 % 100] = put(table, (strata_order_key_t){.first = 10 * (i * 37 % 100) + 10});
    for (uint32_t at = 0; at < 1020; at++) {
        const strata_order_key_t key = {.first = at};
        EXPECT_EQ(strata_order_from(&table->order, &key), at <= 1000 ? nodes[at <= 10 ? 0 : (at + 9) / 10 - 1] : 0);
        EXPECT_EQ(strata_order_before(&table->order, &key), at > 10 ? nodes[at > 1000 ? 99 : (at - 1) / 10 - 1] : 0);
    }
}

/* Rising, falling, and neither. */
TEST(order, coming_in_and_going_out_passes_few_of_many) {
    enum { LOOKS = 40 };
    for (uint64_t turn = 0; turn < 3; turn++) {
        const uint64_t factors[] = {1, NODES - 1, 1237};
        table_t table;
        uint32_t nodes[NODES];
        ASSERT_TRUE(open_table(&table));
        for (uint64_t i = 0; i < NODES; i++) nodes[i] = put(&table, (strata_order_key_t){.second = i * factors[turn] % NODES});
        EXPECT_LE(table.order.examined, LOOKS * NODES);
        ASSERT_OK(strata_order_validate(&table.order));
        table.order.examined = 0;
        for (uint64_t i = 0; i < NODES; i++)
            EXPECT_EQ(find(&table, (strata_order_key_t){.second = i * factors[turn] % NODES}), nodes[i]);
        EXPECT_LE(table.order.examined, LOOKS * NODES);
        table.order.examined = 0;
        for (uint64_t i = 0; i < NODES; i++) drop(&table, nodes[i]);
        EXPECT_LE(table.order.examined, LOOKS * NODES);
        EXPECT_EQ(table.order.count, 0);
        EXPECT_OK(strata_order_validate(&table.order));
        strata_nodes_destroy(&table.nodes);
    }
}

TEST_TABLE(validate_finds_planted_faults) {
    for (uint32_t i = 0; i < 100; i++) put(table, (strata_order_key_t){.second = 2 * i});
    uint32_t high = table->order.first[1];
    strata_order_link_t *own = strata_order_link(&table->order, high);
    EXPECT_CAUGHT(strata_order_validate(&table->order), own->key.second, 500);
    EXPECT_CAUGHT(strata_order_validate(&table->order), own->key.second, own->key.second + 2);
    EXPECT_CAUGHT(strata_order_validate(&table->order), own->next[0], 0);
    EXPECT_CAUGHT(strata_order_validate(&table->order), own->next[0], high); /* a circle */
    EXPECT_CAUGHT(strata_order_validate(&table->order), own->next[0], 999);
    EXPECT_CAUGHT(strata_order_validate(&table->order), own->next[1], 0);
    EXPECT_CAUGHT(strata_order_validate(&table->order), table->order.first[1], own->next[1]);
    EXPECT_CAUGHT(strata_order_validate(&table->order), table->order.first[7], 999);
    EXPECT_CAUGHT(strata_order_validate(&table->order), table->order.count, 99);
    EXPECT_CAUGHT(strata_order_validate(&table->order), table->order.count, 101);
}
