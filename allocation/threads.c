#include "allocation/threads.h"

#include <pthread.h>
#include <stdatomic.h>

_Thread_local uint64_t strata_threads_own __attribute__((tls_model("initial-exec")));

static _Atomic uint32_t registered;
static _Atomic uint64_t last_number;
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static void leave(void *unused) {
    (void)unused;
    strata_threads_own = 0;
    atomic_fetch_sub(&registered, 1);
}

static void make_key(void) {
    (void)pthread_key_create(&exit_key, leave);
}

uint64_t strata_threads_enrol(void) {
    strata_threads_own = atomic_fetch_add(&last_number, 1) + 1;
    pthread_once(&exit_once, make_key);
    (void)pthread_setspecific(exit_key, &registered);
    atomic_fetch_add(&registered, 1);
    return strata_threads_own;
}

uint32_t strata_threads_registered(void) {
    return atomic_load(&registered);
}
