/* cuda_malloc_async with a fault to choose: a copy of the layer, registered as `mutant_async`, whose free stream does not wait
 * for whom it should. */
#include "allocation/uses/free_stream.h"
#include "tests/checker/mutant_safe.h"
#include "tests/harness/test.h"

static mutant_async_t chosen;

static bool bent_wait_for(strata_free_stream_t *frees, strata_stream_t stream) {
    if (chosen == MUTANT_ASYNC_WAITS_FOR_NOBODY) return true;
    if (chosen == MUTANT_ASYNC_WAITS_FOR_OWNER && stream != frees->uses->stack->stream) return true;
    return strata_free_stream_wait_for(frees, stream);
}

#define strata_cuda_malloc_async_type              copied_async_type
#define strata_free_stream_wait_for(frees, stream) bent_wait_for(frees, stream)
#include "allocation/layers/sources/cuda_malloc_async.c"

void mutant_async_choose(mutant_async_t mutation) {
    static strata_layer_type_t type;
    if (!type.name) {
        type = copied_async_type;
        type.name = "mutant_async";
        EXPECT_OK(strata_register_layer(&type));
    }
    chosen = mutation;
}
