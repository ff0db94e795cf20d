/* The figures as text that other programs read. */
#include <inttypes.h>
#include <string.h>

#include "facade/facade.h"
#include "facade/text.h"

static const char *const places[] = {"gpu", "managed", "pinned", "host"};

static void say_place(strata_text_t *text, strata_place_t place) {
    strata_place_kind_t kind = strata_place_kind(place);
    bool numbered = kind == STRATA_PLACE_GPU || kind == STRATA_PLACE_MANAGED;
    strata_text_say(text, numbered ? "%s:%u" : "%s", places[kind], (unsigned)strata_place_device(place));
}

static strata_status_t hand_out(const strata_text_t *text, size_t *needed) {
    if (needed) *needed = text->length + 1;
    return STRATA_OK;
}

/* ---- JSON ---- */

static void say_fields(strata_text_t *text, const strata_statistics_t *figures) {
    const char *comma = "";
#define SAY_FIELD(name, unit, meaning)                                              \
    strata_text_say(text, "%s\"" #name "\": %" PRIu64, comma, figures->name);      \
    comma = ", ";
    STRATA_STATISTICS_MAP(SAY_FIELD)
#undef SAY_FIELD
}

static void say_stream(strata_text_t *text, strata_stack_t *stack, const char *before) {
    strata_statistics_t figures;
    strata_facade_stack_figures(stack, &figures);
    strata_text_say(text, "%s\n    {\"stream\": \"0x%" PRIxPTR "\", \"thread\": %" PRIu64 ", \"forgotten\": %s, ", before,
                    (uintptr_t)stack->stream, stack->thread, stack->orphan ? "true" : "false");
    say_fields(text, &figures);
    strata_text_say(text, "}");
}

static void say_domain(strata_text_t *text, strata_domain_t *domain, const char *before) {
    strata_statistics_t figures;
    strata_facade_place_figures(domain, &figures);
    strata_text_say(text, "%s\n  {\"place\": \"", before);
    say_place(text, domain->place);
    strata_text_say(text, "\", \"total\": {");
    say_fields(text, &figures);
    strata_text_say(text, "}, \"streams\": [");
    const char *comma = "";
    STRATA_DOMAIN_EACH(domain, stack) {
        if (stack->trunk) continue;
        say_stream(text, stack, comma);
        comma = ",";
    }
    strata_text_say(text, "]}");
}

strata_status_t strata_statistics_json(strata_t handle, char *out, size_t capacity, size_t *needed) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_text_t text = {.text = out, .capacity = capacity};
    strata_text_say(&text, "{\"places\": [");
    uint32_t index = 0;
    strata_domain_t *domain;
    const char *comma = "";
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL) {
        say_domain(&text, domain, comma);
        comma = ",";
    }
    strata_text_say(&text, "]}\n");
    return hand_out(&text, needed);
}

/* ---- Prometheus ---- */

/* Figures that only grow, in the table's names. */
static bool is_counter(const char *name) {
    static const char *const counters[] = {"allocations", "frees",   "cache_hits",    "growths",   "borrows",
                                           "deferred_frees", "ladders", "out_of_memory", "host_waits"};
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        if (strcmp(counters[i], name) == 0) return true;
    return false;
}

typedef struct place_figures {
    strata_place_t place;
    strata_statistics_t figures;
} place_figures_t;

static void say_metric(strata_text_t *text, const char *name, const char *unit, const char *meaning, size_t offset,
                       const place_figures_t *all, size_t count) {
    const char *suffix = is_counter(name) ? "_total" : "", *kind = is_counter(name) ? "counter" : "gauge";
    strata_text_say(text, "# HELP strata_%s%s %s (%s)\n", name, suffix, meaning, unit);
    strata_text_say(text, "# TYPE strata_%s%s %s\n", name, suffix, kind);
    for (size_t i = 0; i < count; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&all[i].figures + offset, sizeof value);
        strata_text_say(text, "strata_%s%s{place=\"", name, suffix);
        say_place(text, all[i].place);
        strata_text_say(text, "\"} %" PRIu64 "\n", value);
    }
}

strata_status_t strata_statistics_prometheus(strata_t handle, char *out, size_t capacity, size_t *needed) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    place_figures_t all[STRATA_PLACE_KINDS * STRATA_FACADE_DEVICES];
    size_t count = 0;
    uint32_t index = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL) {
        all[count].place = domain->place;
        strata_facade_place_figures(domain, &all[count++].figures);
    }
    strata_text_t text = {.text = out, .capacity = capacity};
#define SAY_METRIC(name, unit, meaning) \
    say_metric(&text, #name, unit, meaning, offsetof(strata_statistics_t, name), all, count);
    STRATA_STATISTICS_MAP(SAY_METRIC)
#undef SAY_METRIC
    return hand_out(&text, needed);
}
