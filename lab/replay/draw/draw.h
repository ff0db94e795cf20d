/* Maps of blocks for a terminal, side by side. */
#ifndef STRATA_REPLAY_DRAW_H
#define STRATA_REPLAY_DRAW_H

#include <stdio.h>

#include "lab/replay/draw/map.h"

enum {
    STRATA_DRAW_ALL = 1, /* every chunk, small, all sides at one scale */
    STRATA_DRAW_FRAGMENTED = 2, /* the chunk in use with most free bytes: they serve no other chunk, and cannot go back to the
                                   device */
    STRATA_DRAW_LARGEST = 4
};

typedef struct strata_draw {
    FILE *out;
    size_t width; /* of the terminal, in signs */
    bool unicode; /* its block characters, else ASCII */
    unsigned what;
} strata_draw_t;

enum { STRATA_DRAW_WIDTH = 80 };

/* One map per side, at least 1, as many next to each other as the width allows; `rows` are the trace's. E_HOST_MEMORY. */
strata_status_t strata_draw_maps(const strata_draw_t *draw, const strata_map_t *maps, const char *const *labels, size_t count,
                                 size_t rows);

#endif
