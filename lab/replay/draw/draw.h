/* Draws maps of blocks for a terminal, side by side. */
#ifndef STRATA_REPLAY_DRAW_H
#define STRATA_REPLAY_DRAW_H

#include <stdio.h>

#include "lab/replay/draw/map.h"

enum {
    STRATA_DRAW_ALL = 1, /* every chunk, small, all sides at one scale */
    /* the chunk in use with the most free bytes, which can neither serve other chunks nor be returned to the device */
    STRATA_DRAW_FRAGMENTED = 2,
    STRATA_DRAW_LARGEST = 4
};

typedef struct strata_draw {
    FILE *out;
    size_t width; /* of the terminal, in characters */
    bool unicode; /* use Unicode block characters instead of ASCII */
    unsigned what;
} strata_draw_t;

enum { STRATA_DRAW_WIDTH = 80 };

/* Draws one map per side, as many next to each other as the width allows. `count` is at least 1. `rows` is
 * the trace's number of rows, or 0 to leave out the position. Fails with E_HOST_MEMORY. */
strata_status_t strata_draw_maps(const strata_draw_t *draw, const strata_map_t *maps, const char *const *labels, size_t count,
                                 size_t rows);

#endif
