/* What many stacks share has locks of its own, in one order: those of threads, then those of the device. */
#include <pthread.h>

#include "tests/facade/pools/pooled.h"

#define BESIDE_A_POOL                                                                                                              \
    "stack:\n  - thread_local: {streams: ignored, initial: 4MiB}\n  - system\n"                                                    \
    "pools:\n  weights: {stack: [auto_growth, system]}\n"
#define SHARED                                                                                                                     \
    "stack:\n  - thread_local: {streams: ignored, initial: 4MiB}\n  - aligned\n  - naive_best_fit: {fraction: 0.1}\n  - system\n"

static void see_nothing(const strata_snapshot_row_t *row, void *context) {
    (void)row;
    ++*(uint64_t *)context;
}

static void expect_snapshot(rig_t *rig, uint64_t rows) {
    uint64_t seen = 0;
    EXPECT_OK(strata_snapshot(rig->s, rig->gpu, see_nothing, &seen));
    EXPECT_GE(seen, rows);
}

/* The pool's shared stack is made after the thread's, with a number below it. */
TEST_RIG(facade_shared_stacks, a_snapshot_takes_those_of_threads_before_those_of_the_device, 0, BESIDE_A_POOL) {
    (void)rig_allocate(rig, NULL, 1000);
    (void)get_from(rig, pool_of(rig, "weights"), NULL, 1000);
    expect_snapshot(rig, 2);
}

/* The first number of the device's shared stacks; 0: there is none. */
static uint16_t shared_stack_of_device(rig_t *rig) {
    uint16_t number = 0;
    STRATA_DOMAIN_EACH(rig_domain(rig), stack)
        if (stack->is_shared && stack->of_thread == 0 && number == 0) number = stack->number;
    return number;
}

static uint32_t shared_stacks_of_threads(rig_t *rig, uint16_t number) {
    uint32_t count = 0;
    STRATA_DOMAIN_EACH(rig_domain(rig), stack)
        count += stack->is_shared && stack->of_thread != 0 && (number == 0 || stack->number == number);
    return count;
}

/* Theirs go down from here: what lies above is the devices'. */
static bool threads_keep_to_their_numbers(rig_t *rig) {
    bool kept = true;
    STRATA_DOMAIN_EACH(rig_domain(rig), stack)
        kept = kept && !(stack->is_shared && stack->of_thread != 0 && stack->number >= STRATA_STACKS / 8 * 7);
    return kept;
}

typedef struct other {
    rig_t *rig;
    uint16_t ended; /* the number of a device's shared stack that is nobody's now */
} other_t;

static void *allocate_and_look(void *context) {
    other_t *other = context;
    rig_t *rig = other->rig;
    strata_block_t block = rig_allocate(rig, NULL, 1000);
    EXPECT_EQ(shared_stacks_of_threads(rig, 0), 2); /* the one that opened it, and this */
    EXPECT_EQ(shared_stacks_of_threads(rig, other->ended), 0);
    EXPECT_TRUE(threads_keep_to_their_numbers(rig));
    expect_snapshot(rig, 1);
    EXPECT_OK(strata_free(rig->s, block.ref));
    return NULL;
}

/* The number of a device's shared stack that has ended is not a thread's next: a lock keeps its place for as long as the process lives. */
TEST(facade_shared_stacks, a_number_keeps_its_place_in_the_order_of_locks) {
    rig_t first, second;
    rig_open(&first, SHARED, NULL, 0, 0, 1);
    strata_block_t a = rig_allocate(&first, NULL, 1000);
    other_t other = {.rig = &second, .ended = shared_stack_of_device(&first)};
    EXPECT_NE(other.ended, 0);
    rig_open(&second, SHARED, NULL, 0, 0, 1);
    EXPECT_NE(shared_stack_of_device(&second), 0);
    EXPECT_OK(strata_free(first.s, a.ref));
    rig_close(&first);
    in_another_thread(allocate_and_look, &other);
    rig_close(&second);
}
