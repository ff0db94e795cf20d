#include <stdlib.h>

#include "lab/replay/run/figures.h"

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

strata_figure_spread_t strata_figure_spread(double *values, size_t count) {
    if (count == 0) return (strata_figure_spread_t){.count = 0};
    qsort(values, count, sizeof *values, by_value);
    double median = count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    return (strata_figure_spread_t){.min = values[0], .median = median, .max = values[count - 1], .count = count};
}
