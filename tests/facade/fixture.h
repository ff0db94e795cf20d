/* The rig of the conformance checks, for tests. */
#ifndef STRATA_TESTS_FACADE_FIXTURE_H
#define STRATA_TESTS_FACADE_FIXTURE_H

#include "conform/rig.h"
#include "tests/harness/test.h"

/* A rig of one simulated device of so many bytes (0: the profile's), which closes where its scope ends: by then all is freed. */
#define RIG(rig, strategy, capacity) RIG_BY(rig, rig_open(&rig, strategy, NULL, 0, capacity, 1))
/* Likewise, opened as a test wants it. */
#define RIG_BY(rig, open) OPENED(rig_t, rig, rig_close, open)

/* Frees blocks, in this order: RIG_FREE(&rig, a, b); */
#define RIG_FREE(rig, ...)                                                                                                         \
    rig_free((rig), (const strata_block_t[]){__VA_ARGS__}, sizeof((const strata_block_t[]){__VA_ARGS__}) / sizeof(strata_block_t))
static inline void rig_free(const rig_t *rig, const strata_block_t *blocks, size_t count) {
    for (size_t i = 0; i < count; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

/* A stream borrows a block and works on it for so many ns. */
static inline void rig_borrow(rig_t *rig, strata_ref_t block, strata_stream_t stream, uint64_t duration_ns) {
    EXPECT_OK(strata_record_stream(rig->s, block, stream));
    rig_work(rig, stream, duration_ns, block);
}

/* A capture that the program begins of a stream of device 0, and tells nobody of. */
static inline void rig_begin_capture(rig_t *rig, strata_stream_t stream) {
    EXPECT_OK(strata_device_capture_begin(rig->devices[0], stream, STRATA_CAPTURE_RELAXED));
}

/* It was left alone; its graph ends with it. */
static inline void rig_end_capture(rig_t *rig, strata_stream_t stream) {
    strata_handle_t graph;
    EXPECT_OK(strata_device_capture_end(rig->devices[0], stream, &graph));
    EXPECT_OK(strata_device_graph_destroy(rig->devices[0], graph));
}

#endif
