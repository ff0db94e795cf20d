/* The state of a sequence of calls. */
#ifndef STRATA_TESTS_FUZZ_CALLS_H
#define STRATA_TESTS_FUZZ_CALLS_H

#include "facade/registry/facade.h"
#include "tests/fuzz/fuzz.h"

enum { CALLS_DEVICES = 2, CALLS_STREAMS = 3, CALLS_BLOCKS = 48, CALLS_DEAD = 8, CALLS_MAX = 1000 };

typedef struct calls_block {
    strata_block_t block;
    strata_place_t place;
    size_t asked;
    uint32_t owners;
    uint64_t mark; /* written at both ends, where devices have contents and nobody else writes */
    bool marked;
} calls_block_t;

typedef struct calls {
    const uint8_t *at, *end;
    strata_sim_t *world;
    strata_device_t *devices[CALLS_DEVICES];
    strata_t s;
    uint64_t pool; /* the strategy's named one; 0: it has none */
    strata_stream_t streams[CALLS_DEVICES][CALLS_STREAMS]; /* the first is NULL; so is one that was not made yet */
    calls_block_t blocks[CALLS_BLOCKS];
    uint32_t live;
    strata_ref_t dead[CALLS_DEAD]; /* names of blocks that were freed */
    uint32_t died;
    uint64_t marks;
} calls_t;

/* The next byte; 0 after the last. */
uint8_t calls_byte(calls_t *c);
uint32_t calls_below(calls_t *c, uint32_t bound);
/* No faults from now on. */
void calls_calm(calls_t *c);
/* The bytes of a live block are what was written there. */
void calls_check_bytes(calls_t *c, const calls_block_t *b);
/* One call, and what it must answer. */
void calls_one(calls_t *c);

#endif
