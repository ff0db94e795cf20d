/* The model, the arena under it, and the layer's own say about its options. */
#include "allocation/options/option.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"
#include "tests/harness/owned.h"
#include "tests/strategy/fakes.h"

typedef struct options {
    uint64_t low, high;
    uint32_t memory;
} options_t;

static const strata_option_row_t rows[] = {
    {"low", STRATA_OPTION_SIZE, offsetof(options_t, low), "1", 0, 0, NULL, "less than high"},
    {"high", STRATA_OPTION_SIZE, offsetof(options_t, high), "2", 0, 0, NULL, "more than low"},
    {"memory", STRATA_OPTION_CHOICE, offsetof(options_t, memory), "device", 0, 0, "device|pinned", "the kind of memory"},
    {0},
};

static strata_status_t check(const void *given, strata_place_kind_t place, const char **option) {
    const options_t *o = given;
    if (o->low < o->high) return STRATA_OK;
    *option = "high";
    return strata_fail(STRATA_E_STRATEGY, 0, "not above low in %s; write more", strata_place_name(place));
}

static const strata_layer_type_t choosy = {.struct_size = sizeof(strata_layer_type_t),
                                           .name = "choosy",
                                           .doc = "a fake",
                                           .role = STRATA_SOURCE,
                                           .scope = STRATA_SCOPE_DEVICE,
                                           .options_size = sizeof(options_t),
                                           .options = rows,
                                           .check = check};
static const strata_origin_t said = {.source = STRATA_FROM_FILE, .file = "fake.yaml", .line = 30, .column = 31};

static void expect_refused(strata_strategy_t *strategy, strata_place_kind_t place, const char *text) {
    strata_plan_t plan;
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_strategy_plan(strategy, place, &plan));
    EXPECT_STREQ(strata_last_error()->text, text);
}

TEST(model, a_layer_judges_its_options_together) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = stack_of(STRATA_PLACE_GPU,
                                                                       (const strata_layer_type_t *[]){&choosy, NULL});
    strata_model_layer_t *layer = &strategy->stacks[STRATA_PLACE_GPU].layers[0];
    strata_plan_t plan;
    EXPECT_OK(strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan));
    EXPECT_OK(strata_model_layer_set(layer, &rows[0], "7", &said));
    expect_refused(strategy, STRATA_PLACE_GPU, "fake.yaml:10:5: choosy.high: not above low in gpu; write more");
    EXPECT_OK(strata_model_layer_set(layer, &rows[1], "7", &said));
    expect_refused(strategy, STRATA_PLACE_GPU, "fake.yaml:30:31: choosy.high: not above low in gpu; write more");
}

TEST(model, a_layer_without_a_check_is_an_older_one) {
    strata_layer_type_t older = choosy;
    older.struct_size = offsetof(strata_layer_type_t, check);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = stack_of(STRATA_PLACE_GPU,
                                                                       (const strata_layer_type_t *[]){&older, NULL});
    strata_plan_t plan;
    EXPECT_OK(strata_model_layer_set(&strategy->stacks[STRATA_PLACE_GPU].layers[0], &rows[0], "7", &said));
    EXPECT_OK(strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan));
}

/* A default that acts on nothing is told at the layer that has it. */
TEST(model, chunks_that_may_not_be_used_as_one_are_not_coalesced_by_default) {
    typedef struct coalescing {
        bool coalesces;
    } coalescing_t;
    static const strata_option_row_t own[] = {
        {"coalesce_regions", STRATA_OPTION_BOOL, offsetof(coalescing_t, coalesces), "true", 0, 0, NULL, "as one"}, {0}};
    strata_layer_type_t coalescing = cache;
    coalescing.options_size = sizeof(coalescing_t);
    coalescing.options = own;
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = stack_of(STRATA_PLACE_GPU,
                                                                       (const strata_layer_type_t *[]){&coalescing, &source, NULL});
    strata_plan_t plan;
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan),
                "fake.yaml:10:5: cache.coalesce_regions: it has no effect");
    EXPECT_OK(strata_model_layer_set(&strategy->stacks[STRATA_PLACE_GPU].layers[0], &own[0], "false", &said));
    EXPECT_OK(strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan));
}

TEST(model, a_source_of_another_memory_is_refused) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = stack_of(STRATA_PLACE_PINNED,
                                                                       (const strata_layer_type_t *[]){&choosy, NULL});
    strata_model_layer_t *layer = &strategy->stacks[STRATA_PLACE_PINNED].layers[0];
    strata_plan_t plan;
    expect_refused(strategy, STRATA_PLACE_PINNED,
                   "fake.yaml:10:5: \"choosy\" with memory: device cannot serve the place pinned; "
                   "write memory: pinned, or leave it out");
    EXPECT_OK(strata_model_layer_set(layer, &rows[2], "device", &said));
    expect_refused(strategy, STRATA_PLACE_PINNED,
                   "fake.yaml:30:31: \"choosy\" with memory: device cannot serve the place pinned; "
                   "write memory: pinned, or leave it out");
    EXPECT_OK(strata_model_layer_set(layer, &rows[2], "pinned", &said));
    EXPECT_OK(strata_strategy_plan(strategy, STRATA_PLACE_PINNED, &plan));
}

TEST(model, places_have_names) {
    for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS; place++)
        EXPECT_EQ(strata_place_find(strata_place_name(place)), place);
    EXPECT_EQ(strata_place_find("stack"), STRATA_PLACE_KINDS);
}

TEST(model, traits_are_spelt_in_small_letters) {
    char text[64];
    strata_traits_text(STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_ZEROED, ", ", text, sizeof text);
    EXPECT_STREQ(text, "stream_ordered, zeroed");
    strata_traits_text(0, ", ", text, sizeof text);
    EXPECT_STREQ(text, "");
    strata_traits_text(~0u, ", ", text, 20);
    EXPECT_LT(strlen(text), 20);
}

TEST(arena, gives_zeroed_aligned_memory_of_any_size) {
    strata_arena_t *arena = strata_arena_new();
    ASSERT_NE(arena, NULL);
    for (size_t size = 1; size < 100000; size = size * 3 + 1) {
        unsigned char *memory = strata_arena_alloc(arena, size, 1);
        ASSERT_NE(memory, NULL);
        EXPECT_EQ((uintptr_t)memory % 16, 0);
        for (size_t i = 0; i < size; i++) ASSERT_EQ(memory[i], 0);
        memset(memory, 0xff, size);
    }
    EXPECT_STREQ(strata_arena_strndup(arena, "some words", 4), "some");
    EXPECT_EQ(strata_arena_alloc(arena, SIZE_MAX / 2, 3), NULL);
    EXPECT_EQ(strata_arena_alloc(arena, SIZE_MAX, 1), NULL);
    EXPECT_EQ(strata_last_error()->status, STRATA_E_HOST_MEMORY);
    strata_arena_delete(arena);
    strata_arena_delete(NULL);
}
