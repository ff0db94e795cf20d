/* What is held over the rows of a trace, as lines of block characters for a terminal: one for what the program asked for, one for
 * what each strategy got from the device, all to one scale, the peaks marked. */
#ifndef STRATA_REPLAY_LINE_H
#define STRATA_REPLAY_LINE_H

#include <stdbool.h>
#include <stdio.h>

#include "lab/replay/series/series.h"

typedef struct strata_line {
    FILE *out;
    size_t width; /* of the terminal, in signs */
    bool unicode; /* block characters, else ASCII */
} strata_line_t;

/* A line for each label, and one above them. The series are finished; `rows` are the trace's, at least 1. */
void strata_draw_lines(const strata_line_t *line, const strata_series_t *series, const char *const *labels, size_t count,
                       size_t rows);

#endif
