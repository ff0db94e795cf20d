#include "allocation/mechanism/spans.h"

#include "tests/harness/planted.h"
#include "tests/harness/test.h"

enum { UNITS = 200, OWNERS = 12 };

static uint64_t next(uint64_t *random) {
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    return *random >> 33;
}

/* The model: the owner of each unit (0: none), and the units cut from each owner. */
typedef struct model {
    uint32_t owners[UNITS];
    uint64_t cut[OWNERS], seen[OWNERS];
} model_t;

static void see(void *context, uint32_t owner, uint64_t bytes) {
    model_t *model = context;
    ASSERT_LT(owner, OWNERS);
    EXPECT_GT(bytes, 0);
    model->seen[owner] += bytes;
}

static void cut(strata_spans_t *spans, model_t *model, uint64_t from, uint64_t to) {
    for (uint64_t u = from; u < to; u++) {
        model->cut[model->owners[u]]++;
        model->owners[u] = 0;
    }
    model->cut[0] = 0;
    strata_spans_remove(spans, from, to, see, model);
    for (int i = 0; i < OWNERS; i++) EXPECT_EQ(model->seen[i], model->cut[i]);
}

static uint64_t bytes_in(const model_t *model, uint32_t owner) {
    uint64_t bytes = 0;
    for (int u = 0; u < UNITS; u++) bytes += model->owners[u] == owner;
    return bytes;
}

static void hand_over(strata_spans_t *spans, model_t *model, uint32_t owner, uint32_t to) {
    for (int u = 0; u < UNITS; u++)
        if (model->owners[u] == owner) model->owners[u] = to;
    strata_spans_hand_over(spans, owner, to);
    EXPECT_EQ(strata_spans_bytes(spans, owner), bytes_in(model, owner));
}

static void end(strata_spans_t *spans, model_t *model, uint32_t owner) {
    for (int u = 0; u < UNITS; u++)
        if (model->owners[u] == owner) model->owners[u] = 0;
    strata_spans_end(spans, owner);
}

#define TEST_SPANS(name, ...)                                                                                                      \
    TEST_WITH(spans, name, strata_spans_t, spans, strata_spans_destroy, ASSERT_OK(strata_spans_init(spans, __VA_ARGS__)))

TEST_SPANS(agree_with_a_plain_array, 1024) {
    model_t model = {.owners = {0}};
    uint64_t random = 5;
    for (int i = 0; i < 4000 && !strata_test_has_failed(); i++) {
        uint64_t from = next(&random) % UNITS, to = from + 1 + next(&random) % 20;
        uint32_t owner = (uint32_t)(1 + next(&random) % (OWNERS - 1));
        if (to > UNITS) to = UNITS;
        if (i % 5 == 4) {
            end(spans, &model, owner);
        } else if (i % 7 == 0) {
            hand_over(spans, &model, owner, (uint32_t)(1 + next(&random) % (OWNERS - 1)));
        } else {
            cut(spans, &model, from, to);
            if (i % 5 == 0) EXPECT_TRUE(strata_spans_add(spans, owner, from, to));
            for (uint64_t u = from; i % 5 == 0 && u < to; u++) model.owners[u] = owner;
        }
        EXPECT_EQ(strata_spans_bytes(spans, owner), bytes_in(&model, owner));
        EXPECT_OK(strata_spans_validate(spans));
    }
    cut(spans, &model, 0, UNITS);
    EXPECT_EQ(strata_spans_count(spans), 0);
}

/* Spans that only touch the cut are not changed. */
TEST_SPANS(a_cut_ends_before_its_bound, 64) {
    model_t model = {.owners = {0}};
    EXPECT_TRUE(strata_spans_add(spans, 1, 10, 20));
    EXPECT_TRUE(strata_spans_add(spans, 2, 30, 40));
    strata_spans_remove(spans, 20, 30, see, &model);
    EXPECT_EQ(model.seen[1] + model.seen[2], 0);
    strata_spans_remove(spans, 19, 31, see, &model);
    EXPECT_EQ(model.seen[1], 1);
    EXPECT_EQ(model.seen[2], 1);
    strata_spans_end(spans, 1);
    EXPECT_EQ(strata_spans_count(spans), 1);
    strata_spans_remove(spans, 0, 100, see, &model);
    EXPECT_EQ(model.seen[1], 1);
    EXPECT_EQ(model.seen[2], 10);
}

/* A span that cannot be split loses its upper part, too. */
TEST_SPANS(a_full_table_loses_the_upper_part, 1024) {
    model_t model = {.owners = {0}};
    spans->nodes.capacity = 2;
    EXPECT_TRUE(strata_spans_add(spans, 1, 0, 100));
    EXPECT_FALSE(strata_spans_add(spans, 2, 100, 101));
    strata_spans_remove(spans, 40, 50, see, &model);
    EXPECT_EQ(model.seen[1], 60);
    EXPECT_OK(strata_spans_validate(spans));
    strata_spans_remove(spans, 0, 100, see, &model);
    EXPECT_EQ(model.seen[1], 100);
}

TEST_SPANS(planted_faults_are_found, 64) {
    EXPECT_TRUE(strata_spans_add(spans, 1, 10, 20));
    EXPECT_TRUE(strata_spans_add(spans, 2, 20, 30));
    uint64_t *to = (uint64_t *)((char *)strata_node(&spans->nodes, 1) + 8);
    EXPECT_PLANTED(strata_spans_validate(spans), *to, 21, "two overlap");
    EXPECT_PLANTED(strata_spans_validate(spans), *to, 10, "has no bytes");
}
