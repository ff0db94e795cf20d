/* Regrows memory that idleness released, with the first requests that grow. It uses few device calls, so
 * that few requests pay for them. */
#include "allocation/domain/layer.h"
#include "allocation/reclaim/idle.h"
#include "platform/arithmetic.h"

/* The first step is 1/FIRST of the released memory, and each later one is as much as all before it. A
 * request that has grown by that much itself counts as a step. So a burst that needs less than the last one
 * recalls at most twice its need, or 1/FIRST. */
enum { FIRST = 8 };
/* A step is allocated in pieces, from which the cache splits its blocks. A piece is 1/PIECES of the whole,
 * so that a block that is still in use at the next idleness pins little memory. */
enum { PIECES = 16 };
#define PIECE_MIN  (32ull << 20)
#define PIECE_UNIT (2ull << 20)

static uint64_t next_step(strata_stack_t *stack, uint64_t grown, strata_layer_t **layer, uint64_t *piece) {
    strata_stack_lock_own(stack);
    strata_trimmed_t *trimmed = &stack->idle.trimmed;
    uint64_t step = strata_min(trimmed->regrow_bytes, strata_max(trimmed->bytes / FIRST, trimmed->bytes - trimmed->regrow_bytes));
    if (!stack->open) step = 0;
    if (step > 0) *layer = stack->layers[trimmed->layer];
    *piece = strata_max(strata_round_down(trimmed->bytes / PIECES, PIECE_UNIT), PIECE_MIN);
    uint64_t come = strata_min(trimmed->regrow_bytes, strata_max(step, grown));
    trimmed->regrow_bytes -= step > 0 ? come : 0;
    if (step > 0 && trimmed->regrow_bytes == 0) atomic_fetch_sub(&stack->group->to_regrow, 1);
    strata_unlock(&stack->lock);
    return grown < step ? step : 0;
}

void strata_idle_end(strata_stack_t *stack) {
    if (stack->idle.trimmed.regrow_bytes > 0) atomic_fetch_sub(&stack->group->to_regrow, 1);
    if (stack->idle.event) strata_events_release(&stack->domain->events, stack->idle.event);
    stack->idle = (strata_idle_release_t){0};
}

/* A piece that the cache already had is not a hit, because no request was served. A cache that combined the
 * piece counted none. */
static strata_record_t *allocate_piece(strata_layer_t *layer, strata_stack_t *by, strata_stream_t stream, uint64_t size) {
    strata_record_t *record;
    strata_request_t request = {.struct_size = sizeof request,
                                .size = size,
                                .alignment = strata_place_alignment(by->group->plan->place),
                                .stream = stream,
                                .pool = by->group->pool,
                                .flags = STRATA_NO_RETRY};
    strata_statistics_t *figures = &layer->stack->figures;
    strata_stack_lock_own(layer->stack);
    uint64_t growths = figures->growths, hits = figures->cache_hits;
    strata_unlock(&layer->stack->lock);
    if (strata_chunk_allocate_from(layer, by, size, &request, &record) != STRATA_OK) return NULL;
    strata_stack_lock_own(layer->stack);
    bool grown = figures->growths != growths;
    if (!grown && figures->cache_hits > hits) figures->cache_hits--;
    strata_unlock(&layer->stack->lock);
    if (grown) return record;
    strata_chunk_free(record);
    return NULL;
}

void strata_idle_regrow(strata_stack_t *stack, strata_stack_t *by, strata_stream_t stream, uint64_t grown) {
    const strata_error_t reason = *strata_last_error();
    strata_layer_t *layer = NULL;
    strata_record_t *pieces[PIECES];
    uint32_t count = 0;
    uint64_t size, step = next_step(stack, grown, &layer, &size);
    for (; step > 0 && count < PIECES; count++) {
        uint64_t wanted = strata_min(step, size);
        if ((pieces[count] = allocate_piece(layer, by, stream, wanted)) == NULL) break;
        step -= wanted;
    }
    while (count > 0) strata_chunk_free(pieces[--count]);
    (void)strata_fail_again(&reason);
}
