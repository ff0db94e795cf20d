#include "lab/replay/draw/line.h"

#include <string.h>

#include "lab/replay/compare/cell.h"
#include "platform/arithmetic.h"

enum { LEVELS = 8, LABEL_MAX = 24, MARGIN = 4, LEAST = 16, LIMIT = 400 };

/* Returns the sign for a value, in eighths of the largest one. A value above 0 never gets the empty sign. */
static const char *sign_of(const strata_line_t *line, uint64_t value, uint64_t most) {
    static const char *const blocks[] = {" ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const letters[] = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};
    size_t level = value == 0 || most == 0 ? 0 : (size_t)((double)value / (double)most * LEVELS + 0.5);
    if (value > 0 && level == 0) level = 1;
    if (level > LEVELS) level = LEVELS;
    return line->unicode ? blocks[level] : letters[level];
}

/* Sets each sign to the highest value of its rows. A sign without samples gets the value held before it. */
static void resample(const strata_series_t *series, strata_series_curve_t curve, uint64_t rows, uint64_t *signs, size_t width) {
    uint64_t last = 0;
    size_t at = 0;
    for (size_t i = 0; i < width; i++) {
        uint64_t end = rows * (i + 1) / width, most = 0;
        bool any = false;
        for (; at < series->count && series->columns[at].row <= strata_max(end, 1); at++) {
            most = strata_max(most, series->columns[at].high[curve]);
            last = series->columns[at].low[curve];
            any = true;
        }
        signs[i] = any ? most : last;
    }
}

static void put_line(const strata_line_t *line, const char *label, size_t label_width, const uint64_t *signs, size_t width,
                     uint64_t most) {
    fprintf(line->out, "  %-*.*s  ", (int)label_width, (int)label_width, label);
    for (size_t i = 0; i < width; i++) fputs(sign_of(line, signs[i], most), line->out);
    fputc('\n', line->out);
}

/* Marks, below the line, where it was highest for the first time. */
static void put_peak(const strata_line_t *line, size_t label_width, const strata_series_peak_t *peak, uint64_t rows, size_t width) {
    char text[128];
    size_t at = peak->row > 0 ? (size_t)((peak->row - 1) * width / rows) : 0;
    int length = snprintf(text, sizeof text, "%s at row %s", strata_cell_bytes(peak->value).text,
                          strata_cell_count(peak->row).text);
    const char *mark = line->unicode ? "\u25b2" : "^";
    fprintf(line->out, "  %*s  ", (int)label_width, "");
    if (at + 2 + (size_t)length <= width) {
        fprintf(line->out, "%*s%s %s\n", (int)at, "", mark, text);
    } else if (at >= (size_t)length + 1) {
        fprintf(line->out, "%*s%s %s\n", (int)(at - (size_t)length - 1), "", text, mark);
    } else {
        fprintf(line->out, "%*s%s\n  %*s  %s\n", (int)at, "", mark, (int)label_width, "", text);
    }
}

void strata_draw_lines(const strata_line_t *line, const strata_series_t *series, const char *const *labels, size_t count,
                       size_t rows) {
    static const char asked[] = "requested";
    uint64_t signs[LIMIT], most = series[0].peaks[STRATA_SERIES_requested].value;
    size_t label_width = sizeof asked - 1;
    for (size_t i = 0; i < count; i++) {
        label_width = strata_max(label_width, strlen(labels[i]));
        most = strata_max(most, series[i].peaks[STRATA_SERIES_reserved].value);
    }
    label_width = strata_min(label_width, LABEL_MAX);
    size_t width = line->width > label_width + MARGIN + LEAST ? line->width - label_width - MARGIN : LEAST;
    width = strata_min(width, LIMIT);
    fprintf(line->out,
            "over the rows: the bytes that the program requested,\nand those that each strategy reserved. A full block is %s\n",
            strata_cell_bytes(most).text);
    resample(&series[0], STRATA_SERIES_requested, rows, signs, width);
    put_line(line, asked, label_width, signs, width, most);
    put_peak(line, label_width, &series[0].peaks[STRATA_SERIES_requested], rows, width);
    for (size_t i = 0; i < count; i++) {
        resample(&series[i], STRATA_SERIES_reserved, rows, signs, width);
        put_line(line, labels[i], label_width, signs, width, most);
        put_peak(line, label_width, &series[i].peaks[STRATA_SERIES_reserved], rows, width);
    }
}
