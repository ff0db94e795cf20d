/* The meter of what is deferred. */
#include "lab/replay/run/meter.h"

#include "tests/harness/test.h"

#define TEST_METER(name) TEST_WITH(meter, name, strata_meter_t, meter, strata_meter_destroy, ASSERT_OK(strata_meter_init(meter)))

TEST_METER(a_full_one_forgets_what_passes_first) {
    uint32_t capacity = meter->capacity;
    meter->capacity = 2;
    meter->base.add(&meter->base, 0, 20, 200);
    meter->base.add(&meter->base, 0, 10, 100);
    EXPECT_EQ(meter->peak, 300);
    meter->base.add(&meter->base, 0, 30, 400);
    EXPECT_EQ(meter->peak, 600);
    EXPECT_EQ(meter->count, 2);
    /* At 25 what was ready at 20 is deferred no more. */
    meter->base.add(&meter->base, 25, 40, 8);
    EXPECT_EQ(meter->bytes, 408);
    EXPECT_EQ(meter->peak, 600);
    meter->capacity = capacity;
}

/* Bytes that are reused before they are ready are no longer deferred, even if other bytes are ready at the same time. */
TEST_METER(a_cut_takes_a_part_out) {
    for (uint64_t i = 0; i < 40; i++) meter->base.add(&meter->base, 0, 100 - i % 20, 10 + i);
    uint64_t all = meter->bytes;
    meter->base.cut(&meter->base, 0, 85, 25); /* two entries are ready at 85, with 25 and 45 bytes; both are large enough */
    meter->base.cut(&meter->base, 0, 85, 44);
    meter->base.cut(&meter->base, 0, 85, 1);
    EXPECT_EQ(strata_meter_bytes(meter, 0), all - 70);
    EXPECT_EQ(meter->peak, all);
    meter->base.cut(&meter->base, 0, 85, 1);
    meter->base.cut(&meter->base, 0, 1000, 1);
    EXPECT_EQ(strata_meter_bytes(meter, 0), all - 70);
    meter->base.cut(&meter->base, 100, 100, 1);
    EXPECT_EQ(strata_meter_bytes(meter, 100), 0);
}

/* What is ready at the very moment is deferred no more. */
TEST_METER(what_is_ready_now_does_not_count) {
    meter->base.add(&meter->base, 10, 20, 100);
    meter->base.add(&meter->base, 10, 10, 1000);
    meter->base.add(&meter->base, 20, 30, 50);
    EXPECT_EQ(meter->peak, 100);
    meter->base.add(&meter->base, 29, 31, 60);
    EXPECT_EQ(meter->peak, 110);
}

/* Moment by moment, whatever the order in which bytes were deferred. */
TEST_METER(counts_what_is_ready_later) {
    enum { ENTRIES = 200, MOMENTS = 64 };
    uint64_t ready_at[ENTRIES], random = 7;
    for (uint64_t i = 0; i < ENTRIES; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        ready_at[i] = 1 + (random >> 33) % (MOMENTS - 1);
        meter->base.add(&meter->base, 0, ready_at[i], i);
    }
    for (uint64_t now = 0; now < MOMENTS; now++) {
        uint64_t deferred = 0;
        for (uint64_t i = 0; i < ENTRIES; i++) deferred += ready_at[i] > now ? i : 0;
        EXPECT_EQ(strata_meter_bytes(meter, now), deferred);
    }
}
