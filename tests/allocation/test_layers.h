/* Layers for tests, written as a layer outside the tree would be. They are watched and made to fail from outside. */
#ifndef STRATA_TESTS_ALLOCATION_TEST_LAYERS_H
#define STRATA_TESTS_ALLOCATION_TEST_LAYERS_H

#include "allocation/domain/layer.h"
#include "lab/conform/rig/source.h"

/* A decorator that notes in the log what passes it. */
extern const strata_layer_type_t test_counter_type;
/* A decorator that fails while it is armed, after the layers below have served. */
extern const strata_layer_type_t test_failing_type;
extern _Atomic bool test_failing_armed;
/* A router: a request goes to the branch (size / 256) % branches. */
extern const strata_layer_type_t test_router_type;

enum { TEST_LOG = 4096 };
/* What the counters and the router saw: the layer's number, positive on the way up, negative at a free. */
typedef struct test_log {
    int seen[TEST_LOG];
    _Atomic uint32_t count; /* of all, those that found no room too */
} test_log_t;
extern test_log_t test_log;

#endif
