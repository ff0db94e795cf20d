/* A program of everything that a program does: three places, two streams that end and begin anew, borrows, shared blocks,
 * frees by all roads, steps, releases, questions. The same at every run. It holds each answer against a model of what is
 * live, and the bytes of live blocks against what it wrote there. */
#ifndef STRATA_TESTS_FAILURES_PROGRAM_H
#define STRATA_TESTS_FAILURES_PROGRAM_H

#include "tests/failures/subjects.h"

enum { FAILING_BLOCKS = 64, FAILING_PLACES = 3, FAILING_OPERATIONS = 260 };

typedef struct failing_block {
    strata_block_t block;
    size_t requested;
    uint64_t mark; /* written at both ends */
    uint32_t place; /* index */
    uint32_t owners;
} failing_block_t;

typedef struct place_model {
    uint64_t requested, allocated, live;
} place_model_t;

typedef struct failing_program {
    rig_t *rig;
    strata_stream_t streams[2];
    uint64_t pool; /* a named one, where the strategy has it; else 0 */
    uint64_t random;
    failing_block_t blocks[FAILING_BLOCKS];
    uint32_t live;
    place_model_t places[FAILING_PLACES];
    strata_statistics_t before[FAILING_PLACES]; /* the last operation */
    strata_status_t tolerated; /* beside E_NO_MEMORY of a request; OK: nothing else */
    strata_status_t tolerated_too;
    bool lost; /* whatever fails, fails with E_DEVICE_LOST; bytes are not looked at */
    bool from_an_orphan; /* the request may have got a forgotten stream's block: it goes home deferred */
    uint32_t refused; /* calls that did not answer OK */
} failing_program_t;

/* Uses every place once; no fault is armed yet. */
void failing_program_begin(failing_program_t *program, rig_t *rig);
void failing_program_step(failing_program_t *program);
/* What must hold at any time: figures as in the model, bytes as written, every structure sound. */
void failing_program_check(failing_program_t *program);
void failing_program_free_all(failing_program_t *program);
/* Everything is free: what caches hold goes back, and what was not quarantined is served again. */
void failing_program_end(failing_program_t *program);
uint64_t failing_program_quarantined(failing_program_t *program);

#endif
