/* The rig of the conformance checks, for tests. */
#ifndef STRATA_TESTS_FACADE_FIXTURE_H
#define STRATA_TESTS_FACADE_FIXTURE_H

#include "conform/rig.h"
#include "tests/harness/test.h"

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
