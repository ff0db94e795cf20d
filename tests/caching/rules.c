/* caching against the plain model of its rules, block by block, and the rules of rounding, splitting and pools one by one. */
#include <stdio.h>

#include "tests/caching/caching.h"
#include "tests/caching/model.h"

typedef struct versus {
    rig_t rig;
    model_t model;
    strata_stream_t streams[3];
    strata_block_t live[256];
    uint32_t count;
    uint64_t random, served, grown;
} versus_t;

static uint64_t next(versus_t *v, uint64_t bound) {
    v->random = v->random * 6364136223846793005ull + 1442695040888963407ull;
    return (v->random >> 33) % bound;
}

static size_t some_size(versus_t *v) {
    switch (next(v, 8)) {
    case 0: return 1 + next(v, 60 * MIB);
    case 1: return 1 + next(v, 12 * MIB);
    case 2: return MIB - 2000 + next(v, 4000);
    case 3: return 512 * (1 + next(v, 4));
    default: return 1 + next(v, 400 * KIB);
    }
}

static void allocate(versus_t *v) {
    uint32_t stream = (uint32_t)next(v, 3);
    size_t size = some_size(v);
    uint64_t segment, mallocs = rig_calls(&v->rig, STRATA_CALL_malloc);
    const model_block_t *predicted = model_allocate(&v->model, stream, size, &segment);
    strata_block_t b = rig_allocate(&v->rig, v->streams[stream], size);
    uint64_t at = (uint64_t)(uintptr_t)b.ptr;
    EXPECT_EQ(rig_calls(&v->rig, STRATA_CALL_malloc) - mallocs, predicted ? 0 : 1);
    if (!predicted) predicted = model_grow(&v->model, stream, size, at, segment);
    else v->served++;
    EXPECT_EQ(at, predicted->at);
    EXPECT_EQ(b.size, predicted->size);
    EXPECT_EQ(caching_reserved(&v->rig), model_reserved(&v->model));
    v->live[v->count++] = b;
}

static void free_one(versus_t *v) {
    uint32_t at = (uint32_t)next(v, v->count);
    model_free(&v->model, (uint64_t)(uintptr_t)v->live[at].ptr);
    EXPECT_OK(strata_free(v->rig.s, v->live[at].ref));
    v->live[at] = v->live[--v->count];
}

static void release(versus_t *v) {
    uint64_t released;
    EXPECT_OK(strata_release(v->rig.s, v->rig.gpu, &released));
    EXPECT_EQ(released, model_release(&v->model));
}

static void run(const char *options, uint64_t max_split, uint64_t rounding) {
    static versus_t v;
    memset(&v, 0, sizeof v);
    v.random = 77;
    v.model.max_split = max_split;
    v.model.rounding = rounding;
    caching_open(&v.rig, options, 0);
    for (int i = 0; i < 3; i++) v.streams[i] = rig_stream(&v.rig);
    for (int i = 0; i < 6000 && !strata_test_has_failed(); i++) {
        uint64_t dice = next(&v, 1000);
        if (dice == 0) release(&v);
        else if (v.count < 256 && (v.count == 0 || dice < 510)) allocate(&v);
        else free_one(&v);
        if (i % 200 == 0) EXPECT_OK(strata_validate(v.rig.s));
    }
    EXPECT_GT(v.served, 1000);
    while (v.count > 0) free_one(&v);
    release(&v);
    EXPECT_EQ(caching_reserved(&v.rig), 0);
    rig_close(&v.rig);
    if (strata_test_has_failed()) FAIL_TEST("so far with {%s}", options);
}

TEST(caching, serves_what_the_rules_say) {
    run("", UINT64_MAX, 0);
    run("max_split_size: 20MiB", 20 * MIB, 20 * MIB);
    run("max_split_size: 32MiB, max_non_split_rounding: 30MiB", 32 * MIB, 30 * MIB);
}

/* ---- borders ---- */

TEST(caching, segments_are_of_three_sizes) {
    static const struct {
        size_t size;
        uint64_t segment;
    } cases[] = {
        {1, 2 * MIB},
        {MIB, 2 * MIB},
        {MIB + 1, 20 * MIB},
        {10 * MIB - 512, 20 * MIB},
        {10 * MIB - 511, 10 * MIB},
        {10 * MIB, 10 * MIB},
        {10 * MIB + 1, 12 * MIB},
        {21 * MIB, 22 * MIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RIG_BY(rig, caching_open(&rig, "", 0));
        strata_block_t b = rig_allocate(&rig, NULL, cases[i].size);
        EXPECT_EQ(caching_reserved(&rig), cases[i].segment);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

TEST(caching, a_small_rest_of_a_large_block_stays_with_it) {
    RIG_BY(rig, caching_open(&rig, "", 0));
    strata_block_t whole = rig_allocate(&rig, NULL, 19 * MIB), small = rig_allocate(&rig, NULL, 2 * MIB - 512);
    EXPECT_EQ(whole.size, 20 * MIB);
    EXPECT_EQ(small.size, 2 * MIB - 512);
    strata_block_t tiny = rig_allocate(&rig, NULL, 2 * MIB - 1024 - 511);
    EXPECT_EQ(tiny.size, 2 * MIB - 1024);
    EXPECT_OK(strata_free(rig.s, whole.ref));
    whole = rig_allocate(&rig, NULL, 19 * MIB - 512);
    EXPECT_EQ(whole.size, 19 * MIB - 512);
    RIG_FREE(&rig, whole, tiny, small);
}

/* A block of 60 MiB serves what is larger than 40 MiB: the rest must be below 20 MiB. */
TEST(caching, a_block_that_is_not_split_serves_what_is_near_its_size) {
    static const struct {
        size_t size;
        bool serves;
    } cases[] = {
        {40 * MIB, false}, {40 * MIB + 1, true},    {60 * MIB, true},
        {20 * MIB, false}, {20 * MIB - 512, false}, {60 * MIB + 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RIG_BY(rig, caching_open(&rig, "max_split_size: 20MiB", 0));
        caching_leave_idle(&rig, NULL, (const size_t[]){60}, 1);
        strata_block_t b = rig_allocate(&rig, NULL, cases[i].size);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), cases[i].serves ? 1 : 2);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

TEST(caching, other_places_are_served_too) {
    static const char *const places[] = {"managed", "pinned", "host"};
    const strata_place_t each[] = {strata_managed(0), strata_pinned(), strata_host()};
    for (size_t i = 0; i < 3; i++) {
        char text[256];
        snprintf(text, sizeof text, "version: 1\nstack: [system]\nplaces:\n  %s: [caching, system]\n", places[i]);
        RIG(rig, text, 0);
        strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
        strata_block_t a, b;
        EXPECT_OK(strata_allocate(rig.s, each[i], one, 5000, &a));
        EXPECT_OK(strata_record_stream(rig.s, a.ref, two));
        EXPECT_OK(strata_stream_work(rig.s, rig.gpu, two, MILLISECOND, &a.ref, 1));
        EXPECT_OK(strata_free(rig.s, a.ref));
        EXPECT_OK(strata_allocate(rig.s, each[i], one, 5000, &b));
        EXPECT_NE(b.ptr, a.ptr);
        EXPECT_OK(strata_free(rig.s, b.ref));
        rig_pass(&rig, 2 * MILLISECOND);
        EXPECT_OK(strata_allocate(rig.s, each[i], one, 5000, &b));
        EXPECT_EQ(b.ptr, a.ptr);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

/* The stream that asked is the first borrower, and stays one. */
TEST(caching, without_owners_the_stream_that_asked_borrows_to_the_end) {
    RIG(rig, "version: 1\nstack: [system]\nplaces:\n  pinned: [caching, system]\n", 0);
    strata_stream_t one = rig_stream(&rig);
    strata_block_t a, b;
    EXPECT_OK(strata_allocate(rig.s, strata_pinned(), one, 5000, &a));
    EXPECT_OK(strata_stream_work(rig.s, rig.gpu, one, MILLISECOND, &a.ref, 1));
    EXPECT_OK(strata_erase_stream(rig.s, a.ref, one));
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_allocate(rig.s, strata_pinned(), one, 5000, &b));
    EXPECT_NE(b.ptr, a.ptr);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

TEST(caching, refuses_what_does_not_fit_together) {
    caching_expect_refused("garbage_collection_threshold: 0.5", "memory_fraction is below 1");
    caching_expect_refused("garbage_collection_threshold: 0.5, memory_fraction: 0.5, streams: ignored", "no ages are kept");
}
