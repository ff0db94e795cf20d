#include "lab/replay/compare/advice.h"

#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

enum {
    PARTS_OF_PEAK = 10, /* less of the peak than this part is no waste */
    PERCENT_OF_TIME = 10 /* device calls that take less do not matter */
};
#define UNIT (1ull << 20) /* of the value to write */

/* Follows the blocks of which a chunk holds one. `rests` has what each of them leaves in its chunk. */
static void follow(const strata_trace_t *trace, uint64_t chunk, uint64_t *rests, strata_chunk_advice_t *advice) {
    uint64_t unused = 0;
    advice->better = UINT64_MAX;
    for (size_t i = 0; i < trace->count; i++) {
        const strata_trace_event_t *event = &trace->events[i];
        if (event->id == STRATA_TRACE_NONE) continue;
        if (event->op == STRATA_TRACE_free) {
            unused -= rests[event->id];
            rests[event->id] = 0;
        }
        if (event->op != STRATA_TRACE_alloc || event->place != STRATA_PLACE_GPU) continue;
        if (event->value <= chunk / 2 || event->value >= chunk) continue;
        rests[event->id] = chunk - event->value;
        unused += rests[event->id];
        advice->unused = strata_max(advice->unused, unused);
        advice->better = strata_min(advice->better, event->value);
    }
    if (advice->better > UNIT) advice->better -= advice->better % UNIT;
}

/* Finds the first layer of the GPU's list that has an option as a size. Sets its path and value. Returns NULL if there is none. */
static const strata_option_row_t *find_option(const strata_candidate_t *candidate, const char *name, char *path, uint64_t *now) {
    const strata_model_stack_t *stack = strata_strategy_stack(candidate->strategy, STRATA_PLACE_GPU, 0);
    for (size_t i = 0; i < stack->count; i++) {
        const strata_model_layer_t *layer = &stack->layers[i];
        const strata_option_row_t *row = strata_option_find(layer->type, name);
        if (!row || row->kind != STRATA_OPTION_SIZE) continue;
        memcpy(now, (const char *)layer->options + row->offset, sizeof *now);
        snprintf(path, STRATA_ADVICE_PATH, "%s.%s", layer->name, row->name);
        return row;
    }
    return NULL;
}

bool strata_chunk_advice_find(const strata_candidate_t *candidate, const strata_trace_t *trace, const strata_figures_t *figures,
                              strata_chunk_advice_t *advice) {
    *advice = (strata_chunk_advice_t){.unused = 0};
    const strata_option_row_t *row = find_option(candidate, "chunk_size", advice->path, &advice->now);
    uint64_t *rests = row ? strata_host_new((size_t)trace->lifetimes + 1, sizeof *rests) : NULL;
    if (!rests) return false;
    follow(trace, advice->now, rests, advice);
    strata_host_delete(rests);
    uint64_t peak = figures->peak_reserved_bytes, idle = peak - strata_min(peak, figures->peak_requested_bytes);
    return advice->better >= row->min && advice->unused >= peak / PARTS_OF_PEAK && advice->unused / 2 <= idle && advice->unused > 0;
}

bool strata_threshold_advice_find(const strata_candidate_t *candidate, const strata_figures_t *figures,
                                  strata_threshold_advice_t *advice) {
    *advice = (strata_threshold_advice_t){.now = 0};
    if (!find_option(candidate, "release_threshold", advice->path, &advice->now) || figures->end_ms <= 0) return false;
    advice->percent = 100 * figures->device_call_ms / figures->end_ms;
    return advice->now < figures->peak_reserved_bytes && advice->percent >= PERCENT_OF_TIME;
}
