/* A rig whose layers are recorded in a file. */
#ifndef STRATA_TESTS_RECORDER_RECORDING_H
#define STRATA_TESTS_RECORDER_RECORDING_H

#include <stdio.h>
#include <unistd.h>

#include "tests/facade/support/fixture.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "trace/trace.h"

typedef struct recording {
    rig_t rig;
    char path[200];
    char text[1400];
} recording_t;

/* `stack` is a format: the path, then the number of events, then when_full. The file is this process's own. */
static inline void recording_open(recording_t *r, const char *name, const char *stack, uint32_t events, const char *when_full) {
    char layers[1000];
    snprintf(r->path, sizeof r->path, "%s", temporary(name));
    (void)unlink(r->path);
    snprintf(layers, sizeof layers, stack, r->path, events, when_full);
    snprintf(r->text, sizeof r->text, "version: 1\nstack:\n  - %splaces:\n  pinned:\n    - trace: {path: \"%s\"}\n    - system\n",
             layers, r->path);
    strata_sim_options_t options = {.capacity = 256 * MIB, .contents = true};
    rig_open_on(&r->rig, rig_strategy(r->text, NULL, 0), &options, 0);
    r->rig.borrowed_strategy = false;
}

/* Closes and reads the file; NULL fails the test. */
static inline strata_trace_t *recording_end(recording_t *r) {
    strata_trace_t *trace = NULL;
    EXPECT_NE(access(r->path, F_OK), 0);
    rig_close(&r->rig);
    EXPECT_OK(strata_trace_load(r->path, &trace));
    return trace;
}

static inline uint64_t recording_count(const strata_trace_t *trace, strata_trace_op_t op) {
    uint64_t count = 0;
    for (size_t i = 0; i < trace->count; i++) count += trace->events[i].op == op;
    return count;
}

#endif
