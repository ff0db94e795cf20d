#include "tests/graphs/graphs.h"

#include "allocation/graphs/graphs.h"
#include "facade/open/life.h"

void captured_open(captured_t *c, const char *preset_or_text) { captured_open_in(c, preset_or_text, 0); }

void captured_open_in(captured_t *c, const char *preset_or_text, uint64_t capacity) {
    memset(c, 0, sizeof *c);
    rig_open(&c->rig, preset_or_text, NULL, 0, capacity, 1);
    ASSERT_OK(strata_checker_begin(c->rig.world, STRATA_CHECKER_LIFETIMES, &c->checker));
    c->stream = rig_stream(&c->rig);
    c->other = rig_stream(&c->rig);
}

void captured_open_on(captured_t *c, const char *preset_or_text, strata_device_t *device) {
    if (!device) {
        captured_open(c, preset_or_text);
        return;
    }
    memset(c, 0, sizeof *c);
    rig_t *rig = &c->rig;
    rig->strategy = rig_strategy(preset_or_text, NULL, 0);
    rig->devices[0] = device;
    rig->count = 1;
    rig->gpu = strata_gpu(0);
    ASSERT_OK(strata_facade_open_on(rig->strategy, rig->devices, 1, 0, &rig->s));
    c->stream = rig_stream(rig);
    c->other = rig_stream(rig);
}

static void close_checked(captured_t *c) {
    EXPECT_EQ(strata_checker_hazards(c->checker), 0);
    if (strata_checker_hazards(c->checker)) FAIL_TEST("%s", strata_checker_report(c->checker, 0));
    strata_checker_end(c->checker);
    rig_close(&c->rig);
}

static void close_on_device(captured_t *c) {
    EXPECT_OK(strata_validate(c->rig.s));
    EXPECT_OK(strata_close(c->rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    strata_strategy_delete(c->rig.strategy);
}

void captured_close(captured_t *c) {
    for (int i = 0; i < 2; i++) {
        strata_stream_t stream = i ? c->other : c->stream;
        EXPECT_OK(strata_stream_synchronize(c->rig.s, c->rig.gpu, stream));
        EXPECT_OK(strata_stream_forget(c->rig.s, c->rig.gpu, stream));
        EXPECT_OK(strata_stream_destroy(c->rig.s, c->rig.gpu, stream));
    }
    size_t pools;
    EXPECT_OK(strata_graph_pools(c->rig.s, c->rig.gpu, NULL, 0, &pools));
    EXPECT_OK(strata_release(c->rig.s, c->rig.gpu, NULL));
    /* Where a failure was injected a block may be quarantined, and its pool with it: they go back at the close. */
    if (rig_figures(&c->rig).quarantined_bytes == 0) {
        const strata_domain_t *domain = rig_domain(&c->rig);
        EXPECT_EQ(pools, 0);
        EXPECT_EQ(domain->graph_pools + domain->captures->pools + domain->captures->open, 0);
        EXPECT_EQ(rig_figures(&c->rig).reserved_bytes, 0);
        EXPECT_EQ(atomic_load(&domain->quota.used), 0);
    }
    if (c->checker) close_checked(c);
    else close_on_device(c);
}

void captured_begin(captured_t *c) {
    ASSERT_OK(strata_graph_pool_begin(c->rig.s, c->rig.gpu, c->stream, &c->pool));
    ASSERT_OK(strata_capture_begin(c->rig.s, c->rig.gpu, c->stream));
}

void captured_end(captured_t *c) {
    ASSERT_OK(strata_capture_end(c->rig.s, c->rig.gpu, c->stream, &c->graph));
    ASSERT_OK(strata_graph_pool_end(c->rig.s, c->rig.gpu, c->pool));
    ASSERT_OK(strata_graph_pool_remove(c->rig.s, c->rig.gpu, c->pool));
}

void captured_destroy(captured_t *c) {
    EXPECT_OK(strata_graph_destroy(c->rig.s, c->rig.gpu, c->graph));
    c->graph = NULL;
}

void captured_work(captured_t *c, strata_stream_t stream, const strata_block_t *block) {
    EXPECT_OK(strata_stream_work(c->rig.s, c->rig.gpu, stream, 10 * 1000, &block->ref, 1));
}

void captured_launch(captured_t *c) {
    EXPECT_OK(strata_graph_launch(c->rig.s, c->rig.gpu, c->graph, c->stream));
    EXPECT_OK(strata_stream_synchronize(c->rig.s, c->rig.gpu, c->stream));
}

/* Requests of half the size, the size and twice the size, more than the block's chunk could serve. */
bool captured_is_spared(captured_t *c, const strata_block_t *block) {
    enum { REQUESTS = 8 };
    strata_block_t got[2][3][REQUESTS];
    bool spared = true;
    for (int s = 0; s < 2; s++)
        for (int size = 0; size < 3; size++)
            for (int i = 0; i < REQUESTS; i++) {
                strata_block_t *b = &got[s][size][i];
                *b = rig_allocate(&c->rig, s ? c->other : c->stream, block->size / 2 << size);
                spared = spared && !rig_overlap(b, block);
            }
    for (int s = 0; s < 2; s++)
        for (int size = 0; size < 3; size++)
            for (int i = 0; i < REQUESTS; i++) EXPECT_OK(strata_free(c->rig.s, got[s][size][i].ref));
    return spared;
}

strata_graph_pool_info_t captured_pool(captured_t *c) {
    strata_graph_pool_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_graph_pool_describe(c->rig.s, c->rig.gpu, c->pool, &info));
    return info;
}
