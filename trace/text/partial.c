#include "trace/text/partial.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

/* A signal handler may wait for this lock. Its holder blocks all signals, so no handler waits for the
 * thread that it interrupts. */
static atomic_flag held = ATOMIC_FLAG_INIT;
static strata_begun_t *first;

void strata_begun_block(sigset_t *before) {
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, before);
}

void strata_begun_unblock(const sigset_t *before) { (void)pthread_sigmask(SIG_SETMASK, before, NULL); }

static void hold(sigset_t *before) {
    strata_begun_block(before);
    while (atomic_flag_test_and_set_explicit(&held, memory_order_acquire)) (void)sched_yield();
}

static void leave(const sigset_t *before) {
    atomic_flag_clear_explicit(&held, memory_order_release);
    strata_begun_unblock(before);
}

void strata_begun_add(strata_begun_t *begun, const char *name) {
    sigset_t before;
    hold(&before);
    *begun = (strata_begun_t){.next = first, .name = name, .process = (long)getpid()};
    first = begun;
    leave(&before);
}

void strata_begun_remove(strata_begun_t *begun) {
    sigset_t before;
    if (!begun->name) return;
    hold(&before);
    strata_begun_t **at = &first;
    while (*at && *at != begun) at = &(*at)->next;
    if (*at) *at = begun->next;
    begun->name = NULL;
    leave(&before);
}

void strata_begun_unlink_all(void) {
    sigset_t before;
    hold(&before);
    for (const strata_begun_t *begun = first; begun; begun = begun->next)
        if (begun->process == (long)getpid()) (void)unlink(begun->name);
    leave(&before);
}
