/* The measuring of `strata calibrate` on a real GPU. */
#include "lab/tools/calibrate/fit.h"
#include "tests/gpu/gpu.h"

TEST(gpu, calibration_measures_every_price_and_keeps_nothing) {
    static strata_measure_t measure;
    static strata_fitted_t fitted;
    GPU_OR_SKIP(device);
    measure = (strata_measure_t){.device = device, .repeats = 3};
    ASSERT_OK(strata_measure_all(&measure));
    strata_fit_profile(&measure, strata_sim_profile("h100"), &fitted);
    EXPECT_OK(strata_sim_profile_check(&fitted.profile));
    EXPECT_GT(fitted.profile.malloc.fixed_ns, 100);
    EXPECT_GT(fitted.profile.event_record.fixed_ns, 10);
    uint64_t left = 0, total = 0;
    ASSERT_OK(strata_device_mem_info(device, &left, &total));
    EXPECT_GT(left, measure.budget); /* what is left over is more than half of what was free */
    strata_device_close(device);
}
