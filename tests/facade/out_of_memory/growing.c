/* A growth that begins while another request of the stack asks whether it should wait: one chunk is made, not two. */
#include <pthread.h>
#include <unistd.h>

#include "allocation/cache/policies/auto_growth/auto_growth_state.h"
#include "tests/facade/support/interleaving.h"

#define MILLISECOND (1000ull * 1000)

/* The other thread's growth: it stands at the device until the first request waits for it, grows too, or is served. */
static struct {
    rig_t *rig;
    strata_stack_t *stack;
    strata_stream_t stream;
    pthread_t first, other;
    bool started;
    _Atomic bool at_the_device, first_at_the_device, first_is_over, other_is_over;
    strata_block_t block;
} meeting;

static bool somebody_waits_for_the_growth(void) {
    auto_growth_t *self = (auto_growth_t *)meeting.stack->cache;
    strata_lock(&meeting.stack->lock);
    bool waits = self->chunks.waiting > 0;
    strata_unlock(&meeting.stack->lock);
    return waits;
}

static strata_status_t stand_there(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    bool is_first = pthread_equal(pthread_self(), meeting.first) != 0;
    atomic_store(is_first ? &meeting.first_at_the_device : &meeting.at_the_device, true);
    while (!is_first && !atomic_load(&meeting.first_at_the_device) && !atomic_load(&meeting.first_is_over) &&
           !somebody_waits_for_the_growth())
        usleep(50);
    return strata_below_allocate(self, request, record);
}

static const strata_layer_type_t standing_type = DECORATOR("test_standing", STRATA_SCOPE_DEVICE, stand_there,
                                                           strata_layer_free_below);

/* Without a retry: it has no patience. */
static void *grow_beside(void *argument) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 4 * MIB, .flags = STRATA_NO_RETRY};
    (void)argument;
    EXPECT_OK(strata_allocate_with(meeting.rig->s, meeting.rig->gpu, meeting.stream, &options, &meeting.block));
    atomic_store(&meeting.other_is_over, true);
    return NULL;
}

/* Comes back once the other thread is in its growth, waits for the first one's, or is served. */
static void begin_growth(void *context) {
    (void)context;
    meeting.started = pthread_create(&meeting.other, NULL, grow_beside, NULL) == 0;
    while (meeting.started && !atomic_load(&meeting.at_the_device) && !atomic_load(&meeting.other_is_over) &&
           !somebody_waits_for_the_growth())
        usleep(50);
}

/* In front of the n-th taking of the stack's lock; false: the request takes it less often. */
static bool grows_once(uint32_t n) {
    before_lock_t before;
    RIG(rig,
        "stack:\n  - retry: {patience: true, depth: 1, slack: 9}\n  - stream_safe\n  - auto_growth: {chunk_size: 20MiB}\n"
        "  - test_standing\n  - system\n",
        0);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    meeting = (__typeof__(meeting)){.rig = &rig, .stack = rig_stack(&rig, owner), .stream = owner, .first = pthread_self()};
    (void)rig_free_deferred(&rig, owner, borrower, 20 * MIB, 1000 * MILLISECOND);
    atomic_store(&meeting.first_at_the_device, false);
    EXPECT_EQ(rig_figures(&rig).growths, 1);
    before_lock_begin(&before, &meeting.stack->lock, n, begin_growth, NULL);
    strata_block_t block = rig_allocate(&rig, owner, 5 * MIB);
    atomic_store(&meeting.first_is_over, true);
    if (meeting.started) pthread_join(meeting.other, NULL);
    bool came = before_lock_end(&before);
    EXPECT_EQ(rig_figures(&rig).growths, 2);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 40 * MIB);
    EXPECT_OK(strata_free(rig.s, block.ref));
    if (meeting.started) EXPECT_OK(strata_free(rig.s, meeting.block.ref));
    rig_advance(&rig, 2000 * MILLISECOND);
    if (strata_test_has_failed()) FAIL_TEST("in front of taking %u", n);
    return came;
}

TEST(facade_growing, a_growth_that_begins_anywhere_in_a_request_is_the_only_one) {
    register_layer(&standing_type);
    uint32_t n = 1;
    while (n < 40 && !strata_test_has_failed() && grows_once(n)) n++;
    /* Patience looks at every stack, and so opens the lock: more takings than a request needs that never asks. */
    EXPECT_GT(n, 3);
    EXPECT_LT(n, 40);
}
