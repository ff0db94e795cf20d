#include "lab/replay/run/figures.h"

/* The JSON type of each kind of field. */
#define STRATA_KIND_TEXT    "string"
#define STRATA_KIND_OPTIONS "object"
#define STRATA_KIND_COUNT   "whole number"
#define STRATA_KIND_BYTES   "whole number"
#define STRATA_KIND_US      "whole number"
#define STRATA_KIND_MS      "number"
#define STRATA_KIND_PART    "number"
#define STRATA_KIND_FLAG    "true or false"
#define STRATA_KIND_CALLS   "object"
#define STRATA_KIND_SPREAD  "object"

void strata_figures_page(FILE *out) {
    static const struct {
        const char *kind, *name, *unit, *meaning;
    } rows[] = {
#define STRATA_FIGURE_ROW(kind, name, unit, meaning) {STRATA_KIND_##kind, #name, unit, meaning},
        STRATA_FIGURE_MAP(STRATA_FIGURE_ROW)
#undef STRATA_FIGURE_ROW
    };
    fprintf(
        out,
        "# Fields of a comparison\n\n"
        "`strata fields` writes this page from the table in lab/replay/run/figures.h, and a test compares them.\n"
        "`strata compare --json` writes one object. `runs` has an object for each trace and candidate, with the fields below. "
        "Unknown values are null.\ndocs/records.md explains how a replay runs.\n\n"
        "| member | meaning |\n|---|---|\n"
        "| schema | 1 |\n"
        "| provenance | origin of the figures, an object for each command. `version`; `command`, a shell command line; `device`, "
        "`capacity_bytes` and `seed` (of --host-jitter) as given, else null. `strategies`, each with its label as `candidate`, the "
        "`given` name or path, the whole `text` as built, including --set, and its `sha256`. `traces`, "
        "each with its name, its `path` and the `sha256` of the stored file, null for a pipe. The text is a strategy file; "
        "replaying it gives the same figures |\n"
        "| errors | with --keep-going: `trace` and `error` of each trace left out; absent without errors |\n"
        "| verdicts | the result, an object for each trace. `serves`: true if the best candidate served every request. `order`: the "
        "candidates, best first; those with equal stacks for the trace share a list. `needed_bytes`: if none served every request, the "
        "minimum capacity with which the best one does, else null. `text`: the verdict in words. `next`: the command that "
        "shows the best one's memory, or null |\n"
        "| runs | the figures |\n\n"
        "`strata merge` concatenates the lists of several files.\n\n"
        "| field | JSON | unit | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        fprintf(out, "| %s | %s | %s | %s |\n", rows[i].name, rows[i].kind, rows[i].unit, rows[i].meaning);
    fprintf(out, "\n`device_calls` has a count for each of");
    const char *comma = " ";
    for (int i = 0; i < STRATA_DEVICE_CALLS; i++) {
        if (!strata_device_call_shown((strata_device_call_t)i)) continue;
        fprintf(out, "%s%s", comma, strata_device_call_name((strata_device_call_t)i));
        comma = ", ";
    }
    fprintf(out, ".\n`host_ns_per_op` is {min, median, max}.\n"
                 "Peaks and sums cover device memory (places gpu and managed), except figures with pinned or host in their names.\n"
                 "`operations`, `failed_operations`, `oom_count` and `recoveries` count every place.\n");
}
