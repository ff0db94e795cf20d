/* Programs by their seed. */
#ifndef STRATA_TORTURE_DRAW_H
#define STRATA_TORTURE_DRAW_H

#include "programs/program.h"

/* A program by its seed; with a length, one of so many operations, nearly all on one cache: a third of them serve blocks. It is not
 * lawful yet. False: the host has no memory. */
bool torture_draw(torture_program_t *program, uint64_t seed, uint32_t length);

#endif
