/* Which calls wait for running work, in every profile (tests/platform/beside.h), and what a wait is counted as. */
#include "tests/platform/beside.h"
#include "tests/sim/sim_fixture.h"

#define KERNEL BESIDE_KERNEL

typedef struct waiting {
    fixture_t f;
    beside_t b;
} waiting_t;

static void waiting_open(waiting_t *w, const char *profile) {
    w->f = fixture_open((strata_sim_options_t){.profile = strata_sim_profile(profile)});
    beside_open(&w->b, w->f.device);
}
static void waiting_close(waiting_t *w) {
    beside_close(&w->b);
    fixture_close(&w->f);
}

static void check_row(const char *profile, const beside_row_t *row) {
    waiting_t w;
    waiting_open(&w, profile);
    strata_device_t *device = w.f.device;
    uint64_t before = strata_sim_now(w.f.world), end = strata_sim_device_end(device);
    EXPECT_EQ(end, before + KERNEL);
    strata_status_t status = row->make(&w.b);
    if (status != STRATA_OK) FAIL_TEST("%s: %s", row->name, strata_last_error()->text);
    uint64_t stalled = figures_of(device).stall_ns;
    if (stalled != (row->waits ? KERNEL : 0))
        FAIL_TEST("%s of %s: %s stalled for %llu ns", row->name, profile, row->waits ? "does wait, and" : "waits for nothing, and",
                  (unsigned long long)stalled);
    EXPECT_EQ(strata_sim_now(w.f.world) >= end, row->waits);
    EXPECT_EQ(strata_sim_device_end(device), end);
    EXPECT_EQ(strata_sim_device_waits(device), row->waits);
    waiting_close(&w);
}

TEST(sim_waits, each_call_waits_for_running_work_or_does_not_as_a_gpu_showed) {
    for (size_t i = 0; strata_sim_profile_name(i); i++)
        for (size_t row = 0; row < BESIDE_ROWS; row++) check_row(strata_sim_profile_name(i), &beside_rows[row]);
}

TEST(sim_waits, a_free_that_does_not_wait_is_not_counted) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.free_waits = false;
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.profile = &profile});
    strata_address_t device = get(f.device, MIB), pinned;
    ASSERT_OK(strata_device_host_alloc(f.device, STRATA_MEMORY_PINNED, MIB, 64, 0, &pinned));
    ASSERT_OK(strata_device_work(f.device, NULL, KERNEL, NULL, 0));
    put(f.device, device);
    EXPECT_OK(strata_device_host_free(f.device, STRATA_MEMORY_PINNED, pinned));
    EXPECT_EQ(figures_of(f.device).stall_ns, 0);
    EXPECT_EQ(strata_sim_device_waits(f.device), 0);
    EXPECT_OK(strata_device_synchronise(f.device));
    EXPECT_EQ(strata_sim_device_waits(f.device), 1);
}

/* Only once it is known whose memory it is: a refused free waits for nothing. */
TEST(sim_waits, a_refused_free_waits_for_nothing) {
    waiting_t w;
    waiting_open(&w, "h100");
    strata_device_t *device = w.f.device;
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_host_free(device, STRATA_MEMORY_PINNED, w.b.host));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_host_free(device, STRATA_MEMORY_PINNED, w.b.pinned + 64));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(device, STRATA_MEMORY_DEVICE, w.b.managed));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(device, STRATA_MEMORY_DEVICE, w.b.small + 512));
    EXPECT_EQ(figures_of(device).stall_ns, 0);
    EXPECT_EQ(strata_sim_device_waits(device), 0);
    waiting_close(&w);
}

TEST_WORLD(sim_waits, a_wait_of_one_device_is_not_the_others, .devices = 2) {
    strata_address_t pinned;
    ASSERT_OK(strata_device_host_alloc(f->device, STRATA_MEMORY_PINNED, MIB, 64, 0, &pinned));
    ASSERT_OK(strata_device_work(f->other, NULL, KERNEL, NULL, 0));
    EXPECT_OK(strata_device_host_free(f->device, STRATA_MEMORY_PINNED, pinned));
    EXPECT_EQ(figures_of(f->device).stall_ns + figures_of(f->other).stall_ns, 0);
    EXPECT_EQ(strata_sim_device_waits(f->other), 0);
}

/* The ledger is that of the strategy's own calls, and the program also waits for its device. */
TEST_WORLD(sim_waits, the_ledger_has_only_waits_that_are_timed, .profile = strata_sim_profile("h100")) {
    strata_device_ledger_t ledger = {.own_ns = 0};
    f->device->ledger = &ledger;
    for (int timed = 0; timed < 2; timed++) {
        ASSERT_OK(strata_device_work(f->device, NULL, KERNEL, NULL, 0));
        f->device->timed = timed;
        EXPECT_OK(strata_device_synchronise(f->device));
        f->device->timed = false;
        EXPECT_EQ(ledger.waiting_ns > KERNEL / 2, timed != 0);
        if (!timed) EXPECT_EQ(ledger.waiting_ns, 0);
    }
    f->device->ledger = NULL;
}
