/* The reclaim ladder and the waiting at its end (CONTRACTS §3). */
#include "allocation/reclaim/ladder.h"

#include "allocation/reclaim/callbacks.h"
#include "allocation/report/log.h"
#include "allocation/stack/layer.h"
#include "allocation/stack/threads.h"

enum {
    BACKOFF_LEAST_NS = 20 * 1000, /* between polls of a device that cannot say when an event passes */
    BACKOFF_MOST_NS = 1000 * 1000
};

typedef struct climb {
    const strata_ladder_t *ladder;
    strata_status_t status; /* of the last try */
    uint64_t deadline; /* of the device's clock */
    uint64_t real_deadline; /* the timeout also holds in real time, so that nothing hangs */
    uint64_t backoff;
    uint64_t epoch; /* of the domain, before the rungs of this pass */
    bool waiting; /* this thread is among the domain's waiters */
    bool asked_callbacks;
    bool asked_small;
    bool changed; /* something may have become free since the last failing try */
    uint64_t began; /* of the device's clock */
    strata_climbed_t given;
} climb_t;

/* A callback of the program may climb too: this is written at the end. */
static _Thread_local strata_climbed_t last_climb;

strata_climbed_t strata_ladder_last(void) { return last_climb; }

void strata_ladder_begin(void) { last_climb = (strata_climbed_t){.climbed = false}; }

void strata_ladder_note_own(uint8_t layer, uint64_t gave) {
    last_climb.own = layer;
    last_climb.own_gave = gave;
}

static strata_clock_t *clock_of(const climb_t *climb) { return climb->ladder->domain->device->clock; }

/* Answers whether the climb is over. */
static bool try_again(climb_t *climb, uint32_t extra_flags) {
    climb->changed = false;
    climb->status = climb->ladder->try_again(climb->ladder->context, extra_flags);
    return climb->status != STRATA_E_NO_MEMORY;
}

static bool out_of_time(const climb_t *climb) {
    strata_clock_t *clock = clock_of(climb);
    return clock->now(clock) >= climb->deadline || strata_real_now() >= climb->real_deadline;
}

/* Sleeps up to `ns` of real time; answers whether a free has moved the epoch. */
static bool hear_a_free(strata_domain_t *domain, uint64_t epoch, uint64_t ns) {
    strata_lock(&domain->lock);
    if (domain->epoch == epoch) strata_condition_wait(&domain->freed, &domain->lock, ns);
    bool moved = domain->epoch != epoch;
    strata_unlock(&domain->lock);
    return moved;
}

static uint64_t next_backoff(climb_t *climb) {
    uint64_t now = climb->backoff;
    climb->backoff = now * 2 < BACKOFF_MOST_NS ? now * 2 : BACKOFF_MOST_NS;
    return now;
}

/* Lets time pass until the earliest pending free may be done, or a free is heard. A virtual clock jumps there; it stands still
 * for a moment of real time first where other threads are at work, who may free before. */
static void let_time_pass(climb_t *climb, uint64_t ready_at, uint64_t epoch) {
    strata_clock_t *clock = clock_of(climb);
    uint64_t wait = next_backoff(climb);
    if (!clock->is_virtual) {
        climb->changed = hear_a_free(climb->ladder->domain, epoch, wait);
        return;
    }
    if (strata_threads_registered() > 1 && hear_a_free(climb->ladder->domain, epoch, wait)) {
        climb->changed = true;
        return;
    }
    /* An event that should have passed, of a device that does not say so, is asked for again later. */
    uint64_t now = clock->now(clock), until = ready_at == UINT64_MAX || ready_at <= now ? now + wait : ready_at;
    clock->sleep_until(clock, until < climb->deadline ? until : climb->deadline);
}

static void pass_time(climb_t *climb, uint64_t ready_at, uint64_t epoch) {
    strata_domain_t *domain = climb->ladder->domain;
    atomic_fetch_add(&domain->held_up, 1);
    let_time_pass(climb, ready_at, epoch);
    atomic_fetch_sub(&domain->held_up, 1);
}

static uint64_t epoch_of(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    uint64_t epoch = domain->epoch;
    strata_unlock(&domain->lock);
    return epoch;
}

static uint64_t release(climb_t *climb) {
    uint64_t bytes = strata_domain_release(climb->ladder->domain, climb->ladder->stack->group);
    climb->given.released += bytes;
    return bytes;
}

static uint64_t poll(climb_t *climb, strata_pending_t *pending) {
    uint64_t bytes = strata_domain_poll(climb->ladder->domain, pending);
    climb->given.polled += bytes;
    return bytes;
}

/* ---- rungs: each answers whether the climb is over ---- */

/* Without waiting in between, all stacks are polled and released before the one try (as the peers do, CONTRACTS §3). */
static bool rung_poll(climb_t *climb) {
    strata_pending_t pending = {.ready_at = UINT64_MAX};
    strata_stack_poll(climb->ladder->stack, &pending);
    climb->given.polled += pending.freed_bytes;
    if ((climb->changed || pending.freed_bytes > 0) && try_again(climb, 0)) return true;
    uint64_t freed = poll(climb, &pending);
    if (!climb->ladder->wait_first) freed += release(climb);
    return freed > 0 && try_again(climb, 0);
}

/* While frees are pending in the domain whose bytes could serve the request, wait for the earliest of them: that takes less of
 * the GPU's time than a device free, which waits for all work. Other stacks' frees count too, though they serve only through the
 * next rung's release: waiting for the own stack's alone lets the stack that came first keep all the memory, and puts the other
 * streams' work in a row (streams-sharded-training at 24 GiB: 854 ms against 698). */
static bool rung_wait_first(climb_t *climb) {
    const strata_ladder_t *ladder = climb->ladder;
    if (!ladder->wait_first) return false;
    for (;;) {
        strata_pending_t pending = {.ready_at = UINT64_MAX};
        climb->given.waited += strata_domain_poll(ladder->domain, &pending);
        if (pending.freed_bytes > 0 && try_again(climb, 0)) return true;
        if (pending.pending_bytes < ladder->size || out_of_time(climb)) return false;
        pass_time(climb, pending.ready_at, epoch_of(ladder->domain));
        if (climb->changed && try_again(climb, 0)) return true;
    }
}

static bool rung_release(climb_t *climb) { return release(climb) > 0 && try_again(climb, 0); }

static bool rung_callbacks(climb_t *climb) {
    strata_domain_t *domain = climb->ladder->domain;
    if (!domain->free_memory || climb->asked_callbacks) return false;
    climb->asked_callbacks = true;
    uint64_t freed = strata_callbacks_ask(domain, climb->ladder->size);
    climb->given.called_back += freed;
    if (freed == 0) return false;
    if (try_again(climb, 0)) return true;
    return release(climb) > 0 && try_again(climb, 0);
}

/* Once: the device has refused it, and it is asked again only by the tries that follow a change. */
static bool rung_small_growth(climb_t *climb) {
    if (climb->asked_small) return false;
    climb->asked_small = climb->given.asked_small = true;
    const strata_error_t reason = *strata_last_error();
    bool over = try_again(climb, STRATA_SMALL_GROWTH);
    if (!over) (void)strata_fail_again(&reason); /* a cache may have refused to grow by less: that is not why */
    return over;
}

/* ---- waiting ---- */

/* Sets the waiter bit in every stack, each under its lock, or clears it when the last waiter has gone. */
static void mark(strata_domain_t *domain, uint16_t bit, bool set) {
    STRATA_DOMAIN_EACH(domain, stack) {
        strata_stack_lock(stack);
        uint16_t kept = atomic_load(&domain->above) ? STRATA_ATTENTION_LIMIT : 0;
        if (stack->open)
            stack->attention_free = (uint16_t)(set ? stack->attention_free | bit : (stack->attention_free & ~bit) | kept);
        strata_stack_unlock(stack);
    }
}

static void begin_waiting(climb_t *climb) {
    strata_domain_t *domain = climb->ladder->domain;
    strata_lock(&domain->lock);
    domain->waiters++;
    strata_unlock(&domain->lock);
    mark(domain, climb->ladder->waiter, true);
    climb->waiting = true;
}

static bool has_waiters(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    bool has = domain->waiters > 0;
    strata_unlock(&domain->lock);
    return has;
}

/* The last waiter clears the bits. One that comes meanwhile may find them cleared behind it: they are set once more for it, and
 * it tries again; and it may have gone before that, so the end is what the count says. */
static void end_waiting(climb_t *climb) {
    if (!climb->waiting) return;
    strata_domain_t *domain = climb->ladder->domain;
    strata_lock(&domain->lock);
    bool last = --domain->waiters == 0;
    strata_condition_broadcast(&domain->freed);
    strata_unlock(&domain->lock);
    while (last) {
        mark(domain, STRATA_ATTENTION_ALL, false);
        if (!has_waiters(domain)) return;
        mark(domain, climb->ladder->waiter, true);
        strata_domain_wake(domain);
        last = !has_waiters(domain);
    }
}

/* Sleeps, in steps of real time, until a free moves the epoch. Answers false at once, or later, when nobody is left who could
 * free: no event is pending and every other registered thread sleeps here too. */
static bool sleep_for_a_free(climb_t *climb, uint64_t epoch) {
    strata_domain_t *domain = climb->ladder->domain;
    bool moved = false, alone = false;
    atomic_fetch_add(&domain->held_up, 1);
    strata_lock(&domain->lock);
    domain->sleeping++;
    while (!moved && !alone && strata_real_now() < climb->real_deadline) {
        moved = domain->epoch != epoch;
        alone = domain->sleeping >= strata_threads_registered();
        if (!moved && !alone) strata_condition_wait(&domain->freed, &domain->lock, BACKOFF_MOST_NS);
    }
    moved = domain->epoch != epoch;
    domain->sleeping--;
    atomic_fetch_sub(&domain->held_up, 1);
    /* Whoever sleeps on is told that one more has given up: it looks again whether it is alone. */
    if (alone) strata_condition_broadcast(&domain->freed);
    strata_unlock(&domain->lock);
    return moved;
}

/* What was freed before the bits were set was told to nobody: everything is looked at once more, idle chunks of other stacks
 * too. Answers whether the climb is over. */
static bool look_again(climb_t *climb) {
    if (try_again(climb, 0)) return true;
    return !climb->ladder->wait_only && release(climb) > 0 && try_again(climb, 0);
}

/* One wait: the bits first, then a look at everything, then sleep, so that no wake-up is lost. Answers whether the climb is
 * over; *again says whether something has changed or will. */
static bool rung_wait(climb_t *climb, bool *again) {
    strata_domain_t *domain = climb->ladder->domain;
    *again = false;
    if (climb->ladder->timeout == 0 || climb->ladder->waiter == 0 || out_of_time(climb)) return false;
    bool first = !climb->waiting;
    if (first) begin_waiting(climb);
    /* A free since the rungs of this pass began to look may have been missed by them: then the sleep ends at once. */
    uint64_t epoch = first ? epoch_of(domain) : climb->epoch;
    if (first && look_again(climb)) return true;
    strata_pending_t pending;
    *again = true;
    climb->given.slept = true;
    if (poll(climb, &pending) > 0) return try_again(climb, 0);
    if (pending.pending_bytes > 0) {
        pass_time(climb, pending.ready_at, epoch);
        return false;
    }
    climb->changed = *again = sleep_for_a_free(climb, epoch);
    return false;
}

static uint64_t after(uint64_t now, uint64_t ns) { return ns > UINT64_MAX - now ? UINT64_MAX : now + ns; }

static climb_t begin_climb(const strata_ladder_t *ladder) {
    climb_t climb = {.ladder = ladder, .status = STRATA_E_NO_MEMORY, .backoff = BACKOFF_LEAST_NS};
    strata_clock_t *clock = clock_of(&climb);
    (void)strata_threads_self();
    climb.began = clock->now(clock);
    climb.deadline = after(climb.began, ladder->timeout);
    climb.real_deadline = after(strata_real_now(), ladder->timeout);
    return climb;
}

strata_status_t strata_ladder_be_patient(const strata_ladder_t *ladder) {
    climb_t climb = begin_climb(ladder);
    for (;;) {
        strata_pending_t pending = {.ready_at = UINT64_MAX};
        strata_stack_poll(ladder->stack, &pending);
        if ((climb.changed || pending.freed_bytes > 0) && try_again(&climb, 0)) return climb.status;
        if (pending.pending_bytes < ladder->size || out_of_time(&climb)) return STRATA_E_NO_MEMORY;
        pass_time(&climb, pending.ready_at, epoch_of(ladder->domain));
    }
}

/* A ladder of waits alone has nothing to climb for a thread that is alone, with nothing pending. */
static bool nothing_can_come(const climb_t *climb) {
    strata_pending_t pending;
    if (!climb->ladder->wait_only || strata_threads_registered() > 1) return false;
    (void)strata_domain_poll(climb->ladder->domain, &pending);
    return pending.freed_bytes + pending.pending_bytes == 0;
}

static void note_rungs(const climb_t *climb) {
    strata_domain_t *domain = climb->ladder->domain;
    uint64_t now = strata_domain_reserved(domain);
    strata_log_note(STRATA_LOG_CLIMBED, domain->place, climb->ladder->size, now);
    strata_log_note(STRATA_LOG_POLLED, domain->place, climb->given.polled, now);
    strata_log_note(STRATA_LOG_WAITED, domain->place, climb->given.waited, now);
    strata_log_note(STRATA_LOG_RELEASED, domain->place, climb->given.released, now);
    strata_log_note(STRATA_LOG_CALLED, domain->place, climb->given.called_back, now);
}

strata_status_t strata_ladder_climb(const strata_ladder_t *ladder) {
    climb_t climb = begin_climb(ladder);
    if (nothing_can_come(&climb)) return STRATA_E_NO_MEMORY;
    atomic_fetch_add(&ladder->stack->group->ladders, 1);
    bool over = false, again = true;
    while (!over && again) {
        climb.epoch = epoch_of(ladder->domain);
        if (ladder->wait_only) over = (climb.changed && try_again(&climb, 0)) || rung_wait(&climb, &again);
        else
            over = rung_poll(&climb) || rung_wait_first(&climb) || rung_release(&climb) || rung_callbacks(&climb) ||
                   rung_small_growth(&climb) || rung_wait(&climb, &again);
    }
    end_waiting(&climb);
    climb.given.climbed = true;
    climb.given.timed_out = out_of_time(&climb);
    climb.given.took_ns = clock_of(&climb)->now(clock_of(&climb)) - climb.began;
    last_climb = climb.given;
    note_rungs(&climb);
    return climb.status;
}

void strata_domain_wake(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    if (domain->waiters > 0) {
        domain->epoch++;
        strata_condition_broadcast(&domain->freed);
    }
    strata_unlock(&domain->lock);
}
