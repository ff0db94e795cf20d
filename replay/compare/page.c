#include "replay/run/figures.h"

/* What each kind of field is in JSON. */
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
        "# What a comparison tells\n\n"
        "Made from the table in replay/run/figures.h; a test holds this page current (`strata fields` prints it).\n"
        "`strata compare --json` writes one object. `runs` has an object for each trace and contender, with the fields below. "
        "A field that cannot be had is null.\nHow a replay runs stands in docs/trace-format.md.\n\n"
        "| member | meaning |\n|---|---|\n"
        "| schema | 1 |\n"
        "| provenance | where the figures come from, an object for each command: `version`; `command`, as a line for a shell; "
        "`device`, `capacity_bytes` and `seed` (of --host-jitter) as given, else null; `strategies`, each with its label as `contender`, the "
        "name or path that was `given`, the `text` of the whole strategy as built, --set included, and its `sha256`; `traces`, "
        "each with its name, its `path` and the `sha256` of the file as it is stored, null for a pipe. The text is a strategy "
        "file: a replay under it gives the same figures |\n"
        "| errors | with --keep-going: `trace` and `error` of each trace that was left out; without such a trace the member is "
        "left out |\n"
        "| verdicts | what was found, an object for each trace: `serves`, whether the best contender served every request; `order`, "
        "the contenders, the best first, those with equal stacks for what the trace uses in one list; `needed_bytes`, the least "
        "capacity with which the best one serves every request if none does, else null; `text`, the verdict in words; `next`, the "
        "command that shows where the memory of the best one went, null if there is none |\n"
        "| runs | the figures |\n\n"
        "`strata merge` puts the lists of several files together.\n\n"
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
    fprintf(
        out,
        ".\n`host_ns_per_op` is {min, median, max}. `options` has the value of each path that was set by hand.\n"
        "Peaks and sums are of memory of devices (places gpu and managed); pinned and host blocks are only in the figures named "
        "so.\n"
        "Operations, those that failed, `oom_count` and `ladders` are counted in every place.\n");
}
