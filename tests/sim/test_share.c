/* Peers, export and import. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/sim_fixture.h"

TEST_WORLD(sim_share, peers_are_the_other_devices_of_the_world, .devices = 2) {
    bool can = false;
    EXPECT_TRUE(f->device->capabilities.peers);
    ASSERT_OK(strata_device_can_access_peer(f->device, 1, &can));
    EXPECT_TRUE(can);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_can_access_peer(f->device, 2, &can));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_enable_peer(f->device, 0));
    EXPECT_OK(strata_device_enable_peer(f->device, 1));
    EXPECT_OK(strata_device_enable_peer(f->device, 1));
}

TEST_WORLD(sim_share, imported_memory_is_the_same_memory, .devices = 2, .contents = true) {
    strata_physical_t h, imported;
    strata_address_t a, b;
    int descriptor;
    ASSERT_OK(strata_device_create(f->device, 2 * MIB, true, &h));
    ASSERT_OK(strata_device_export_memory(f->device, h, &descriptor));
    int copy = dup(descriptor);
    ASSERT_OK(strata_device_import_memory(f->other, copy, &imported));
    close(descriptor);
    ASSERT_OK(strata_device_reserve(f->device, 2 * MIB, 0, &a));
    ASSERT_OK(strata_device_reserve(f->other, 2 * MIB, 0, &b));
    ASSERT_OK(strata_device_map(f->device, a, 2 * MIB, h));
    ASSERT_OK(strata_device_map(f->other, b, 2 * MIB, imported));
    ASSERT_OK(strata_device_set_access(f->device, a, 2 * MIB, NULL, 0));
    ASSERT_OK(strata_device_set_access(f->other, b, 2 * MIB, NULL, 0));
    ASSERT_OK(strata_device_fill(f->device, a, 9, 2 * MIB, NULL));
    EXPECT_EQ(*(uint8_t *)strata_device_host_view(f->other, b, 1), 9);
    EXPECT_EQ(figures_of(f->other).used_bytes, 0);
    ASSERT_OK(strata_device_unmap(f->device, a, 2 * MIB));
    ASSERT_OK(strata_device_release(f->device, h));
    EXPECT_EQ(figures_of(f->device).used_bytes, 2 * MIB);
    ASSERT_OK(strata_device_release(f->other, imported));
    ASSERT_OK(strata_device_unmap(f->other, b, 2 * MIB));
    EXPECT_EQ(figures_of(f->device).used_bytes, 0);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_import_memory(f->other, copy, &imported));
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

static strata_physical_t make(strata_device_t *device, uint64_t size, uint8_t byte, strata_address_t *address) {
    strata_physical_t h = 0;
    EXPECT_OK(strata_device_create(device, size, true, &h));
    EXPECT_OK(strata_device_reserve(device, size, 0, address));
    EXPECT_OK(strata_device_map(device, *address, size, h));
    EXPECT_OK(strata_device_set_access(device, *address, size, NULL, 0));
    EXPECT_OK(strata_device_fill(device, *address, byte, size, NULL));
    return h;
}

static int export_new(strata_device_t *device) {
    strata_physical_t h;
    int descriptor = -1;
    EXPECT_OK(strata_device_create(device, 2 * MIB, true, &h));
    EXPECT_OK(strata_device_export_memory(device, h, &descriptor));
    return descriptor;
}

/* What lies there is shown by every mapping, before the export and after it. */
TEST_WORLD(sim_share, an_export_leaves_what_there_is, .contents = true) {
    strata_address_t a, b;
    int descriptor;
    strata_physical_t h = make(f->device, 4 * MIB, 7, &a);
    ASSERT_OK(strata_device_reserve(f->device, 4 * MIB, 0, &b));
    ASSERT_OK(strata_device_map(f->device, b, 4 * MIB, h));
    ASSERT_OK(strata_device_set_access(f->device, b, 4 * MIB, NULL, 0));
    ASSERT_OK(strata_device_export_memory(f->device, h, &descriptor));
    EXPECT_EQ(*(uint8_t *)strata_device_host_view(f->device, a + 3 * MIB, 1), 7);
    ASSERT_OK(strata_device_fill(f->device, a + MIB, 8, MIB, NULL));
    EXPECT_EQ(*(uint8_t *)strata_device_host_view(f->device, b + MIB, 1), 8);
    EXPECT_EQ(*(uint8_t *)strata_device_host_view(f->device, b, 1), 7);
    close(descriptor);
}

/* The child's memory, which the parent has opened by /proc, as a socket would have passed it. */
static int exported_by(pid_t child, int number) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)child, number);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* Tells its descriptor's number, and holds it until the other end is closed. */
static void export_and_wait(const int *to, const int *from) {
    fixture_t f = fixture_open((strata_sim_options_t){.contents = true});
    strata_address_t a;
    int descriptor = -1;
    EXPECT_OK(strata_device_export_memory(f.device, make(f.device, 2 * MIB, 5, &a), &descriptor));
    close(from[1]);
    (void)!write(to[1], &descriptor, sizeof descriptor);
    (void)!read(from[0], &descriptor, 1);
    _exit(*(uint8_t *)strata_device_host_view(f.device, a + 77, 1));
}

/* Both count their worlds and their memory from the same number on. */
TEST(sim_share, memory_of_another_process_is_its_memory) {
    int to[2], from[2], number = -1, how = 0;
    strata_physical_t h, own;
    strata_address_t b;
    ASSERT_EQ(pipe(to), 0);
    ASSERT_EQ(pipe(from), 0);
    pid_t child = fork();
    if (child == 0) export_and_wait(to, from);
    ASSERT_GT(child, 0);
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.contents = true});
    own = make(f.device, 2 * MIB, 1, &b);
    ASSERT_EQ(read(to[0], &number, sizeof number), (ssize_t)sizeof number);
    int others = exported_by(child, number);
    EXPECT_GE(others, 0);
    EXPECT_OK(strata_device_import_memory(f.device, others, &h));
    close(others);
    ASSERT_OK(strata_device_unmap(f.device, b, 2 * MIB));
    ASSERT_OK(strata_device_release(f.device, own));
    ASSERT_OK(strata_device_map(f.device, b, 2 * MIB, h));
    ASSERT_OK(strata_device_set_access(f.device, b, 2 * MIB, NULL, 0));
    EXPECT_EQ(*(uint8_t *)strata_device_host_view(f.device, b + 77, 1), 5);
    ASSERT_OK(strata_device_fill(f.device, b, 6, 2 * MIB, NULL));
    EXPECT_EQ(figures_of(f.device).used_bytes, 0);
    for (int i = 0; i < 2; i++) {
        close(to[i]);
        close(from[i]);
    }
    ASSERT_EQ(waitpid(child, &how, 0), child);
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 6);
    /* It outlives its process. */
    EXPECT_EQ(*(uint8_t *)strata_device_host_view(f.device, b, 1), 6);
    ASSERT_OK(strata_device_unmap(f.device, b, 2 * MIB));
    ASSERT_OK(strata_device_release(f.device, h));
}

TEST_WORLD(sim_share, memory_is_refused_in_a_forked_copy_of_its_world, 0) {
    int descriptor = export_new(f->device), how = 0;
    strata_physical_t none;
    pid_t child = fork();
    if (child == 0) _exit(strata_device_import_memory(f->device, descriptor, &none) == STRATA_E_DEVICE ? 0 : 1);
    ASSERT_EQ(waitpid(child, &how, 0), child);
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    close(descriptor);
}
