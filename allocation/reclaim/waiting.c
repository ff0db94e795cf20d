#include "allocation/reclaim/waiting.h"

#include "allocation/stack/threads.h"

enum {
    BACKOFF_MIN_NS = 20 * 1000, /* between polls of a device that cannot predict when an event completes */
    BACKOFF_MAX_NS = 1000 * 1000,
    UNKNOWN_THREADS_NS = 50 * 1000 * 1000 /* limit of a wait that only unregistered threads could end, since they may never call */
};

static uint64_t after(uint64_t now, uint64_t ns) { return ns > UINT64_MAX - now ? UINT64_MAX : now + ns; }

strata_waiting_t strata_waiting_begin(strata_domain_t *domain, uint64_t timeout) {
    strata_clock_t *clock = domain->device->clock;
    (void)strata_threads_self();
    return (strata_waiting_t){
        .domain = domain,
        .deadline = after(clock->now(clock), timeout),
        .real_deadline = after(strata_real_now(), timeout),
        .unknown_deadline = after(strata_real_now(), timeout < UNKNOWN_THREADS_NS ? timeout : UNKNOWN_THREADS_NS),
        .backoff = BACKOFF_MIN_NS};
}

uint32_t strata_waiting_threads(const strata_domain_t *domain) {
    return domain->device->one_thread ? 1 : strata_threads_registered();
}

bool strata_waiting_has_unknown_threads(const strata_waiting_t *waiting) {
    if (waiting->domain->device->one_thread || strata_real_now() >= waiting->unknown_deadline) return false;
    return strata_threads_has_unknown();
}

/* Real time counts if another thread may free. A thread that is alone with a virtual clock waits by that
 * clock, so that the result does not depend on the machine. */
bool strata_waiting_is_over(const strata_waiting_t *waiting) {
    strata_clock_t *clock = waiting->domain->device->clock;
    if (clock->now(clock) >= waiting->deadline) return true;
    bool alone = clock->is_virtual && strata_waiting_threads(waiting->domain) <= 1;
    return !alone && strata_real_now() >= waiting->real_deadline;
}

/* ---- the epoch of frees ---- */

uint64_t strata_domain_epoch(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    uint64_t epoch = domain->epoch;
    strata_unlock(&domain->lock);
    return epoch;
}

void strata_domain_wake(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    if (domain->waiters > 0) {
        domain->epoch++;
        strata_condition_broadcast(&domain->freed);
    }
    strata_unlock(&domain->lock);
}

/* Sets the waiter bit in every stack, each under its lock, or clears it after the last waiter. */
static void mark(strata_domain_t *domain, bool set) {
    STRATA_DOMAIN_EACH(domain, stack) {
        strata_stack_lock(stack);
        uint16_t others = (uint16_t)(stack->attention_free & ~STRATA_ATTENTION_WAITER);
        if (stack->open) stack->attention_free = set ? others | STRATA_ATTENTION_WAITER : others;
        strata_stack_unlock(stack);
    }
}

void strata_waiting_mark(strata_waiting_t *waiting) {
    strata_domain_t *domain = waiting->domain;
    strata_lock(&domain->lock);
    domain->waiters++;
    strata_unlock(&domain->lock);
    mark(domain, true);
    waiting->marked = true;
}

static bool has_waiters(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    bool has = domain->waiters > 0;
    strata_unlock(&domain->lock);
    return has;
}

/* The last waiter clears the bits. A new waiter may find them cleared after it set them, so they are set
 * again for it and it tries again. It may also have left before that, so the count decides in the end. */
void strata_waiting_unmark(strata_waiting_t *waiting) {
    if (!waiting->marked) return;
    strata_domain_t *domain = waiting->domain;
    strata_lock(&domain->lock);
    bool last = --domain->waiters == 0;
    strata_condition_broadcast(&domain->freed);
    strata_unlock(&domain->lock);
    while (last) {
        mark(domain, false);
        if (!has_waiters(domain)) return;
        mark(domain, true);
        strata_domain_wake(domain);
        last = !has_waiters(domain);
    }
}

/* ---- passing time ---- */

/* Returns whether a free has advanced the epoch. A virtual clock jumps to the event. If other threads are at work, this first sleeps briefly in real time,
 * because they may free before the event. */
static bool advance_time(const strata_waiting_t *waiting, uint64_t ready_at, uint64_t epoch) {
    strata_clock_t *clock = waiting->domain->device->clock;
    bool listens = !clock->is_virtual || strata_waiting_threads(waiting->domain) > 1;
    strata_domain_t *domain = waiting->domain;
    bool freed = false;
    if (listens) {
        strata_lock(&domain->lock);
        if (domain->epoch == epoch) strata_condition_wait(&domain->freed, &domain->lock, waiting->backoff);
        freed = domain->epoch != epoch;
        strata_unlock(&domain->lock);
    }
    if (freed || !clock->is_virtual) return freed;
    /* A device that cannot predict when events complete is polled again later. */
    uint64_t now = clock->now(clock);
    bool knows = !clock->polls && ready_at != UINT64_MAX && ready_at > now;
    uint64_t until = knows ? ready_at : now + waiting->backoff;
    clock->sleep_until(clock, until < waiting->deadline ? until : waiting->deadline);
    return false;
}

bool strata_waiting_wait_until(strata_waiting_t *waiting, uint64_t ready_at, uint64_t epoch) {
    strata_clock_t *clock = waiting->domain->device->clock;
    uint64_t began = clock->now(clock);
    atomic_fetch_add(&waiting->domain->blocked, 1);
    bool heard = advance_time(waiting, ready_at, epoch);
    atomic_fetch_sub(&waiting->domain->blocked, 1);
    waiting->nap = clock->is_virtual && !clock->polls ? 0 : clock->now(clock) - began;
    /* A sleep is longer than the last one by an eighth. A wait then ends late by at most an eighth of its length,
     * plus the kernel's own delay. If sleeps doubled, a wait of a millisecond would end half a millisecond late
     * (docs/virtual-memory.md). */
    uint64_t longer = waiting->backoff + waiting->backoff / 8;
    waiting->backoff = longer < BACKOFF_MAX_NS ? longer : BACKOFF_MAX_NS;
    return heard;
}

bool strata_waiting_sleep(strata_waiting_t *waiting, uint64_t epoch) {
    strata_domain_t *domain = waiting->domain;
    bool moved = false, alone = false;
    atomic_fetch_add(&domain->blocked, 1);
    strata_lock(&domain->lock);
    domain->sleeping++;
    while (!moved && !alone && strata_real_now() < waiting->real_deadline) {
        moved = domain->epoch != epoch;
        alone = domain->sleeping >= strata_waiting_threads(domain) && !strata_waiting_has_unknown_threads(waiting);
        if (!moved && !alone) strata_condition_wait(&domain->freed, &domain->lock, BACKOFF_MAX_NS);
    }
    moved = domain->epoch != epoch;
    domain->sleeping--;
    atomic_fetch_sub(&domain->blocked, 1);
    /* The other sleepers must check again whether they are alone. */
    if (alone) strata_condition_broadcast(&domain->freed);
    strata_unlock(&domain->lock);
    return moved;
}
