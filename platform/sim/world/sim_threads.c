/* Virtual time: one clock per host thread and world. A lock hand-over advances the new holder's clock
 * to the last holder's. A new thread starts at the latest clock. */
#include <stdlib.h>

#include "platform/sim/world/checker_hooks.h"

/* A thread's latest look-ups, since few worlds are in use at once. Serials are never reused, so an
 * entry of a dead world never matches. */
#define CACHED 4
static _Thread_local struct {
    uint64_t serial;
    sim_thread_t *thread;
} cached[CACHED];
static _Thread_local uint64_t own_number;
static _Atomic uint64_t numbers;

uint64_t sim_thread_number(void) {
    if (!own_number) own_number = atomic_fetch_add(&numbers, 1) + 1;
    return own_number;
}

static uint64_t clock_of(const sim_thread_t *thread) { return atomic_load_explicit(&thread->now, memory_order_relaxed); }

/* Returns the latest clock of any thread. It is computed on demand, since it is rarely needed and
 * clocks move at every step. */
static uint64_t latest(strata_sim_t *world) {
    uint64_t now = clock_of(&world->spare_thread);
    for (size_t i = 0; i < SIM_THREADS_HASH; i++)
        for (sim_thread_t *at = atomic_load(&world->threads[i]); at; at = at->next) now = strata_max(now, clock_of(at));
    return now;
}

static sim_thread_t *enrol(strata_sim_t *world, uint64_t number) {
    sim_thread_t *_Atomic *head = &world->threads[number % SIM_THREADS_HASH];
    for (sim_thread_t *at = atomic_load(head); at; at = at->next)
        if (at->number == number) return at;
    sim_thread_t *fresh = calloc(1, sizeof *fresh);
    if (!fresh) return &world->spare_thread;
    fresh->number = number;
    fresh->index = atomic_fetch_add(&world->thread_count, 1);
    atomic_init(&fresh->now, latest(world));
    fresh->next = atomic_load(head);
    while (!atomic_compare_exchange_weak(head, &fresh->next, fresh)) {}
    /* Earlier hand-overs need no observer: the lock was held by the only thread, and this one begins at
     * the latest clock anyway. */
    if (fresh->index > 0) strata_lock_observer_activate(&world->observer.observer);
    return fresh;
}

sim_thread_t *sim_thread(strata_sim_t *world) {
    uint64_t serial = world->serial;
    for (size_t i = 0; i < CACHED; i++)
        if (cached[i].serial == serial) return cached[i].thread;
    sim_thread_t *thread = enrol(world, sim_thread_number());
    for (size_t i = CACHED - 1; i > 0; i--) cached[i] = cached[i - 1];
    cached[0].serial = serial;
    cached[0].thread = thread;
    return thread;
}

static uint64_t now_of(strata_sim_t *world) { return clock_of(sim_thread(world)); }

/* Sets the calling thread's clock. No other thread writes it. */
static void set(strata_sim_t *world, uint64_t now) { atomic_store_explicit(&sim_thread(world)->now, now, memory_order_relaxed); }

uint64_t sim_now(sim_device_t *device) { return now_of(device->world); }

/* Makes the host wait until `until` and continue at `awake`. The time between the two is counted nowhere. */
static void stall(sim_device_t *device, uint64_t now, uint64_t until, uint64_t awake) {
    set(device->world, awake);
    atomic_fetch_add_explicit(&device->stall_ns, until - now, memory_order_relaxed);
    if (device->base.timed && device->base.ledger) device->base.ledger->waiting_ns += until - now;
}

void sim_stall(sim_device_t *device, uint64_t until) {
    uint64_t now = sim_now(device);
    if (until > now) stall(device, now, until, sim_after_wait(device->world, now, until));
}

static uint64_t whole_ns(double ns) { return ns <= 0 ? 0 : ns >= 1e18 ? (uint64_t)1e18 : (uint64_t)(ns + 0.5); }

/* Takes a turn at the driver's lock and returns the wait for it. The queue has at most one turn of each
 * other thread, and only turns that end later than `now`. So another thread, however far ahead its
 * clock is, delays this one by at most that turn. The calling thread's own last turn is over, because
 * no turn is longer than its call. */
static uint64_t take_turn(sim_device_t *device, uint64_t now, uint64_t held) {
    uint64_t own = sim_thread_number(), wait = 0;
    sim_turn_t *mine = &device->turns[0];
    for (size_t i = 0; i < SIM_TURNS; i++) {
        sim_turn_t *turn = &device->turns[i];
        if (turn->end > now) wait += strata_min(turn->held, turn->end - now);
        if (mine->thread != own && (turn->thread == own || turn->end < mine->end)) mine = turn;
    }
    *mine = (sim_turn_t){own, now + wait + held, held};
    return wait;
}

void sim_charge(sim_device_t *device, const strata_sim_cost_t *cost, uint64_t size) {
    double share = device->world->profile.driver_lock_share;
    uint64_t whole = whole_ns(cost->fixed_ns + cost->per_mib_ns * ((double)size / SIM_MIB));
    uint64_t now = sim_now(device), then;
    if (share > 0) whole += take_turn(device, now, whole_ns(cost->fixed_ns * share));
    if (!strata_add(now, whole, &then)) then = STRATA_NEVER - 1;
    set(device->world, sim_after_work(device->world, now, then));
    device->device_call_ns += then - now;
}

static uint64_t clock_now(strata_clock_t *self) { return sim_now(((sim_clock_t *)self)->device); }

static void clock_sleep(strata_clock_t *self, uint64_t until) {
    sim_device_t *device = ((sim_clock_t *)self)->device;
    uint64_t now = sim_now(device);
    if (until > now) stall(device, now, until, sim_after_sleep(device->world, now, until));
}

static void acquired(strata_lock_observer_t *self, strata_lock_t *lock) {
    strata_sim_t *world = ((sim_observer_t *)self)->world;
    if (lock->observed > now_of(world)) set(world, lock->observed);
    if (world->checker) check_on_lock(world, lock);
}

static void releasing(strata_lock_observer_t *self, strata_lock_t *lock) {
    strata_sim_t *world = ((sim_observer_t *)self)->world;
    uint64_t now = now_of(world);
    if (now > lock->observed) lock->observed = now;
    if (world->checker) check_on_unlock(world, lock);
}

void sim_clock_init(sim_device_t *device) {
    device->clock.clock = (strata_clock_t){
        .is_virtual = true, .polls = device->world->host_jitter != 0, .now = clock_now, .sleep_until = clock_sleep};
    device->clock.device = device;
}

void sim_threads_init(strata_sim_t *world) {
    world->observer.observer = (strata_lock_observer_t){.acquired = acquired, .releasing = releasing};
    world->observer.world = world;
}

void sim_threads_end(strata_sim_t *world) {
    strata_lock_assert_alone(&world->observer.observer);
    for (size_t i = 0; i < SIM_THREADS_HASH; i++) {
        for (sim_thread_t *at = atomic_load(&world->threads[i]), *next; at; at = next) {
            next = at->next;
            free(at);
        }
    }
}

uint64_t strata_sim_now(strata_sim_t *world) { return now_of(world); }

const _Atomic uint64_t *strata_sim_clock(strata_sim_t *world) { return &sim_thread(world)->now; }

_Atomic uint64_t *strata_sim_steady_clock(strata_sim_t *world) { return world->host_jitter ? NULL : &sim_thread(world)->now; }

void strata_sim_advance_to(strata_sim_t *world, uint64_t until) {
    uint64_t now = now_of(world);
    if (until > now) set(world, sim_after_work(world, now, until));
}

void strata_sim_advance_by(strata_sim_t *world, uint64_t way) {
    sim_thread_t *thread = sim_thread(world);
    uint64_t now = clock_of(thread), until = now + way;
    if (world->host_jitter) until = sim_after_work(world, now, until);
    atomic_store_explicit(&thread->now, until, memory_order_relaxed);
}
