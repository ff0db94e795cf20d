#include "facade/registry/lookup.h"

#include <pthread.h>

#include "allocation/stack/threads.h"
#include "facade/registry/facade.h"

_Thread_local strata_lookup_t strata_lookups[STRATA_LOOKUP_SLOTS] __attribute__((tls_model("initial-exec")));
_Thread_local strata_pointer_lookup_t strata_pointer_lookup __attribute__((tls_model("initial-exec")));
_Atomic uint32_t strata_lookup_epoch = 1;

void strata_lookup_forget_all(void) {
    uint32_t next = atomic_load(&strata_lookup_epoch);
    /* Skip 0, which marks a child of fork(). */
    while (next != 0 && !atomic_compare_exchange_weak(&strata_lookup_epoch, &next, next + 1 == 0 ? 1 : next + 1)) {}
}

strata_lookup_t strata_lookup_of(strata_stack_handle_t handle, strata_stream_t stream) {
    for (int i = 0; i < STRATA_LOOKUP_SLOTS; i++)
        if (strata_lookups[i].handle == handle && strata_lookups[i].stream == stream) return strata_lookups[i];
    return (strata_lookup_t){.facade = 0};
}

void strata_lookup_forget_own(strata_t facade) {
    for (int i = 0; i < STRATA_LOOKUP_SLOTS; i++)
        if (strata_lookups[i].facade == facade) strata_lookups[i] = (strata_lookup_t){.facade = 0};
}

/* The child of a process that never opened a facade may open its own. Otherwise no stack may be found:
 * the child has only this thread, and a lock held by another thread stays held forever. */
static void in_child(void) {
    if (!strata_facade_ever_opened()) return;
    atomic_store(&strata_lookup_epoch, 0);
    strata_threads_forked();
    for (int i = 0; i < STRATA_LOOKUP_SLOTS; i++) strata_lookups[i] = (strata_lookup_t){.facade = 0};
}

__attribute__((constructor)) static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, in_child); }
