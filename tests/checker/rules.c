/* The rules of the checker to the letter, beside the verdicts: what is an order and what is none, and whose. */
#include <pthread.h>

#include "tests/checker/watched.h"

#define A(w) ((w)->streams[0])
#define B(w) ((w)->streams[1])
#define C(w) ((w)->streams[2])

/* It takes the time of the wait, but nobody promises that wait: an allocator may not rest on it. */
TEST(checker_rules, the_wait_of_a_free_of_pinned_memory_is_no_order) {
    for (int waits = 0; waits < 2; waits++) {
        watched_t w;
        watched_open(&w, STRATA_CHECKER_ALL);
        strata_address_t pinned = 0;
        EXPECT_OK(strata_device_host_alloc(w.device, STRATA_MEMORY_PINNED, MIB, 256, 0, &pinned));
        strata_access_t access = {pinned, MIB, true};
        EXPECT_OK(strata_device_work(w.device, A(&w), 100 * US, &access, 1));
        if (waits) EXPECT_OK(strata_device_stream_synchronise(w.device, A(&w)));
        EXPECT_OK(strata_device_host_free(w.device, STRATA_MEMORY_PINNED, pinned));
        EXPECT_GE(strata_sim_now(w.sim.world), strata_sim_device_end(w.device));
        EXPECT_HAZARDS(&w, UNDER_WORK, waits ? 0 : 1);
        watched_close(&w);
    }
}
