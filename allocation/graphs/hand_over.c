/* Hands a stack of a pool to another stream. The captures into a pool never run together, so a capture may use all memory
 * that earlier ones have freed, whatever their streams were. The memory stays at its addresses, because the earlier graphs
 * use it at each launch. So a stream without a stack in the pool gets the stack of another stream.
 *
 * Within a capture nothing orders two streams. So a stack stays with its stream if it was used since the pool was opened.
 * Requests between begin and capture are not captured, so the work of its stream must also be done. The stream becomes a
 * borrower of the stack's live blocks, because this capture may use them on that stream too. */
#include "allocation/domain/layer.h"
#include "allocation/domain/stack_list.h"
#include "allocation/graphs/graphs.h"
#include "platform/host/host_memory.h"

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

/* The stack's locks are held. */
static uint64_t calls_of(const strata_stack_t *stack) { return stack->figures.allocations + stack->figures.frees; }

void strata_graph_pool_begin_use(strata_graph_pool_t *pool) {
    STRATA_DOMAIN_EACH_OF(pool->group->domain, pool->group, stack) {
        strata_stack_lock(stack);
        stack->graph_use.calls_before = calls_of(stack);
        strata_stack_unlock(stack);
    }
}

/* The stack's locks are held. */
static bool is_unused(const strata_stack_t *stack) {
    bool may = stack->open && !stack->is_shared && stack->thread == 0 && !stack->graph_use.stays;
    return may && stack->graph_use.calls_before == calls_of(stack);
}

/* The stack's locks are held. */
static bool has_no_blocks(const strata_stack_t *stack) {
    return stack->figures.allocations == stack->figures.frees && stack->figures.deferred_bytes == 0;
}

static bool is_at_rest(strata_stack_t *stack) {
    return stack->forgotten.orphan ? strata_stack_is_done(stack) : strata_stack_is_at_rest(stack);
}

/* Returns the unused stack with the most idle memory, which may be `own`, the stack of the stream that needs one. The users of
 * a forgotten stream's block are unknown, so its stack stays until it has none. */
static strata_stack_t *find_unused(strata_graph_pool_t *pool, const strata_stack_t *own) {
    strata_stack_t *best = NULL;
    uint64_t most = 0;
    STRATA_DOMAIN_EACH_OF(pool->group->domain, pool->group, stack) {
        strata_stack_lock(stack);
        bool unused = is_unused(stack) && (!stack->forgotten.orphan || has_no_blocks(stack));
        strata_stack_unlock(stack);
        uint64_t idle = unused ? strata_stack_idle_bytes(stack) : 0;
        if (idle <= most) continue;
        bool named = !stack->forgotten.orphan && strata_graph_pool_is_named(pool, stack);
        if (stack != own && (named || !is_at_rest(stack))) continue;
        best = stack;
        most = idle;
    }
    return best;
}

static bool may_part(strata_stack_t *own) {
    strata_stack_lock(own);
    bool empty = has_no_blocks(own);
    strata_stack_unlock(own);
    return empty && is_at_rest(own);
}

/* Returns false if a thread uses the stack by now. Afterwards it has no handle, so no request uses it yet. */
static bool rekey(strata_group_t *group, strata_stack_t *stack, const strata_stack_for_t *whose) {
    strata_domain_t *domain = group->domain;
    strata_lock(&domain->lock);
    strata_stack_lock(stack);
    bool free = stack->group == group && is_unused(stack) && stack->links.visitors == 0 && stack->holds.calls == 0;
    if (free) {
        stack->handle = 0;
        stack->forgotten.completion_known = false;
        stack->name = whose->name ? whose->name : "";
        strata_stack_list_rekey(domain, stack, whose->stream);
    }
    strata_stack_unlock(stack);
    strata_unlock(&domain->lock);
    return free;
}

/* ---- its live blocks ---- */

typedef struct live {
    strata_ref_t *refs;
    uint32_t count, room;
} live_t;

static void list_one(const strata_record_t *record, void *context) {
    live_t *live = context;
    if (live->count < live->room) live->refs[live->count] = strata_ref_of(record);
    live->count++;
}

/* Lists the live blocks of a stack without a handle, so none is added. Returns false without host memory. */
static bool list_live(strata_stack_t *stack, live_t *live) {
    strata_stack_walk_live(stack, list_one, live);
    live->refs = live->count ? strata_host_new(live->count, sizeof *live->refs) : NULL;
    if (live->count && !live->refs) return false;
    live->room = live->count;
    live->count = 0;
    strata_stack_walk_live(stack, list_one, live);
    if (live->count > live->room) live->count = live->room;
    return true;
}

static void orphan(strata_stack_t *stack, bool stays) {
    strata_domain_t *domain = stack->domain;
    strata_stack_unname(stack);
    strata_lock(&domain->lock);
    if (!stack->forgotten.orphan) strata_stack_list_orphan(domain, stack);
    strata_unlock(&domain->lock);
    strata_stack_lock(stack);
    stack->forgotten.completion_known = true;
    stack->graph_use.stays = stays;
    strata_stack_unlock(stack);
}

bool strata_graph_note_earlier_stream(strata_stack_t *stack, strata_ref_t ref, strata_stream_t stream) {
    strata_call_t call;
    strata_record_t *record;
    if (strata_record_find(stack->facade, ref, &call, &record) != STRATA_OK) return true;
    strata_status_t status = strata_record_borrow(&call, record, stream);
    (void)strata_call_unlock(&call);
    if (status != STRATA_OK && status != STRATA_E_STALE) orphan(stack, true);
    return status == STRATA_OK || status == STRATA_E_STALE;
}

static bool borrow_live(strata_stack_t *stack, strata_stream_t stream) {
    live_t live = {.count = 0};
    bool noted = list_live(stack, &live);
    if (!noted) orphan(stack, true);
    for (uint32_t i = 0; i < live.count && noted; i++) noted = strata_graph_note_earlier_stream(stack, live.refs[i], stream);
    strata_host_delete(live.refs);
    return noted;
}

/* ---- the whole step ---- */

/* Exchanges the streams of two stacks, or with own == NULL only gives the other one to the stream `whose`. Returns the stack
 * that the stream has now. */
static strata_stack_t *exchange(strata_graph_pool_t *pool, const strata_stack_for_t *whose, strata_stack_t *own,
                                strata_stack_t *other) {
    strata_stack_for_t earlier = {.stream = other->stream, .name = other->name};
    bool forgotten = other->forgotten.orphan; /* its stream has ended, so it uses no block */
    if (!rekey(pool->group, other, whose)) return own;
    if (!forgotten && !borrow_live(other, earlier.stream)) return own;
    if (own && rekey(pool->group, own, &earlier)) {
        if (forgotten) orphan(own, false);
        else strata_stack_rename(own);
    }
    strata_stack_rename(other);
    strata_graph_pool_update_paths(pool);
    return other;
}

static strata_stack_t *hand_over(strata_graph_pool_t *pool, const strata_stack_for_t *whose, strata_stack_t *own) {
    if (!pool->open || whose->thread != 0 || !may_hand_over(pool->group->plan)) return own;
    const strata_error_t reason = *strata_last_error();
    strata_stack_t *best = find_unused(pool, own);
    if (best && best != own && (!own || may_part(own))) own = exchange(pool, whose, own, best);
    (void)strata_fail_again(&reason);
    return own;
}

strata_stack_t *strata_graph_pool_hand_over(strata_graph_pool_t *pool, const strata_stack_for_t *whose) {
    return hand_over(pool, whose, NULL);
}

void strata_graph_pool_give_most(strata_graph_pool_t *pool, const strata_stack_for_t *whose) {
    strata_stack_t *own = strata_domain_find(pool->group->domain, pool->group->pool, whose->stream, whose->thread);
    (void)hand_over(pool, whose, own);
}
