/* The measuring of `strata calibrate` on the CUDA device: every call is made as a driver wants it, and everything is given back. */
#include "lab/tools/calibrate/fit.h"
#include "tests/cuda/every_call.h"

static strata_measure_t measure;
static strata_fitted_t fitted;

/* Every price of a profile has rows, and of each as many samples as were asked for, or more. */
TEST(cuda_calibrate, every_price_is_measured_and_everything_given_back) {
    FAKE_DEVICE(device);
    uint64_t live = fake_live_objects(), used = fake_used(0);
    measure = (strata_measure_t){.device = device, .repeats = 3};
    ASSERT_OK(strata_measure_all(&measure));
    EXPECT_EQ(fake_live_objects(), live);
    EXPECT_EQ(fake_used(0), used);
    EXPECT_EQ(fake_pending(0), 0);
    EXPECT_GT(measure.count, 50);
    for (size_t i = 0; i < measure.count; i++) EXPECT_GE(measure.rows[i].samples, 3);
    strata_fit_profile(&measure, strata_sim_profile("h100"), &fitted);
    EXPECT_OK(strata_sim_profile_check(&fitted.profile));
    EXPECT_EQ(fitted.profile.total_bytes, measure.total_bytes);
    EXPECT_EQ(fitted.profile.granule_bytes, FAKE_GRANULE);
#define MEASURED(name, meaning)                                                                                                    \
    if ((device->capabilities.work || strcmp(#name, "launch") != 0) &&                                                             \
        strncmp(strata_fit_note(#name, &fitted), "measured", 8) != 0)                                                              \
        FAIL_TEST("%s was not measured", #name);
    STRATA_SIM_COST_MAP(MEASURED)
#undef MEASURED
    EXPECT_STREQ(strata_fit_note("mappings_max", &fitted), "not measured: as in h100");
}

/* What a device lacks is left out, and taken over. */
TEST(cuda_calibrate, what_a_device_lacks_is_left_out) {
    fake_reset();
    fake_options.no_managed = fake_options.no_pools = fake_options.no_virtual = true;
    OPEN_DEVICE(device);
    measure = (strata_measure_t){.device = device, .repeats = 1};
    ASSERT_OK(strata_measure_all(&measure));
    strata_fit_profile(&measure, strata_sim_profile("h100"), &fitted);
    static const char *const left[] = {"managed_malloc", "managed_free", "malloc_async", "pool_grow", "pool_shrink",
                                       "create",         "map",          "prefetch",     "peer"};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        EXPECT_STREQ(strata_fit_note(left[i], &fitted), "not measured: as in h100");
    EXPECT_NEAR(fitted.profile.create.fixed_ns, strata_sim_profile("h100")->create.fixed_ns, 1e-9);
    EXPECT_EQ(strncmp(strata_fit_note("malloc", &fitted), "measured", 8), 0);
}

/* Each driver call fails in turn: the first failure is the answer, and nothing is measured after it. */
TEST(cuda_calibrate, a_failed_call_ends_it) {
    for (uint64_t k = 1, failed = 1; failed && k < 2000; k += 1 + k / 8) {
        FAKE_DEVICE(device);
        measure = (strata_measure_t){.device = device, .repeats = 1};
        fake_fail(NULL, k, CUDA_ERROR_UNKNOWN);
        strata_status_t status = strata_measure_all(&measure);
        failed = fake_failed();
        EXPECT_EQ(status, measure.status);
        fake_fail(NULL, 0, CUDA_SUCCESS);
    }
}
