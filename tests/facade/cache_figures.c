/* Every cache counts alike. */
#include "tests/facade/fixture.h"

static const char *const caches[] = {"auto_growth", "buffered", "caching", "bfc", "naive_best_fit", "thread_local"};

enum { CACHES = sizeof caches / sizeof *caches };

static void open_cache(rig_t *rig, const char *cache) {
    char text[256];
    snprintf(text, sizeof text, "strategy: counted\nstack: [%s, system]\n", cache);
    rig_open(rig, text, NULL, 0, 0, 1);
}

static void expect_figures(rig_t *rig, const char *cache, uint64_t hits, uint64_t growths, uint64_t chunks) {
    strata_statistics_t f = rig_figures(rig);
    if (f.cache_hits != hits || f.growths != growths || f.chunks != chunks)
        FAIL_TEST("%s: %llu hits, %llu growths, %llu chunks, not %llu, %llu, %llu", cache, (unsigned long long)f.cache_hits,
                  (unsigned long long)f.growths, (unsigned long long)f.chunks, (unsigned long long)hits,
                  (unsigned long long)growths, (unsigned long long)chunks);
}

/* A tag takes the long way, as a first request does; the others hit the short way where the cache has one. */
TEST(facade_cache_figures, a_request_that_asked_nobody_below_is_a_hit) {
    for (int i = 0; i < CACHES; i++) {
        RIG_BY(rig, open_cache(&rig, caches[i]));
        for (int turn = 0; turn < 3; turn++) {
            strata_allocate_options_t options = {.struct_size = sizeof options, .size = MIB, .tag = turn == 2 ? "tagged" : NULL};
            strata_block_t block;
            EXPECT_OK(strata_allocate_with(rig.s, rig.gpu, NULL, &options, &block));
            expect_figures(&rig, caches[i], (uint64_t)turn, 1, 1);
            EXPECT_OK(strata_free(rig.s, block.ref));
        }
        EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
        expect_figures(&rig, caches[i], 2, 1, 0);
        (void)rig_allocate(&rig, NULL, MIB);
        expect_figures(&rig, caches[i], 2, 2, 1);
    }
}

TEST(facade_cache_figures, a_request_that_fails_is_no_hit) {
    for (int i = 0; i < CACHES; i++) {
        RIG_BY(rig, open_cache(&rig, caches[i]));
        EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, (size_t)1 << 40));
        expect_figures(&rig, caches[i], 0, 0, 0);
    }
}

/* A padded block stays so for hits, the short way too. */
TEST_RIG(facade_cache_figures, padding_is_the_same_for_every_hit, 0,
         "stack: [auto_growth: {padding: 256, chunk_size: 2MiB}, system]") {
    for (int i = 0; i < 4; i++) {
        strata_block_t block = rig_allocate(rig, NULL, 256);
        EXPECT_EQ(block.size, 512);
        EXPECT_OK(strata_free(rig->s, block.ref));
    }
}
