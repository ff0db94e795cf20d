#include "allocation/stack/threads.h"

#include <pthread.h>
#include <stdatomic.h>

#include "platform/host/host_memory.h"

_Thread_local uint64_t strata_threads_own __attribute__((tls_model("initial-exec")));
_Thread_local uint64_t strata_threads_plain __attribute__((tls_model("initial-exec")));
static _Atomic bool forked;

static _Atomic uint32_t registered;
static _Atomic uint32_t internal; /* threads that the library itself started */
static _Atomic uint64_t last_number;
static _Atomic uint64_t exits;
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

/* The numbers of living threads. A thread that found no room counts as alive forever, so nothing of it is released early. */
static pthread_mutex_t alive_lock = PTHREAD_MUTEX_INITIALIZER;
enum { ALIVE_MAX = 1 << 16 };
static uint64_t *alive;
static uint32_t alive_count;
static bool overflowed;

static void register_alive(uint64_t number) {
    size_t got;
    pthread_mutex_lock(&alive_lock);
    /* A reserved range with room for all numbers, touched as threads register. It outlives every facade. */
    if (!alive) alive = strata_host_reserve(ALIVE_MAX * sizeof *alive, ALIVE_MAX * sizeof *alive, &got);
    if (alive && alive_count < ALIVE_MAX) alive[alive_count++] = number;
    else overflowed = true;
    pthread_mutex_unlock(&alive_lock);
}

static void unregister(void *own) {
    uint64_t number = strata_threads_own;
    if (own == &internal) {
        strata_threads_own = 0;
        atomic_fetch_sub(&internal, 1);
        return;
    }
    pthread_mutex_lock(&alive_lock);
    for (uint32_t i = 0; i < alive_count; i++) {
        if (alive[i] != number) continue;
        alive[i] = alive[--alive_count];
        break;
    }
    pthread_mutex_unlock(&alive_lock);
    atomic_fetch_add(&exits, 1);
    strata_threads_own = strata_threads_plain = 0;
    atomic_fetch_sub(&registered, 1);
}

bool strata_threads_is_alive(uint64_t number) {
    pthread_mutex_lock(&alive_lock);
    bool found = overflowed;
    for (uint32_t i = 0; i < alive_count && !found; i++) found = alive[i] == number;
    pthread_mutex_unlock(&alive_lock);
    return found;
}

static void make_key(void) { (void)pthread_key_create(&exit_key, unregister); }

uint64_t strata_threads_enrol(void) {
    uint64_t number = atomic_fetch_add(&last_number, 1) + 1;
    if (atomic_load(&forked)) return number;
    strata_threads_own = number;
    pthread_once(&exit_once, make_key);
    (void)pthread_setspecific(exit_key, &registered);
    register_alive(strata_threads_own);
    atomic_fetch_add(&registered, 1);
    strata_threads_set_plain(true);
    return strata_threads_own;
}

void strata_threads_enrol_internal(void) {
    strata_threads_own = atomic_fetch_add(&last_number, 1) + 1;
    pthread_once(&exit_once, make_key);
    (void)pthread_setspecific(exit_key, &internal);
    atomic_fetch_add(&internal, 1);
}

bool strata_threads_has_unknown(void) { return strata_host_threads() > atomic_load(&registered) + atomic_load(&internal); }

void strata_threads_set_plain(bool plain) { strata_threads_plain = plain ? strata_threads_own : 0; }

void strata_threads_forked(void) {
    atomic_store(&forked, true);
    strata_threads_own = strata_threads_plain = 0;
}

uint32_t strata_threads_registered(void) { return atomic_load(&registered); }

uint64_t strata_threads_exits(void) { return atomic_load(&exits); }
