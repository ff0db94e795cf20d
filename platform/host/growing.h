/* Address space that begins small and grows in place: what lies in it never moves, is zero until it is written, and costs memory
 * only where it is touched. So a table that may become large costs a program under `ulimit -v` little while it is small.
 *
 * Growing is a host allocation: it is done with no lock of Strata held. Whoever takes the last half of a range under a lock says
 * that it wants more; the next call that holds none makes it so. Each range has a window of addresses of its own, far from where
 * the system puts mappings by itself. */
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

/* `least` bytes now, `most` at last, or fewer where the system gives no window. No lock is held. E_HOST_MEMORY. */
strata_status_t strata_growing_reserve(strata_growing_t *range, size_t least, size_t most);
/* Of one that was never reserved: nothing. */
void strata_growing_release(strata_growing_t *range);
/* Bytes that may be touched now, and at last. Any lock may be held. */
size_t strata_growing_usable(const strata_growing_t *range);
size_t strata_growing_most(const strata_growing_t *range);
/* Likewise: the range is to grow soon. `short_of_it`: what the caller does fails for want of it. */
void strata_growing_want(const strata_growing_t *range, bool short_of_it);
/* `bytes` are usable, not above the most. No lock is held. E_HOST_MEMORY: all is as before. */
strata_status_t strata_growing_grow(const strata_growing_t *range, size_t bytes);

/* The ranges that want to grow do. No lock is held. E_HOST_MEMORY: one could not. */
strata_status_t strata_growing_serve_wanted(void);
extern _Atomic(strata_window_t *) strata_growing_wanted;
static inline void strata_growing_serve(void) {
    if (__builtin_expect(atomic_load_explicit(&strata_growing_wanted, memory_order_relaxed) != NULL, 0)) {
        const strata_error_t kept = *strata_last_error();
        if (strata_growing_serve_wanted() != STRATA_OK) (void)strata_fail_again(&kept);
    }
}
/* What the calling thread has failed at with E_LIMIT is worth another try: a range was too short, and has grown. Else the status,
 * E_HOST_MEMORY where it could not grow. No lock is held. */
bool strata_growing_try_again(strata_status_t *status);

#endif
