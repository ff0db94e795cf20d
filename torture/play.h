/* Programs at work. */
#ifndef STRATA_TORTURE_PLAY_H
#define STRATA_TORTURE_PLAY_H

#include "torture/world.h"

/* X(name, text): how the threads of a program take turns. */
#define TORTURE_MODE_MAP(X)                                                                                                        \
    X(INTERLEAVED, "one thread makes all calls, in the program's order")                                                           \
    X(TURNS, "each thread makes its own calls, in the program's order: the same at every run")                                     \
    X(AT_ONCE, "each thread makes its own calls, and waits for others only where it must")

typedef enum torture_mode {
#define TORTURE_MODE_ENUM(name, text) TORTURE_##name,
    TORTURE_MODE_MAP(TORTURE_MODE_ENUM)
#undef TORTURE_MODE_ENUM
        TORTURE_MODES
} torture_mode_t;

/* Runs a lawful program in a world of its own. */
void torture_play(const torture_program_t *program, const strata_strategy_t *strategy, bool may_refuse, torture_mode_t mode,
                  torture_verdict_t *verdict);
const char *torture_mode_text(torture_mode_t mode);

#endif
