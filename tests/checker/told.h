/* A facade whose world is checked, and a program's calls of it, told to both. */
#ifndef STRATA_TESTS_CHECKER_TOLD_H
#define STRATA_TESTS_CHECKER_TOLD_H

#include "lab/conform/rig/rig.h"
#include "platform/sim/checker/checker.h"
#include "tests/harness/test.h"

enum { CHECKED_STREAMS = 3 };

typedef struct checked {
    rig_t rig;
    strata_checker_t *checker;
    strata_stream_t streams[CHECKED_STREAMS];
    uint32_t unsupported; /* borrows that no layer knew */
} checked_t;

void checked_open(checked_t *checked, const char *preset_or_text);
/* The hazards found; what the first says is printed where `expected_none` and there are some. */
uint64_t checked_close(checked_t *checked, bool expected_none);

strata_block_t checked_allocate(checked_t *checked, strata_place_t place, strata_stream_t stream, size_t size);
void checked_work(checked_t *checked, strata_stream_t stream, uint64_t us, const strata_block_t *block);
void checked_borrow(checked_t *checked, const strata_block_t *block, strata_stream_t stream);
void checked_erase(checked_t *checked, const strata_block_t *block, strata_stream_t stream);
void checked_free(checked_t *checked, const strata_block_t *block);
void checked_free_on(checked_t *checked, const strata_block_t *block, strata_stream_t stream);
/* `stream` waits for all that `other` has been given. */
void checked_order(checked_t *checked, strata_stream_t stream, strata_stream_t other);
/* Forgets and destroys a stream, and makes another. */
void checked_renew(checked_t *checked, int stream);

/* A lawful program of three streams that does everything a program may do with borrows, the same at every run. `renews`: it
 * destroys streams too. */
void checked_program(checked_t *checked, uint64_t seed, int steps, bool renews);

#endif
