/* strata_cache_below(): which cache serves whom, and what it holds. */
#include "tests/facade/support/program.h"

static strata_cache_t cache_of(rig_t *rig, strata_place_t place, strata_stream_t stream, size_t index) {
    strata_cache_t cache = {.struct_size = sizeof cache};
    EXPECT_OK(strata_cache_below(rig->s, place, stream, index, &cache));
    return cache;
}

/* Paddle's SS::AllocInterface, MA::AllocInterface and GetAllocator: 256 bytes, freed; 256 bytes naming the default stream: the same
 * address from the same allocator; after a release nothing is held. */
static void the_default_stream_by_both_names(const char *preset) {
    RIG(rig, preset, 0);
    strata_block_t first = rig_allocate(&rig, NULL, 256);
    EXPECT_OK(strata_free(rig.s, first.ref));
    strata_block_t second = rig_allocate(&rig, STRATA_STREAM_LEGACY, 256);
    EXPECT_EQ((uintptr_t)first.ptr, (uintptr_t)second.ptr);
    EXPECT_EQ(cache_of(&rig, rig.gpu, NULL, 0).id, cache_of(&rig, rig.gpu, STRATA_STREAM_LEGACY, 0).id);
    EXPECT_OK(strata_free(rig.s, second.ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(cache_of(&rig, rig.gpu, NULL, 0).used_bytes + cache_of(&rig, rig.gpu, NULL, 0).idle_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
}

TEST(facade_cache_below, paddle_alloc_interface) {
    the_default_stream_by_both_names("paddle");
    the_default_stream_by_both_names("strata");
}

TEST_RIG(facade_cache_below, streams_have_their_own_and_its_bytes, 0, "strata-malloc") {
    strata_stream_t one = rig_stream(rig), two = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, one, 3 * MIB), b = rig_allocate(rig, one, 5 * MIB);
    strata_cache_t of_one = cache_of(rig, rig->gpu, one, 0), of_two = cache_of(rig, rig->gpu, two, 0);
    EXPECT_STREQ(of_one.name, "auto_growth");
    EXPECT_STREQ(of_one.layer, "auto_growth");
    EXPECT_NE(of_one.id, of_two.id);
    EXPECT_NE(of_one.id, cache_of(rig, rig->gpu, NULL, 0).id);
    EXPECT_EQ(of_one.used_bytes, 8 * MIB);
    EXPECT_EQ(of_one.idle_bytes, 12 * MIB);
    EXPECT_EQ(of_two.used_bytes + of_two.idle_bytes, 0);
    /* Freed and still in use elsewhere: handed out. */
    rig_borrow(rig, a.ref, two, 1000 * 1000);
    RIG_FREE(rig, a, b);
    of_one = cache_of(rig, rig->gpu, one, 0);
    EXPECT_EQ(of_one.used_bytes, 3 * MIB);
    EXPECT_EQ(of_one.idle_bytes, 17 * MIB);
    /* Pinned memory has one for all streams. */
    EXPECT_EQ(cache_of(rig, strata_pinned(), one, 0).id, cache_of(rig, strata_pinned(), two, 0).id);
    EXPECT_OK(strata_stream_synchronize(rig->s, rig->gpu, two));
}

/* Without a cache the source is named, which all streams share. */
TEST(facade_cache_below, a_source_alone) {
    static const char *const names[] = {"system", "cuda_malloc_async"};
    for (int i = 0; i < 2; i++) {
        RIG(rig, names[i], 0);
        strata_stream_t stream = rig_stream(&rig);
        strata_block_t a = rig_allocate(&rig, stream, 1000), b = rig_allocate(&rig, NULL, 500);
        strata_cache_t cache = cache_of(&rig, rig.gpu, NULL, 0);
        EXPECT_STREQ(cache.layer, names[i]);
        EXPECT_EQ(cache.id, cache_of(&rig, rig.gpu, stream, 0).id);
        EXPECT_EQ(cache.used_bytes, 1500);
        EXPECT_EQ(cache.idle_bytes, 0);
        RIG_FREE(&rig, a, b);
        EXPECT_EQ(cache_of(&rig, rig.gpu, NULL, 0).used_bytes, 0);
    }
}

TEST_RIG(facade_cache_below, routers_have_several, 0, PROGRAM_ROUTED) {
    static const char *const layers[] = {"auto_growth", "buffered", "auto_growth", "buffered"};
    (void)rig_allocate(rig, NULL, 8 * MIB);
    uint64_t last = 0;
    for (size_t i = 0; i < 4; i++) {
        strata_cache_t cache = cache_of(rig, rig->gpu, NULL, i);
        EXPECT_STREQ(cache.layer, layers[i]);
        EXPECT_NE(cache.id, last);
        EXPECT_EQ(cache.used_bytes, i == 2 ? 8 * MIB : 0);
        last = cache.id;
    }
    strata_cache_t none = {.struct_size = sizeof none, .id = 7};
    EXPECT_SAYS(STRATA_E_INVALID, strata_cache_below(rig->s, rig->gpu, NULL, 4, &none), "4: the stack has 4 caches");
    EXPECT_EQ(none.id, 7);
    none.struct_size = 0;
    EXPECT_STATUS(STRATA_E_INVALID, strata_cache_below(rig->s, rig->gpu, NULL, 0, &none));
}

/* An instance that has ended gives its name to nobody. */
TEST_RIG(facade_cache_below, an_id_is_never_given_again, 0, "strata") {
    strata_stream_t stream = rig_stream(rig);
    uint64_t id = cache_of(rig, rig->gpu, stream, 0).id, at_null = cache_of(rig, rig->gpu, NULL, 0).id;
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    EXPECT_GT(cache_of(rig, rig->gpu, stream, 0).id, id);
    EXPECT_EQ(cache_of(rig, rig->gpu, NULL, 0).id, at_null);
    strata_open_options_t options = {.struct_size = sizeof options, .preset = "strata", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    EXPECT_OK(strata_change_strategy(rig->s, &options));
    EXPECT_GT(cache_of(rig, rig->gpu, NULL, 0).id, at_null);
}
