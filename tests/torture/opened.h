/* A world by a strategy's text, for programs written by hand. */
#ifndef STRATA_TESTS_TORTURE_OPENED_H
#define STRATA_TESTS_TORTURE_OPENED_H

#include "lab/torture/strategies.h"
#include "programs/world.h"

typedef struct opened {
    torture_strategies_t list;
    torture_world_t world;
} opened_t;

void opened_begin(opened_t *o, const char *text, uint32_t devices, uint64_t capacity);
/* Ends the world and answers what was wrong; the text is good until the next. */
const torture_verdict_t *opened_verdict(opened_t *o);
/* The same where nothing may be. */
void opened_end(opened_t *o);

#endif
