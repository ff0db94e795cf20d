/* The steps of the ladder, and the waiting at its end (docs/contracts.md §3). */
#include "allocation/reclaim/ladder.h"

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
    bool nothing_pends; /* the last poll of all stacks found nothing freed, and nothing that waits */
    bool changed; /* something may have become free since the last failing try */
    strata_climbed_t given;
} climb_t;

/* Returns whether the climb is over. */
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

/* ---- rungs: each returns whether the climb is over ---- */

/* Without waiting in between, all stacks are polled and released before the one try (as the peers do). */
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

/* While frees are pending in the domain whose bytes could serve the request, wait for the earliest of them: that takes less of the
 * GPU's time than a device free, which waits for all work. Other stacks' frees count too, though they serve only through the next
 * rung's release. If only the own stack's counted, the stack that came first would keep all the memory, and the other streams' work
 * would be serialised (streams-sharded-training at 24 GiB: 854 ms against 698). */
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

static bool rung_release(climb_t *climb) { return release(climb) > 0 && try_again(climb, 0); }

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

/* Once: the device has refused it, and is asked again only by the tries that follow a change. */
static bool rung_small_growth(climb_t *climb) {
    if (climb->asked_small) return false;
    climb->asked_small = climb->given.asked_small = true;
    const strata_error_t reason = *strata_last_error();
    bool over = try_again(climb, STRATA_SMALL_GROWTH);
    if (!over) (void)strata_fail_again(&reason); /* a cache may have refused to grow by less: that is not the reason */
    return over;
}

/* ---- waiting ---- */

static bool waits_only(const climb_t *climb) { return climb->ladder->says->steps == STRATA_RECLAIM_WAIT; }

/* What was freed before the bits were set woke nobody: everything is looked at once more, idle chunks of other stacks too. Returns
 * whether the climb is over. */
static bool look_again(climb_t *climb) {
    if (try_again(climb, 0)) return true;
    return !waits_only(climb) && release(climb) > 0 && try_again(climb, 0);
}

/* One wait: first the bits, then a look at everything, then sleep, so no wake-up is lost. Returns whether the climb is over;
 * *again: something has changed, or will. */
static bool rung_wait(climb_t *climb, bool *again) {
    *again = false;
    if (climb->ladder->says->timeout == 0 || strata_waiting_is_over(&climb->waiting)) return false;
    bool first = !climb->waiting.marked;
    if (first) strata_waiting_mark(&climb->waiting);
    /* The rungs of this pass may have missed a free made since they began: then the sleep ends at once. */
    uint64_t epoch = first ? strata_domain_epoch(climb->domain) : climb->epoch;
    if (first && look_again(climb)) return true;
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

/* A ladder of waits only has nothing to do for a thread that is alone, with nothing pending. */
static bool nothing_can_come(const climb_t *climb) {
    strata_pending_t pending;
    if (!waits_only(climb) || strata_waiting_threads(climb->domain) > 1 || strata_waiting_has_strangers(&climb->waiting))
        return false;
    (void)strata_domain_poll(climb->domain, &pending);
    return pending.freed_bytes + pending.pending_bytes == 0;
}

/* ---- the whole ---- */

static void note_rungs(const climb_t *climb) {
    strata_domain_t *domain = climb->domain;
    uint64_t now = strata_domain_reserved(domain);
    strata_log_note(STRATA_LOG_CLIMBED, domain->place, climb->ladder->size, now);
    strata_log_note(STRATA_LOG_POLLED, domain->place, climb->given.polled, now);
    strata_log_note(STRATA_LOG_WAITED, domain->place, climb->given.waited, now);
    strata_log_note(STRATA_LOG_RELEASED, domain->place, climb->given.released, now);
    strata_log_note(STRATA_LOG_CALLED, domain->place, climb->given.called_back, now);
}

static bool climb_once(climb_t *climb, bool *again) {
    climb->epoch = strata_domain_epoch(climb->domain);
    if (waits_only(climb)) return (climb->changed && try_again(climb, 0)) || rung_wait(climb, again);
    return rung_poll(climb) || rung_wait_first(climb) || rung_release(climb) || rung_callbacks(climb) || rung_small_growth(climb) ||
           rung_wait(climb, again);
}

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
    for (bool again = true; again && !climb_once(&climb, &again);) {}
    strata_waiting_unmark(&climb.waiting);
    climb.given.climbed = true;
    climb.given.timed_out = strata_waiting_is_over(&climb.waiting);
    climb.given.took_ns = clock->now(clock) - began;
    if (ladder->given) *ladder->given = climb.given;
    note_rungs(&climb);
    return climb.status;
}
