/* Hands a stack of a pool to another stream. The captures into a pool never run together, so a capture may use all memory
 * that earlier ones have freed, whatever their streams were. The memory stays at its addresses, because the earlier graphs
 * use it at each launch. So a captured stream without a stack in the pool gets the stack of another stream.
 *
 * A live block belongs to the stream that requested it, so that stream is noted as a user of the block until its free. A
 * stack with deferred frees stays. The work of its stream must be done, because requests between begin and capture are not
 * captured. A stream of the same capture is never done. */
#include "allocation/domain/layer.h"
#include "allocation/domain/stack_list.h"
#include "allocation/graphs/graphs.h"
#include "platform/host/growing.h"

/* ---- which plans ---- */

/* Returns whether an instance of the layer is the same for every stream. */
static bool ignores_streams(const strata_plan_node_t *node) {
    const strata_layer_type_t *type = node->type;
    if (type == &strata_stream_safe_type) return node->options != &strata_stream_safe_on_host;
    if (type == &strata_cuda_malloc_async_type) return false;
    if (type->role == STRATA_CACHE) return type->gives & STRATA_TRAIT_SINGLE_STREAM && node->scope == STRATA_SCOPE_STREAM;
    return node->scope == STRATA_SCOPE_NONE || (type->role == STRATA_SOURCE && node->scope == STRATA_SCOPE_DEVICE);
}

static bool may_hand_over(const strata_plan_t *plan) {
    bool may = !plan->threaded;
    for (uint32_t n = 1; n <= plan->count && may; n++) may = ignores_streams(&plan->nodes[n]);
    return may;
}

/* ---- which stack ---- */

/* A stack to hand over, with its count of allocations and its idle bytes when it was chosen. */
typedef struct choice {
    strata_stack_t *stack;
    uint64_t allocations, idle;
} choice_t;

/* The stack's locks are held. */
static bool may_change_stream(const strata_stack_t *stack) {
    return stack->open && !stack->is_shared && stack->thread == 0 && stack->figures.deferred_bytes == 0;
}

static choice_t choose(const strata_graph_pool_t *pool) {
    choice_t best = {.idle = 0};
    STRATA_DOMAIN_EACH_OF(pool->group->domain, pool->group, stack) {
        choice_t own = {.stack = stack};
        strata_stack_lock(stack);
        bool may_change = may_change_stream(stack);
        own.allocations = stack->figures.allocations;
        strata_stack_unlock(stack);
        own.idle = may_change ? strata_stack_idle_bytes(stack) : 0;
        if (own.idle <= best.idle) continue;
        if (stack->forgotten.orphan ? strata_stack_is_done(stack) : strata_stack_is_at_rest(stack)) best = own;
    }
    return best;
}

/* Notes the earlier stream of a stack as a user of each live block. All of them are in the stack's own slab, because a pool has
 * no source without a cache. The stack has its new stream already, and its locks are held. Returns E_LIMIT if there is no room
 * for a note. */
static strata_status_t note_owner(strata_stack_t *stack, strata_stream_t owner) {
    strata_call_t call = {.stack = stack, .stream = owner, .purpose = STRATA_FOR_FIRST_USE, .held = {stack}};
    strata_status_t status = STRATA_OK;
    for (uint32_t slot = 1; slot < stack->slab.used && status == STRATA_OK; slot++) {
        strata_record_t *record = strata_slab_record(&stack->slab, slot);
        if (record->state == STRATA_RECORD_LIVE) status = strata_record_borrow(&call, record, owner);
    }
    return status;
}

/* Returns E_BUSY if a thread uses the stack now, or has used it since it was chosen. The stack gets its new handle before
 * another thread may forget the new stream. Its hits stay closed until strata_graph_pool_update_paths(). */
static strata_status_t rekey(strata_group_t *group, const choice_t *choice, const strata_stack_for_t *whose) {
    strata_domain_t *domain = group->domain;
    strata_stack_t *stack = choice->stack;
    strata_status_t status = STRATA_E_BUSY;
    strata_lock(&domain->lock);
    strata_stack_lock(stack);
    if (stack->group == group && may_change_stream(stack) && stack->figures.allocations == choice->allocations &&
        stack->links.visitors == 0 && stack->holds.calls == 0) {
        strata_stream_t owner = stack->stream;
        bool orphan = stack->forgotten.orphan;
        stack->handle = 0;
        strata_stack_list_rekey(domain, stack, whose->stream);
        /* All work of a forgotten stream is done. */
        status = orphan ? STRATA_OK : note_owner(stack, owner);
        if (status != STRATA_OK) strata_stack_list_rekey(domain, stack, owner);
    }
    if (status == STRATA_OK) {
        stack->forgotten.completion_known = false;
        stack->name = whose->name ? whose->name : "";
    }
    strata_stack_unlock(stack);
    if (status != STRATA_E_BUSY) strata_stack_rename(stack);
    strata_unlock(&domain->lock);
    return status;
}

/* Returns whether a capture was seen since the pool was opened. Routing has just looked for one. */
static bool has_capture(strata_graph_pool_t *pool) {
    strata_captures_t *captures = pool->group->domain->captures;
    strata_lock(&captures->lock);
    bool seen = pool->capture != 0;
    strata_unlock(&captures->lock);
    return seen;
}

strata_stack_t *strata_graph_pool_hand_over(strata_graph_pool_t *pool, const strata_stack_for_t *whose) {
    if (!pool->open || whose->thread != 0 || !has_capture(pool) || !may_hand_over(pool->group->plan)) return NULL;
    const strata_error_t reason = *strata_last_error();
    choice_t choice = choose(pool);
    strata_status_t status = choice.stack ? rekey(pool->group, &choice, whose) : STRATA_E_BUSY;
    while (status == STRATA_E_LIMIT && strata_growing_try_again(&status)) status = rekey(pool->group, &choice, whose);
    (void)strata_fail_again(&reason);
    if (status != STRATA_OK) return NULL;
    strata_graph_pool_update_paths(pool);
    return choice.stack;
}
