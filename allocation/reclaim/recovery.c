/* The steps of recovery, and the wait at their end (docs/contracts.md §3). */
#include "allocation/reclaim/recovery.h"

#include "allocation/domain/layer.h"
#include "allocation/reclaim/callbacks.h"
#include "allocation/reclaim/waiting.h"
#include "allocation/report/log.h"

typedef struct run {
    const strata_recovery_t *recovery;
    strata_domain_t *domain;
    strata_status_t status; /* of the last try */
    strata_waiting_t waiting;
    uint64_t epoch; /* of the domain, before the steps of this pass */
    bool asked_callbacks;
    bool asked_small;
    bool nothing_pends; /* the last poll of all stacks found no completed and no pending frees */
    bool changed; /* something may have become free since the last failing try */
    strata_recovery_result_t given;
} run_t;

/* Returns whether recovery is over. */
static bool try_again(run_t *run, uint32_t extra_flags) {
    run->changed = false;
    run->status = run->recovery->try_again(run->recovery->context, extra_flags);
    return run->status != STRATA_E_NO_MEMORY;
}

static void wait_until(run_t *run, uint64_t ready_at, uint64_t epoch) {
    run->changed |= strata_waiting_wait_until(&run->waiting, ready_at, epoch);
}

static uint64_t release(run_t *run) {
    uint64_t bytes = strata_domain_release(run->domain, run->recovery->stack->group);
    run->given.released += bytes;
    return bytes;
}

static uint64_t poll(run_t *run, strata_pending_t *pending) {
    uint64_t bytes = strata_domain_poll(run->domain, pending);
    run->given.polled += bytes;
    return bytes;
}

/* ---- steps: each returns whether recovery is over ---- */

/* Unless wait_first is set, polls and releases all stacks before the one try, as the peers do. */
static bool step_poll(run_t *run) {
    strata_pending_t pending = {.ready_at = UINT64_MAX};
    strata_stack_poll(run->recovery->stack, &pending);
    run->given.polled += pending.freed_bytes;
    if ((run->changed || pending.freed_bytes > 0) && try_again(run, 0)) return true;
    uint64_t freed = poll(run, &pending);
    run->nothing_pends = freed + pending.pending_bytes == 0;
    if (!run->recovery->config->wait_first) freed += release(run);
    return freed > 0 && try_again(run, 0);
}

/* Waits for the earliest pending free while the domain's pending bytes could serve the request. That takes
 * less GPU time than a device free, which waits for all work. Frees of other stacks count too, although
 * they only serve through the next step's release. If only the stack's own counted, the stack that came
 * first would keep all the memory. The work of the other streams would then be serialized
 * (streams-sharded-training at 24 GiB: 854 ms against 698). */
static bool step_wait_first(run_t *run) {
    const strata_recovery_t *recovery = run->recovery;
    if (!recovery->config->wait_first || run->nothing_pends) return false;
    for (;;) {
        strata_pending_t pending = {.ready_at = UINT64_MAX};
        run->given.waited += strata_domain_poll(run->domain, &pending);
        if (pending.freed_bytes > 0 && try_again(run, 0)) return true;
        if (pending.pending_bytes < recovery->size || strata_waiting_is_over(&run->waiting)) return false;
        wait_until(run, pending.ready_at, strata_domain_epoch(run->domain));
        if (run->changed && try_again(run, 0)) return true;
    }
}

static bool step_callbacks(run_t *run) {
    strata_domain_t *domain = run->domain;
    if (!domain->free_memory || run->asked_callbacks) return false;
    run->asked_callbacks = true;
    uint64_t freed = strata_callbacks_call(domain, run->recovery->size);
    run->given.called_back += freed;
    if (freed == 0) return false;
    if (try_again(run, 0)) return true;
    return release(run) > 0 && try_again(run, 0);
}

/* Runs once. The device has refused this growth, and only later tries after a change request it again. */
static bool step_small_growth(run_t *run) {
    if (run->asked_small) return false;
    run->asked_small = run->given.asked_small = true;
    const strata_error_t reason = *strata_last_error();
    bool over = try_again(run, STRATA_SMALL_GROWTH);
    if (!over) (void)strata_fail_again(&reason); /* a cache may have refused smaller growth, which is not the reason */
    return over;
}

/* ---- waiting ---- */

static bool waits_only(const run_t *run) { return run->recovery->config->steps == STRATA_RECLAIM_WAIT; }

/* Waits once. The order is the bits, then a poll, then the sleep, so that no wake-up is lost. Returns
 * whether recovery is over. *again is true if memory has changed or will. */
static bool step_wait(run_t *run, bool *again) {
    *again = false;
    if (run->recovery->config->timeout == 0) return false;
    if (strata_waiting_is_over(&run->waiting)) {
        /* On a busy machine the earlier steps may take the whole timeout. It is then still the reason why no thread had time to
         * free. */
        run->given.slept = run->given.slept || strata_waiting_threads(run->domain) > 1;
        return false;
    }
    bool first = !run->waiting.marked;
    if (first) strata_waiting_mark(&run->waiting);
    /* The steps of this pass may have missed a free since they began. With their epoch, the sleep then ends
     * immediately. */
    uint64_t epoch = first ? strata_domain_epoch(run->domain) : run->epoch;
    /* Frees before the waiter bits were set woke no thread, so this tries again and releases other stacks' idle
     * chunks too. */
    if (first && try_again(run, 0)) return true;
    if (first && !waits_only(run) && release(run) > 0 && try_again(run, 0)) return true;
    strata_pending_t pending;
    *again = true;
    run->given.slept = true;
    if (poll(run, &pending) > 0) return try_again(run, 0);
    if (pending.pending_bytes > 0) {
        wait_until(run, pending.ready_at, epoch);
        return false;
    }
    run->changed = *again = strata_waiting_sleep(&run->waiting, epoch);
    return false;
}

/* Returns true if recovery only waits, the thread is alone and nothing is pending. Then it cannot succeed. */
static bool cannot_succeed(const run_t *run) {
    strata_pending_t pending;
    if (!waits_only(run) || strata_waiting_threads(run->domain) > 1 || strata_waiting_has_unknown_threads(&run->waiting))
        return false;
    (void)strata_domain_poll(run->domain, &pending);
    return pending.freed_bytes + pending.pending_bytes == 0;
}

/* ---- the whole recovery ---- */

strata_status_t strata_recovery_run(const strata_recovery_t *recovery) {
    strata_domain_t *domain = recovery->stack->domain;
    strata_clock_t *clock = domain->device->clock;
    uint64_t began = clock->now(clock);
    run_t run = {.recovery = recovery,
                 .domain = domain,
                 .status = STRATA_E_NO_MEMORY,
                 .waiting = strata_waiting_begin(domain, recovery->config->timeout)};
    if (cannot_succeed(&run)) return STRATA_E_NO_MEMORY;
    atomic_fetch_add(&recovery->stack->group->recoveries, 1);
    for (bool again = true, over = false; again && !over;) {
        run.epoch = strata_domain_epoch(domain);
        if (waits_only(&run)) over = run.changed && try_again(&run, 0);
        else
            over = step_poll(&run) || step_wait_first(&run) || (release(&run) > 0 && try_again(&run, 0)) || step_callbacks(&run) ||
                   step_small_growth(&run);
        over = over || step_wait(&run, &again);
    }
    strata_waiting_unmark(&run.waiting);
    run.given.ran = true;
    run.given.timed_out = strata_waiting_is_over(&run.waiting);
    run.given.took_ns = clock->now(clock) - began;
    if (recovery->given) *recovery->given = run.given;
    uint64_t reserved = strata_domain_reserved(domain);
    strata_log_note(STRATA_LOG_RECOVERED, domain->place, recovery->size, reserved);
    strata_log_note(STRATA_LOG_POLLED, domain->place, run.given.polled, reserved);
    strata_log_note(STRATA_LOG_WAITED, domain->place, run.given.waited, reserved);
    strata_log_note(STRATA_LOG_RELEASED, domain->place, run.given.released, reserved);
    strata_log_note(STRATA_LOG_CALLED, domain->place, run.given.called_back, reserved);
    return run.status;
}
