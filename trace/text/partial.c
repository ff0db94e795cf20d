#include "trace/text/partial.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

/* A signal handler may wait for this lock. Its holder blocks all signals, so no handler waits for the
 * thread that it interrupts. */
static atomic_flag list_lock = ATOMIC_FLAG_INIT;
static strata_partial_t *first;

void strata_partial_block_signals(sigset_t *before) {
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, before);
}

void strata_partial_unblock_signals(const sigset_t *before) { (void)pthread_sigmask(SIG_SETMASK, before, NULL); }

static void lock_list(sigset_t *before) {
    strata_partial_block_signals(before);
    while (atomic_flag_test_and_set_explicit(&list_lock, memory_order_acquire)) (void)sched_yield();
}

static void unlock_list(const sigset_t *before) {
    atomic_flag_clear_explicit(&list_lock, memory_order_release);
    strata_partial_unblock_signals(before);
}

void strata_partial_add(strata_partial_t *partial, const char *name) {
    sigset_t before;
    lock_list(&before);
    *partial = (strata_partial_t){.next = first, .name = name, .process = (long)getpid()};
    first = partial;
    unlock_list(&before);
}

void strata_partial_remove(strata_partial_t *partial) {
    sigset_t before;
    if (!partial->name) return;
    lock_list(&before);
    strata_partial_t **at = &first;
    while (*at && *at != partial) at = &(*at)->next;
    if (*at) *at = partial->next;
    partial->name = NULL;
    unlock_list(&before);
}

void strata_partial_unlink_all(void) {
    sigset_t before;
    lock_list(&before);
    for (const strata_partial_t *partial = first; partial; partial = partial->next)
        if (partial->process == (long)getpid()) (void)unlink(partial->name);
    unlock_list(&before);
}
