/* A facade whose world is checked, and a program's calls of it, told to both. */
#ifndef STRATA_TESTS_CHECKER_TOLD_H
#define STRATA_TESTS_CHECKER_TOLD_H

#include "lab/conform/rig/rig.h"
#include "platform/sim/checker/checker.h"
#include "tests/harness/test.h"

enum { TOLD_STREAMS = 3 };

typedef struct told {
    rig_t rig;
    strata_checker_t *checker;
    strata_stream_t streams[TOLD_STREAMS];
    uint32_t unsupported; /* borrows that no layer knew */
} told_t;

void told_open(told_t *told, const char *preset_or_text);
/* The hazards found; what the first says is printed where `expected_none` and there are some. */
uint64_t told_close(told_t *told, bool expected_none);

strata_block_t told_allocate(told_t *told, strata_place_t place, strata_stream_t stream, size_t size);
void told_work(told_t *told, strata_stream_t stream, uint64_t us, const strata_block_t *block);
void told_borrow(told_t *told, const strata_block_t *block, strata_stream_t stream);
void told_erase(told_t *told, const strata_block_t *block, strata_stream_t stream);
void told_free(told_t *told, const strata_block_t *block);
void told_free_on(told_t *told, const strata_block_t *block, strata_stream_t stream);
/* `stream` waits for all that `other` has been given. */
void told_order(told_t *told, strata_stream_t stream, strata_stream_t other);
/* Forgets and destroys a stream, and makes another. */
void told_renew(told_t *told, int stream);

/* A lawful program of three streams that does everything a program may do with borrows, the same at every run. `renews`: it
 * destroys streams too. */
void told_program(told_t *told, uint64_t seed, int steps, bool renews);

#endif
