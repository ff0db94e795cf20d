#include "doors/preload/process.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doors/preload/real.h"
#include "doors/preload/report.h"
#include "facade/registry/facade.h"
#include "platform/cuda/cuda.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* held while a thread opens or closes the door */
static strata_door_t *_Atomic door;
static _Atomic bool disabled; /* true if Strata serves nothing any more, because the process ends or the strategy is wrong */
static _Atomic uint64_t active_calls; /* calls that use a door */
static _Thread_local unsigned bypass_depth; /* above 0 while the thread is inside Strata or a real function called from here */
static _Atomic uint64_t served[STRATA_ROWS], passed_on[STRATA_ROWS];

void strata_process_count(strata_row_t row, bool by_strata) {
    atomic_fetch_add_explicit(by_strata ? &served[row] : &passed_on[row], 1, memory_order_relaxed);
}

void strata_process_enter_real(void) { bypass_depth++; }
void strata_process_exit_real(void) { bypass_depth--; }

/* ---- opening ---- */

/* Printed at the first call, because the library is also loaded into every program that a script starts. */
static void announce_bypass(void) {
    fprintf(stderr, "strata: STRATA_BYPASS is set: CUDA's own allocator serves this process, not Strata\n");
    atomic_store(&disabled, true);
}

/* If the driver is not loaded yet or has no device, the real function reports the error, and the next request tries again. */
static void open_door(void) {
    strata_open_options_t options = {.struct_size = sizeof options, .devices = "gpu", .flags = STRATA_OPEN_CHECK_CAPTURES};
    strata_door_t *opened;
    strata_status_t status = strata_door_open(&options, false, &opened);
    if (status == STRATA_OK) {
        atomic_store(&door, opened);
    } else if (status != STRATA_E_NO_DEVICE) {
        fprintf(stderr, "strata: CUDA's own allocator serves this process, because Strata cannot: %s\n", strata_last_error()->text);
        atomic_store(&disabled, true);
    }
}

static strata_door_t *opened_door(bool open) {
    strata_door_t *found = atomic_load(&door);
    if (found || !open) return found;
    pthread_mutex_lock(&mutex);
    if (!atomic_load(&door) && !atomic_load(&disabled)) (strata_door_is_bypassed() ? announce_bypass : open_door)();
    found = atomic_load(&door);
    pthread_mutex_unlock(&mutex);
    return found;
}

static strata_door_t *begin_call(bool open) {
    if (bypass_depth) return NULL;
    bypass_depth++; /* calls that the driver makes for Strata are no requests of the program */
    strata_door_t *found;
    while (!atomic_load(&disabled) && (found = opened_door(open)) != NULL) {
        atomic_fetch_add(&active_calls, 1);
        if (!atomic_load(&disabled) && atomic_load(&door) == found) return found;
        atomic_fetch_sub(&active_calls, 1); /* another thread is closing it */
    }
    bypass_depth--;
    return NULL;
}

strata_door_t *strata_process_begin(void) { return begin_call(true); }
strata_door_t *strata_process_begin_if_open(void) { return begin_call(false); }

void strata_process_end(void) {
    bypass_depth--;
    atomic_fetch_sub(&active_calls, 1);
}

/* ---- closing ---- */

bool strata_process_close_for_reset(int device) {
    bool alone = true;
    pthread_mutex_lock(&mutex);
    strata_door_t *open = atomic_load(&door);
    if (open && (device < 0 || strata_door_has_other_users(open, (uint32_t)device))) alone = false;
    if (open && alone) {
        atomic_store(&door, NULL);
        while (atomic_load(&active_calls)) sched_yield();
        bypass_depth++;
        (void)strata_door_close(open);
        bypass_depth--;
    }
    pthread_mutex_unlock(&mutex);
    return alone;
}

/* CUDA does not survive a fork, so the child starts with its own counts. */
static void in_child(void) {
    pthread_mutex_init(&mutex, NULL); /* another thread of the parent may have held it */
    atomic_store(&door, NULL);
    atomic_store(&active_calls, 0);
    for (size_t i = 0; i < STRATA_ROWS; i++) {
        atomic_store(&served[i], 0);
        atomic_store(&passed_on[i], 0);
    }
}

__attribute__((constructor)) static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, in_child); }

/* If threads are still inside, the door stays open. The process ends and its memory is released anyway. */
__attribute__((destructor)) static void end_of_process(void) {
    atomic_store(&disabled, true);
    strata_door_t *open = atomic_load(&door);
    strata_run_report_t report = {.door = open, .served = served, .passed_on = passed_on};
    const char *where = getenv("STRATA_RUN_REPORT");
    if (where && *where) strata_run_report_write(&report, where);
    else strata_run_report_warn(&report, stderr);
    if (open && !atomic_load(&active_calls)) (void)strata_door_close(open);
}

/* ---- places ---- */

bool strata_process_place(strata_door_t *open, strata_place_kind_t kind, int device, strata_place_t *place) {
    strata_domain_t *domain;
    strata_facade_t *facade = strata_facade_of(strata_door_facade(open));
    if (!facade || device < 0 || device >= STRATA_FACADE_DEVICES) return false;
    *place = strata_place(kind, (uint32_t)device);
    if (strata_facade_domain(facade, *place, &domain) != STRATA_OK) return false;
    void *current = strata_real_context(), *primary = strata_cuda_context(domain->device);
    return primary && (!current || current == primary);
}

bool strata_process_owns_stream(strata_door_t *open, strata_place_t place, void *stream) {
    strata_domain_t *domain;
    strata_facade_t *facade = strata_facade_of(strata_door_facade(open));
    if (stream == NULL || stream == STRATA_STREAM_LEGACY || stream == STRATA_STREAM_PER_THREAD) return facade != NULL;
    if (!facade || strata_facade_domain(facade, place, &domain) != STRATA_OK) return false;
    void *context = strata_real_context_of(stream);
    return context && context == strata_cuda_context(domain->device);
}
