/* Pinned and host memory as Paddle has them: the presets' stacks, and what the flags change. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocation/options/option.h"
#include "config/import/import.h"
#include "platform/place.h"
#include "tests/config/refused.h"

/* "naive_best_fit system". */
static const char *layers_in(const strata_strategy_t *strategy, strata_place_kind_t place) {
    static char names[256];
    const strata_model_stack_t *stack = &strategy->stacks[place];
    names[0] = '\0';
    for (size_t i = 0; i < stack->count; i++) {
        if (i > 0) strcat(names, " ");
        strcat(names, stack->layers[i].type->name);
    }
    return names;
}

static const char *pinned_value(const strata_strategy_t *strategy, const char *layer, const char *option) {
    static char value[STRATA_OPTION_TEXT_BYTES];
    const strata_model_stack_t *stack = &strategy->stacks[STRATA_PLACE_PINNED];
    for (size_t i = 0; i < stack->count; i++) {
        const strata_option_row_t *row = strata_option_find(stack->layers[i].type, option);
        if (strcmp(stack->layers[i].type->name, layer) != 0 || !row) continue;
        strata_option_print(row, stack->layers[i].options, value, sizeof value);
        return value;
    }
    return "(none)";
}

static void expect_buddy(const strata_strategy_t *strategy, const char *fraction) {
    EXPECT_STREQ(layers_in(strategy, STRATA_PLACE_PINNED), "naive_best_fit system");
    EXPECT_STREQ(pinned_value(strategy, "naive_best_fit", "streams"), "ignored");
    EXPECT_STREQ(pinned_value(strategy, "naive_best_fit", "fraction"), fraction);
    EXPECT_STREQ(pinned_value(strategy, "naive_best_fit", "parts"), "256");
    EXPECT_STREQ(pinned_value(strategy, "naive_best_fit", "min_block"), "64KiB");
    EXPECT_STREQ(pinned_value(strategy, "naive_best_fit", "header"), "64");
}

static void expect_growth(const strata_strategy_t *strategy, const char *chunk_size) {
    EXPECT_STREQ(layers_in(strategy, STRATA_PLACE_PINNED), "auto_growth system");
    EXPECT_STREQ(pinned_value(strategy, "auto_growth", "alignment"), "64KiB");
    EXPECT_STREQ(pinned_value(strategy, "auto_growth", "chunk_size"), chunk_size);
    EXPECT_STREQ(pinned_value(strategy, "auto_growth", "order"), "address");
    EXPECT_STREQ(pinned_value(strategy, "auto_growth", "reclaim"), "own");
}

typedef struct imported {
    strata_import_t *import;
    strata_strategy_t *strategy;
    char *told;
} imported_t;

static imported_t import_of(const char *peer, const char *text) {
    imported_t made = {.import = NULL};
    size_t length;
    EXPECT_OK(strata_import_new(&(strata_import_request_t){.peer = peer, .text = text}, &made.import));
    if (made.import) made.strategy = load_request(&(strata_config_request_t){.import = made.import});
    FILE *out = open_memstream(&made.told, &length);
    if (made.import) strata_import_tell(made.import, "", out);
    fclose(out);
    return made;
}

static void end(imported_t *made) {
    strata_strategy_delete(made->strategy);
    strata_import_delete(made->import);
    free(made->told);
}

/* The file of an import gives the same stacks. */
static void expect_file_alike(const imported_t *made) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    EXPECT_OK(strata_import_write(made->import, made->strategy, out));
    fclose(out);
    strata_strategy_t *again = load_text(text);
    FILE *difference = tmpfile();
    if (again) EXPECT_OK(strata_config_diff(made->strategy, again, "a", "b", difference));
    EXPECT_CONTAINS(read_back(difference), "no difference");
    strata_strategy_delete(again);
    free(text);
}

/* ---- presets ---- */

static const char *const presets[] = {"paddle", "paddle-vmm", "cuda_malloc_async", "naive_best_fit", "thread_local"};
enum { WITH_SYSTEM_HOST = 3 };

TEST(paddle_places, pinned_memory_has_the_buddy_pool_in_every_preset) {
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        strata_strategy_t *strategy = load_request(&(strata_config_request_t){.preset = presets[i]});
        expect_buddy(strategy, "0.5");
        if (i < WITH_SYSTEM_HOST) EXPECT_STREQ(layers_in(strategy, STRATA_PLACE_HOST), "system");
        strata_strategy_delete(strategy);
    }
}

/* ---- flags ---- */

static const char *const strategies[] = {"", "FLAGS_use_vmm_auto_growth_best_fit_allocator_v2=true ",
                                         "FLAGS_use_cuda_malloc_async_allocator=true ", "FLAGS_allocator_strategy=naive_best_fit ",
                                         "FLAGS_allocator_strategy=thread_local "};

static imported_t import_under(const char *strategy, const char *flags) {
    char text[512];
    snprintf(text, sizeof text, "%s%s", strategy, flags);
    return import_of("paddle", text);
}

TEST(paddle_places, the_flag_exchanges_the_buddy_pool_under_every_strategy) {
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        imported_t made = import_under(strategies[i], "FLAGS_use_auto_growth_pinned_allocator=true");
        expect_growth(made.strategy, "0");
        EXPECT_STREQ(made.told, "");
        expect_file_alike(&made);
        end(&made);
        made = import_under(strategies[i], "FLAGS_use_auto_growth_pinned_allocator=false");
        expect_buddy(made.strategy, "0.5");
        EXPECT_STREQ(made.told, "");
        expect_file_alike(&made);
        end(&made);
    }
}

TEST(paddle_places, the_fraction_is_the_buddy_pools_alone) {
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        imported_t made = import_under(strategies[i], "FLAGS_fraction_of_cuda_pinned_memory_to_use=.25");
        expect_buddy(made.strategy, "0.25");
        EXPECT_STREQ(made.told, "");
        expect_file_alike(&made);
        end(&made);
        made = import_under(strategies[i],
                            "FLAGS_fraction_of_cuda_pinned_memory_to_use=.25 FLAGS_use_auto_growth_pinned_allocator=true");
        expect_growth(made.strategy, "0");
        EXPECT_CONTAINS(made.told, "FLAGS_fraction_of_cuda_pinned_memory_to_use=.25 is ignored: "
                                   "FLAGS_use_auto_growth_pinned_allocator decides\n");
        end(&made);
    }
}

/* The flags of auto_growth are global in Paddle: they count where the gpu's stack has no auto_growth, too. */
TEST(paddle_places, the_flags_of_auto_growth_count_for_both_places) {
    static const char flags[] = "FLAGS_auto_growth_chunk_size_in_mb=4 FLAGS_free_idle_chunk=true "
                                "FLAGS_free_when_no_cache_hit=true FLAGS_use_auto_growth_pinned_allocator=true";
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        imported_t made = import_under(strategies[i], flags);
        expect_growth(made.strategy, "4MiB");
        EXPECT_STREQ(pinned_value(made.strategy, "auto_growth", "free_idle_chunk"), "true");
        EXPECT_STREQ(pinned_value(made.strategy, "auto_growth", "free_when_no_cache_hit"), "true");
        if (i == 0) EXPECT_STREQ(value_of(made.strategy, "auto_growth", "chunk_size"), "4MiB");
        EXPECT_STREQ(made.told, "");
        expect_file_alike(&made);
        end(&made);
    }
}

TEST(paddle_places, the_divided_pool_is_divided_in_both_places) {
    imported_t made CLOSED_BY(end) = import_of(
        "paddle", "FLAGS_small_pool_size_in_mb=1 FLAGS_small_pool_auto_growth_chunk_size_in_mb=2 "
                  "FLAGS_large_pool_auto_growth_chunk_size_in_mb=16 FLAGS_large_pool_pre_alloc_in_mb=20 "
                  "FLAGS_use_auto_growth_pinned_allocator=1");
    expect_growth(made.strategy, "16MiB");
    EXPECT_STREQ(pinned_value(made.strategy, "auto_growth", "small_pool_size"), "1MiB");
    EXPECT_STREQ(pinned_value(made.strategy, "auto_growth", "small_chunk_size"), "2MiB");
    EXPECT_STREQ(pinned_value(made.strategy, "auto_growth", "preallocate"), "0");
    EXPECT_STREQ(value_of(made.strategy, "auto_growth", "preallocate"), "20MiB");
}

/* Without caches there is no pool to exchange. */
TEST(paddle_places, without_a_pool_the_flag_is_told_of) {
    imported_t made CLOSED_BY(end) = import_of("paddle",
                                               "FLAGS_use_system_allocator=true FLAGS_use_auto_growth_pinned_allocator=true");
    EXPECT_STREQ(layers_in(made.strategy, STRATA_PLACE_PINNED), "system");
    EXPECT_STREQ(made.told, "<paddle>:1:33: FLAGS_use_auto_growth_pinned_allocator=true is ignored: "
                            "FLAGS_use_system_allocator=true means the preset system, which has no such option\n");
}

/* ---- other peers ---- */

TEST(paddle_places, the_drivers_pool_of_other_peers_keeps_the_default_pinned_memory) {
    static const struct {
        const char *peer, *text;
    } others[] = {{"pytorch", "backend:cudaMallocAsync,pinned_reserve_segment_size_mb:16"},
                  {"tensorflow", "TF_GPU_ALLOCATOR=cuda_malloc_async XLA_PJRT_GPU_HOST_MEMORY_PREALLOCATE=true "
                                 "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=8 XLA_PYTHON_CLIENT_PREALLOCATE=false"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        imported_t made CLOSED_BY(end) = import_of(others[i].peer, others[i].text);
        EXPECT_STREQ(layers_in(made.strategy, STRATA_PLACE_PINNED), "retry stream_safe auto_growth system");
        EXPECT_STREQ(pinned_value(made.strategy, "auto_growth", "preallocate"), i == 0 ? "16MiB" : "8GiB");
        EXPECT_STREQ(pinned_value(made.strategy, "auto_growth", "chunk_size"), "8MiB");
        EXPECT_STREQ(layers_in(made.strategy, STRATA_PLACE_HOST), "retry stream_safe auto_growth system");
        expect_file_alike(&made);
    }
}

/* ---- what is refused ---- */

TEST(paddle_places, wrong_values_are_refused) {
    static const struct {
        const char *text, *what;
    } wrong[] = {
        {"FLAGS_use_auto_growth_pinned_allocator=perhaps",
         "<paddle>:1:1: \"perhaps\" is no value of FLAGS_use_auto_growth_pinned_allocator; write true or false"},
        {"FLAGS_use_auto_growth_pinned_allocator=", "\"\" is no value of FLAGS_use_auto_growth_pinned_allocator"},
        {"FLAGS_use_auto_growth_pined_allocator=true", "write FLAGS_use_auto_growth_pinned_allocator"},
        {"FLAGS_fraction_of_cuda_pinned_memory_to_use=1.5", "naive_best_fit.fraction: \"1.5\" is too large"},
        {"FLAGS_fraction_of_cuda_pinned_memory_to_use=half",
         "\"half\" is no value of FLAGS_fraction_of_cuda_pinned_memory_to_use; write a decimal number"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        strata_import_t *import = NULL;
        strata_strategy_t *strategy = NULL;
        strata_status_t status = strata_import_new(&(strata_import_request_t){.peer = "paddle", .text = wrong[i].text}, &import);
        if (status == STRATA_OK) status = strata_config_load(&(strata_config_request_t){.import = import}, &strategy);
        EXPECT_EQ(status, STRATA_E_STRATEGY);
        EXPECT_CONTAINS(strata_last_error()->text, wrong[i].what);
        strata_strategy_delete(strategy);
        strata_import_delete(import);
    }
}
