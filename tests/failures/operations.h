/* Calls of several steps, each of which may be refused by the device: what comes before one, the call, and what takes it back. */
#ifndef STRATA_TESTS_FAILURES_OPERATIONS_H
#define STRATA_TESTS_FAILURES_OPERATIONS_H

#include "tests/facade/support/fixture.h"

enum { OPERATION_BLOCKS = 32 };

/* A rig on which one operation is tried, and what the operation has. */
typedef struct operated {
    rig_t rig;
    strata_stream_t stream, other;
    strata_block_t blocks[OPERATION_BLOCKS]; /* ref 0: none */
    strata_shared_t shared, again; /* `again`: of a block that was sent before */
    strata_imported_t imported, imported_before;
    strata_registration_t registration;
    strata_checkpoint_t checkpoint;
    uint32_t restored; /* blocks that the last restore made live */
    strata_graph_t graph;
    uint64_t pool;
} operated_t;

typedef struct operation {
    const char *name;
    const char *strategy; /* NULL: every preset */
    void (*prepare)(operated_t *o); /* NULL: nothing */
    strata_status_t (*run)(operated_t *o);
    void (*undo)(operated_t *o); /* after prepare, whether run answered OK or not; a release follows. NULL: nothing */
    uint64_t capacity; /* 0: OPERATION_CAPACITY */
    bool is_for_good; /* nothing takes it back: it runs once on each rig */
    bool wants_pools; /* of graphs */
    bool ends_layers; /* with their tables, and with what the device never takes back */
    strata_status_t says; /* whatever the device says; OK: as the device */
    const char *const *differs; /* ends of names of figures that may differ, up to NULL; NULL: none */
} operation_t;

#define OPERATION_CAPACITY (256 * MIB)

extern const operation_t operations[];
extern const size_t operation_count;

#endif
