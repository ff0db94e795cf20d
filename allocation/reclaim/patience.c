#include "allocation/reclaim/patience.h"

#include "allocation/domain/layer.h"
#include "allocation/reclaim/rest.h"
#include "allocation/report/outcome.h"
#include "platform/arithmetic.h"

#define LATE_AGAIN_NS UINT64_C(1000000000)

/* With less work ahead a wait may cost GPU time. All such waits take at most 1/SHALLOW_PARTS of the stack's
 * time. */
enum { SHALLOW_PARTS = 8, SHALLOW_MIN_NS = 10 * 1000 * 1000 };

/* A wait that timed out is repeated after that many timeouts. So such waits take at most 1/TIMEOUT_PARTS of the time. */
enum { TIMEOUT_PARTS = 100 };

/* Returns whether the growth would exceed the highest sum of requested bytes at any growth so far, this one
 * included, by more than the slack. The call's locks are released. */
static bool is_more_than_needed(const strata_stack_t *cache_stack, const strata_reclaim_t *config, uint64_t growth) {
    strata_domain_t *domain = cache_stack->domain;
    uint64_t needed = growth, peak = atomic_load(&domain->peak_needed);
    STRATA_DOMAIN_EACH(domain, stack) {
        strata_stack_lock_own(strata_stack_home(stack));
        needed += stack->figures.requested_bytes;
        strata_unlock(&strata_stack_home(stack)->lock);
    }
    while (needed > peak && !atomic_compare_exchange_weak(&domain->peak_needed, &peak, needed)) {}
    double allowed = (double)strata_max(needed, peak) * (1.0 + config->slack);
    return (double)(strata_domain_reserved(domain) + growth) > allowed;
}

/* Returns how many times the growth must be pending before the stack may wait. The lock of the cache's
 * stack is held. */
static uint64_t depth_of(const strata_wait_history_t *history, const strata_reclaim_t *config) {
    return config->depth + history->extra_depth;
}

/* Returns whether a wait ended so late that the GPU may have run out of work. That is the case if less than
 * the request is still pending. It is also the case if the last sleep exceeded half of the time that the
 * remaining blocks take, by the time between two waits. The lock of the cache's stack is held. */
static bool was_late(const strata_patience_t *patience, const strata_wait_history_t *history, const strata_reclaim_t *config,
                     size_t size) {
    uint64_t depth = depth_of(history, config), last = history->last_wait_at;
    if (patience->left_bytes < size) return true;
    /* Another thread's wait may have ended later. */
    if (depth < 2 || last == 0 || last > patience->waited_at) return false;
    return patience->waiting.nap / (depth - 1) > (patience->waited_at - last) / 2;
}

/* A single late wait is ignored: it costs less than memory that is held permanently. The lock of the
 * cache's stack is held. */
static void learn(const strata_patience_t *patience, strata_wait_history_t *history, const strata_reclaim_t *config, size_t size) {
    if (patience->waited_at == 0) return;
    if (was_late(patience, history, config, size)) {
        bool again = history->last_late_at > 0 && patience->waited_at - history->last_late_at < LATE_AGAIN_NS;
        if (again && depth_of(history, config) < config->deepest) history->extra_depth++;
        history->last_late_at = patience->waited_at;
    }
    history->last_wait_at = patience->waited_at;
}

/* Waits until a free completes, as long as at least `least` bytes may be free within the timeout. Returns false on
 * timeout. If the device predicts the end of its work, a wait that would time out does not begin. On other devices
 * the wait is not repeated soon for this size. */
static bool wait_for_pending(strata_patience_t *patience, strata_stack_t *stack, uint64_t timeout, uint64_t least) {
    strata_waiting_t *waiting = &patience->waiting;
    strata_clock_t *clock = stack->domain->device->clock;
    if (!waiting->domain) *waiting = strata_waiting_begin(stack->domain, timeout);
    for (bool heard = false, waited = false;; waited = true) {
        strata_pending_t pending = {.ready_at = UINT64_MAX, .deadline = waiting->deadline};
        strata_stack_poll(stack, &pending);
        bool gave = pending.freed_bytes > 0;
        if (waited && gave) {
            patience->waited_at = clock->now(clock);
            patience->left_bytes = pending.pending_bytes;
        }
        if (heard || gave) return true;
        uint64_t late = clock->polls ? 0 : pending.late_bytes;
        if (pending.pending_bytes - strata_min(pending.pending_bytes, late) < least) return false;
        if (strata_waiting_is_over(waiting)) {
            patience->timed_out = true;
            return false;
        }
        heard = strata_waiting_wait_until(waiting, pending.ready_at, strata_domain_epoch(stack->domain));
    }
}

/* Returns how long the host may wait with less work ahead, or 0 if it must not. The budget grows by
 * 1/SHALLOW_PARTS of elapsed time and never exceeds one timeout. Stacks with late waits do not wait like
 * this. The lock of the cache's stack is held. */
static uint64_t shallow_wait(strata_wait_history_t *history, const strata_reclaim_t *config, uint64_t now) {
    uint64_t since = history->budget_at > 0 && now > history->budget_at ? now - history->budget_at : 0;
    history->budget_ns = strata_min(history->budget_ns + since / SHALLOW_PARTS, config->timeout);
    history->budget_at = now;
    return history->extra_depth > 0 || history->budget_ns < SHALLOW_MIN_NS ? 0 : history->budget_ns;
}

/* Returns whether a wait for a request of this size has timed out lately. */
static bool has_timed_out(const strata_wait_history_t *history, const strata_reclaim_t *config, uint64_t size, uint64_t now) {
    for (uint32_t i = 0; i < STRATA_TIMED_OUT; i++)
        if (history->timed_out[i] == size && now - history->timed_out_at[i] < TIMEOUT_PARTS * config->timeout) return true;
    return false;
}

static void note_timeout(strata_wait_history_t *history, uint64_t size, uint64_t now) {
    uint32_t place = history->next_timed_out++ % STRATA_TIMED_OUT;
    history->timed_out[place] = size;
    history->timed_out_at[place] = now;
}

bool strata_patience_waited(strata_patience_t *patience, const strata_layer_t *cache, const strata_request_t *request,
                            const strata_growth_asked_t *growth) {
    strata_call_t *call = request->call;
    strata_stack_t *stack = cache->stack;
    strata_wait_history_t *history = &stack->wait_history;
    const strata_outcome_t *outcome = strata_outcome_of(request);
    const strata_reclaim_t *config = outcome ? outcome->reclaim : NULL;
    strata_clock_t *clock = stack->domain->device->clock;
    uint64_t ahead, on_the_way = stack->figures.deferred_bytes, now = clock->now(clock);
    /* Other threads wait for a chunk that a cache above requested, so such a request does not wait. */
    bool may = config && config->patience && !(request->flags & STRATA_NO_RETRY) && call->purpose != STRATA_FOR_CHUNK;
    if (!may || __builtin_mul_overflow(depth_of(history, config), growth->bytes, &ahead)) return false;
    bool deep = on_the_way >= ahead;
    uint64_t timeout = deep ? config->timeout : shallow_wait(history, config, now);
    patience->waited_at = 0;
    bool comes = on_the_way > 0 && on_the_way + growth->idle >= growth->bytes &&
                 !has_timed_out(history, config, request->size, now);
    bool waits = comes && (deep || (timeout > 0 && growth->idle < growth->bytes)), again = false;
    uint64_t missing = growth->bytes - growth->idle, waited = 0;
    bool collects = missing > 0 && cache->type->needs & STRATA_TRAIT_HANDLE_SOURCE;
    if (waits || collects) {
        uint64_t least = request->size > growth->idle ? request->size - growth->idle : 1;
        strata_unlocked_t opened = strata_call_unlock(call);
        again = waits && is_more_than_needed(stack, config, missing) && wait_for_pending(patience, call->stack, timeout, least);
        waited = clock->now(clock) - now;
        if (!again && collects) strata_rest_collect(stack, missing);
        strata_call_lock(call, opened);
    }
    if (patience->timed_out) note_timeout(history, request->size, now);
    patience->timed_out = false;
    if (deep) learn(patience, history, config, request->size);
    else if (waits) history->budget_ns -= strata_min(history->budget_ns, waited);
    return again;
}
