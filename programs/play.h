/* Programs at work. */
#ifndef STRATA_PROGRAMS_PLAY_H
#define STRATA_PROGRAMS_PLAY_H

#include "programs/world.h"

/* Runs a lawful program in a world of its own. */
void torture_play(const torture_program_t *program, const strata_strategy_t *strategy, bool may_refuse, strata_torture_mode_t mode,
                  torture_verdict_t *verdict);
const char *torture_mode_text(strata_torture_mode_t mode);

#endif
