#include "lab/tools/options/defaults.h"

#include <string.h>

void strata_arguments_default(strata_arguments_t *arguments, const char *format) {
    static const char *const of_pytorch[] = {"pytorch", "pytorch-expandable", "strata", NULL};
    static const char *const of_others[] = {"cuda_malloc_async", "pytorch", "strata", NULL};
    bool pytorch = strcmp(format, "pytorch") == 0 || strcmp(format, "profiler") == 0 || strcmp(format, "trace") == 0;
    if (arguments->strategy_count > 0) return;
    for (const char *const *name = pytorch ? of_pytorch : of_others; *name; name++)
        arguments->strategies[arguments->strategy_count++].name = *name;
}
