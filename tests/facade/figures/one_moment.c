/* A snapshot is of one moment: a block that another thread moves between two stacks is never seen twice, nor missed. */
#include "tests/facade/support/interleaving.h"

enum { SIZE = 300 * 1024 };

typedef struct mover {
    rig_t *rig;
    strata_stack_t *from;
    strata_stream_t to;
    strata_block_t block;
    bool moved;
} mover_t;

/* From the stack that is shown first to the one after it, if the first is not held as it must be while the second is awaited. */
static void move_it(void *context) {
    mover_t *m = context;
    if (!strata_lock_try_acquire(&m->from->lock)) return;
    strata_lock_release(&m->from->lock);
    m->moved = true;
    EXPECT_OK(strata_free(m->rig->s, m->block.ref));
    m->block = rig_allocate(m->rig, m->to, SIZE);
}

static void count_live(const strata_snapshot_row_t *row, void *context) { *(int *)context += row->state == 1; }

/* In front of the n-th time that the snapshot takes the later stack's lock. */
static bool snapshot_shows_it_once(const char *preset, uint32_t n) {
    before_lock_t before;
    int live = 0;
    RIG(rig, preset, 0);
    strata_stream_t earlier = rig_stream(&rig), later = rig_stream(&rig);
    mover_t mover = {.rig = &rig, .to = later, .block = rig_allocate(&rig, earlier, SIZE)};
    mover.from = rig_stack(&rig, earlier);
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, later, SIZE).ref)); /* there is room for one more row */
    EXPECT_LT(mover.from->number, rig_stack(&rig, later)->number);
    before_lock_begin(&before, &rig_stack(&rig, later)->lock, n, move_it, &mover);
    EXPECT_OK(strata_snapshot(rig.s, rig.gpu, count_live, &live));
    bool came = before_lock_end(&before);
    EXPECT_EQ(live, 1);
    EXPECT_EQ(came && !mover.moved, came && n == 2);
    return came;
}

/* The first taking counts the rows, the second is of the rows; there is no third. */
TEST(facade_one_moment, a_block_that_moves_from_stack_to_stack_is_shown_once) {
    static const char *const presets[] = {"system", "strata", "paddle"};
    for (int i = 0; i < 3; i++) {
        EXPECT_TRUE(snapshot_shows_it_once(presets[i], 1));
        EXPECT_TRUE(snapshot_shows_it_once(presets[i], 2));
    }
}
