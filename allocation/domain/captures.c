/* Counts open graph pools, for calls that would break a capture. */
#include "allocation/domain/captures.h"

static _Atomic uint32_t open_anywhere; /* in all facades */

void strata_captures_init(strata_captures_t *captures) { strata_lock_init(&captures->lock, STRATA_RANK_EVENTS, NULL); }

void strata_captures_destroy(strata_captures_t *captures) { strata_lock_destroy(&captures->lock); }

void strata_captures_count_open(bool opened) {
    if (opened) atomic_fetch_add(&open_anywhere, 1);
    else atomic_fetch_sub(&open_anywhere, 1);
}

bool strata_captures_any_open(void) { return atomic_load(&open_anywhere) > 0; }

/* ---- calls that would break a capture that begins concurrently ---- */

/* Guards only the sleep of a thread that waits until `uncaptured` is 0. */
static strata_lock_t gate = {.rank = STRATA_RANK_DEVICE};
static strata_condition_t none_left;
static _Atomic uint32_t uncaptured; /* such calls in progress */

/* The call is counted before it checks for open pools, and a pool is counted before its opener checks for
 * calls. So at least one of the two sees the other. If a pool is already open nothing is counted, so that
 * threads that retry do not delay an opener. */
bool strata_captures_begin_uncaptured(void) {
    if (strata_captures_any_open()) return false;
    atomic_fetch_add(&uncaptured, 1);
    if (!strata_captures_any_open()) return true;
    strata_captures_end_uncaptured();
    return false;
}

void strata_captures_end_uncaptured(void) {
    if (atomic_fetch_sub(&uncaptured, 1) > 1 || !strata_captures_any_open()) return;
    strata_lock(&gate);
    strata_condition_broadcast(&none_left);
    strata_unlock(&gate);
}

/* The opening pool is already counted, so no new calls begin. */
void strata_captures_await_uncaptured(void) {
    strata_lock(&gate);
    while (atomic_load(&uncaptured) > 0) strata_condition_wait(&none_left, &gate, UINT64_MAX);
    strata_unlock(&gate);
}
