#include "lab/replay/compare/same.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "platform/host/host_memory.h"
#include "platform/host/host_text.h"

bool strata_strategy_is_preferred(const char *name) { return name && strcmp(name, "strata") == 0; }

/* Writes the stack of a place and, for devices without virtual memory, the alternative stack. */
static void put_place(const strata_strategy_t *strategy, strata_place_kind_t place, uint32_t device, FILE *out) {
    strata_config_stack_text(strata_strategy_stack(strategy, place, device), out);
    const strata_model_names_t *plain = &strategy->named[STRATA_NAMED_PLAIN];
    if (place == STRATA_PLACE_GPU && plain->count > 0) strata_config_stack_text(&plain->list->stacks[place], out);
    fputc('\n', out);
}

static void put_named(const strata_model_named_t *named, const char *key, FILE *out) {
    fprintf(out, "%s %s %d\n", key, named->name, named->keep);
    for (int place = 0; place < STRATA_PLACE_KINDS; place++) {
        strata_config_stack_text(&named->stacks[place], out);
        fputc('\n', out);
    }
}

/* Writes every part of a strategy that can affect a replay of the trace. All stream patterns count, in their order. */
static void put_used(const strata_strategy_t *strategy, const strata_trace_t *trace, FILE *out) {
    uint32_t devices = trace->devices ? trace->devices : 1;
    uint32_t places = trace->places ? trace->places : 1u << STRATA_PLACE_GPU; /* memory that the strategy preallocates */
    for (int i = 0; i < STRATA_PLACE_KINDS; i++) {
        strata_place_kind_t place = (strata_place_kind_t)i;
        bool of_device = place == STRATA_PLACE_GPU || place == STRATA_PLACE_MANAGED;
        if (!(places & 1u << i)) continue;
        for (uint32_t device = 0; device < (of_device ? devices : 1); device++) put_place(strategy, place, device, out);
    }
    for (uint32_t i = 0; i < trace->pool_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%llu", (unsigned long long)trace->pools[i]);
        const strata_model_named_t *pool = strata_strategy_named(strategy, STRATA_NAMED_POOL, name);
        if (pool) put_named(pool, "pool", out);
    }
    const strata_model_names_t *streams = &strategy->named[STRATA_NAMED_STREAM];
    for (size_t i = 0; i < streams->count; i++) put_named(&streams->list[i], "stream", out);
}

static strata_status_t used_text(const strata_strategy_t *strategy, const strata_trace_t *trace, char **whole) {
    strata_host_text_t text;
    strata_status_t status = strata_host_text_begin(&text);
    if (status != STRATA_OK) return status;
    put_used(strategy, trace, text.out);
    return strata_host_text_end(&text, whole);
}

static bool same_target(const strata_target_t *a, const strata_target_t *b) {
    bool profile = a->profile == b->profile ||
                   (a->profile && b->profile && memcmp(a->profile, b->profile, sizeof *a->profile) == 0);
    return profile && a->ordinal == b->ordinal && a->capacity == b->capacity && a->host_jitter == b->host_jitter;
}

/* Picks the lowest index among equal candidates, then replaces it by the preferred candidate if that one is equal, too. */
static void find_same(const strata_candidate_t *candidates, size_t count, char **texts, size_t *stands_for) {
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < i && (strcmp(texts[k], texts[i]) != 0 || !same_target(&candidates[k].target, &candidates[i].target))) k++;
        stands_for[i] = k;
    }
    for (size_t i = 0; i < count; i++) {
        size_t first = stands_for[i];
        bool better = strata_strategy_is_preferred(candidates[i].strategy->name) &&
                      !strata_strategy_is_preferred(candidates[first].strategy->name);
        for (size_t k = first; k < count && better; k++)
            if (stands_for[k] == first) stands_for[k] = i;
    }
}

strata_status_t strata_candidates_same(const strata_candidate_t *candidates, size_t count, const strata_trace_t *trace,
                                       size_t *stands_for) {
    char **texts = strata_host_new(count + 1, sizeof *texts);
    strata_status_t status = texts ? STRATA_OK : STRATA_E_HOST_MEMORY;
    for (size_t i = 0; i < count && status == STRATA_OK; i++) status = used_text(candidates[i].strategy, trace, &texts[i]);
    if (status == STRATA_OK) find_same(candidates, count, texts, stands_for);
    for (size_t i = 0; i < count && texts; i++) strata_host_delete(texts[i]);
    strata_host_delete(texts);
    return status;
}
