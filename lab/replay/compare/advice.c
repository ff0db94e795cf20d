#include "lab/replay/compare/advice.h"

#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

enum { PARTS_OF_PEAK = 10 /* less of the peak than this part is no waste */ };
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

/* Returns the first layer of a list with this option as a size, or NULL. */
static const strata_model_layer_t *find_layer(const strata_model_stack_t *stack, const strata_option_row_t **row) {
    for (size_t i = 0; i < stack->count; i++) {
        *row = strata_option_find(stack->layers[i].type, "chunk_size");
        if (*row && (*row)->kind == STRATA_OPTION_SIZE) return &stack->layers[i];
    }
    return NULL;
}

bool strata_chunk_advice_find(const strata_candidate_t *candidate, const strata_trace_t *trace, const strata_figures_t *figures,
                              strata_chunk_advice_t *advice) {
    const strata_option_row_t *row;
    const strata_model_stack_t *stack = strata_strategy_stack(candidate->strategy, STRATA_PLACE_GPU, 0);
    const strata_model_layer_t *layer = find_layer(stack, &row);
    *advice = (strata_chunk_advice_t){.unused = 0};
    if (!layer) return false;
    memcpy(&advice->now, (const char *)layer->options + row->offset, sizeof advice->now);
    uint64_t *rests = strata_host_new((size_t)trace->lifetimes + 1, sizeof *rests);
    if (!rests) return false;
    follow(trace, advice->now, rests, advice);
    strata_host_delete(rests);
    snprintf(advice->path, sizeof advice->path, "%s.%s", layer->name, row->name);
    uint64_t peak = figures->peak_reserved_bytes, idle = peak - strata_min(peak, figures->peak_requested_bytes);
    return advice->better >= row->min && advice->unused >= peak / PARTS_OF_PEAK && advice->unused / 2 <= idle && advice->unused > 0;
}
