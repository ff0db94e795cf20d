#include "lab/trace/formats/format.h"

const strata_trace_format_t *strata_trace_format_of(const char *head, size_t count) {
    static const strata_trace_format_t *const formats[] = {&strata_trace_pytorch, &strata_trace_umpire, &strata_trace_profiler,
                                                           &strata_trace_rmm,     &strata_trace_nsys,   &strata_trace_minimalloc,
                                                           &strata_trace_own};
    size_t i = 0;
    while (!formats[i]->recognises(head, count)) i++;
    return formats[i];
}
