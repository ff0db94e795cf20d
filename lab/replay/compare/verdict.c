#include "lab/replay/compare/verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/replay/compare/cell.h"
#include "lab/replay/compare/same.h"
#include "platform/arithmetic.h"

/* ---- the order --------------------------------------------------------------------------------------------------------- */

/* The figures of a contender that the rule uses. */
typedef struct candidate {
    size_t index;
    const strata_figures_t *figures;
    bool serves, in_time; /* in_time: it ends within 1 % of the earliest contender that serves everything */
    uint64_t end_ns, peak;
    uint64_t failures, needed;
    bool preferred;
} candidate_t;

typedef struct field {
    const strata_verdict_subject_t *subject;
    candidate_t list[STRATA_VERDICT_RUNS]; /* sorted, best first */
    size_t count, serving, in_time;
    bool device; /* the trace requests device memory */
    bool used; /* the peak is device memory in use, else reserved bytes */
    bool begun; /* a sentence precedes the finding */
} field_t;

static uint64_t known(uint64_t bytes) { return bytes == STRATA_FIGURE_NULL ? 0 : bytes; }

static uint64_t peak_of(const field_t *field, const strata_figures_t *figures) {
    if (!field->device) return known(figures->pinned_reserved_bytes) + known(figures->host_reserved_bytes);
    return field->used ? figures->peak_device_used_bytes : figures->peak_reserved_bytes;
}

static uint64_t asked_of(const field_t *field, const strata_figures_t *figures) {
    if (field->device) return figures->peak_requested_bytes;
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

static void mark_times(field_t *field) {
    uint64_t earliest = UINT64_MAX;
    for (size_t i = 0; i < field->count; i++)
        if (field->list[i].serves) earliest = strata_min(earliest, field->list[i].end_ns);
    for (size_t i = 0; i < field->count; i++) {
        candidate_t *each = &field->list[i];
        each->in_time = each->serves && each->end_ns - earliest <= earliest / 100;
        field->serving += each->serves;
        field->in_time += each->in_time;
    }
}

static void rank(field_t *field) {
    const strata_verdict_subject_t *subject = field->subject;
    field->device = subject->trace->places & (1u << STRATA_PLACE_GPU | 1u << STRATA_PLACE_MANAGED);
    field->begun = !field->device;
    field->used = true;
    for (size_t i = 0; i < subject->count; i++)
        field->used = field->used && subject->results[i].figures.peak_device_used_bytes != STRATA_FIGURE_NULL;
    for (size_t i = 0; i < subject->count; i++) {
        const strata_figures_t *figures = &subject->results[i].figures;
        if (subject->stands_for && subject->stands_for[i] != i) continue;
        field->list[field->count++] = (candidate_t){.index = i,
                                                    .figures = figures,
                                                    .serves = strata_figures_serve(figures),
                                                    .end_ns = (uint64_t)(figures->end_ms * 1e6 + 0.5),
                                                    .peak = peak_of(field, figures),
                                                    .failures = figures->failed_operations,
                                                    .needed = subject->results[i].needed_bytes,
                                                    .preferred = strata_strategy_is_preferred(figures->strategy)};
    }
    mark_times(field);
    qsort(field->list, field->count, sizeof *field->list, by_rank);
}

/* ---- words ------------------------------------------------------------------------------------------------------------- */

typedef struct words {
    char *text;
    size_t length;
} words_t;

static STRATA_PRINTF(2, 3) void say(words_t *words, const char *format, ...) {
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
static void say_against(words_t *words, uint64_t value, uint64_t other, const char *below, const char *above, const char *label) {
    uint64_t apart = value < other ? other - value : value - other;
    if (apart == 0) say(words, "the same as %s", label);
    else if (other == 0) say(words, "%s %s", above, label);
    else say(words, "%.1f %% %s %s", percent(apart, other), value < other ? below : above, label);
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

/* Returns the candidate that the best one is compared with. It is the one given first if that also serves
 * everything and is not the best, else the second best. */
static const candidate_t *rival_of(const field_t *field) {
    const candidate_t *first = NULL;
    for (size_t i = 0; i < field->serving; i++)
        if (!first || field->list[i].index < first->index) first = &field->list[i];
    return first != &field->list[0] ? first : &field->list[1];
}

static void say_best(words_t *words, const field_t *field) {
    const candidate_t *best = &field->list[0];
    strata_cell_t peak = strata_cell_bytes(best->peak);
    const char *memory = field->device ? "memory" : "pinned and host memory";
    if (field->serving == 1) {
        const char *only = field->count == 1 ? "" : field->begun ? "Only " : "only ";
        say(words, "%s%s serves every request: peak %s. ", only, label_of(best), peak.text);
        return;
    }
    const candidate_t *rival = rival_of(field);
    if (field->in_time == 1) {
        double ms = best->figures->end_ms;
        say(words, "%s %s the program ends first, after %.*f ms, ", field->begun ? "With" : "with", label_of(best), ms < 10 ? 3 : 1,
            ms);
        say_against(words, best->end_ns, rival->end_ns, "before", "after", label_of(rival));
        say(words, "; peak %s, ", peak.text);
    } else if (field->list[1].in_time && field->list[1].peak == best->peak) {
        say(words, "%s used no more %s than any other at equal run time: peak %s, ", label_of(best), memory, peak.text);
    } else {
        say(words, "%s used the least %s at equal run time: peak %s, ", label_of(best), memory, peak.text);
    }
    say_against(words, best->peak, rival->peak, "below", "above", label_of(rival));
    say(words, ". ");
    if (field->in_time > 1 && !rival->in_time) {
        say(words, "The program ends ");
        say_against(words, best->end_ns, rival->end_ns, "before", "after", label_of(rival));
        say(words, ". ");
    }
}

/* Names a strategy that is too slow to be the best but uses less memory than all that are in time. */
static void say_slower(words_t *words, const field_t *field) {
    const candidate_t *best = &field->list[0], *less = field->in_time < field->serving ? &field->list[field->in_time] : NULL;
    if (!less || less->peak >= best->peak) return;
    say(words, "%s needs less, %s, but the program ends %.1f %% later. ", label_of(less), strata_cell_bytes(less->peak).text,
        percent(less->end_ns - best->end_ns, best->end_ns));
}

/* Prints the result of --smallest. */
static void say_smallest(words_t *words, const field_t *field) {
    const candidate_t *least = NULL;
    for (size_t i = 0; i < field->count; i++) {
        const candidate_t *each = &field->list[i];
        if (each->figures->smallest_device_bytes == STRATA_FIGURE_NULL) continue;
        if (!least || each->figures->smallest_device_bytes < least->figures->smallest_device_bytes) least = each;
    }
    if (!least) return;
    say(words, "The minimum capacity that serves every request is %s, with %s",
        strata_cell_bytes(least->figures->smallest_device_bytes).text, label_of(least));
    uint64_t own = field->list[0].figures->smallest_device_bytes;
    if (least != &field->list[0] && own != STRATA_FIGURE_NULL)
        say(words, "; %s needs %s", label_of(&field->list[0]), strata_cell_bytes(own).text);
    say(words, ". ");
}

static void say_failures(words_t *words, const field_t *field, size_t from) {
    for (size_t i = from; i < field->count; i++)
        say(words, "%s%s fails %s operation%s", i == from ? "" : ", ", label_of(&field->list[i]),
            strata_cell_count(field->list[i].failures).text, plural(field->list[i].failures));
    if (from < field->count) say(words, ". ");
}

static void say_nearest(words_t *words, const field_t *field) {
    const candidate_t *best = &field->list[0];
    const strata_figures_t *figures = best->figures;
    if (field->count > 1) say(words, "%s strategy serves every request. The nearest is ", field->begun ? "No" : "no");
    say(words, "%s%s %s of %s operations", label_of(best), field->count > 1 ? ", which fails" : " fails",
        strata_cell_count(best->failures).text, strata_cell_count(figures->operations).text);
    if (best->needed != STRATA_FIGURE_NULL)
        say(words, " and needs a capacity of %s; it had %s. ", strata_cell_bytes(best->needed).text,
            strata_cell_bytes(figures->capacity_bytes).text);
    else if (figures->failed_operations > figures->oom_count)
        say(words, ", %s of them for lack of memory. ", figures->oom_count ? "not all" : "none");
    else say(words, ". ");
    say_failures(words, field, 1);
}

/* Lists strategies with equal stacks: "a, b and c have the same stacks as d". */
static void say_same(words_t *words, const field_t *field) {
    const strata_verdict_subject_t *subject = field->subject;
    for (size_t k = 0; k < field->count && subject->stands_for; k++) {
        size_t said = 0, others = 0, index = field->list[k].index;
        for (size_t i = 0; i < subject->count; i++) others += i != index && subject->stands_for[i] == index;
        for (size_t i = 0; i < subject->count; i++) {
            if (i == index || subject->stands_for[i] != index) continue;
            say(words, "%s%s", said == 0 ? "" : said + 1 == others ? " and " : ", ", subject->results[i].figures.label);
            said++;
        }
        if (others)
            say(words, " %s the same stacks as %s for this trace. ", others > 1 ? "have" : "has", label_of(&field->list[k]));
    }
}

/* Names the PyTorch setting that gives the program this strategy. */
static void say_setting(words_t *words, const field_t *field) {
    static const struct {
        const char *strategy, *setting;
    } known_settings[] = {{"pytorch-expandable", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
                          {"cuda_malloc_async", "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync"}};
    const candidate_t *best = &field->list[0];
    for (size_t i = 0; i < sizeof known_settings / sizeof *known_settings && best->index > 0 && field->device; i++)
        if (strcmp(best->figures->strategy, known_settings[i].strategy) == 0)
            say(words, "In PyTorch: %s. ", known_settings[i].setting);
    if (best->figures->modelled) say(words, "The figures of %s rest on a model, not on measurements. ", label_of(best));
}

/* Handles traces without device memory. Returns false if there is nothing to compare. */
static bool say_what_is_asked(words_t *words, const field_t *field) {
    const strata_trace_t *trace = field->subject->trace;
    const strata_figures_t *figures = field->list[0].figures;
    if (trace->count == 0) say(words, "the trace has no rows, so there is nothing to compare. ");
    else if (trace->lifetimes == 0) say(words, "the trace requests no memory, so there is nothing to compare. ");
    else if (!field->device) {
        uint64_t pinned = figures->pinned_requested_bytes, host = figures->host_requested_bytes;
        say(words, "the trace requests no device memory, only ");
        if (pinned != STRATA_FIGURE_NULL) say(words, "pinned memory (at most %s)", strata_cell_bytes(pinned).text);
        if (pinned != STRATA_FIGURE_NULL && host != STRATA_FIGURE_NULL) say(words, " and ");
        if (host != STRATA_FIGURE_NULL) say(words, "host memory (at most %s)", strata_cell_bytes(host).text);
        say(words, ". ");
    }
    return trace->lifetimes > 0;
}

static void say_all(words_t *words, const field_t *field) {
    const candidate_t *best = &field->list[0];
    say(words, "%s: ", best->figures->trace);
    if (!say_what_is_asked(words, field)) return;
    if (best->serves) {
        say_best(words, field);
        uint64_t asked = asked_of(field, best->figures);
        if (asked > 0) say(words, "The program itself needs %s. ", strata_cell_bytes(asked).text);
        say_slower(words, field);
        say_failures(words, field, field->serving);
    } else {
        say_nearest(words, field);
    }
    say_smallest(words, field);
    say_same(words, field);
    uint64_t recorded = field->subject->trace->notes.reserved_peak;
    if (recorded) say(words, "During the recording, the allocator reserved at most %s. ", strata_cell_bytes(recorded).text);
    if (best->serves) say_setting(words, field);
}

void strata_verdict_make(const strata_verdict_subject_t *subject, strata_verdict_t *verdict) {
    field_t field = {.subject = subject};
    words_t words = {.text = verdict->text};
    rank(&field);
    *verdict = (strata_verdict_t){.count = field.count,
                                  .requests = subject->trace->lifetimes > 0,
                                  .serves = field.serving > 0,
                                  .needed_bytes = field.serving > 0 ? STRATA_FIGURE_NULL : field.list[0].needed};
    for (size_t i = 0; i < field.count; i++) verdict->order[i] = field.list[i].index;
    say_all(&words, &field);
    while (words.length > 0 && verdict->text[words.length - 1] == ' ') verdict->text[--words.length] = '\0';
}
