/* Every preset serves captured graphs in its own stack, or says what to write: on the road of own pools, in device and managed memory. */
#include "tests/graphs/graphs.h"

typedef struct try {
    captured_t c;
    strata_place_t place;
}
try_t;

/* A block that another stream uses and that is freed, all inside the capture. */
static strata_block_t capture_a_borrow(try_t *t) {
    captured_t *c = &t->c;
    strata_block_t block = {.ref = 0};
    EXPECT_OK(strata_capture_begin(c->rig.s, t->place, c->stream));
    EXPECT_OK(strata_allocate(c->rig.s, t->place, c->stream, MIB, &block));
    EXPECT_OK(strata_stream_wait(c->rig.s, t->place, c->other, c->stream));
    EXPECT_OK(strata_stream_work(c->rig.s, t->place, c->other, 1000, &block.ref, 1));
    EXPECT_OK(strata_record_stream(c->rig.s, block.ref, c->other));
    EXPECT_OK(strata_stream_wait(c->rig.s, t->place, c->stream, c->other));
    EXPECT_OK(strata_free(c->rig.s, block.ref));
    EXPECT_OK(strata_capture_end(c->rig.s, t->place, c->stream, &c->graph));
    return block;
}

static bool is_spared(try_t *t, const strata_block_t *block) {
    enum { REQUESTS = 30 };
    captured_t *c = &t->c;
    strata_block_t got[REQUESTS];
    bool spared = true;
    for (int i = 0; i < REQUESTS; i++) {
        EXPECT_OK(strata_allocate(c->rig.s, t->place, i % 2 ? c->stream : c->other, MIB, &got[i]));
        spared = spared && !rig_overlap(&got[i], block);
    }
    for (int i = 0; i < REQUESTS; i++) EXPECT_OK(strata_free(c->rig.s, got[i].ref));
    return spared;
}

static void expect_served(try_t *t) {
    captured_t *c = &t->c;
    ASSERT_OK(strata_graph_pool_begin(c->rig.s, t->place, c->stream, &c->pool));
    strata_block_t block = capture_a_borrow(t);
    EXPECT_OK(strata_graph_pool_end(c->rig.s, t->place, c->pool));
    EXPECT_OK(strata_graph_pool_remove(c->rig.s, t->place, c->pool));
    for (int i = 0; i < 2; i++) {
        EXPECT_TRUE(is_spared(t, &block));
        captured_launch(c);
    }
    captured_destroy(c);
}

static void expect_told(try_t *t, const char *what) {
    captured_t *c = &t->c;
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_graph_pool_begin(c->rig.s, t->place, c->stream, &c->pool));
    EXPECT_TRUE(strstr(strata_last_error()->text, what) != NULL);
}

/* cuda_malloc_async has graphs' device memory from the driver, which is another road. */
static void attempt(const char *preset, bool managed) {
    try_t t;
    if (!managed && strcmp(preset, "cuda_malloc_async") == 0) return;
    captured_open(&t.c, preset);
    t.place = managed ? strata_managed(0) : t.c.rig.gpu;
    if (strcmp(preset, "system") != 0) expect_served(&t);
    else expect_told(&t, managed ? "write graph: {places: {managed: [" : "write graph: {stack: [");
    captured_close(&t.c);
    if (strata_test_has_failed()) FAIL_TEST("so far with %s, in %s memory", preset, managed ? "managed" : "device");
}

TEST(graph_presets, each_serves_graphs_or_says_what_to_write) {
    const char *preset;
    for (size_t i = 0; (preset = strata_strategy_name(i)) != NULL; i++)
        for (int managed = 0; managed < 2 && !strata_test_has_failed(); managed++) attempt(preset, managed);
}

static void take_and_give(captured_t *c, strata_stream_t stream, size_t size) {
    strata_block_t block;
    EXPECT_OK(strata_allocate(c->rig.s, c->rig.gpu, stream, size, &block));
    captured_work(c, stream, &block);
    EXPECT_OK(strata_free(c->rig.s, block.ref));
}

/* Beside a capture of one of its users bfc does not wait for who used its free blocks, and asks for a region instead: for what is asked,
 * not for twice the region before. */
TEST(graph_presets, tensorflow_does_not_double_its_regions_for_want_of_a_wait) {
    captured_t c;
    captured_open(&c, "tensorflow");
    strata_stream_t third = rig_stream(&c.rig);
    take_and_give(&c, c.stream, 1 << 20);
    captured_begin(&c);
    for (int i = 0; i < 40; i++) take_and_give(&c, i % 2 ? third : c.other, 1 << 20);
    EXPECT_LE(rig_figures(&c.rig).reserved_bytes, 8u << 20);
    captured_end(&c);
    captured_destroy(&c);
    captured_close(&c);
}
