/* The meter of what is deferred. */
#include "replay/run/meter.h"

#include "tests/harness/test.h"

TEST(meter, a_full_one_forgets_what_passes_first) {
    strata_meter_t meter;
    ASSERT_OK(strata_meter_init(&meter));
    uint32_t capacity = meter.capacity;
    meter.capacity = 2;
    meter.base.add(&meter.base, 0, 20, 200);
    meter.base.add(&meter.base, 0, 10, 100);
    EXPECT_EQ(meter.peak, 300);
    meter.base.add(&meter.base, 0, 30, 400);
    EXPECT_EQ(meter.peak, 600);
    EXPECT_EQ(meter.count, 2);
    /* At 25 what was ready at 20 is deferred no more. */
    meter.base.add(&meter.base, 25, 40, 8);
    EXPECT_EQ(meter.bytes, 408);
    EXPECT_EQ(meter.peak, 600);
    meter.capacity = capacity;
    strata_meter_destroy(&meter);
}

/* What is ready at the very moment is deferred no more. */
TEST(meter, what_is_ready_now_does_not_count) {
    strata_meter_t meter;
    ASSERT_OK(strata_meter_init(&meter));
    meter.base.add(&meter.base, 10, 20, 100);
    meter.base.add(&meter.base, 10, 10, 1000);
    meter.base.add(&meter.base, 20, 30, 50);
    EXPECT_EQ(meter.peak, 100);
    meter.base.add(&meter.base, 29, 31, 60);
    EXPECT_EQ(meter.peak, 110);
    strata_meter_destroy(&meter);
}
