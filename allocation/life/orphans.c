/* Stacks after the end of their stream or thread: how they become orphans, and how they are destroyed. */
#include "allocation/domain/layer.h"
#include "allocation/domain/stack_list.h"
#include "allocation/stack/threads.h"

/* Returns whether the only thread that a stack serves has exited. */
static bool has_thread_exited(const strata_stack_t *stack) {
    return stack->of_thread != 0 && !strata_threads_is_alive(stack->of_thread);
}

typedef strata_stack_t *(*step_fn)(strata_domain_t *domain, const strata_stack_t *previous);

/* Moves a walk to the next stack, or to none if `step` is NULL. Destroys the previous stack if it is empty, no stack
 * uses it, and no walk visits it. */
static strata_stack_t *end_and_next(strata_domain_t *domain, strata_stack_t *stack, step_fn step) {
    strata_lock(&domain->lock);
    strata_stack_t *next = step ? step(domain, stack) : NULL;
    if (next) next->links.visitors++;
    stack->links.visitors--;
    /* The handle is revoked before the check, because a caller that still has it could use the stack until then. */
    bool ends = stack->links.visitors == 0 && stack->links.dependents == 0;
    if (ends) strata_stack_unname(stack);
    ends = ends && strata_stack_is_empty(stack);
    if (ends) strata_domain_unlist(domain, stack);
    strata_unlock(&domain->lock);
    if (ends) strata_stack_destroy(stack);
    return next;
}

void strata_domain_sweep_orphans(strata_domain_t *domain) {
    strata_stack_t *stack = strata_domain_next_orphan(domain, NULL);
    while (stack)
        stack = strata_stack_is_done(stack) ? end_and_next(domain, stack, strata_stack_list_next_orphan)
                                            : strata_domain_next_orphan(domain, stack);
}

/* Orphans per partial sweep. One stream leaves fewer, so few orphans wait for the next full sweep. */
enum { PARTIAL_SWEEP = 8 };

/* Continues where the last partial sweep ended, so the cost of forgetting a stream does not grow with the
 * number of orphans. */
static void sweep_some(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    strata_stack_t *stack = domain->next_swept ? domain->next_swept : domain->first_orphan;
    if (stack) stack->links.visitors++;
    domain->examined++;
    strata_unlock(&domain->lock);
    for (int i = 0; i < PARTIAL_SWEEP && stack; i++)
        stack = strata_stack_is_done(stack) ? end_and_next(domain, stack, strata_stack_list_next_orphan)
                                            : strata_domain_next_orphan(domain, stack);
    strata_lock(&domain->lock);
    domain->next_swept = stack;
    if (stack) stack->links.visitors--;
    strata_unlock(&domain->lock);
}

/* Two threads that forget one stream at the same time may both call this. Either event follows all earlier
 * work, and one observable completion is enough. */
static void note_orphaned(strata_stack_t *stack, strata_handle_t event, bool known) {
    strata_stack_lock_own(stack);
    strata_handle_t spare = event ? stack->forgotten.last_event : NULL;
    if (event) stack->forgotten.last_event = event;
    stack->forgotten.completion_known = stack->forgotten.completion_known || known;
    strata_unlock(&stack->lock);
    if (spare) strata_events_release(&stack->domain->events, spare);
}

/* Returns the next stack of a stream, in any pool. It cannot be destroyed until the walk moves on. */
static strata_stack_t *visit(strata_domain_t *domain, strata_stream_t stream, strata_stack_t *previous) {
    strata_lock(&domain->lock);
    strata_stack_t *stack = strata_stack_list_next_of_stream(domain, stream, previous);
    if (stack) stack->links.visitors++;
    if (previous) previous->links.visitors--;
    strata_unlock(&domain->lock);
    return stack;
}

static void make_orphan(strata_domain_t *domain, strata_stack_t *stack) {
    strata_lock(&domain->lock);
    if (!stack->forgotten.orphan) {
        strata_stack_unname(stack);
        /* A thread that uses the stream under the stack's lock is done with it before the stream is forgotten. */
        strata_stack_lock_own(stack);
        strata_stack_list_orphan(domain, stack);
        strata_unlock(&stack->lock);
    }
    strata_unlock(&domain->lock);
}

void strata_domain_orphan_stream(strata_domain_t *domain, strata_stream_t stream) {
    strata_stack_set_t borrowed;
    for (strata_stack_t *own = NULL; (own = visit(domain, stream, own)) != NULL;) strata_stack_stream_destroyed(own, stream);
    /* The shared stacks are last: layers of a stack may fill and return memory when their stream ends,
     * which is also work of the stream. */
    strata_stack_list_visit_borrowed(domain, stream, &borrowed);
    for (int shared = 0; shared < 2; shared++) STRATA_STACK_SET_EACH(&borrowed, stack)
    if (stack->is_shared == (shared != 0)) strata_stack_stream_destroyed(stack, stream);
    strata_stack_list_end_borrowed(domain, stream, &borrowed);
    strata_place_kind_t kind = strata_place_kind(domain->place);
    bool owns = kind == STRATA_PLACE_GPU || kind == STRATA_PLACE_MANAGED;
    strata_stack_t *stack;
    while (owns && (stack = visit(domain, stream, NULL)) != NULL) {
        /* An event follows all work of the stream that may still use the stack's memory. If no event is available, the
         * host waits. */
        strata_handle_t event = NULL;
        if (strata_events_ensure(&domain->events, 1) == STRATA_OK) event = strata_events_acquire(&domain->events);
        if (event && strata_domain_record_event(domain, event, stack->stream) != STRATA_OK) {
            strata_events_release(&domain->events, event);
            event = NULL;
        }
        note_orphaned(stack, event, event || strata_domain_wait_for(domain, stack->stream));
        make_orphan(domain, stack);
        if (strata_stack_is_done(stack)) (void)end_and_next(domain, stack, NULL);
        else strata_domain_end_walk(domain, stack);
    }
    sweep_some(domain);
}

void strata_domain_orphan_group(strata_domain_t *domain, const strata_group_t *group) {
    STRATA_DOMAIN_EACH_OF(domain, group, stack) {
        if (stack->is_shared || stack->forgotten.orphan) continue;
        note_orphaned(stack, NULL, true);
        make_orphan(domain, stack);
    }
    strata_domain_sweep_orphans(domain);
}

void strata_domain_orphan_exited_threads(strata_domain_t *domain) {
    uint64_t exits = strata_threads_exits();
    if (exits == domain->exits_seen && !strata_domain_has_orphans(domain)) return;
    STRATA_DOMAIN_EACH(domain, left)
        if (has_thread_exited(left)) (void)strata_stack_release(left);
    /* Marks the stacks of exited threads' own default streams. This precedes the wait for their work, because a thread
     * that exits during the wait may leave work that the wait does not cover. */
    bool any = false;
    STRATA_DOMAIN_EACH(domain, stack) {
        if (stack->thread == 0 || stack->forgotten.orphan || strata_threads_is_alive(stack->thread)) continue;
        stack->forgotten.thread_exited = any = true;
    }
    if (any && !strata_domain_wait_for_all(domain)) return;
    STRATA_DOMAIN_EACH(domain, stack) {
        if (!stack->forgotten.thread_exited || stack->forgotten.orphan) continue;
        note_orphaned(stack, NULL, true);
        make_orphan(domain, stack);
        (void)strata_stack_release(stack);
    }
    strata_domain_sweep_orphans(domain);
    /* The shared stack of a thread is older than the stacks above it, and is empty only after they have ended. So there
     * are two walks. */
    for (int walk = 0; walk < 2; walk++) {
        strata_stack_t *stack = strata_domain_next_stack(domain, NULL);
        while (stack)
            stack = has_thread_exited(stack) ? end_and_next(domain, stack, strata_stack_list_next)
                                             : strata_domain_next_stack(domain, stack);
    }
    any = false;
    STRATA_DOMAIN_EACH(domain, stack) any = any || has_thread_exited(stack);
    if (!any) domain->exits_seen = exits;
}
