/* Draws memory over the rows of a trace as lines of block characters for a terminal. One line has the
 * requested bytes, and each strategy has a line with the bytes that it got from the device. All lines have
 * one scale, and their peaks are marked. */
#ifndef STRATA_REPLAY_LINE_H
#define STRATA_REPLAY_LINE_H

#include <stdbool.h>
#include <stdio.h>

#include "lab/replay/series/series.h"

typedef struct strata_line {
    FILE *out;
    size_t width; /* of the terminal, in characters */
    bool unicode; /* use Unicode block characters instead of ASCII */
} strata_line_t;

/* Draws a line for each label, below one for the requested bytes. The series must be finished. `rows` is the
 * trace's number of rows, at least 1. */
void strata_draw_lines(const strata_line_t *line, const strata_series_t *series, const char *const *labels, size_t count,
                       size_t rows);

#endif
