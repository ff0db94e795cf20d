/* Passes a request down the layers of a stack, and books the record that they serve. */
#include "allocation/domain/layer.h"
#include "allocation/domain/paused.h"
#include "allocation/graphs/graphs.h"
#include "allocation/reclaim/idle.h"
#include "allocation/reclaim/recovery.h"
#include "allocation/reclaim/rest.h"
#include "allocation/reclaim/waiting.h"
#include "platform/host/host_memory.h"

typedef struct serving {
    strata_stack_t *stack;
    const strata_request_t *request;
    strata_record_t *record;
    bool booked; /* the record is booked already */
} serving_t;

static strata_status_t allocate_at_top(serving_t *serving, uint32_t extra_flags) {
    strata_layer_t *top = serving->stack->top;
    strata_call_t call = {.stack = serving->stack, .stream = serving->request->stream};
    strata_request_t request = *serving->request;
    request.call = &call;
    request.flags |= extra_flags;
    strata_status_t status = strata_layer_allocate(top, &request, &serving->record);
    return status == STRATA_E_NO_MEMORY ? strata_reclaim_once(top, &request, &serving->record) : status;
}

/* Notes that the stream of the request uses a block of `serving_stack`, which it does not own. If that fails,
 * the block is returned as if it had never been served. */
static strata_status_t borrow_served(strata_stack_t *serving_stack, strata_record_t *record, strata_stream_t stream) {
    strata_call_t call = {.stack = serving_stack, .stream = stream, .purpose = STRATA_FOR_FIRST_USE};
    strata_stack_lock_own(serving_stack);
    call.held[0] = serving_stack;
    /* An earlier borrower whose completion cannot be observed may still use this block. */
    strata_status_t status = serving_stack->forgotten.borrower_unknown ? STRATA_E_DEVICE
                                                                       : strata_record_borrow(&call, record, stream);
    (void)strata_call_unlock(&call);
    if (status == STRATA_OK || status == STRATA_E_UNSUPPORTED) return STRATA_OK;
    strata_below_undo(record, &call);
    strata_domain_wake(serving_stack->domain);
    return status;
}

/* Books the record in the stack that served it, whose numbers its route uses. */
static void book(strata_record_t *record) {
    strata_stack_t *serving_stack = strata_stack_of(record->stack);
    strata_stack_lock(serving_stack);
    strata_stack_book(serving_stack, record);
    serving_stack->uncached.bytes += strata_record_reserved(record);
    if (serving_stack->uncached.bytes > serving_stack->uncached.peak_bytes)
        serving_stack->uncached.peak_bytes = serving_stack->uncached.bytes;
    if (serving_stack->directory)
        strata_directory_write(serving_stack->directory, record->ptr, record->home,
                               strata_slab_slot(&strata_stack_of(record->home)->slab, record));
    strata_stack_unlock(serving_stack);
}

/* Serves a hit from the stack of a forgotten stream. The free returns the block to that stack. It is used on
 * another stream, so it counts as borrowed. If no orphan has a block, the earlier reason stays. */
static bool serve_from_orphans(serving_t *serving) {
    strata_domain_t *domain = serving->stack->domain;
    const strata_error_t reason = *strata_last_error();
    if (serving->stack->forgotten.orphan) return false; /* its stream was forgotten during the call, so it borrows no more */
    for (strata_stack_t *stack = NULL; (stack = strata_domain_next_orphan(domain, stack)) != NULL;) {
        /* Layers of another group, especially of a pool, may hold memory that this group must not use. */
        if (stack->group != serving->stack->group || stack->group->graph || stack->of_thread != serving->stack->of_thread) continue;
        if (!strata_stack_is_done(stack)) continue;
        strata_pending_t pending = {.ready_at = UINT64_MAX};
        serving_t theirs = {.stack = stack, .request = serving->request};
        strata_stack_poll(stack, &pending);
        if (allocate_at_top(&theirs, STRATA_NO_GROW) != STRATA_OK) continue;
        if (borrow_served(stack, theirs.record, serving->request->stream) != STRATA_OK) continue;
        /* It is booked during the visit: after its last block is served the stack may hold nothing, and end. */
        book(theirs.record);
        serving->record = theirs.record;
        serving->booked = true;
        strata_domain_end_walk(domain, stack);
        return true;
    }
    (void)strata_fail_again(&reason);
    return false;
}

/* Serves free memory of the same stream from pools that lend. The stack belongs to the stream, so nothing is
 * borrowed. The request remains outside pools: a layer that distinguishes owners (scrub) treats it as another
 * owner than the pool. The reason of the refusal stays. */
static bool serve_from_pools(serving_t *serving) {
    strata_stack_t *own = serving->stack;
    const strata_error_t reason = *strata_last_error();
    uint32_t refuse_early = STRATA_NO_GROW | STRATA_NO_RETRY;
    if (own->group->pool != 0 || own->ownerless || serving->request->flags & refuse_early) return false;
    STRATA_DOMAIN_EACH(own->domain, stack) {
        bool same = !stack->is_shared && !stack->forgotten.orphan && stack->stream == own->stream && stack->thread == own->thread &&
                    stack->of_thread == own->of_thread;
        bool lends = stack->group->lends && !stack->group->graph && !strata_group_is_paused(stack->group) &&
                     stack->group->plan->alignment >= serving->request->alignment;
        serving_t theirs = {.stack = stack, .request = serving->request};
        if (!lends || !same || allocate_at_top(&theirs, STRATA_NO_GROW | STRATA_NO_RETRY) != STRATA_OK) continue;
        book(theirs.record);
        serving->record = theirs.record;
        serving->booked = true;
        strata_domain_end_walk(own->domain, stack);
        return true;
    }
    (void)strata_fail_again(&reason);
    return false;
}

/* Returns whether requests of `stack` pass through the instances that `other` shares. */
static bool stands_on(const strata_stack_t *stack, const strata_stack_t *other) {
    return other == stack->thread_shared || (other->is_shared && !other->of_thread && other->group == stack->group);
}

/* Other streams' caches are left alone, because another thread may have caused their growth. */
void strata_stack_undo_growth(strata_stack_t *stack, uint64_t reserved) {
    strata_domain_t *domain = stack->domain;
    if (strata_domain_reserved(domain) <= reserved) return;
    const strata_error_t reason = *strata_last_error();
    (void)strata_stack_release(stack);
    STRATA_DOMAIN_EACH(domain, other)
        if (stands_on(stack, other) && strata_domain_reserved(domain) > reserved) (void)strata_stack_release(other);
    (void)strata_fail_again(&reason);
}

strata_status_t strata_stack_serve(strata_stack_t *stack, const strata_request_t *request, strata_record_t **record) {
    strata_outcome_t own;
    strata_request_t whole;
    if (!request->outcome) {
        whole = *request;
        whole.struct_size = sizeof whole;
        whole.outcome = &own;
        request = &whole;
    }
    strata_outcome_begin(request->outcome, atomic_load(&stack->domain->returned_bytes));
    serving_t serving = {.stack = stack, .request = request};
    uint64_t reserved = strata_domain_reserved(stack->domain);
    strata_status_t status = strata_group_refuse_paused(stack->group);
    if (status != STRATA_OK) return status;
    /* If the stack has no cache, every request reaches a source, which calls the driver. So the check
     * comes first. */
    status = stack->hit ? STRATA_OK : strata_graphs_refuse_unannounced(stack, request->stream);
    /* Memory of forgotten streams is reused before the stack grows. */
    bool orphans = status == STRATA_OK && strata_domain_has_orphans(stack->domain);
    if (status == STRATA_OK) status = allocate_at_top(&serving, orphans ? STRATA_NO_GROW | STRATA_NO_RETRY : 0);
    if (orphans && status == STRATA_E_NO_MEMORY) {
        if (serve_from_orphans(&serving)) {
            status = STRATA_OK;
        } else {
            strata_domain_sweep_orphans(stack->domain);
            status = allocate_at_top(&serving, 0);
        }
    }
    /* The memory that the recovery waited for may be in a forgotten stream's stack. */
    if (status == STRATA_E_NO_MEMORY && strata_domain_has_orphans(stack->domain) && serve_from_orphans(&serving))
        status = STRATA_OK;
    if (status == STRATA_E_NO_MEMORY && serve_from_pools(&serving)) status = STRATA_OK;
    /* In places without an owner, the stream of the request is the first borrower. */
    if (status == STRATA_OK && stack->ownerless && request->stream) status = borrow_served(stack, serving.record, request->stream);
    if (status != STRATA_OK) {
        if (!(request->flags & STRATA_NO_GROW)) strata_stack_undo_growth(stack, reserved);
        return status;
    }
    if (!serving.booked) book(serving.record);
    uint64_t now = atomic_load(&stack->group->to_regrow) > 0 ? strata_domain_reserved(stack->domain) : 0;
    if (now > reserved)
        STRATA_DOMAIN_EACH(stack->domain, other)
            if (other == stack || stands_on(stack, other)) strata_idle_regrow(other, stack, request->stream, now - reserved);
    *record = serving.record;
    strata_rest_return_lent(stack);
    return STRATA_OK;
}

strata_status_t strata_stack_serve_nothing(strata_stack_t *stack, strata_record_t **out) {
    strata_stack_lock(stack);
    uint32_t slot = strata_slab_acquire(&stack->slab);
    if (slot == 0) {
        strata_stack_unlock(stack);
        return strata_fail(STRATA_E_LIMIT, 0,
                           "too many blocks: this stack has %u, the maximum; free some, or use more streams or pools",
                           stack->slab.capacity);
    }
    strata_record_t *record = strata_slab_record(&stack->slab, slot);
    uint32_t generation = record->generation;
    *record = (strata_record_t){
        .generation = generation, .home = stack->number, .stack = stack->number, .state = STRATA_RECORD_LIVE};
    strata_stack_book(stack, record);
    strata_stack_unlock(stack);
    *out = record;
    return STRATA_OK;
}
