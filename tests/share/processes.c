/* Two processes, each with a facade of its own: what the simulator models of them is in docs/profiles.md. */
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/share/share.h"

static void open_here(rig_t *rig) { open_two(rig, CACHED); }

TEST(processes, blocks_of_another_process_are_its_memory) {
    OPENED(rig_t, rig, rig_finish, open_here(&rig));
    other_t other = other_start("export");
    strata_imported_t there[3];
    for (size_t i = 0; i < 3; i++) {
        strata_shared_t shared = {0};
        ASSERT_OK(strata_share_receive(other.socket, &shared));
        EXPECT_OK(strata_import(rig.s, rig.gpu, &shared, &there[i]));
        strata_shared_close(&shared);
    }
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    for (size_t i = 0; i < 3; i++) {
        EXPECT_EQ(*bytes_at(&rig, 0, there[i].ptr), 7 + i);
        EXPECT_EQ(*bytes_at(&rig, 0, (char *)there[i].ptr + there[i].size - 1), 7 + i);
        EXPECT_OK(strata_device_fill(rig.devices[0], (uintptr_t)there[i].ptr, (uint8_t)(50 + i), there[i].size, NULL));
    }
    EXPECT_EQ(write(other.socket, "", 1), 1);
    for (size_t i = 0; i < 3; i++) EXPECT_EQ(other_byte(&other), 50 + i);
    for (size_t i = 0; i < 3; i++) EXPECT_OK(strata_import_end(rig.s, there[i].id));
    other_end(&other, false);
}

static void send_block(rig_t *rig, const other_t *other, const strata_block_t *block) {
    strata_shared_t shared = {0};
    EXPECT_OK(strata_export(rig->s, block->ref, &shared));
    EXPECT_OK(strata_share_send(other->socket, &shared));
    strata_shared_close(&shared);
}

TEST(processes, another_process_writes_into_what_it_was_given) {
    OPENED(rig_t, rig, rig_finish, open_here(&rig));
    other_t other = other_start("import");
    for (size_t i = 0; i < 20; i++) {
        strata_block_t block = rig_allocate(&rig, NULL, (i % 4 + 1) * 3 * MIB);
        EXPECT_OK(strata_device_fill(rig.devices[0], (uintptr_t)block.ptr, (uint8_t)i, block.size, NULL));
        send_block(&rig, &other, &block);
        EXPECT_EQ(other_byte(&other), i);
        EXPECT_EQ(other_byte(&other), 0);
        EXPECT_EQ(*bytes_at(&rig, 0, block.ptr), i + 100);
        if (i % 3) EXPECT_OK(strata_free(rig.s, block.ref));
    }
    other_end(&other, false);
}

/* The other one dies with the memory mapped: here all goes on, and everything goes back. */
TEST(processes, a_killed_importer_leaks_nothing) {
    OPENED(rig_t, rig, rig_finish, open_here(&rig));
    strata_block_t block = rig_allocate(&rig, NULL, 30 * MIB);
    int descriptors = open_descriptors(); /* the contents of the world are a file too */
    for (int i = 0; i < 3; i++) {
        other_t other = other_start("hold");
        send_block(&rig, &other, &block);
        (void)other_byte(&other);
        (void)other_byte(&other);
        other_end(&other, true);
    }
    EXPECT_OK(strata_free(rig.s, block.ref));
    rig_expect_empty(&rig);
    EXPECT_EQ(open_descriptors(), descriptors);
}

/* The exporter dies: what was imported stays as long as it is mapped. */
TEST(processes, a_killed_exporter_leaves_its_memory_to_the_importer) {
    OPENED(rig_t, rig, rig_finish, open_here(&rig));
    other_t other = other_start("export");
    strata_shared_t shared = {0};
    strata_imported_t there;
    ASSERT_OK(strata_share_receive(other.socket, &shared));
    ASSERT_OK(strata_import(rig.s, rig.gpu, &shared, &there));
    strata_shared_close(&shared);
    other_end(&other, true);
    EXPECT_EQ(*bytes_at(&rig, 0, there.ptr), 7);
    EXPECT_OK(strata_import_end(rig.s, there.id));
}

/* ---- without a socket of both ---- */

static bool can_fetch(void) {
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0), got = self < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, self, self, 0);
    if (got >= 0) close(got);
    if (self >= 0) close(self);
    return got >= 0;
}

/* What the role `tell` says, with no descriptor of this process in it. */
static strata_shared_t told_by(const other_t *other) {
    strata_shared_t told = {0};
    for (size_t got = 0; got < sizeof told;) {
        ssize_t came = read(other->socket, (unsigned char *)&told + got, sizeof told - got);
        if (came <= 0) break;
        got += (size_t)came;
    }
    return told;
}

TEST(processes, a_block_is_fetched_by_bytes_that_came_any_way) {
    if (!can_fetch()) TEST_SKIP("this system gives no descriptors of other processes");
    OPENED(rig_t, rig, rig_finish, open_here(&rig));
    other_t other = other_start("tell");
    strata_shared_t shared = told_by(&other), again = shared;
    strata_imported_t there, second;
    int descriptors = open_descriptors();
    ASSERT_OK(strata_share_fetch((uint64_t)other.process, &shared));
    EXPECT_EQ(shared.sender, other.process);
    EXPECT_OK(strata_import(rig.s, rig.gpu, &shared, &there));
    EXPECT_EQ(*bytes_at(&rig, 0, there.ptr), 9);
    EXPECT_OK(strata_share_fetch((uint64_t)other.process, &again));
    EXPECT_OK(strata_import(rig.s, rig.gpu, &again, &second));
    EXPECT_EQ((uintptr_t)second.ptr, (uintptr_t)there.ptr);
    strata_shared_close(&shared);
    strata_shared_close(&again);
    EXPECT_EQ(write(other.socket, "", 1), 1);
    other_end(&other, false);
    EXPECT_EQ(*bytes_at(&rig, 0, there.ptr), 9);
    EXPECT_OK(strata_import_end(rig.s, there.id));
    EXPECT_OK(strata_import_end(rig.s, second.id));
    EXPECT_EQ(open_descriptors(), descriptors - 1);
}

TEST(processes, what_cannot_be_fetched_leaves_nothing_open) {
    if (!can_fetch()) TEST_SKIP("this system gives no descriptors of other processes");
    other_t other = other_start("tell");
    strata_shared_t shared = told_by(&other), lie = shared, empty = {0};
    int descriptors = open_descriptors();
    lie.size = 1 - lie.offset; /* to the first byte of one segment more, whose descriptor is none */
    for (uint32_t i = 0; i < shared.count; i++) lie.size += shared.segments[i].size;
    lie.segments[lie.count] = shared.segments[0];
    lie.descriptors[lie.count++] = 1 << 20;
    EXPECT_STATUS(STRATA_E_IO, strata_share_fetch((uint64_t)other.process, &lie));
    lie = shared;
    lie.count = STRATA_SHARE_SEGMENTS + 1;
    EXPECT_STATUS(STRATA_E_FORMAT, strata_share_fetch((uint64_t)other.process, &lie));
    EXPECT_STATUS(STRATA_E_FORMAT, strata_share_fetch((uint64_t)other.process, &empty));
    EXPECT_STATUS(STRATA_E_INVALID, strata_share_fetch((uint64_t)other.process, NULL));
    EXPECT_STATUS(STRATA_E_IO, strata_share_fetch(UINT64_MAX, &shared));
    pid_t gone = other.process;
    EXPECT_EQ(write(other.socket, "", 1), 1);
    other_end(&other, false);
    EXPECT_STATUS(STRATA_E_IO, strata_share_fetch((uint64_t)gone, &shared));
    EXPECT_EQ(open_descriptors(), descriptors - 1);
}
