/* thread_local: every thread has a pool of its own (PaddlePaddle's thread_local allocator), each as naive_best_fit has it.
 *
 * A block that another thread frees goes home to the pool that it came from. A thread that exits leaves its pool behind until its
 * last block is freed, by whomever; then the chunks go back. What has no live block goes back when the next thread comes, or at a
 * release; Paddle gives it back at the thread's exit, where Strata makes no device call. */
#include "allocation/cache/policies/naive/naive_best_fit_state.h"

const strata_layer_type_t strata_thread_local_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "thread_local",
    .doc = "a pool of each thread, best fit over chunks that are a share of the memory (Paddle's thread_local)",
    .scope = STRATA_SCOPE_THREAD,
    STRATA_NAIVE_TYPE,
};
