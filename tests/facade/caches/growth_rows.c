/* auto_growth_vmm: large blocks of one size in a row, as a program fetches the layers of its model. They come in few handles. */
#include "tests/facade/support/fixture.h"

enum { MOST = 16 };

/* `count` blocks of one size, of which one of another size comes before the last `later`. */
typedef struct row {
    size_t size;
    int count, later;
    uint64_t capacity; /* 0: enough */
} row_t;

typedef struct outcome {
    uint64_t handles, mib;
} outcome_t;

static outcome_t allocate_row(const row_t *row) {
    RIG(rig, "stack: [auto_growth_vmm, vmm]", row->capacity);
    strata_block_t other = {0}, blocks[MOST];
    for (int i = 0; i < row->count; i++) {
        if (i == row->count - row->later) other = rig_allocate(&rig, NULL, row->size + 32 * MIB);
        blocks[i] = rig_allocate(&rig, NULL, row->size);
    }
    EXPECT_OK(strata_validate(rig.s));
    outcome_t outcome = {rig_calls(&rig, STRATA_CALL_create), rig_figures(&rig).reserved_bytes / MIB};
    for (int i = 0; i < row->count; i++) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    if (other.ptr) EXPECT_OK(strata_free(rig.s, other.ref));
    return outcome;
}

static void expect_row(row_t row, uint64_t handles, uint64_t mib) {
    outcome_t outcome = allocate_row(&row);
    EXPECT_EQ(outcome.handles, handles);
    EXPECT_EQ(outcome.mib, mib);
}

/* Each pair is one handle, and the one that is not asked for is a ninth at most. */
TEST(growth_rows, come_in_pairs_after_the_first_eight) {
    expect_row((row_t){.size = 300 * MIB, .count = 8}, 8, 2400);
    expect_row((row_t){.size = 300 * MIB, .count = 9}, 9, 3000);
    expect_row((row_t){.size = 300 * MIB, .count = 10}, 9, 3000);
    expect_row((row_t){.size = 300 * MIB, .count = 16}, 12, 4800);
}

TEST(growth_rows, small_blocks_come_one_by_one) { expect_row((row_t){.size = 100 * MIB, .count = MOST}, MOST, MOST * 100); }

TEST(growth_rows, begin_anew_after_another_size) {
    outcome_t outcome = allocate_row(&(row_t){.size = 300 * MIB, .count = 12, .later = 6});
    EXPECT_EQ(outcome.handles, 13);
}

/* What was in use before is no news of how large the program becomes. */
TEST_RIG(growth_rows, end_where_blocks_are_freed, 0, "stack: [auto_growth_vmm, vmm]") {
    strata_block_t blocks[9], other = rig_allocate(rig, NULL, 640 * MIB);
    for (int i = 0; i < 8; i++) blocks[i] = rig_allocate(rig, NULL, 300 * MIB);
    EXPECT_OK(strata_free(rig->s, other.ref));
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    blocks[8] = rig_allocate(rig, NULL, 300 * MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 2700 * MIB);
    for (int i = 0; i < 9; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

/* Where the device has no second one, the first is served. */
TEST(growth_rows, do_without_the_second_where_the_device_has_none) {
    expect_row((row_t){.size = 300 * MIB, .count = 9, .capacity = 2800 * MIB}, 10, 2700);
}
