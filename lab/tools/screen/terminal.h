/* How wide the output may be. */
#ifndef STRATA_TOOLS_TERMINAL_H
#define STRATA_TOOLS_TERMINAL_H

#include <stddef.h>

/* The number in COLUMNS, if there is one; else the width of the terminal that standard output is; else `otherwise`. */
size_t strata_terminal_width(size_t otherwise);

#endif
