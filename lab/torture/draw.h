/* Draws random programs by their seeds. */
#ifndef STRATA_TORTURE_DRAW_H
#define STRATA_TORTURE_DRAW_H

#include "programs/program.h"

/* Draws a program by its seed. With a length it has that number of operations, nearly all on one cache, and a
 * third of them serve blocks. It is not well-formed yet. Returns false if the host has no memory. */
bool torture_draw(torture_program_t *program, uint64_t seed, uint32_t length);

#endif
