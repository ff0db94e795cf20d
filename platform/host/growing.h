/* Address space that starts small and grows in place. Its contents never move, are zero until written, and cost memory only where
 * they are touched. So a table that may become large costs a program under `ulimit -v` little while it is small.
 *
 * Growing is a host allocation, made with no lock of Strata held. Whoever begins to use the last half of a range under a lock marks
 * it as wanting more; the next call that holds no lock grows it. Each range has its own window of addresses, far from where the
 * system puts mappings by itself. */
#ifndef STRATA_PLATFORM_GROWING_H
#define STRATA_PLATFORM_GROWING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "platform/status.h"

typedef struct strata_window strata_window_t;

/* May be copied: the copies are one range. */
typedef struct strata_growing {
    void *memory;
    strata_window_t *window;
} strata_growing_t;

/* `least` bytes now and `most` in the end, or fewer if the system gives no window. No lock is held. E_HOST_MEMORY. */
strata_status_t strata_growing_reserve(strata_growing_t *range, size_t least, size_t most);
/* Does nothing for one that was never reserved. */
void strata_growing_release(strata_growing_t *range);
/* Bytes that may be touched now, and in the end. Any lock may be held. */
size_t strata_growing_usable(const strata_growing_t *range);
size_t strata_growing_most(const strata_growing_t *range);
/* The range should grow soon. `short_of_it`: the caller fails now because it is too short. Any lock may be held. */
void strata_growing_want(const strata_growing_t *range, bool short_of_it);
/* Makes `bytes` usable, at most the final size. No lock is held. E_HOST_MEMORY: nothing has changed. */
strata_status_t strata_growing_grow(const strata_growing_t *range, size_t bytes);

/* Grows the ranges that want to grow. No lock is held. E_HOST_MEMORY: one could not. */
strata_status_t strata_growing_serve_wanted(void);
extern _Atomic(strata_window_t *) strata_growing_wanted;
static inline void strata_growing_serve(void) {
    if (__builtin_expect(atomic_load_explicit(&strata_growing_wanted, memory_order_relaxed) != NULL, 0)) {
        const strata_error_t kept = *strata_last_error();
        if (strata_growing_serve_wanted() != STRATA_OK) (void)strata_fail_again(&kept);
    }
}
/* OK if what the calling thread failed at with E_LIMIT is worth another try: a range was too short, and has grown. Else the status;
 * E_HOST_MEMORY if the range could not grow. No lock is held. */
bool strata_growing_try_again(strata_status_t *status);

#endif
