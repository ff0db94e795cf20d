/* The suite over the registry, one layer from outside it, and every preset: one case a subject and check. */
#include <stdio.h>

#include "lab/conform/checks.h"
#include "tests/allocation/test_layers.h"
#include "tests/harness/test.h"

static subject_t all[SUBJECTS];

/* A check of a subject. */
typedef struct case_of {
    const check_t *check;
    const subject_t *subject;
} case_of_t;

static void run_case(const void *context) {
    const case_of_t *one = context;
    one->check->run(one->subject);
}

/* A cache as it was before blocks could be looked for and caches trimmed: what it lacks the core does without. */
static const strata_layer_type_t *older_cache(void) {
    static strata_layer_type_t older;
    older = *strata_layer_find("auto_growth");
    older.struct_size = offsetof(strata_layer_type_t, find);
    older.find = NULL;
    older.trim = NULL;
    older.name = "older_cache";
    return &older;
}

/* auto_growth with what divides its chunks and changes its rules, alone and together. */
static void add_pools(subject_t *list, size_t *count) {
    static const subject_t pools[] = {
        {.name = "auto_growth_small_and_large",
         .preset = "stack:\n  - stream_safe\n  - auto_growth: {small_pool_size: 16KiB, small_chunk_size: 256KiB, "
                   "chunk_size: 4MiB, small_preallocate: 1MiB, preallocate: 8MiB, order: any}\n  - system\n"},
        {.name = "auto_growth_split",
         .preset = "stack:\n  - stream_safe\n  - auto_growth: {chunk_size: 128KiB, split_pools: true, order: any, "
                   "reclaim: ladder, smaller_growth: true}\n  - system\n"},
        {.name = "auto_growth_split_by_address",
         .preset = "stack:\n  - auto_growth: {chunk_size: 64KiB, split_pools: true, free_idle_chunk: true}\n  - system\n"},
        {.name = "auto_growth_warming_up",
         .preset = "stack:\n  - auto_growth: {chunk_size: 128KiB, split_pools: true, warm_up_steps: 1, preallocate: "
                   "1MiB}\n  - system\n"},
    };
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++, ++*count)
        if (*count < SUBJECTS) list[*count] = pools[i];
}

/* caching with its rules changed, left to the ladder, and over a limit. */
static void add_caching(subject_t *list, size_t *count) {
    static const subject_t caching[] = {
        {.name = "caching_changed",
         .preset = "stack:\n  - caching: {max_split_size: 20MiB, memory_fraction: 0.5, garbage_collection_threshold: 0.3, "
                   "roundup_power2_divisions: 4, search_after_events: true, smaller_growth: true}\n  - system\n"},
        {.name = "caching_under_retry",
         .preset = "stack:\n  - retry: {timeout: 1ms}\n  - caching: {reclaim: ladder, smaller_growth: true}\n  - system\n"},
        {.name = "caching_over_limit", .preset = "stack:\n  - caching: {streams: ignored}\n  - limit\n  - system\n"},
    };
    for (size_t i = 0; i < sizeof caching / sizeof *caching; i++, ++*count)
        if (*count < SUBJECTS) list[*count] = caching[i];
}

/* bfc with counts, notes and one region, left to the ladder, and where memory below comes in a stream's order. */
static void add_bfc(subject_t *list, size_t *count) {
    static const subject_t bfc[] = {
        {.name = "bfc_changed",
         .preset = "stack:\n  - bfc: {timestamps: true, memory_debug: true, memory_fraction: 0.5, fragmentation_fraction: 0.01}"
                   "\n  - system\n"},
        {.name = "bfc_under_retry",
         .preset = "stack:\n  - retry: {timeout: 1ms}\n  - bfc: {reclaim: ladder, initial_region: 64KiB}\n  - system\n"},
        {.name = "bfc_waiting", .preset = "stack:\n  - retry: {timeout: 1ms, steps: wait}\n  - bfc\n  - system\n"},
        {.name = "bfc_over_async", .preset = "stack:\n  - bfc\n  - cuda_malloc_async\n"},
        {.name = "bfc_coalescing", .preset = "stack:\n  - bfc: {coalesce_regions: true, max_region: 2MiB}\n  - vmm\n"},
        {.name = "bfc_coalescing_under_retry",
         .preset = "stack:\n  - retry: {timeout: 1ms}\n  - bfc: {coalesce_regions: true, timestamps: true, reclaim: ladder}\n"
                   "  - limit\n  - vmm\n"},
        {.name = "bfc_over_caching", .preset = "stack:\n  - bfc\n  - caching\n  - system\n"},
    };
    for (size_t i = 0; i < sizeof bfc / sizeof *bfc; i++, ++*count)
        if (*count < SUBJECTS) list[*count] = bfc[i];
}

/* The caches that ask for the place of the last step first. */
static void add_stable(subject_t *list, size_t *count) {
    static const subject_t stable[] = {
        {.name = "auto_growth_stable",
         .preset = "stack:\n  - stream_safe\n  - auto_growth: {chunk_size: 1MiB, split_pools: true, stable_addresses: true}\n"
                   "  - system\n"},
        {.name = "caching_stable", .preset = "stack:\n  - caching: {max_split_size: 20MiB, stable_addresses: true}\n  - system\n"},
        {.name = "bfc_stable",
         .preset = "stack:\n  - bfc: {timestamps: true, stable_addresses: true, initial_region: 64KiB}\n  - system\n"},
        {.name = "naive_best_fit_stable",
         .preset = "stack:\n  - naive_best_fit: {streams: ignored, stable_addresses: true}\n  - system\n"},
        {.name = "stable_over_stable",
         .preset = "stack:\n  - auto_growth: {stable_addresses: true}\n  - caching: {stable_addresses: true}\n  - system\n"},
    };
    for (size_t i = 0; i < sizeof stable / sizeof *stable; i++, ++*count)
        if (*count < SUBJECTS) list[*count] = stable[i];
}

static size_t subjects(subject_t *list) {
    size_t count = 0;
    for (size_t i = 0; strata_layer_at(i); i++) (void)subjects_of_layer(list, &count, strata_layer_at(i), NULL, NULL);
    (void)subjects_of_layer(list, &count, &test_counter_type, NULL, NULL);
    (void)subjects_of_layer(list, &count, older_cache(), NULL, NULL);
    for (size_t i = 0; strata_strategy_name(i); i++) subject_of_preset(list, &count, strata_strategy_name(i));
    subjects_of_routers(list, &count);
    add_pools(list, &count);
    add_caching(list, &count);
    add_bfc(list, &count);
    add_stable(list, &count);
    return count;
}

static void every_subject_has_its_cases(void) {
    static subject_t list[SUBJECTS];
    size_t count = 0;
    EXPECT_LE(subjects(all), SUBJECTS);
    for (size_t i = 0; strata_layer_at(i); i++) EXPECT_GT(subjects_of_layer(list, &count, strata_layer_at(i), NULL, NULL), 0);
}

__attribute__((constructor)) static void register_suite(void) {
    enum { CASES = 64 };
    static case_of_t cases[SUBJECTS][CASES];
    char suite[80];
    size_t count = subjects(all);
    strata_test_register("conformance", "every_subject_has_its_cases", __FILE__, __LINE__, every_subject_has_its_cases);
    for (size_t i = 0; i < count && i < SUBJECTS; i++) {
        snprintf(suite, sizeof suite, "conformance_%.60s", all[i].name);
        for (size_t c = 0; checks[c].name && c < CASES; c++) {
            cases[i][c] = (case_of_t){&checks[c], &all[i]};
            strata_test_register_of(suite, checks[c].name, __FILE__, __LINE__, run_case, &cases[i][c]);
        }
    }
}
