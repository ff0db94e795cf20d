/* The width of the output. */
#ifndef STRATA_TOOLS_TERMINAL_H
#define STRATA_TOOLS_TERMINAL_H

#include <stddef.h>

/* Returns the number in COLUMNS, else the width of the terminal on standard output, else `otherwise`. */
size_t strata_terminal_width(size_t otherwise);

#endif
