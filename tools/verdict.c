#include "tools/verdict.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "config/words.h"
#include "replay/compare/cell.h"

enum { TIME_TOLD = 3 /* percent of time that are worth a word */, TEXT_BYTES = 4096, WIDTH = 110 };

typedef struct verdict {
    char text[TEXT_BYTES];
    size_t length;
} verdict_t;

static STRATA_PRINTF(2, 3) void say(verdict_t *verdict, const char *format, ...) {
    size_t room = sizeof verdict->text - verdict->length;
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(verdict->text + verdict->length, room, format, arguments);
    va_end(arguments);
    if (written > 0) verdict->length += (size_t)written < room ? (size_t)written : room - 1;
}

/* What somebody who runs the recorded program can do today to get the strategy. */
static const char *advice(const char *strategy) {
    static const struct {
        const char *strategy, *advice;
    } known[] = {{"pytorch-expandable", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
                 {"cuda_malloc_async", "the driver's pool (PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync)"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(strategy, known[i].strategy) == 0) return known[i].advice;
    return NULL;
}

static bool serves_better(const strata_figures_t *one, const strata_figures_t *other) { return one->oom_count < other->oom_count; }

/* Fewest failures for memory, then least reserved, then the one that stands first. Only what ends at `latest` or earlier. */
static const strata_figures_t *least_of(const strata_figures_t *runs, size_t count, double latest) {
    const strata_figures_t *best = NULL;
    for (size_t i = 0; i < count; i++) {
        if (runs[i].end_ms > latest) continue;
        bool less = best && runs[i].oom_count == best->oom_count && runs[i].peak_reserved_bytes < best->peak_reserved_bytes;
        if (!best || serves_better(&runs[i], best) || less) best = &runs[i];
    }
    return best;
}

/* When the earliest ends of those that serve most. */
static double earliest(const strata_figures_t *runs, size_t count) {
    const strata_figures_t *first = &runs[0];
    for (size_t i = 1; i < count; i++) {
        bool as_good = runs[i].oom_count == first->oom_count && runs[i].end_ms < first->end_ms;
        if (serves_better(&runs[i], first) || as_good) first = &runs[i];
    }
    return first->end_ms;
}

static void tell_failures(verdict_t *verdict, const strata_figures_t *runs, size_t count) {
    size_t told = 0;
    for (size_t i = 0; i < count; i++) {
        if (runs[i].oom_count == 0) continue;
        say(verdict, "%s%s %s", told++ ? ", " : "requests that failed for memory: ", runs[i].label,
            strata_cell_count(runs[i].oom_count).text);
    }
    if (told) say(verdict, ". ");
}

static double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

static void tell_memory(verdict_t *verdict, const strata_figures_t *best, const strata_figures_t *runs, bool of_the_fast) {
    uint64_t asked = best->peak_requested_bytes, held = best->peak_reserved_bytes, first = runs[0].peak_reserved_bytes;
    say(verdict, "%s held least%s: %s at most", best->label, of_the_fast ? " of those that end about as early" : "",
        strata_cell_bytes(held).text);
    if (best != runs && first > held)
        say(verdict, ", %s (%.1f %%) less than %s", strata_cell_bytes(first - held).text,
            percent((double)(first - held), (double)first), runs[0].label);
    if (asked > 0 && held >= asked) say(verdict, "; what was asked for is %s of that", strata_cell_bytes(asked).text);
    say(verdict, ". ");
}

static void tell_slower(verdict_t *verdict, const strata_figures_t *least, const strata_figures_t *best) {
    say(verdict, "%s held %s, but the program ends %.1f %% later with it. ", least->label,
        strata_cell_bytes(least->peak_reserved_bytes).text, percent(least->end_ms - best->end_ms, best->end_ms));
}

static void tell_time(verdict_t *verdict, const strata_figures_t *best, const strata_figures_t *runs) {
    double change = percent(best->end_ms - runs[0].end_ms, runs[0].end_ms);
    if (best == runs || (change < TIME_TOLD && change > -TIME_TOLD)) return;
    say(verdict, "The program ends %.1f %% %s with it than with %s. ", change < 0 ? -change : change,
        change < 0 ? "earlier" : "later", runs[0].label);
}

void strata_verdict_print(FILE *out, size_t width, const strata_trace_t *trace, const strata_figures_t *runs, size_t count) {
    verdict_t words = {.length = 0}, *verdict = &words;
    const strata_figures_t *least = least_of(runs, count, INFINITY);
    const strata_figures_t *best = least_of(runs, count, earliest(runs, count) * (1 + TIME_TOLD / 100.0));
    bool gains = best->peak_reserved_bytes < runs[0].peak_reserved_bytes || serves_better(best, runs);
    say(verdict, "%s: ", runs[0].trace);
    tell_failures(verdict, runs, count);
    tell_memory(verdict, best, runs, least != best);
    if (least != best) tell_slower(verdict, least, best);
    tell_time(verdict, best, runs);
    if (trace->notes.reserved_peak)
        say(verdict, "When it was recorded, the allocator held %s at most. ", strata_cell_bytes(trace->notes.reserved_peak).text);
    const char *setting = advice(best->strategy);
    if (setting && gains) say(verdict, "Try %s. ", setting);
    say(verdict, "strata stats --strategy %s shows where the memory went.", best->strategy);
    fputc('\n', out);
    strata_print_wrapped(out, words.text, 0, width ? width : WIDTH);
}
