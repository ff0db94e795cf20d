/* Pinned and host memory as Paddle has them: the presets' stacks, and what the flags change. */
#include "tests/config/imports/imported.h"

static const char *pinned_value(const strata_strategy_t *strategy, const char *layer, const char *option) {
    return value_in(&strategy->stacks[STRATA_PLACE_PINNED], layer, option);
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
    return import_right("paddle", text, NULL);
}

TEST(paddle_places, the_flag_exchanges_the_buddy_pool_under_every_strategy) {
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        imported_t made = import_under(strategies[i], "FLAGS_use_auto_growth_pinned_allocator=true");
        expect_growth(made.strategy, "0");
        EXPECT_STREQ(made.told, "");
        expect_round_trip(&made);
        delete_imported(&made);
        made = import_under(strategies[i], "FLAGS_use_auto_growth_pinned_allocator=false");
        expect_buddy(made.strategy, "0.5");
        EXPECT_STREQ(made.told, "");
        expect_round_trip(&made);
        delete_imported(&made);
    }
}

TEST(paddle_places, the_fraction_is_the_buddy_pools_alone) {
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        imported_t made = import_under(strategies[i], "FLAGS_fraction_of_cuda_pinned_memory_to_use=.25");
        expect_buddy(made.strategy, "0.25");
        EXPECT_STREQ(made.told, "");
        expect_round_trip(&made);
        delete_imported(&made);
        made = import_under(strategies[i],
                            "FLAGS_fraction_of_cuda_pinned_memory_to_use=.25 FLAGS_use_auto_growth_pinned_allocator=true");
        expect_growth(made.strategy, "0");
        EXPECT_CONTAINS(made.told, "FLAGS_fraction_of_cuda_pinned_memory_to_use=.25 is ignored: "
                                   "FLAGS_use_auto_growth_pinned_allocator decides\n");
        delete_imported(&made);
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
        expect_round_trip(&made);
        delete_imported(&made);
    }
}

TEST(paddle_places, the_divided_pool_is_divided_in_both_places) {
    imported_t made CLOSED_BY(delete_imported) = import_right(
        "paddle",
        "FLAGS_small_pool_size_in_mb=1 FLAGS_small_pool_auto_growth_chunk_size_in_mb=2 "
        "FLAGS_large_pool_auto_growth_chunk_size_in_mb=16 FLAGS_large_pool_pre_alloc_in_mb=20 "
        "FLAGS_use_auto_growth_pinned_allocator=1",
        NULL);
    expect_growth(made.strategy, "16MiB");
    EXPECT_STREQ(pinned_value(made.strategy, "auto_growth", "small_pool_size"), "1MiB");
    EXPECT_STREQ(pinned_value(made.strategy, "auto_growth", "small_chunk_size"), "2MiB");
    EXPECT_STREQ(pinned_value(made.strategy, "auto_growth", "preallocate"), "0");
    EXPECT_STREQ(value_of(made.strategy, "auto_growth", "preallocate"), "20MiB");
}

/* Without caches there is no pool to exchange. */
TEST(paddle_places, without_a_pool_the_flag_is_told_of) {
    imported_t made CLOSED_BY(delete_imported) = import_right(
        "paddle", "FLAGS_use_system_allocator=true FLAGS_use_auto_growth_pinned_allocator=true", NULL);
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
        imported_t made CLOSED_BY(delete_imported) = import_right(others[i].peer, others[i].text, NULL);
        EXPECT_STREQ(layers_in(made.strategy, STRATA_PLACE_PINNED), "retry stream_safe auto_growth system");
        EXPECT_STREQ(pinned_value(made.strategy, "auto_growth", "preallocate"), i == 0 ? "16MiB" : "8GiB");
        EXPECT_STREQ(pinned_value(made.strategy, "auto_growth", "chunk_size"), "8MiB");
        EXPECT_STREQ(layers_in(made.strategy, STRATA_PLACE_HOST), "retry stream_safe auto_growth system");
        expect_round_trip(&made);
    }
}
