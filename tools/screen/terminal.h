/* How wide what is printed may be. */
#ifndef STRATA_TOOLS_TERMINAL_H
#define STRATA_TOOLS_TERMINAL_H

#include <stddef.h>

/* As COLUMNS says, where that is a number; else as the terminal is that standard output is; else `otherwise`. */
size_t strata_terminal_width(size_t otherwise);

#endif
