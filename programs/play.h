/* Runs well-formed programs. */
#ifndef STRATA_PROGRAMS_PLAY_H
#define STRATA_PROGRAMS_PLAY_H

#include "programs/world.h"

/* Called after each operation with its number, and once more with the count of operations while the facade is still open. */
typedef void (*torture_after_fn)(void *context, const torture_world_t *world, uint32_t number);

/* Runs a well-formed program in a world of its own. */
void torture_play(const torture_program_t *program, const strata_strategy_t *strategy, bool may_refuse, strata_torture_mode_t mode,
                  torture_verdict_t *verdict);
/* Like torture_play(), with one thread that calls `after` (may be NULL) after each operation. */
void torture_play_watched(const torture_program_t *program, const strata_strategy_t *strategy, bool may_refuse,
                          torture_after_fn after, void *context, torture_verdict_t *verdict);
const char *torture_mode_text(strata_torture_mode_t mode);

#endif
