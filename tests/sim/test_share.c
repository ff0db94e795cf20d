/* Peers, export and import. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/sim_fixture.h"

TEST(sim_share, peers_are_the_other_devices_of_the_world) {
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.devices = 2});
    bool can = false;
    EXPECT_TRUE(f.device->capabilities.peers);
    ASSERT_OK(strata_device_can_access_peer(f.device, 1, &can));
    EXPECT_TRUE(can);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_can_access_peer(f.device, 2, &can));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_enable_peer(f.device, 0));
    EXPECT_OK(strata_device_enable_peer(f.device, 1));
    EXPECT_OK(strata_device_enable_peer(f.device, 1));
}

TEST(sim_share, imported_memory_is_the_same_memory) {
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.devices = 2, .contents = true});
    strata_physical_t h, imported;
    strata_address_t a, b;
    int descriptor;
    ASSERT_OK(strata_device_create(f.device, 2 * MIB, true, &h));
    ASSERT_OK(strata_device_export_memory(f.device, h, &descriptor));
    int copy = dup(descriptor);
    ASSERT_OK(strata_device_import_memory(f.other, copy, &imported));
    close(descriptor);
    ASSERT_OK(strata_device_reserve(f.device, 2 * MIB, 0, &a));
    ASSERT_OK(strata_device_reserve(f.other, 2 * MIB, 0, &b));
    ASSERT_OK(strata_device_map(f.device, a, 2 * MIB, h));
    ASSERT_OK(strata_device_map(f.other, b, 2 * MIB, imported));
    ASSERT_OK(strata_device_set_access(f.device, a, 2 * MIB, NULL, 0));
    ASSERT_OK(strata_device_set_access(f.other, b, 2 * MIB, NULL, 0));
    ASSERT_OK(strata_device_fill(f.device, a, 9, 2 * MIB, NULL));
    EXPECT_EQ(*(uint8_t *)strata_device_host_view(f.other, b, 1), 9);
    EXPECT_EQ(figures_of(f.other).used_bytes, 0);
    ASSERT_OK(strata_device_unmap(f.device, a, 2 * MIB));
    ASSERT_OK(strata_device_release(f.device, h));
    EXPECT_EQ(figures_of(f.device).used_bytes, 2 * MIB);
    ASSERT_OK(strata_device_release(f.other, imported));
    ASSERT_OK(strata_device_unmap(f.other, b, 2 * MIB));
    EXPECT_EQ(figures_of(f.device).used_bytes, 0);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_import_memory(f.other, copy, &imported));
    close(copy);
}

TEST(sim_share, what_names_no_memory_is_refused) {
    fixture_t f = fixture_open((strata_sim_options_t){0}), g = fixture_open((strata_sim_options_t){0});
    strata_physical_t h, none;
    int descriptor, ends[2];
    ASSERT_OK(strata_device_create(f.device, 2 * MIB, false, &h));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_export_memory(f.device, h, &descriptor));
    ASSERT_OK(strata_device_create(f.device, 2 * MIB, true, &h));
    for (int i = 0; i < 2; i++) ASSERT_OK(strata_device_create(g.device, 2 * MIB, true, &none));
    ASSERT_OK(strata_device_export_memory(f.device, h, &descriptor));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_import_memory(g.device, descriptor, &none));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_import_memory(f.device, -1, &none));
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_import_memory(f.device, ends[0], &none));
    close(ends[0]);
    close(ends[1]);
    close(descriptor);
    fixture_close(&f);
    fixture_close(&g);
}

TEST(sim_share, memory_outlives_its_closed_device_while_another_maps_it) {
    fixture_t f = fixture_open((strata_sim_options_t){.devices = 2, .contents = true});
    strata_physical_t h, imported;
    strata_address_t b;
    int descriptor;
    ASSERT_OK(strata_device_create(f.device, 2 * MIB, true, &h));
    ASSERT_OK(strata_device_export_memory(f.device, h, &descriptor));
    ASSERT_OK(strata_device_import_memory(f.other, descriptor, &imported));
    close(descriptor);
    ASSERT_OK(strata_device_reserve(f.other, 2 * MIB, 0, &b));
    ASSERT_OK(strata_device_map(f.other, b, 2 * MIB, imported));
    ASSERT_OK(strata_device_set_access(f.other, b, 2 * MIB, NULL, 0));
    strata_device_close(f.device);
    EXPECT_OK(strata_device_fill(f.other, b, 1, 2 * MIB, NULL));
    EXPECT_OK(strata_sim_validate(f.world));
    strata_device_close(f.other);
    strata_sim_drop(f.world);
}

static int export_new(strata_device_t *device) {
    strata_physical_t h;
    int descriptor = -1;
    EXPECT_OK(strata_device_create(device, 2 * MIB, true, &h));
    EXPECT_OK(strata_device_export_memory(device, h, &descriptor));
    return descriptor;
}

/* Tells its descriptor's number, and holds it until the other end is closed. */
static void export_and_wait(const int *to, const int *from) {
    fixture_t f = fixture_open((strata_sim_options_t){0});
    int descriptor = export_new(f.device);
    close(from[1]);
    (void)!write(to[1], &descriptor, sizeof descriptor);
    (void)!read(from[0], &descriptor, 1);
    _exit(0);
}

/* Both count their worlds and their memory from the same number on. */
TEST(sim_share, memory_of_another_program_is_refused) {
    int to[2], from[2], number = -1;
    char path[64];
    strata_physical_t none;
    ASSERT_EQ(pipe(to), 0);
    ASSERT_EQ(pipe(from), 0);
    pid_t child = fork();
    if (child == 0) export_and_wait(to, from);
    ASSERT_GT(child, 0);
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){0});
    int own = export_new(f.device);
    ASSERT_EQ(read(to[0], &number, sizeof number), (ssize_t)sizeof number);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)child, number);
    int others = open(path, O_RDONLY | O_CLOEXEC);
    EXPECT_GE(others, 0);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_import_memory(f.device, others, &none));
    EXPECT_OK(strata_device_import_memory(f.device, own, &none));
    for (int i = 0; i < 2; i++) {
        close(to[i]);
        close(from[i]);
    }
    ASSERT_EQ(waitpid(child, NULL, 0), child);
    close(others);
    close(own);
}

TEST(sim_share, memory_is_refused_in_a_forked_copy_of_its_world) {
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){0});
    int descriptor = export_new(f.device), how = 0;
    strata_physical_t none;
    pid_t child = fork();
    if (child == 0) _exit(strata_device_import_memory(f.device, descriptor, &none) == STRATA_E_DEVICE ? 0 : 1);
    ASSERT_EQ(waitpid(child, &how, 0), child);
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    close(descriptor);
}
