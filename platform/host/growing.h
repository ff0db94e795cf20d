/* Address space that starts small and grows in place. Its contents never move, are zero until written,
 * and cost memory only where they are touched. So a table that may become large costs a program under
 * `ulimit -v` little while it is small.
 *
 * Growing is a host allocation, made with no lock of Strata held. A caller that begins to use the last
 * half of a range under a lock marks the range as wanting more. The next call that holds no lock grows
 * it. Each range has its own window of addresses, far from the addresses where the system puts mappings
 * by itself. */
#ifndef STRATA_PLATFORM_GROWING_H
#define STRATA_PLATFORM_GROWING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "platform/status.h"

typedef struct strata_window strata_window_t;

/* May be copied. All copies are the same range. */
typedef struct strata_growing {
    void *memory;
    strata_window_t *window;
} strata_growing_t;

/* Reserves a range with `least` bytes usable now and `most` in the end, or fewer if the system gives no
 * window. The caller holds no lock. Fails with E_HOST_MEMORY. */
strata_status_t strata_growing_reserve(strata_growing_t *range, size_t least, size_t most);
/* Does nothing for a range that was never reserved. */
void strata_growing_release(strata_growing_t *range);
/* Return the bytes that may be touched now, and in the end. Any lock may be held. */
size_t strata_growing_usable(const strata_growing_t *range);
size_t strata_growing_max(const strata_growing_t *range);
/* Marks that the range should grow soon. `short_of_it` is set if the caller fails now because the range
 * is too short. Any lock may be held. */
void strata_growing_mark(const strata_growing_t *range, bool short_of_it);
/* Makes `bytes` usable, at most the final size. The caller holds no lock. On E_HOST_MEMORY nothing has
 * changed. */
strata_status_t strata_growing_grow(const strata_growing_t *range, size_t bytes);

/* Grows all marked ranges. The caller holds no lock. Fails with E_HOST_MEMORY if a range could not grow. */
strata_status_t strata_growing_grow_marked(void);
extern _Atomic(strata_window_t *) strata_growing_marked;
static inline void strata_growing_grow_if_marked(void) {
    if (__builtin_expect(atomic_load_explicit(&strata_growing_marked, memory_order_relaxed) != NULL, 0)) {
        const strata_error_t kept = *strata_last_error();
        if (strata_growing_grow_marked() != STRATA_OK) (void)strata_fail_again(&kept);
    }
}
/* Decides whether a thread that failed with E_LIMIT should try again. Returns true and sets *status to
 * OK if a range was too short and has now grown. Otherwise returns false; *status is E_HOST_MEMORY if a
 * range could not grow. The caller holds no lock. */
bool strata_growing_try_again(strata_status_t *status);

#endif
