#include "lab/tools/draw.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lab/replay/draw/draw.h"
#include "lab/replay/draw/line.h"
#include "lab/tools/screen/terminal.h"
#include "platform/host/host_memory.h"

/* ---- the terminal ---- */

/* Returns true if the name of the locale has UTF-8, such as "en_GB.UTF-8" or "C.utf8". */
static bool named_utf8(void) {
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *name = NULL;
    for (size_t i = 0; i < sizeof variables / sizeof *variables && (!name || !*name); i++) name = getenv(variables[i]);
    const char *set = name ? strchr(name, '.') : NULL;
    return set && (strncasecmp(set, ".utf-8", 6) == 0 || strncasecmp(set, ".utf8", 5) == 0);
}

/* Returns true if output goes to a terminal that shows more than ASCII. The terminal may belong to another
 * machine, so its locale need not be installed here. */
static bool terminal_has_unicode(void) {
    if (!isatty(STDOUT_FILENO)) return false;
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!locale) return named_utf8();
    bool utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return utf8;
}

/* ---- the work ---- */

/* A replay is deterministic, so this one stops where the first run found its peak. */
strata_status_t strata_run_map(const strata_arguments_t *arguments, const strata_candidate_t *candidate,
                               const strata_trace_t *trace, size_t row, strata_map_t *map) {
    if (row == 0) return STRATA_OK;
    strata_run_result_t *result = strata_host_new(1, sizeof *result);
    if (!result) return STRATA_E_HOST_MEMORY;
    strata_run_options_t options = {
        .target = candidate->target,
        .timeline = {.lag_ns = arguments->lag_ns, .legacy_default = arguments->legacy_default},
        .rows = row,
        .inspect = strata_map_fill,
        .inspect_context = map,
    };
    strata_status_t status = strata_run(trace, candidate->strategy, &options, result);
    strata_host_delete(result);
    return status == STRATA_OK ? map->status : status;
}

strata_status_t strata_draw_candidates(const strata_arguments_t *arguments, const strata_candidates_t *candidates,
                                       const strata_trace_t *trace, const strata_run_result_t *results, const size_t *stands_for) {
    strata_draw_t draw = {.out = stdout,
                          .width = strata_terminal_width(STRATA_DRAW_WIDTH),
                          .unicode = terminal_has_unicode(),
                          .what = arguments->draw};
    size_t count = 0;
    strata_map_t *maps = strata_host_new(candidates->count, sizeof *maps);
    const char **labels = strata_host_new(candidates->count, sizeof *labels);
    strata_status_t status = maps && labels ? STRATA_OK : STRATA_E_HOST_MEMORY;
    for (size_t i = 0; i < candidates->count && status == STRATA_OK; i++) {
        if (stands_for[i] != i) continue;
        labels[count] = candidates->all[i].label;
        status = strata_run_map(arguments, &candidates->all[i], trace, results[i].peak_row, &maps[count++]);
    }
    if (status == STRATA_OK) printf("\n%s, at the peak of reserved memory\n\n", results[0].figures.trace);
    if (status == STRATA_OK) status = strata_draw_maps(&draw, maps, labels, count, trace->count);
    for (size_t i = 0; i < count && maps; i++) strata_map_delete(&maps[i]);
    strata_host_delete(maps);
    strata_host_delete(labels);
    return status;
}

void strata_draw_curves(const strata_candidates_t *candidates, const strata_trace_t *trace, const strata_run_result_t *results,
                        const size_t *stands_for, const strata_series_t *series) {
    const char *labels[STRATA_ARGUMENT_STRATEGIES];
    strata_series_t shown[STRATA_ARGUMENT_STRATEGIES];
    strata_line_t line = {.out = stdout, .width = strata_terminal_width(STRATA_DRAW_WIDTH), .unicode = terminal_has_unicode()};
    size_t count = 0;
    bool any = false;
    for (size_t i = 0; i < candidates->count; i++) {
        any = any || results[i].peak_row > 0;
        if (stands_for[i] != i) continue;
        labels[count] = candidates->all[i].label;
        shown[count++] = series[i];
    }
    if (!any) return;
    printf("\n%s, ", results[0].figures.trace);
    strata_draw_lines(&line, shown, labels, count, trace->count);
}
