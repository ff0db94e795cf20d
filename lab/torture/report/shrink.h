/* Failing programs made small. */
#ifndef STRATA_TORTURE_SHRINK_H
#define STRATA_TORTURE_SHRINK_H

#include "programs/play.h"

/* Runs a lawful program and says what went wrong. */
typedef void (*torture_attempt_fn)(void *context, const torture_program_t *program, torture_verdict_t *verdict);

/* Takes operations, blocks, threads, streams and devices away from a lawful program as long as the same fault shows (delta
 * debugging), at most `budget` attempts. Answers how many it took. */
uint32_t torture_shrink(torture_program_t *program, torture_dialect_t dialect, const torture_verdict_t *fault,
                        torture_attempt_fn attempt, void *context, uint32_t budget);

#endif
