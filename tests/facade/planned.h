/* What tests of the layer `planned` ask of it. */
#ifndef STRATA_TESTS_FACADE_PLANNED_H
#define STRATA_TESTS_FACADE_PLANNED_H

#include <stdlib.h>
#include <string.h>

#include "tests/facade/fixture.h"
#include "trace/trace.h"

/* ---- figures ---- */

typedef struct planned_wanted {
    const char *name;
    uint64_t value;
} planned_wanted_t;

static inline void planned_take_figure(const strata_layer_figure_t *figure, void *context) {
    planned_wanted_t *wanted = context;
    if (strcmp(figure->type, "planned") == 0 && strcmp(figure->name, wanted->name) == 0) wanted->value += figure->value;
}

static inline uint64_t planned_figure(rig_t *rig, const char *name) {
    planned_wanted_t wanted = {.name = name};
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, planned_take_figure, &wanted));
    return wanted.value;
}

static inline uint64_t planned_device_calls(rig_t *rig) { return strata_sim_calls(rig_domain(rig)->device); }

/* ---- repeated traces ---- */

static inline uint64_t planned_rounded(uint64_t size) { return (size + 255) / 256 * 256; }

/* The most that lives at one moment. */
static inline uint64_t planned_bound(const strata_trace_t *trace) {
    uint64_t *sizes = calloc(trace->lifetimes, sizeof *sizes), live = 0, peak = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const strata_trace_event_t *e = &trace->events[i];
        if (e->op == STRATA_TRACE_alloc) live += sizes[e->id] = planned_rounded(e->value);
        if (e->op == STRATA_TRACE_free) live -= sizes[e->id];
        peak = live > peak ? live : peak;
    }
    free(sizes);
    return peak;
}

/* The trace of one stream once; what it leaves is freed. */
static inline void planned_play(rig_t *rig, const strata_trace_t *trace, strata_ref_t *refs) {
    for (size_t i = 0; i < trace->count && !strata_test_has_failed(); i++) {
        const strata_trace_event_t *e = &trace->events[i];
        strata_block_t block;
        if (e->op == STRATA_TRACE_free) {
            EXPECT_OK(strata_free(rig->s, refs[e->id]));
            refs[e->id] = 0;
        } else if (e->op == STRATA_TRACE_alloc) {
            EXPECT_OK(strata_allocate(rig->s, rig->gpu, NULL, e->value, &block));
            refs[e->id] = block.ref;
        }
    }
    for (uint32_t id = 0; id < trace->lifetimes; id++)
        if (refs[id]) EXPECT_OK(strata_free(rig->s, refs[id]));
    memset(refs, 0, trace->lifetimes * sizeof *refs);
}

#endif
