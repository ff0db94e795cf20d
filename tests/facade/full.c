/* Where the tables of a stack end: the request is told, nothing it took is kept, and what there is goes on. */
#include <stdio.h>

#include "strategy/model.h"
#include "tests/facade/fixture.h"

enum { EXTRA = 5, STACKS = 4 };

static const size_t sizes[] = {600, 30000, 3 * MIB};

/* The slab of the n-th stack of the domain has room for `extra` records more, besides those that were given back to it. */
static uint32_t shorten(rig_t *rig, uint32_t stack, uint32_t extra) {
    strata_slab_t *slab = &rig_domain(rig)->stacks[stack]->slab;
    uint32_t capacity = slab->capacity;
    slab->capacity = slab->used + extra;
    return capacity;
}

/* Answers whether the table was too short for one of the requests. */
static bool ends(rig_t *rig, strata_stream_t stream, uint32_t stack, uint32_t extra) {
    bool ended = false;
    uint32_t capacity = shorten(rig, stack, extra);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        strata_block_t block = {.ref = 7};
        uint64_t reserved = rig_figures(rig).reserved_bytes;
        strata_status_t status = strata_allocate(rig->s, rig->gpu, stream, sizes[i], &block);
        if (status == STRATA_OK) {
            EXPECT_OK(strata_free(rig->s, block.ref));
            continue;
        }
        ended = true;
        EXPECT_EQ(status, STRATA_E_LIMIT);
        EXPECT_CONTAINS(strata_last_error()->text, "most");
        EXPECT_EQ(block.ref, 7);
        EXPECT_LE(rig_figures(rig).reserved_bytes, reserved);
        EXPECT_OK(strata_validate(rig->s));
    }
    rig_domain(rig)->stacks[stack]->slab.capacity = capacity;
    return ended;
}

/* How many of the short tables a stack came to the end of. */
static uint32_t full_tables(const char *layers) {
    uint32_t found = 0;
    char text[200];
    snprintf(text, sizeof text, "strategy: full\nstack: [%s]\n", layers);
    for (uint32_t stack = 0; stack < STACKS; stack++)
        for (uint32_t extra = 0; extra < EXTRA && !strata_test_has_failed(); extra++) {
            rig_t rig;
            rig_open(&rig, text, NULL, 0, 0, 1);
            strata_stream_t stream = rig_stream(&rig);
            strata_block_t kept = rig_allocate(&rig, stream, 1000);
            if (stack < rig_domain(&rig)->stack_count) found += ends(&rig, stream, stack, extra);
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, stream, sizes[i]).ref));
            EXPECT_OK(strata_free(rig.s, kept.ref));
            rig_close(&rig);
            if (strata_test_has_failed()) FAIL_TEST("%s, stack %u, room for %u", layers, stack, extra);
        }
    return found;
}

TEST(facade_full, a_full_table_of_any_cache_and_source_is_told_and_costs_nothing) {
    uint32_t types = 0;
    for (size_t i = 0; strata_layer_at(i); i++) {
        const strata_layer_type_t *type = strata_layer_at(i);
        char layers[100];
        if (type->role != STRATA_CACHE && type->role != STRATA_SOURCE) continue;
        snprintf(layers, sizeof layers, "%s%s", type->name, type->role == STRATA_CACHE ? ", system" : "");
        EXPECT_GT(full_tables(layers), 0);
        types++;
    }
    EXPECT_GT(types, 5);
}

/* Those that make records of their own. */
TEST(facade_full, a_full_table_under_a_decorator_is_told_and_costs_nothing) {
    static const char *const stacks[] = {"guard: {report: false}, auto_growth, system",
                                         "aligned: {alignment: 4KiB}, auto_growth, system",
                                         "stream_safe, guard: {report: false}, buffered, system",
                                         "guard: {report: false}, caching, system"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) EXPECT_GT(full_tables(stacks[i]), 0);
}

TEST(facade_full, nothing_is_asked_for_where_no_record_is_left) {
    rig_t rig;
    strata_block_t block = {.ref = 7};
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    strata_stack_t *stack = rig_stack(&rig, NULL);
    uint32_t capacity = stack->slab.capacity;
    stack->slab.capacity = stack->slab.used;
    EXPECT_STATUS(STRATA_E_LIMIT, strata_allocate(rig.s, rig.gpu, NULL, 0, &block));
    EXPECT_CONTAINS(strata_last_error()->text, "its most");
    EXPECT_EQ(block.ref, 7);
    EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
    stack->slab.capacity = capacity;
    EXPECT_OK(strata_allocate(rig.s, rig.gpu, NULL, 0, &block));
    EXPECT_OK(strata_free(rig.s, block.ref));
    rig_close(&rig);
}
