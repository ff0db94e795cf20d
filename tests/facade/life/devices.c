/* What `devices` may say, in the options of strata_open(): how many devices of which profile, and what is refused. */
#include "tests/facade/support/fixture.h"
#include "tests/harness/files.h"

static strata_status_t open_devices(const char *devices, strata_t *s) {
    return strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t),
                                                .preset = "system",
                                                .devices = devices,
                                                .flags = STRATA_OPEN_IGNORE_ENVIRONMENT},
                       s);
}

static bool serves(strata_t s, uint32_t device) {
    strata_block_t block;
    if (strata_allocate(s, strata_gpu(device), NULL, 1000, &block) != STRATA_OK) return false;
    return strata_free(s, block.ref) == STRATA_OK;
}

/* As the device itself says: profiles of one memory size differ in how long things take. */
static const char *name_of(strata_t s, uint32_t device) {
    strata_domain_t *domain = NULL;
    strata_facade_t *facade = strata_facade_of(s);
    if (!facade || strata_facade_domain(facade, strata_gpu(device), &domain) != STRATA_OK) return "none";
    return domain->device->name;
}

TEST(facade_devices, so_many_of_a_profile) {
    static const struct {
        const char *devices, *profile;
        uint32_t count;
    } rows[] = {{"sim", "sim:h100", 1},
                {"sim:h100", "sim:h100", 1},
                {"sim:a100", "sim:a100", 1},
                {"sim:h100x2", "sim:h100", 2},
                {"sim:a100x16", "sim:a100", 16}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strata_t s = 0;
        ASSERT_OK(open_devices(rows[i].devices, &s));
        for (uint32_t device = 0; device < 17; device++) EXPECT_EQ(serves(s, device), device < rows[i].count);
        strata_mem_info_t info = {.struct_size = sizeof info};
        EXPECT_OK(strata_mem_info(s, strata_gpu(rows[i].count - 1), &info));
        EXPECT_EQ(info.total, strata_sim_profile(rows[i].profile + strlen("sim:"))->total_bytes);
        EXPECT_STREQ(name_of(s, rows[i].count - 1), rows[i].profile);
        EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
    }
}

/* A profile in a file; a facade keeps its devices under another strategy, which is no other profile. */
TEST(facade_devices, a_profile_may_be_a_file) {
    char devices[600];
    const char *file = write_text("devices.yaml", "extends: a100\ntotal_bytes: 3GiB\nprofile: tiny\n");
    ASSERT_NE(file, NULL);
    snprintf(devices, sizeof devices, "sim:%sx2", file);
    strata_t s = 0;
    ASSERT_OK(open_devices(devices, &s));
    for (uint32_t device = 0; device < 3; device++) EXPECT_EQ(serves(s, device), device < 2);
    strata_mem_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_mem_info(s, strata_gpu(1), &info));
    EXPECT_EQ(info.total, 3 * GIB);
    EXPECT_STREQ(name_of(s, 1), "sim:tiny");
    strata_open_options_t options = {
        .struct_size = sizeof options, .preset = "paddle", .devices = devices, .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    EXPECT_OK(strata_change_strategy(s, &options));
    EXPECT_TRUE(serves(s, 1));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
    devices[strlen(devices) - 2] = '\0';
    EXPECT_EQ(remove(devices + strlen("sim:")), 0);
    EXPECT_STATUS(STRATA_E_STRATEGY, open_devices(devices, &s));
    EXPECT_CONTAINS(strata_last_error()->text, "/devices.yaml: cannot read the file");
}

TEST(facade_devices, everything_else_is_refused_with_what_to_write) {
    static const char *const wrong[] = {"",
                                        "cpu",
                                        "sims",
                                        "sim:",
                                        "sim:h10",
                                        "sim:h100x",
                                        "sim:h100x0",
                                        "sim:h100x17",
                                        "sim:h100x2x2",
                                        "sim:x2",
                                        "sim:a_profile_of_a_very_long_name_here",
                                        "gpu:",
                                        "gpu:x",
                                        "gpu:16",
                                        "gpu:1x2",
                                        "gpus"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        strata_t s = 77;
        EXPECT_STATUS(STRATA_E_STRATEGY, open_devices(wrong[i], &s));
        EXPECT_EQ(s, 77);
        EXPECT_CONTAINS(strata_last_error()->text, "; write ");
    }
}

/* The words are those of strata_open_options_t, not the command's. */
TEST(facade_devices, wrong_options_are_called_by_the_function_s_own_names) {
    static const char *const set[] = {"system.size=1"};
    strata_open_options_t options = {.struct_size = sizeof options,
                                     .preset = "system",
                                     .devices = "sim",
                                     .set = set,
                                     .set_count = 1,
                                     .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    strata_t s = 77;
    EXPECT_STATUS(STRATA_E_STRATEGY, open_devices("cpu", &s));
    EXPECT_EQ(strncmp(strata_last_error()->text, "devices: \"cpu\" is not a device", 30), 0);
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_open(&options, &s));
    EXPECT_EQ(strncmp(strata_last_error()->text, "set: ", 5), 0);
    EXPECT_EQ(s, 77);
}

/* A real device is opened, or it is told that there is none; never is a simulated one put in its place. */
TEST(facade_devices, a_device_that_is_not_there_is_told) {
    static const char *const real[] = {"gpu", "gpu:0", "gpu:15"};
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        strata_t s = 0;
        strata_status_t status = open_devices(real[i], &s);
        if (status == STRATA_OK) EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
        else EXPECT_EQ(status, STRATA_E_NO_DEVICE);
    }
}

static size_t length_of(const char *(*name)(size_t), const char *wanted, bool *found) {
    size_t count = 0;
    for (; name(count); count++) *found = *found || strcmp(name(count), wanted) == 0;
    return count;
}

TEST(facade_devices, the_lists_end_and_have_what_is_built_in) {
    bool strategy = false, layer = false;
    EXPECT_GT(length_of(strata_strategy_name, "strata", &strategy), 3);
    EXPECT_GT(length_of(strata_layer_name, "auto_growth", &layer), 10);
    EXPECT_TRUE(strategy && layer);
    EXPECT_EQ(strata_abi_version(), STRATA_ABI_VERSION);
}
