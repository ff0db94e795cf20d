/* thread_local: every thread has a pool of its own (PaddlePaddle's thread_local allocator), with the rules of
 * naive_best_fit.
 *
 * A block that another thread frees returns to the pool that it came from. When a thread exits, its pool
 * remains until its last block is freed, by any thread, and then gives its chunks back. A pool without live
 * blocks gives them back when the next thread begins, or at a release. Paddle does that at the thread's exit,
 * where Strata makes no device call. */
#include "allocation/cache/policies/naive/naive_best_fit_state.h"

const strata_layer_type_t strata_thread_local_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "thread_local",
    .doc = "best fit over a pool for each thread, with chunks that are a share of the memory (Paddle's thread_local)",
    .scope = STRATA_SCOPE_THREAD,
    STRATA_NAIVE_TYPE,
};
