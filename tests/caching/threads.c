/* caching and two threads that forget one stream. */
#include "tests/caching/caching.h"
#include "tests/facade/between.h"

typedef struct forgetting {
    rig_t *rig;
    strata_stream_t stream;
} forgetting_t;

static void forget(void *context) {
    const forgetting_t *f = context;
    EXPECT_OK(strata_stream_forget(f->rig->s, f->rig->gpu, f->stream));
}

/* One makes the event that stands for the stream's work, the lock open; the other does all that meanwhile. */
TEST(caching_threads, forget_one_stream_at_once) {
    between_t between;
    RIG_BY(rig, caching_open(&rig, "", 0));
    forgetting_t f = {.rig = &rig, .stream = rig_stream(&rig)};
    strata_block_t small = rig_allocate(&rig, f.stream, 1000), large = rig_allocate(&rig, f.stream, 5 * MIB);
    RIG_FREE(&rig, small, large);
    between_begin(&between, &rig, STRATA_CALL_event_create, forget, &f);
    forget(&f);
    EXPECT_TRUE(between_end(&between));
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 5 * MIB).ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(caching_reserved(&rig), 0);
}
