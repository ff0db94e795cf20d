/* What programs have found, and what was mended then. */
#include "tests/harness/test.h"
#include "tests/torture/opened.h"

static const uint8_t first[] = {0};

/* A guard of the stream's own stack lets go of what it kept when the stream ends, and fills it for that; the layer of the whole
 * device below must hear of the end behind that, or its free is before the fill. */
TEST(torture_found, a_quarantine_that_ends_with_its_stream) {
    opened_t o;
    opened_begin(&o,
                 "stack:\n  - guard: {quarantine: 2, report: false}\n"
                 "  - guard: {quarantine: 0, synchronise: false, report: false}\n"
                 "  - guard: {quarantine: 8, poison: false, synchronise: false, report: false}\n"
                 "  - stream_safe\n  - cuda_malloc_async\n",
                 1, 0);
    torture_allocate(&o.world, 0, TORTURE_GPU, 1, &(torture_request_t){.size = 1});
    torture_work(&o.world, 1, 50, first, 1, 1);
    torture_free(&o.world, 0, TORTURE_NO_STREAM, true, false);
    torture_renew(&o.world, 1);
    opened_end(&o);
}
