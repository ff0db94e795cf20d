/* Twenty threads, one after the other: each uses its own default stream and exits. */
#ifndef STRATA_TESTS_FACADE_TURNS_H
#define STRATA_TESTS_FACADE_TURNS_H

#include "tests/facade/support/fixture.h"

typedef struct turns {
    rig_t *rig;
    uint64_t size;
    strata_block_t block; /* of the thread before; no pointer: there was none */
    uint64_t end; /* of the work in it */
} turns_t;

void turns_each(void *(*body)(void *), turns_t *turns);
/* A body: nobody can name the stream of the thread before, so its block is served once its work is over. That the stack's making
 * waits for it too is made to fail. */
void *turns_use_the_same(void *turns);

#endif
