/* Which layer may stand above which, told at the upper of the two that clash. */
#include <string.h>

#include "allocation/domain/layer.h"
#include "tests/harness/owned.h"
#include "tests/strategy/fakes.h"

typedef const strata_layer_type_t *list_t[70];

TEST(legality, a_source_ends_the_stack_and_stands_nowhere_else) {
    expect_legal((list_t){&source});
    expect_legal((list_t){&passes, &cache, &source});
    expect_illegal((list_t){&cache}, 0, "\"cache\" has nothing below it");
    expect_illegal((list_t){&source, &cache}, 0, "\"source\" is a source, but \"cache\" is below it");
    expect_illegal((list_t){&passes, &source, &source}, 1, "\"source\" is a source");
}

TEST(legality, needs_are_given_by_what_stands_below_or_passed_on) {
    expect_legal((list_t){&needs_order, &ordered_source});
    expect_legal((list_t){&needs_order, &cache, &source});
    expect_legal((list_t){&needs_order, &passes, &passes, &ordered_source});
    expect_illegal((list_t){&needs_order, &source}, 0,
                   "\"needs_order\" needs stream_ordered below it, which \"source\" does not give");
    expect_illegal((list_t){&passes, &needs_order, &locker, &ordered_source}, 1,
                   "which \"locker\" does not give; put auto_growth or");
}

TEST(legality, a_layer_that_waits_stands_below_no_lock) {
    expect_legal((list_t){&waiter, &locker, &cache, &source});
    expect_legal((list_t){&passes, &waiter, &cache, &source});
    expect_illegal((list_t){&locker, &waiter, &source}, 0, "\"locker\" holds a lock and is above \"waiter\", which may wait");
    expect_illegal((list_t){&cache, &passes, &passes, &waiter, &source}, 0, "put \"waiter\" above \"cache\"");
    expect_illegal((list_t){&passes, &locker, &waiting_source}, 1, "is above \"waiting_source\"");
}

TEST(legality, what_a_thread_shares_stands_above_nothing_of_a_stream) {
    expect_legal((list_t){&thread_cache, &device_cache, &source});
    expect_legal((list_t){&passes, &thread_cache, &passes, &source});
    expect_illegal((list_t){&thread_cache, &cache, &source}, 0,
                   "\"thread_cache\" is shared by all streams of a thread and is above \"cache\", which every stream has its own "
                   "instance of");
}

TEST(legality, no_shared_lock_above_a_cache) {
    expect_legal((list_t){&cache, &device_count, &source});
    expect_legal((list_t){&device_cache, &device_cache, &source});
    expect_legal((list_t){&router, &device_cache, &source});
    expect_illegal((list_t){&device_count, &cache, &source}, 0,
                   "\"device_count\" is shared by all streams and is above the cache \"cache\"");
    expect_illegal((list_t){&device_count, &passes, &device_cache, &source}, 0, "put \"device_count\" below \"device_cache\"");
}

TEST(legality, what_tells_owners_stands_below_no_cache) {
    expect_legal((list_t){&passes, &tells_owners, &passes, &cache, &source});
    expect_illegal((list_t){&cache, &tells_owners, &source}, 0, "put \"tells_owners\" above \"cache\"");
    expect_illegal((list_t){&passes, &device_cache, &passes, &tells_owners, &source}, 1, "would change owners unseen");
}

TEST(legality, what_is_of_one_stream_stands_below_nothing_shared) {
    expect_illegal((list_t){&device_count, &locker, &source}, 0, "above \"locker\", which every stream has its own instance of");
    expect_illegal((list_t){&device_cache, &thread_cache, &source}, 0,
                   "above \"thread_cache\", which every thread has its own instance of");
    expect_illegal((list_t){&router, &cache, &source}, 0, "put \"cache\" above \"router\"");
}

TEST(legality, a_decorator_stack_is_bounded) {
    list_t eight = {&passes, &passes, &passes, &passes, &passes, &passes, &passes, &source};
    expect_legal(eight);
    eight[7] = &cache;
    eight[8] = &passes;
    eight[9] = &source;
    expect_legal(eight);
    eight[7] = &passes;
    eight[8] = &source;
    eight[9] = NULL;
    expect_illegal(eight, 8, "\"source\" is layer 9 from the top or the last cache, and the maximum is 8");
}

TEST(legality, a_plan_is_bounded) {
    list_t stack = {NULL};
    for (size_t i = 0; i < STRATA_PLAN_NODES - 1; i++) stack[i] = &cache;
    stack[STRATA_PLAN_NODES - 1] = &source;
    expect_legal(stack);
    stack[STRATA_PLAN_NODES - 1] = &cache;
    stack[STRATA_PLAN_NODES] = &source;
    expect_illegal(stack, STRATA_PLAN_NODES, "has 65 layers, and the maximum is 64");
}

TEST(legality, an_empty_stack_is_told_at_its_place) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = stack_of(STRATA_PLACE_HOST, (list_t){NULL});
    strata_plan_t plan;
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_strategy_plan(strategy, STRATA_PLACE_HOST, &plan));
    EXPECT_STREQ(strata_last_error()->text,
                 "fake.yaml:9:3: the stack of the place host has no layers; write at least \"- system\"");
}

/* Verdicts by hand: what the builder says of a layer of the row above one of the column, and a source that is stream_ordered. */
static const strata_layer_type_t *const judged[] = {&cache,       &device_cache, &thread_cache, &locker, &waiter,
                                                    &needs_order, &passes,       &device_count, &router, &tells_owners};
enum { JUDGED = sizeof judged / sizeof *judged };

static const struct {
    const strata_layer_type_t *upper;
    char verdicts[JUDGED + 1]; /* of each lower one, as in `reasons`; '.' is legal */
} matrix[JUDGED] = {
    {&cache, "....w....u"}, /* a wait under its lock; owners that change unseen */
    {&device_cache, "n.nnw....u"}, /* and nothing that a stream or thread has of its own */
    {&thread_cache, "n..nw....u"}, {&locker, "....w....."},
    {&waiter, ".........."},       {&needs_order, "..mmmm.mm."}, /* what neither gives stream_ordered nor passes it on */
    {&passes, ".........."},       {&device_count, "sssn......"}, /* no lock of all streams on the way to a hit */
    {&router, "n.nn......"},       {&tells_owners, ".........."},
};

static const char *reason_of(char verdict) {
    switch (verdict) {
    case 'w': return "which may wait";
    case 's': return "every hit would take its lock";
    case 'n': return "has its own instance of";
    case 'm': return "needs stream_ordered below it";
    case 'u': return "change owners unseen";
    default: return "";
    }
}

TEST(legality, every_pair_is_judged_as_the_matrix_says) {
    for (size_t i = 0; i < JUDGED; i++)
        for (size_t j = 0; j < JUDGED; j++) {
            char verdict = matrix[i].verdicts[j];
            strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = stack_of(
                STRATA_PLACE_GPU, (list_t){matrix[i].upper, judged[j], &ordered_source});
            strata_plan_t plan;
            bool legal = strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan) == STRATA_OK;
            const char *said = legal ? "" : strata_last_error()->text;
            if (legal != (verdict == '.') || !strstr(said, reason_of(verdict)))
                FAIL_TEST("%s above %s, by hand '%c': %s", matrix[i].upper->name, judged[j]->name, verdict, legal ? "legal" : said);
        }
}

/* The same of the layers that there are, with their options as they come. */
TEST(legality, layers_are_judged_as_they_have_always_been) {
    static const struct {
        const char *upper, *lower;
        strata_clash_t clash;
    } pairs[] = {
        {"retry", "stream_safe", STRATA_CLASH_NONE},          {"stream_safe", "retry", STRATA_CLASH_WAITS},
        {"auto_growth", "retry", STRATA_CLASH_WAITS},         {"fill", "retry", STRATA_CLASH_NONE},
        {"limit", "auto_growth", STRATA_CLASH_SHARED_LOCK},   {"auto_growth", "limit", STRATA_CLASH_NONE},
        {"fault", "caching", STRATA_CLASH_SHARED_LOCK},       {"limit", "stat", STRATA_CLASH_NARROW},
        {"caching", "auto_growth", STRATA_CLASH_NARROW},      {"auto_growth", "caching", STRATA_CLASH_NONE},
        {"bfc", "thread_local", STRATA_CLASH_NARROW},         {"thread_local", "bfc", STRATA_CLASH_NONE},
        {"auto_growth", "scrub", STRATA_CLASH_UNSEEN},        {"scrub", "auto_growth", STRATA_CLASH_NONE},
        {"system", "auto_growth", STRATA_CLASH_BELOW_SOURCE}, {"binning", "retry", STRATA_CLASH_NONE},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const strata_layer_type_t *upper = strata_layer_find(pairs[i].upper), *lower = strata_layer_find(pairs[i].lower);
        ASSERT_TRUE(upper && lower);
        strata_clash_t clash = strata_clash_of_neighbours(upper, strata_scope_of(upper, NULL), lower, lower->gives);
        if (clash != pairs[i].clash)
            FAIL_TEST("%s above %s: %d, not %d", upper->name, lower->name, (int)clash, (int)pairs[i].clash);
    }
}
