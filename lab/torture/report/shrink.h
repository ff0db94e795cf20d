/* Shrinks failing programs. */
#ifndef STRATA_TORTURE_SHRINK_H
#define STRATA_TORTURE_SHRINK_H

#include "programs/play.h"

/* Runs a well-formed program and sets the verdict. */
typedef void (*torture_attempt_fn)(void *context, const torture_program_t *program, torture_verdict_t *verdict);

/* Removes operations, blocks, threads, streams and devices from a well-formed program as long as the same
 * fault shows (delta debugging). Makes at most `budget` attempts. Returns their number. */
uint32_t torture_shrink(torture_program_t *program, torture_dialect_t dialect, const torture_verdict_t *fault,
                        torture_attempt_fn attempt, void *context, uint32_t budget);

#endif
