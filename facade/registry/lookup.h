/* Finds the stack of (facade, place, stream) without a lock, through a small cache of handles in every
 * thread. The stack's own lock is needed to check that a handle still names it. */
#ifndef STRATA_FACADE_LOOKUP_H
#define STRATA_FACADE_LOOKUP_H

#include <stdatomic.h>

#include "allocation/stack/stack.h"

enum { STRATA_LOOKUP_SLOTS = 8 };

typedef struct strata_lookup {
    strata_t facade;
    strata_stream_t stream;
    strata_stack_handle_t handle;
    strata_place_t place;
} strata_lookup_t;

/* The directory of the facade in which the thread last freed by pointer, or NULL if the facade must be asked. */
typedef struct strata_pointer_lookup {
    strata_t facade;
    const strata_directory_t *directory;
    uint32_t epoch;
} strata_pointer_lookup_t;
extern _Thread_local strata_pointer_lookup_t strata_pointer_lookup __attribute__((tls_model("initial-exec")));

/* Initial-exec takes one instruction instead of a call. The block is small enough for libraries that are loaded late. */
extern _Thread_local strata_lookup_t strata_lookups[STRATA_LOOKUP_SLOTS] __attribute__((tls_model("initial-exec")));
/* Changes when a facade's directories are destroyed. It is 0 in a child of fork(), where no lookup may succeed. */
extern _Atomic uint32_t strata_lookup_epoch;

/* Makes the calling thread look up its stacks of a facade again. */
void strata_lookup_forget_own(strata_t facade);

/* Returns true in a child of fork(). No call may continue there, since locks of other threads may stay held forever. */
static inline bool strata_lookup_forked(void) { return atomic_load_explicit(&strata_lookup_epoch, memory_order_relaxed) == 0; }

static inline strata_lookup_t *strata_lookup_slot(strata_place_t place, strata_stream_t stream) {
    uintptr_t key = (uintptr_t)stream;
    return &strata_lookups[(key >> 4 ^ key >> 9 ^ place ^ place >> 14) & (STRATA_LOOKUP_SLOTS - 1)];
}

/* Returns the stack's handle, or 0 if the slow path must look it up. */
static inline strata_stack_handle_t strata_lookup(strata_t facade, strata_place_t place, strata_stream_t stream) {
    const strata_lookup_t *slot = strata_lookup_slot(place, stream);
    bool found = slot->facade == facade && slot->stream == stream && slot->place == place;
    return __builtin_expect(found, 1) ? slot->handle : 0;
}
/* Returns the entry that strata_lookup() found for this handle and stream, or an empty entry if it was forgotten. */
strata_lookup_t strata_lookup_of(strata_stack_handle_t handle, strata_stream_t stream);

#endif
