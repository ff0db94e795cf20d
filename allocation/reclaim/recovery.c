/* The steps of recovery, and the wait at their end (docs/contracts.md §3). */
#include "allocation/reclaim/recovery.h"

#include "allocation/domain/layer.h"
#include "allocation/reclaim/callbacks.h"
#include "allocation/reclaim/waiting.h"
#include "allocation/report/log.h"

typedef struct climb {
    const strata_ladder_t *ladder;
    strata_domain_t *domain;
    strata_status_t status; /* of the last try */
    strata_waiting_t waiting;
    uint64_t epoch; /* of the domain, before the rungs of this pass */
    bool asked_callbacks;
    bool asked_small;
    bool nothing_pends; /* the last poll of all stacks found no completed and no pending frees */
    bool changed; /* something may have become free since the last failing try */
    strata_climbed_t given;
} climb_t;

/* Returns whether recovery is over. */
static bool try_again(climb_t *climb, uint32_t extra_flags) {
    climb->changed = false;
    climb->status = climb->ladder->try_again(climb->ladder->context, extra_flags);
    return climb->status != STRATA_E_NO_MEMORY;
}

static void pass_time(climb_t *climb, uint64_t ready_at, uint64_t epoch) {
    climb->changed |= strata_waiting_pass(&climb->waiting, ready_at, epoch);
}

static uint64_t release(climb_t *climb) {
    uint64_t bytes = strata_domain_release(climb->domain, climb->ladder->stack->group);
    climb->given.released += bytes;
    return bytes;
}

static uint64_t poll(climb_t *climb, strata_pending_t *pending) {
    uint64_t bytes = strata_domain_poll(climb->domain, pending);
    climb->given.polled += bytes;
    return bytes;
}

/* ---- steps: each returns whether recovery is over ---- */

/* Unless wait_first is set, polls and releases all stacks before the one try, as the peers do. */
static bool rung_poll(climb_t *climb) {
    strata_pending_t pending = {.ready_at = UINT64_MAX};
    strata_stack_poll(climb->ladder->stack, &pending);
    climb->given.polled += pending.freed_bytes;
    if ((climb->changed || pending.freed_bytes > 0) && try_again(climb, 0)) return true;
    uint64_t freed = poll(climb, &pending);
    climb->nothing_pends = freed + pending.pending_bytes == 0;
    if (!climb->ladder->says->wait_first) freed += release(climb);
    return freed > 0 && try_again(climb, 0);
}

/* Waits for the earliest pending free while the domain's pending bytes could serve the request. That takes
 * less GPU time than a device free, which waits for all work. Frees of other stacks count too, although
 * they only serve through the next step's release. If only the stack's own counted, the stack that came
 * first would keep all the memory. The work of the other streams would then be serialized
 * (streams-sharded-training at 24 GiB: 854 ms against 698). */
static bool rung_wait_first(climb_t *climb) {
    const strata_ladder_t *ladder = climb->ladder;
    if (!ladder->says->wait_first || climb->nothing_pends) return false;
    for (;;) {
        strata_pending_t pending = {.ready_at = UINT64_MAX};
        climb->given.waited += strata_domain_poll(climb->domain, &pending);
        if (pending.freed_bytes > 0 && try_again(climb, 0)) return true;
        if (pending.pending_bytes < ladder->size || strata_waiting_is_over(&climb->waiting)) return false;
        pass_time(climb, pending.ready_at, strata_domain_epoch(climb->domain));
        if (climb->changed && try_again(climb, 0)) return true;
    }
}

static bool rung_callbacks(climb_t *climb) {
    strata_domain_t *domain = climb->domain;
    if (!domain->free_memory || climb->asked_callbacks) return false;
    climb->asked_callbacks = true;
    uint64_t freed = strata_callbacks_ask(domain, climb->ladder->size);
    climb->given.called_back += freed;
    if (freed == 0) return false;
    if (try_again(climb, 0)) return true;
    return release(climb) > 0 && try_again(climb, 0);
}

/* Runs once. The device has refused this growth, and only later tries after a change request it again. */
static bool rung_small_growth(climb_t *climb) {
    if (climb->asked_small) return false;
    climb->asked_small = climb->given.asked_small = true;
    const strata_error_t reason = *strata_last_error();
    bool over = try_again(climb, STRATA_SMALL_GROWTH);
    if (!over) (void)strata_fail_again(&reason); /* a cache may have refused smaller growth, which is not the reason */
    return over;
}

/* ---- waiting ---- */

static bool waits_only(const climb_t *climb) { return climb->ladder->says->steps == STRATA_RECLAIM_WAIT; }

/* Waits once. The order is the bits, then a poll, then the sleep, so that no wake-up is lost. Returns
 * whether recovery is over. *again is true if memory has changed or will. */
static bool rung_wait(climb_t *climb, bool *again) {
    *again = false;
    if (climb->ladder->says->timeout == 0 || strata_waiting_is_over(&climb->waiting)) return false;
    bool first = !climb->waiting.marked;
    if (first) strata_waiting_mark(&climb->waiting);
    /* The steps of this pass may have missed a free since they began. With their epoch, the sleep then ends
     * immediately. */
    uint64_t epoch = first ? strata_domain_epoch(climb->domain) : climb->epoch;
    /* Frees before the waiter bits were set woke no thread, so this tries again and releases other stacks' idle
     * chunks too. */
    if (first && try_again(climb, 0)) return true;
    if (first && !waits_only(climb) && release(climb) > 0 && try_again(climb, 0)) return true;
    strata_pending_t pending;
    *again = true;
    climb->given.slept = true;
    if (poll(climb, &pending) > 0) return try_again(climb, 0);
    if (pending.pending_bytes > 0) {
        pass_time(climb, pending.ready_at, epoch);
        return false;
    }
    climb->changed = *again = strata_waiting_sleep(&climb->waiting, epoch);
    return false;
}

/* Returns true if recovery only waits, the thread is alone and nothing is pending. Then it cannot succeed. */
static bool nothing_can_come(const climb_t *climb) {
    strata_pending_t pending;
    if (!waits_only(climb) || strata_waiting_threads(climb->domain) > 1 || strata_waiting_has_strangers(&climb->waiting))
        return false;
    (void)strata_domain_poll(climb->domain, &pending);
    return pending.freed_bytes + pending.pending_bytes == 0;
}

/* ---- the whole recovery ---- */

strata_status_t strata_ladder_climb(const strata_ladder_t *ladder) {
    strata_domain_t *domain = ladder->stack->domain;
    strata_clock_t *clock = domain->device->clock;
    uint64_t began = clock->now(clock);
    climb_t climb = {.ladder = ladder,
                     .domain = domain,
                     .status = STRATA_E_NO_MEMORY,
                     .waiting = strata_waiting_begin(domain, ladder->says->timeout)};
    if (nothing_can_come(&climb)) return STRATA_E_NO_MEMORY;
    atomic_fetch_add(&ladder->stack->group->ladders, 1);
    for (bool again = true, over = false; again && !over;) {
        climb.epoch = strata_domain_epoch(domain);
        if (waits_only(&climb)) over = climb.changed && try_again(&climb, 0);
        else
            over = rung_poll(&climb) || rung_wait_first(&climb) || (release(&climb) > 0 && try_again(&climb, 0)) ||
                   rung_callbacks(&climb) || rung_small_growth(&climb);
        over = over || rung_wait(&climb, &again);
    }
    strata_waiting_unmark(&climb.waiting);
    climb.given.climbed = true;
    climb.given.timed_out = strata_waiting_is_over(&climb.waiting);
    climb.given.took_ns = clock->now(clock) - began;
    if (ladder->given) *ladder->given = climb.given;
    uint64_t reserved = strata_domain_reserved(domain);
    strata_log_note(STRATA_LOG_CLIMBED, domain->place, ladder->size, reserved);
    strata_log_note(STRATA_LOG_POLLED, domain->place, climb.given.polled, reserved);
    strata_log_note(STRATA_LOG_WAITED, domain->place, climb.given.waited, reserved);
    strata_log_note(STRATA_LOG_RELEASED, domain->place, climb.given.released, reserved);
    strata_log_note(STRATA_LOG_CALLED, domain->place, climb.given.called_back, reserved);
    return climb.status;
}
