/* What is measured while a trace runs. */
#ifndef STRATA_REPLAY_MEASURE_H
#define STRATA_REPLAY_MEASURE_H

#include "facade/facade.h"
#include "replay/run/run.h"

/* The state of a device at one moment. */
typedef struct strata_measure_mark {
    uint64_t call_ns;
    uint64_t stall_ns;
} strata_measure_mark_t;

typedef struct strata_measure {
    const strata_trace_t *trace;
    const strata_machine_t *machine;
    const strata_timeline_t *timeline;
    strata_t facade;
    strata_figures_t *figures;
    uint64_t requested, allocated; /* live now, memory of devices alone */
    uint64_t reserved; /* highest sum seen behind a call */
    uint64_t allocated_then; /* and what was allocated then */
    uint64_t device_used; /* highest sum of physical memory seen behind a call; simulated devices alone */
    uint64_t chunk_calls; /* calls that may change what is reserved, so far */
    uint64_t wall_ns; /* inside the facade, by rows alone */
    uint64_t opened_ns; /* inside the devices, before the first row */
    uint64_t clock_ns; /* that reading the clock takes, to be taken off for each operation and device call */
    uint64_t calls[STRATA_DEVICE_CALLS]; /* of all devices, at the beginning */
    strata_measure_mark_t began, steady;
} strata_measure_t;

/* From now on all is the strategy's. */
void strata_measure_begin(strata_measure_t *measure);
/* Whether it made calls since, of those that are shown. */
bool strata_measure_made_calls(const strata_measure_t *measure);
/* The first row comes. */
void strata_measure_rows(strata_measure_t *measure);
/* Where the last third of the rows begins. */
void strata_measure_steady(strata_measure_t *measure);
/* Behind each call of the facade that may have changed what is reserved. */
void strata_measure_reserved(strata_measure_t *measure);
void strata_measure_live(strata_measure_t *measure, uint64_t requested, uint64_t allocated);
void strata_measure_dead(strata_measure_t *measure, uint64_t requested, uint64_t allocated);
/* The program has ended; the facade is open still. */
void strata_measure_finish(strata_measure_t *measure, double *host_ns_per_op);

/* The place of a kind of memory on a device of the trace. */
strata_place_t strata_measure_place(const strata_machine_t *machine, strata_place_kind_t kind, uint32_t device);

#endif
