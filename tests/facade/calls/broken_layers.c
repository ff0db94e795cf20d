/* Layers from outside that the ones of the tree must bear: promises that are broken below a cache, requests above it that no facade
 * makes, and operations that are left out. */
#include <stdio.h>
#include <stdlib.h>

#include "allocation/domain/layer.h"
#include "tests/facade/support/fixture.h"
#include "tests/harness/owned.h"

/* ---- below a cache ---- */

static strata_status_t crooked_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_request_t below = *request;
    strata_record_t *inner;
    below.size = request->size + 64;
    strata_status_t status = strata_below_allocate(self, &below, &inner);
    if (status != STRATA_OK) return status;
    *record = strata_record_wrap(self, request, inner, inner->ptr + 64, request->size);
    return *record ? STRATA_OK : STRATA_E_LIMIT;
}

static void crooked_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    strata_below_free(strata_record_unwrap(self, record), call);
}

static const strata_layer_type_t crooked_type = DECORATOR("test_crooked", STRATA_SCOPE_DEVICE, crooked_allocate, crooked_free,
                                                          .guarded = true);

static void open_with(rig_t *rig, const strata_layer_type_t *type, const char *stack) {
    EXPECT_OK(strata_layers_register(&type, 1, true));
    rig_open_stack(rig, stack, 0);
}

TEST(facade_crooked, a_cache_refuses_memory_that_begins_elsewhere_and_gives_it_back) {
    static const char *const stacks[] = {"auto_growth, test_crooked, system", "caching, test_crooked, system",
                                         "bfc, test_crooked, system"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        RIG_BY(rig, open_with(&rig, &crooked_type, stacks[i]));
        EXPECT_SAYS(STRATA_E_UNSUPPORTED, rig_try(&rig, NULL, 1000), "the layer below aligns");
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), rig_calls(&rig, STRATA_CALL_free));
    }
}

static strata_status_t untidy_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_record_t *inner;
    strata_status_t status = strata_below_allocate(self, request, &inner);
    if (status != STRATA_OK) return status;
    *record = strata_record_wrap(self, request, inner, inner->ptr, request->size);
    return *record ? STRATA_OK : STRATA_E_LIMIT;
}

static void untidy_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    record->borrows = 77;
    strata_below_free(strata_record_unwrap(self, record), call);
}

static const strata_layer_type_t untidy_type = DECORATOR("test_untidy", STRATA_SCOPE_STREAM, untidy_allocate, untidy_free,
                                                         .guarded = true);

/* Its blocks lie in such records, and have no borrowers but those that are noted. */
TEST_BY(facade_crooked, a_cache_takes_nothing_over_from_a_record_that_another_layer_gave_up,
        open_with(rig, &untidy_type, "auto_growth: {chunk_size: 2MiB}, test_untidy, system")) {
    enum { BLOCKS = 4 };
    strata_block_t blocks[BLOCKS];
    strata_stream_t borrower = rig_stream(rig);
    for (int i = 0; i < BLOCKS; i++) blocks[i] = rig_allocate(rig, NULL, 2 * MIB);
    for (int i = 0; i < BLOCKS; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    for (int i = 0; i < BLOCKS; i++) blocks[i] = rig_allocate(rig, NULL, MIB / 4);
    for (int i = 0; i < BLOCKS; i++) EXPECT_OK(strata_record_stream(rig->s, blocks[i].ref, borrower));
    for (int i = 0; i < BLOCKS; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    EXPECT_EQ(rig_figures(rig).host_waits, BLOCKS);
}

/* ---- above a cache ---- */

static uint64_t demanded_size; /* 0: as it came */

static strata_status_t demanding_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_request_t below = *request;
    if (demanded_size) below.size = demanded_size;
    return strata_below_allocate(self, &below, record);
}

static const strata_layer_type_t demanding_type = DECORATOR("test_demanding", STRATA_SCOPE_STREAM, demanding_allocate,
                                                            strata_layer_free_below, .guarded = true);

/* What nothing can serve is refused, costs nothing, and leaves no trace. */
static void demand(const char *below, uint64_t size) {
    char stack[150];
    strata_block_t block = {.ref = 7};
    snprintf(stack, sizeof stack, "test_demanding, %s", below);
    RIG_BY(rig, open_with(&rig, &demanding_type, stack));
    (void)rig_allocate(&rig, NULL, 1000);
    uint64_t reserved = rig_figures(&rig).reserved_bytes;
    demanded_size = size;
    strata_status_t status = strata_allocate(rig.s, rig.gpu, NULL, 3000, &block);
    demanded_size = 0;
    EXPECT_TRUE(status == STRATA_E_INVALID || status == STRATA_E_NO_MEMORY);
    EXPECT_EQ(block.ref, 7);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, reserved);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 3000).ref));
    if (strata_test_has_failed()) FAIL_TEST("%s, %llu bytes", below, (unsigned long long)size);
}

TEST(facade_crooked, sizes_beyond_all_measure_are_refused_by_every_cache_and_source) {
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 200, (1ull << 63) + 1, 1ull << 63, 1ull << 60};
    static const char *const decorated[] = {"guard: {report: false}, auto_growth, system", "aligned: {alignment: 4KiB}, system",
                                            "limit: {bytes: 1TiB}, system"};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes && !strata_test_has_failed(); k++) {
        for (size_t i = 0; strata_layer_at(i) && !strata_test_has_failed(); i++) {
            const strata_layer_type_t *type = strata_layer_at(i);
            char below[100];
            if (type->role != STRATA_CACHE && type->role != STRATA_SOURCE) continue;
            snprintf(below, sizeof below, "%s%s", type->name, type->role == STRATA_CACHE ? source_below(type) : "");
            demand(below, sizes[k]);
        }
        for (size_t i = 0; i < sizeof decorated / sizeof *decorated; i++) demand(decorated[i], sizes[k]);
    }
}

/* ---- operations that are left out ---- */

static strata_status_t noted(strata_layer_t *self, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    (void)self, (void)record, (void)stream, (void)call;
    return STRATA_OK;
}

static const strata_layer_type_t noting_type = DECORATOR("test_noting", STRATA_SCOPE_STREAM, strata_below_allocate,
                                                         strata_layer_free_below, .guarded = true, .record_stream = noted);

TEST_BY(facade_crooked, a_borrow_stays_where_its_layer_cannot_take_it_back, open_with(rig, &noting_type, "test_noting, system")) {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, NULL, 1000);
    EXPECT_OK(strata_record_stream(rig->s, block.ref, stream));
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_erase_stream(rig->s, block.ref, stream), "test_noting cannot undo a borrow");
}

/* ---- needs ---- */

static const strata_layer_type_t needing_type = DECORATOR("test_needing", STRATA_SCOPE_STREAM, strata_below_allocate,
                                                          strata_layer_free_below, .needs = STRATA_TRAIT_CROSS_STREAM_SAFE,
                                                          .guarded = true);

TEST(facade_crooked, the_page_lists_the_layers_that_may_be_below_a_needing_layer) {
    char *page CLOSED_BY(text_cleanup) = NULL;
    size_t length = 0;
    register_layer(&needing_type);
    FILE *out = open_memstream(&page, &length);
    ASSERT_TRUE(out);
    EXPECT_OK(strata_config_layers(out, true));
    fclose(out);
    const char *line = strstr(page, "| `test_needing` | ");
    ASSERT_TRUE(line);
    char text[600];
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
    EXPECT_CONTAINS(text, " | all but retry, ");
    EXPECT_CONTAINS(text, ", system, vmm");
    EXPECT_CONTAINS(text, " (a missing trait) |");
    EXPECT_EQ(strstr(text, "stream_safe"), NULL); /* gives the trait */
    EXPECT_EQ(strstr(text, ", stat,"), NULL); /* passes it on from further down */
}

/* ---- what no strategy can have ---- */

static strata_status_t refuse_all(const void *options, strata_place_kind_t place, const char **option) {
    (void)options, (void)place, (void)option;
    return strata_fail(STRATA_E_STRATEGY, 0, "refused");
}

TEST(facade_crooked, a_layer_that_no_strategy_can_have_is_told_without_an_example) {
    static strata_layer_type_t refusing; /* known by its address */
    const strata_layer_type_t *types[] = {&refusing};
    char *page CLOSED_BY(text_cleanup) = NULL;
    size_t length = 0;
    refusing = noting_type;
    refusing.name = "test_refusing";
    refusing.check = refuse_all;
    ASSERT_OK(strata_layers_register(types, 1, true));
    FILE *out = open_memstream(&page, &length);
    ASSERT_TRUE(out);
    EXPECT_OK(strata_config_layer(out, "test_refusing", 80));
    EXPECT_OK(strata_config_layer(out, "stat", 80));
    fclose(out);
    EXPECT_EQ(strncmp(page, "test_refusing: decorator", strlen("test_refusing: decorator")), 0);
    EXPECT_GT(strstr(page, "\nexample\n"), strstr(page, "\nstat: "));
}
