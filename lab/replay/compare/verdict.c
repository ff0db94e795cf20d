#include "lab/replay/compare/verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocation/options/option.h"
#include "lab/replay/compare/advice.h"
#include "lab/replay/compare/cell.h"
#include "lab/replay/compare/same.h"
#include "platform/arithmetic.h"

/* ---- the order --------------------------------------------------------------------------------------------------------- */

/* The figures of a candidate that the rule uses. */
typedef struct candidate {
    size_t index;
    const strata_figures_t *figures;
    bool serves, in_time; /* in_time: it ends within 1 % of the earliest candidate that serves everything */
    uint64_t end_ns, peak;
    uint64_t failures, needed;
    bool preferred;
} candidate_t;

typedef struct ranking {
    const strata_verdict_subject_t *subject;
    candidate_t list[STRATA_VERDICT_RUNS]; /* sorted, best first */
    size_t count, serving, in_time;
    bool device; /* the trace requests device memory */
    bool used; /* the peak is device memory in use, else reserved bytes */
    bool has_text; /* a sentence precedes the finding */
} ranking_t;

static uint64_t known(uint64_t bytes) { return bytes == STRATA_FIGURE_NULL ? 0 : bytes; }

static uint64_t peak_of(const ranking_t *ranking, const strata_figures_t *figures) {
    if (!ranking->device) return known(figures->pinned_reserved_bytes) + known(figures->host_reserved_bytes);
    return ranking->used ? figures->peak_device_used_bytes : figures->peak_reserved_bytes;
}

static uint64_t requested_of(const ranking_t *ranking, const strata_figures_t *figures) {
    if (ranking->device) return figures->peak_requested_bytes;
    return known(figures->pinned_requested_bytes) + known(figures->host_requested_bytes);
}

static int by_number(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

/* Returns a negative number if `a` is better. */
static int by_rank(const void *one, const void *other) {
    const candidate_t *a = one, *b = other;
    if (a->serves != b->serves) return a->serves ? -1 : 1;
    if (a->in_time != b->in_time) return a->in_time ? -1 : 1;
    int order = by_number(a->failures, b->failures);
    if (order == 0 && !a->serves) order = by_number(a->needed, b->needed);
    if (order == 0 && a->serves) order = by_number(a->peak, b->peak);
    if (order == 0 && a->preferred != b->preferred) order = a->preferred ? -1 : 1;
    return order ? order : by_number(a->index, b->index);
}

static void mark_times(ranking_t *ranking) {
    uint64_t earliest = UINT64_MAX;
    for (size_t i = 0; i < ranking->count; i++)
        if (ranking->list[i].serves) earliest = strata_min(earliest, ranking->list[i].end_ns);
    for (size_t i = 0; i < ranking->count; i++) {
        candidate_t *each = &ranking->list[i];
        each->in_time = each->serves && each->end_ns - earliest <= earliest / 100;
        ranking->serving += each->serves;
        ranking->in_time += each->in_time;
    }
}

static void rank(ranking_t *ranking) {
    const strata_verdict_subject_t *subject = ranking->subject;
    ranking->device = subject->trace->places & (1u << STRATA_PLACE_GPU | 1u << STRATA_PLACE_MANAGED);
    ranking->has_text = !ranking->device;
    ranking->used = true;
    for (size_t i = 0; i < subject->count; i++)
        ranking->used = ranking->used && subject->results[i].figures.peak_device_used_bytes != STRATA_FIGURE_NULL;
    for (size_t i = 0; i < subject->count; i++) {
        const strata_figures_t *figures = &subject->results[i].figures;
        if (subject->stands_for && subject->stands_for[i] != i) continue;
        ranking->list[ranking->count++] = (candidate_t){.index = i,
                                                        .figures = figures,
                                                        .serves = strata_figures_serve(figures),
                                                        .end_ns = (uint64_t)(figures->end_ms * 1e6 + 0.5),
                                                        .peak = peak_of(ranking, figures),
                                                        .failures = figures->failed_operations,
                                                        .needed = subject->results[i].needed_bytes,
                                                        .preferred = strata_strategy_is_preferred(figures->strategy)};
    }
    mark_times(ranking);
    qsort(ranking->list, ranking->count, sizeof *ranking->list, by_rank);
}

/* ---- words ------------------------------------------------------------------------------------------------------------- */

typedef struct words {
    char *text;
    size_t length;
} words_t;

static STRATA_PRINTF(2, 3) void append(words_t *words, const char *format, ...) {
    size_t room = STRATA_VERDICT_TEXT - words->length;
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(words->text + words->length, room, format, arguments);
    va_end(arguments);
    if (written > 0) words->length += (size_t)written < room ? (size_t)written : room - 1;
}

static const char *label_of(const candidate_t *candidate) { return candidate->figures->label; }

static double percent(uint64_t part, uint64_t whole) { return whole > 0 ? 100 * (double)part / (double)whole : 0; }

/* Prints, for example, "23.8 % below paddle" or "the same as paddle". */
static void write_against(words_t *words, uint64_t value, uint64_t other, const char *below, const char *above, const char *label) {
    uint64_t apart = value < other ? other - value : value - other;
    if (apart == 0) append(words, "the same as %s", label);
    else if (other == 0) append(words, "%s %s", above, label);
    else append(words, "%.1f %% %s %s", percent(apart, other), value < other ? below : above, label);
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

/* Returns the candidate that the best one is compared with. It is the one given first if that also serves
 * everything and is not the best, else the second best. */
static const candidate_t *rival_of(const ranking_t *ranking) {
    const candidate_t *first = NULL;
    for (size_t i = 0; i < ranking->serving; i++)
        if (!first || ranking->list[i].index < first->index) first = &ranking->list[i];
    return first != &ranking->list[0] ? first : &ranking->list[1];
}

static void write_best(words_t *words, const ranking_t *ranking) {
    const candidate_t *best = &ranking->list[0];
    strata_cell_t peak = strata_cell_bytes(best->peak);
    const char *memory = ranking->device ? "memory" : "pinned and host memory";
    if (ranking->serving == 1) {
        const char *only = ranking->count == 1 ? "" : ranking->has_text ? "Only " : "only ";
        append(words, "%s%s serves every request: peak %s. ", only, label_of(best), peak.text);
        return;
    }
    const candidate_t *rival = rival_of(ranking);
    if (ranking->in_time == 1) {
        double ms = best->figures->end_ms;
        append(words, "%s %s the program ends first, after %.*f ms, ", ranking->has_text ? "With" : "with", label_of(best),
               ms < 10 ? 3 : 1, ms);
        write_against(words, best->end_ns, rival->end_ns, "before", "after", label_of(rival));
        append(words, "; peak %s, ", peak.text);
    } else if (ranking->list[1].in_time && ranking->list[1].peak == best->peak) {
        append(words, "%s used no more %s than any other at equal run time: peak %s, ", label_of(best), memory, peak.text);
    } else {
        append(words, "%s used the least %s at equal run time: peak %s, ", label_of(best), memory, peak.text);
    }
    write_against(words, best->peak, rival->peak, "below", "above", label_of(rival));
    append(words, ". ");
    if (ranking->in_time > 1 && !rival->in_time) {
        append(words, "The program ends ");
        write_against(words, best->end_ns, rival->end_ns, "before", "after", label_of(rival));
        append(words, ". ");
    }
}

/* Names a strategy that is too slow to be the best but uses less memory than all that are in time. */
static void write_slower(words_t *words, const ranking_t *ranking) {
    const candidate_t *best = &ranking->list[0],
                      *less = ranking->in_time < ranking->serving ? &ranking->list[ranking->in_time] : NULL;
    if (!less || less->peak >= best->peak) return;
    append(words, "%s needs less, %s, but the program ends %.1f %% later. ", label_of(less), strata_cell_bytes(less->peak).text,
           percent(less->end_ns - best->end_ns, best->end_ns));
}

/* Prints the result of --smallest. */
static void write_smallest(words_t *words, const ranking_t *ranking) {
    const candidate_t *least = NULL;
    for (size_t i = 0; i < ranking->count; i++) {
        const candidate_t *each = &ranking->list[i];
        if (each->figures->smallest_device_bytes == STRATA_FIGURE_NULL) continue;
        if (!least || each->figures->smallest_device_bytes < least->figures->smallest_device_bytes) least = each;
    }
    if (!least) return;
    append(words, "The minimum capacity that serves every request is %s, with %s",
           strata_cell_bytes(least->figures->smallest_device_bytes).text, label_of(least));
    uint64_t own = ranking->list[0].figures->smallest_device_bytes;
    if (least != &ranking->list[0] && own != STRATA_FIGURE_NULL)
        append(words, "; %s needs %s", label_of(&ranking->list[0]), strata_cell_bytes(own).text);
    append(words, ". ");
}

static void write_failures(words_t *words, const ranking_t *ranking, size_t from) {
    for (size_t i = from; i < ranking->count; i++)
        append(words, "%s%s fails %s operation%s", i == from ? "" : ", ", label_of(&ranking->list[i]),
               strata_cell_count(ranking->list[i].failures).text, plural(ranking->list[i].failures));
    if (from < ranking->count) append(words, ". ");
}

static void write_nearest(words_t *words, const ranking_t *ranking) {
    const candidate_t *best = &ranking->list[0];
    const strata_figures_t *figures = best->figures;
    if (ranking->count > 1) append(words, "%s strategy serves every request. The nearest is ", ranking->has_text ? "No" : "no");
    append(words, "%s%s %s of %s operations", label_of(best), ranking->count > 1 ? ", which fails" : " fails",
           strata_cell_count(best->failures).text, strata_cell_count(figures->operations).text);
    if (best->needed != STRATA_FIGURE_NULL)
        append(words, " and needs a capacity of %s; it had %s. ", strata_cell_bytes(best->needed).text,
               strata_cell_bytes(figures->capacity_bytes).text);
    else if (figures->failed_operations > figures->oom_count)
        append(words, ", %s of them for lack of memory. ", figures->oom_count ? "not all" : "none");
    else append(words, ". ");
    write_failures(words, ranking, 1);
}

/* Lists strategies with equal stacks: "a, b and c have the same stacks as d". */
static void write_same(words_t *words, const ranking_t *ranking) {
    const strata_verdict_subject_t *subject = ranking->subject;
    for (size_t k = 0; k < ranking->count && subject->stands_for; k++) {
        size_t said = 0, others = 0, index = ranking->list[k].index;
        for (size_t i = 0; i < subject->count; i++) others += i != index && subject->stands_for[i] == index;
        for (size_t i = 0; i < subject->count; i++) {
            if (i == index || subject->stands_for[i] != index) continue;
            append(words, "%s%s", said == 0 ? "" : said + 1 == others ? " and " : ", ", subject->results[i].figures.label);
            said++;
        }
        if (others)
            append(words, " %s the same stacks as %s for this trace. ", others > 1 ? "have" : "has", label_of(&ranking->list[k]));
    }
}

/* Names the PyTorch setting that gives the program this strategy. */
static void write_setting(words_t *words, const ranking_t *ranking) {
    static const struct {
        const char *strategy, *setting;
    } known_settings[] = {{"pytorch-expandable", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
                          {"cuda_malloc_async", "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync"}};
    const candidate_t *best = &ranking->list[0];
    for (size_t i = 0; i < sizeof known_settings / sizeof *known_settings && best->index > 0 && ranking->device; i++)
        if (strcmp(best->figures->strategy, known_settings[i].strategy) == 0)
            append(words, "In PyTorch: %s. ", known_settings[i].setting);
    if (best->figures->modelled) append(words, "The figures of %s rest on a model, not on measurements. ", label_of(best));
}

/* Handles traces without device memory. Returns false if there is nothing to compare. */
static bool write_requested(words_t *words, const ranking_t *ranking) {
    const strata_trace_t *trace = ranking->subject->trace;
    const strata_figures_t *figures = ranking->list[0].figures;
    if (trace->count == 0) append(words, "the trace has no rows, so there is nothing to compare. ");
    else if (trace->lifetimes == 0) append(words, "the trace requests no memory, so there is nothing to compare. ");
    else if (!ranking->device) {
        uint64_t pinned = figures->pinned_requested_bytes, host = figures->host_requested_bytes;
        append(words, "the trace requests no device memory, only ");
        if (pinned != STRATA_FIGURE_NULL) append(words, "pinned memory (at most %s)", strata_cell_bytes(pinned).text);
        if (pinned != STRATA_FIGURE_NULL && host != STRATA_FIGURE_NULL) append(words, " and ");
        if (host != STRATA_FIGURE_NULL) append(words, "host memory (at most %s)", strata_cell_bytes(host).text);
        append(words, ". ");
    }
    return trace->lifetimes > 0;
}

static void write_chunk_advice(words_t *words, const char *label, const strata_chunk_advice_t *advice) {
    char better[32];
    strata_print_size(advice->better, better, sizeof better);
    append(words, "In %s, the chunks of %s (%s) leave up to %s unused; write %s=%s. ", label, strata_cell_bytes(advice->now).text,
           advice->path, strata_cell_bytes(advice->unused).text, advice->path, better);
}

static void write_threshold_advice(words_t *words, const char *label, const strata_threshold_advice_t *advice) {
    append(
        words,
        "In %s, device calls take %.1f %% of the time, and each wait gives back what the driver's pool has idle beyond %s; write "
        "%s=unlimited. ",
        label, advice->percent, strata_cell_bytes(advice->now).text, advice->path);
}

/* Names options that cost a candidate memory or time, and what to write. */
static void write_advice(words_t *words, const ranking_t *ranking) {
    const strata_verdict_subject_t *subject = ranking->subject;
    for (size_t i = 0; i < ranking->count && subject->candidates; i++) {
        const candidate_t *each = &ranking->list[i];
        const strata_candidate_t *candidate = &subject->candidates[each->index];
        strata_chunk_advice_t chunks;
        strata_threshold_advice_t threshold;
        if (strata_chunk_advice_find(candidate, subject->trace, each->figures, &chunks))
            write_chunk_advice(words, label_of(each), &chunks);
        if (strata_threshold_advice_find(candidate, each->figures, &threshold))
            write_threshold_advice(words, label_of(each), &threshold);
    }
}

static void write_all(words_t *words, const ranking_t *ranking) {
    const candidate_t *best = &ranking->list[0];
    append(words, "%s: ", best->figures->trace);
    if (!write_requested(words, ranking)) return;
    if (best->serves) {
        write_best(words, ranking);
        uint64_t asked = requested_of(ranking, best->figures);
        if (asked > 0) append(words, "The program itself needs %s. ", strata_cell_bytes(asked).text);
        write_slower(words, ranking);
        write_failures(words, ranking, ranking->serving);
    } else {
        write_nearest(words, ranking);
    }
    write_advice(words, ranking);
    write_smallest(words, ranking);
    write_same(words, ranking);
    uint64_t recorded = ranking->subject->trace->notes.reserved_peak;
    if (recorded) append(words, "During the recording, the allocator reserved at most %s. ", strata_cell_bytes(recorded).text);
    if (best->serves) write_setting(words, ranking);
}

void strata_verdict_make(const strata_verdict_subject_t *subject, strata_verdict_t *verdict) {
    ranking_t ranking = {.subject = subject};
    words_t words = {.text = verdict->text};
    rank(&ranking);
    *verdict = (strata_verdict_t){.count = ranking.count,
                                  .requests = subject->trace->lifetimes > 0,
                                  .serves = ranking.serving > 0,
                                  .needed_bytes = ranking.serving > 0 ? STRATA_FIGURE_NULL : ranking.list[0].needed};
    for (size_t i = 0; i < ranking.count; i++) verdict->order[i] = ranking.list[i].index;
    write_all(&words, &ranking);
    while (words.length > 0 && verdict->text[words.length - 1] == ' ') verdict->text[--words.length] = '\0';
}
