/* Blocks that another process was sent: how many they are, and that their memory serves nobody before that process has done with them. */
#include <sys/resource.h>

#include "tests/share/share.h"

/* Of one simulated device with so much memory. */
static void open_one(rig_t *rig, const char *strategy, uint64_t capacity) {
    rig_open_with(rig, strategy, &(strata_sim_options_t){.devices = 1, .contents = true, .capacity = capacity}, 0);
}

static void send_to(rig_t *rig, const other_t *other, const strata_block_t *block) {
    strata_shared_t shared = {0};
    ASSERT_OK(strata_export(rig->s, block->ref, &shared));
    ASSERT_OK(strata_share_send(other->socket, &shared));
    strata_shared_close(&shared);
}

/* The other process has it mapped at the return. */
static void lend(rig_t *rig, const other_t *other, const strata_block_t *block) {
    send_to(rig, other, block);
    (void)other_byte(other);
    (void)other_byte(other);
}

/* The other process has ended its import at the return. */
static void take_back(const other_t *other) {
    EXPECT_EQ(write(other->socket, "", 1), 1);
    (void)other_byte(other);
}

static void expect_sent(rig_t *rig, uint64_t blocks, uint64_t bytes, uint64_t limbo) {
    strata_statistics_t f = rig_figures(rig);
    EXPECT_EQ(f.sent_blocks, blocks);
    EXPECT_EQ(f.sent_bytes, bytes);
    EXPECT_EQ(f.limbo_bytes, limbo);
}

/* Frees another block that was sent, which looks at all of them. */
static void look(rig_t *rig) {
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    strata_shared_t shared = {0};
    EXPECT_OK(strata_export(rig->s, block.ref, &shared));
    strata_shared_close(&shared);
    EXPECT_OK(strata_free(rig->s, block.ref));
}

/* How many descriptors are open once contents that were exported are files, and no entry waits for a look. */
static int descriptors_of_exports(rig_t *rig) {
    look(rig);
    return open_descriptors();
}

static strata_status_t try_size(rig_t *rig, size_t size, strata_block_t *block) {
    return strata_allocate(rig->s, rig->gpu, NULL, size, block);
}

/* ---- how many ---- */

TEST(limbo, figures_follow_every_step) {
    OPENED(rig_t, rig, rig_finish, open_one(&rig, CACHED, 4 * GIB));
    strata_block_t a = rig_allocate(&rig, NULL, 3 * MIB), b = rig_allocate(&rig, NULL, 5 * MIB);
    strata_shared_t first = {0}, again = {0}, second = {0};
    expect_sent(&rig, 0, 0, 0);
    ASSERT_OK(strata_export(rig.s, a.ref, &first));
    expect_sent(&rig, 1, a.size, 0);
    ASSERT_OK(strata_export(rig.s, a.ref, &again));
    expect_sent(&rig, 1, a.size, 0);
    ASSERT_OK(strata_export(rig.s, b.ref, &second));
    expect_sent(&rig, 2, a.size + b.size, 0);
    strata_shared_close(&first);
    expect_sent(&rig, 2, a.size + b.size, 0);
    EXPECT_OK(strata_free(rig.s, a.ref));
    expect_sent(&rig, 2, a.size + b.size, a.size);
    strata_shared_close(&again);
    expect_sent(&rig, 1, b.size, a.size); /* nobody has looked */
    EXPECT_OK(strata_free(rig.s, b.ref));
    expect_sent(&rig, 1, b.size, b.size);
    strata_shared_close(&second);
    (void)rig_release(&rig);
    expect_sent(&rig, 0, 0, 0);
}

TEST(limbo, a_second_export_revives_a_block_that_all_had_given_back) {
    OPENED(rig_t, rig, rig_finish, open_one(&rig, CACHED, 4 * GIB));
    strata_block_t a = rig_allocate(&rig, NULL, 3 * MIB);
    strata_shared_t shared = {0};
    int descriptors = descriptors_of_exports(&rig);
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(strata_export(rig.s, a.ref, &shared));
        expect_sent(&rig, 1, a.size, 0);
        strata_shared_close(&shared);
        expect_sent(&rig, 0, 0, 0);
    }
    EXPECT_OK(strata_free(rig.s, a.ref));
    expect_sent(&rig, 0, 0, 0);
    EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(limbo, figures_of_streams_and_pools_are_their_own) {
    OPENED(rig_t, rig, rig_finish, open_one(&rig, CACHED, 4 * GIB));
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, stream, 3 * MIB);
    strata_shared_t shared = {0};
    strata_statistics_t own, other, pool;
    ASSERT_OK(strata_export(rig.s, a.ref, &shared));
    (void)rig_allocate(&rig, NULL, MIB);
    own.struct_size = other.struct_size = pool.struct_size = sizeof own;
    ASSERT_OK(strata_statistics(rig.s, rig.gpu, stream, &own));
    ASSERT_OK(strata_statistics(rig.s, rig.gpu, NULL, &other));
    ASSERT_OK(strata_statistics_pool(rig.s, rig.gpu, STRATA_POOL_ORDINARY, &pool));
    EXPECT_EQ(own.sent_bytes, a.size);
    EXPECT_EQ(other.sent_blocks, 0);
    EXPECT_EQ(pool.sent_blocks, 1);
    strata_shared_close(&shared);
}

/* More than one poll asks for at once. */
TEST(limbo, many_blocks_are_counted_and_come_back) {
    enum { BLOCKS = 150 };
    OPENED(rig_t, rig, rig_finish, open_one(&rig, ONE_HANDLE, 4 * GIB));
    static strata_shared_t shared[BLOCKS];
    uint64_t bytes = 0;
    for (int i = 0; i < BLOCKS; i++) {
        strata_block_t block = rig_allocate(&rig, NULL, MIB);
        ASSERT_OK(strata_export(rig.s, block.ref, &shared[i]));
        EXPECT_OK(strata_free(rig.s, block.ref));
        bytes += block.size;
    }
    expect_sent(&rig, BLOCKS, bytes, bytes);
    for (int i = 0; i < BLOCKS; i += 3) strata_shared_close(&shared[i]);
    (void)rig_release(&rig);
    expect_sent(&rig, BLOCKS * 2 / 3, bytes / 3 * 2, bytes / 3 * 2);
    for (int i = 0; i < BLOCKS; i++) strata_shared_close(&shared[i]);
    (void)rig_release(&rig);
    expect_sent(&rig, 0, 0, 0);
}

/* ---- two processes ---- */

TEST(limbo, a_freed_block_serves_nobody_while_another_process_uses_it) {
    static const char *const strategies[] = {CACHED, ONE_HANDLE, ONLY_VMM};
    for (size_t i = 0; i < COUNT(strategies); i++) {
        OPENED(rig_t, rig, rig_finish, open_one(&rig, strategies[i], 4 * GIB));
        other_t other = other_start("borrow");
        strata_block_t a = rig_allocate(&rig, NULL, 3 * MIB);
        lend(&rig, &other, &a);
        EXPECT_OK(strata_free(rig.s, a.ref));
        EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, a.ref));
        expect_sent(&rig, 1, a.size, a.size);
        EXPECT_EQ(rig_figures(&rig).allocated_bytes, 0);
        EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
        for (int k = 0; k < 20; k++) {
            strata_block_t b = rig_allocate(&rig, NULL, 3 * MIB);
            EXPECT_FALSE(rig_overlap(&a, &b));
        }
        (void)rig_release(&rig);
        expect_sent(&rig, 1, a.size, a.size);
        EXPECT_OK(strata_validate(rig.s));
        take_back(&other);
        expect_sent(&rig, 0, 0, a.size);
        look(&rig);
        expect_sent(&rig, 0, 0, 0);
        EXPECT_OK(strata_validate(rig.s));
        other_end(&other, false);
    }
}

TEST(limbo, a_block_that_was_given_back_before_its_free_is_free_at_once) {
    OPENED(rig_t, rig, rig_finish, open_one(&rig, CACHED, 4 * GIB));
    other_t other = other_start("borrow");
    strata_block_t a = rig_allocate(&rig, NULL, 3 * MIB);
    lend(&rig, &other, &a);
    take_back(&other);
    expect_sent(&rig, 0, 0, 0);
    EXPECT_OK(strata_free(rig.s, a.ref));
    expect_sent(&rig, 0, 0, 0);
    strata_block_t b = rig_allocate(&rig, NULL, 3 * MIB);
    EXPECT_EQ((uintptr_t)b.ptr, (uintptr_t)a.ptr);
    other_end(&other, false);
}

/* Nobody has received it yet; the message dies with the socket. */
TEST(limbo, a_message_on_its_way_counts) {
    OPENED(rig_t, rig, rig_finish, open_one(&rig, CACHED, 4 * GIB));
    strata_block_t a = rig_allocate(&rig, NULL, 3 * MIB);
    other_t other = {.socket = -1};
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    other.socket = ends[0];
    send_to(&rig, &other, &a);
    EXPECT_OK(strata_free(rig.s, a.ref));
    expect_sent(&rig, 1, a.size, a.size);
    close(ends[1]);
    close(ends[0]);
    expect_sent(&rig, 0, 0, a.size);
}

/* ---- memory is short ---- */

static const char *const short_strategies[] = {
    CACHED,
    ONE_HANDLE,
    ONLY_VMM,
    "stack: [retry: {timeout: 20ms}, stream_safe, auto_growth_vmm, vmm]\n",
    "stack: [retry: {timeout: 20ms, steps: wait}, stream_safe, auto_growth_vmm, vmm]\n",
    "stack: [retry: {timeout: 20ms, wait_first: true, patience: true}, stream_safe, auto_growth_vmm, vmm]\n",
    "stack: [caching_vmm, vmm]\n",
};

TEST(limbo, a_dead_process_gives_back_when_memory_is_short) {
    for (size_t i = 0; i < COUNT(short_strategies); i++) {
        OPENED(rig_t, rig, rig_finish, open_one(&rig, short_strategies[i], 100 * MIB));
        other_t other = other_start("borrow");
        strata_block_t a = rig_allocate(&rig, NULL, 60 * MIB), b;
        lend(&rig, &other, &a);
        EXPECT_OK(strata_free(rig.s, a.ref));
        EXPECT_STATUS(STRATA_E_NO_MEMORY, try_size(&rig, 60 * MIB, &b));
        expect_sent(&rig, 1, a.size, a.size);
        other_end(&other, true);
        expect_sent(&rig, 0, 0, a.size);
        EXPECT_OK(try_size(&rig, 60 * MIB, &b));
        rig_register(&rig, b.ref);
        expect_sent(&rig, 0, 0, 0);
    }
}

static strata_cause_t cause;
static char report[1 << 14];
static void observe(const strata_out_of_memory_t *event, void *context) {
    (void)context;
    cause = event->cause;
    snprintf(report, sizeof report, "%s", event->text);
}

TEST(limbo, the_report_names_what_other_processes_hold) {
    OPENED(rig_t, rig, rig_finish, open_one(&rig, CACHED, 100 * MIB));
    other_t other = other_start("borrow");
    strata_block_t a = rig_allocate(&rig, NULL, 60 * MIB), b;
    ASSERT_OK(strata_add_out_of_memory_observer(rig.s, observe, NULL, NULL));
    lend(&rig, &other, &a);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, try_size(&rig, 60 * MIB, &b));
    EXPECT_EQ(cause, STRATA_CAUSE_LIMBO);
    EXPECT_TRUE(strstr(report, "limbo: requested 60MiB; 60MiB in 1 block are freed but still in use by other processes") != NULL);
    EXPECT_TRUE(strstr(report, "\n  freed and in use by other processes: 60MiB in 1 block\n") != NULL);
    EXPECT_TRUE(strstr(report, "deferred 0,") != NULL);
    other_end(&other, true);
    EXPECT_OK(try_size(&rig, 60 * MIB, &b));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, try_size(&rig, 60 * MIB, &a));
    EXPECT_TRUE(cause != STRATA_CAUSE_LIMBO);
    EXPECT_TRUE(strstr(report, "other processes") == NULL);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* What is in limbo does not count among the memory that streams will leave: between two such blocks they leave no run. */
TEST(limbo, the_report_expects_no_run_across_it) {
    OPENED(rig_t, rig, rig_finish,
           open_one(&rig, "stack: [stream_safe, auto_growth: {chunk_size: 90MiB}, vmm: {registrable: true}]\n", 100 * MIB));
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t blocks[3], none;
    strata_shared_t shared = {0};
    ASSERT_OK(strata_add_out_of_memory_observer(rig.s, observe, NULL, NULL));
    for (int i = 0; i < 3; i++) blocks[i] = rig_allocate(&rig, NULL, 30 * MIB);
    for (int i = 0; i < 3; i += 2) rig_borrow(&rig, blocks[i].ref, stream, 1000ull * 1000 * 1000);
    ASSERT_OK(strata_export(rig.s, blocks[1].ref, &shared));
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, try_size(&rig, 60 * MIB, &none));
    EXPECT_EQ(cause, STRATA_CAUSE_FRAGMENTATION);
    EXPECT_TRUE(strstr(report, "the largest run has 30MiB") != NULL);
    strata_shared_close(&shared);
}

/* ---- other ways to a free ---- */

/* What was borrowed goes on waiting for the borrower after the other process has done. */
TEST(limbo, streams_are_waited_for_after_processes) {
    OPENED(rig_t, rig, rig_finish, open_one(&rig, CACHED, 4 * GIB));
    other_t other = other_start("borrow");
    strata_block_t a = rig_allocate(&rig, NULL, 3 * MIB);
    strata_stream_t stream = rig_stream(&rig);
    EXPECT_OK(strata_record_stream(rig.s, a.ref, stream));
    rig_work(&rig, stream, 1000 * 1000 * 1000, a.ref);
    lend(&rig, &other, &a);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
    take_back(&other);
    look(&rig);
    expect_sent(&rig, 0, 0, 0);
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, a.size);
    rig_advance(&rig, 2000ull * 1000 * 1000);
    (void)rig_release(&rig);
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
    other_end(&other, false);
}

TEST(limbo, the_last_owner_leaves_it_there) {
    OPENED(rig_t, rig, rig_finish, open_one(&rig, CACHED, 4 * GIB));
    strata_block_t a = rig_allocate(&rig, NULL, 3 * MIB);
    strata_shared_t shared = {0};
    ASSERT_OK(strata_retain(rig.s, a.ref));
    ASSERT_OK(strata_export(rig.s, a.ref, &shared));
    EXPECT_OK(strata_free(rig.s, a.ref));
    expect_sent(&rig, 1, a.size, 0);
    EXPECT_OK(strata_free_on(rig.s, a.ref, rig_stream(&rig)));
    expect_sent(&rig, 1, a.size, a.size);
    strata_shared_close(&shared);
    look(&rig);
    expect_sent(&rig, 0, 0, 0);
}

/* The stack of a stream that is gone stays for it. */
TEST(limbo, a_forgotten_stream_leaves_its_blocks_there) {
    static const char *const strategies[] = {CACHED, "stack: [stream_safe, caching_vmm, vmm]\n"};
    for (size_t i = 0; i < COUNT(strategies); i++) {
        OPENED(rig_t, rig, rig_finish, open_one(&rig, strategies[i], 4 * GIB));
        strata_stream_t stream = rig_stream(&rig);
        strata_block_t a = rig_allocate(&rig, stream, 3 * MIB);
        strata_shared_t shared = {0};
        ASSERT_OK(strata_export(rig.s, a.ref, &shared));
        EXPECT_OK(strata_free(rig.s, a.ref));
        EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, stream));
        (void)rig_release(&rig);
        expect_sent(&rig, 1, a.size, a.size);
        EXPECT_GE(rig_figures(&rig).reserved_bytes, a.size);
        strata_shared_close(&shared);
        (void)rig_release(&rig);
        rig_expect_empty(&rig);
    }
}

/* The device has the memory at the end, whoever still maps it. */
TEST(limbo, a_facade_closes_over_it) {
    rig_t rig;
    open_one(&rig, CACHED, 4 * GIB);
    other_t other = other_start("borrow");
    strata_block_t a = rig_allocate(&rig, NULL, 3 * MIB);
    int descriptors = descriptors_of_exports(&rig);
    lend(&rig, &other, &a);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(open_descriptors(), descriptors + 1);
    rig_close(&rig);
    EXPECT_LE(open_descriptors(), descriptors);
    take_back(&other);
    other_end(&other, false);
}

/* ---- the importing side ---- */

/* Two blocks of one view: the first is done before the owner is told so, though the view stays. */
TEST(limbo, the_last_import_of_a_block_waits_for_the_device) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, ONE_HANDLE));
    strata_block_t blocks[2] = {rig_allocate(&rig, NULL, MIB), rig_allocate(&rig, NULL, MIB)};
    strata_imported_t there[2];
    for (int i = 0; i < 2; i++) {
        strata_shared_t shared = {0};
        ASSERT_OK(strata_export(rig.s, blocks[i].ref, &shared));
        ASSERT_OK(strata_import(rig.s, strata_gpu(1), &shared, &there[i]));
        strata_shared_close(&shared);
    }
    const strata_access_t access = {(uintptr_t)there[0].ptr, there[0].size, true};
    uint64_t began = strata_sim_now(rig.world);
    ASSERT_OK(strata_device_work(rig.devices[1], NULL, 1000 * 1000 * 1000, &access, 1));
    EXPECT_OK(strata_import_end(rig.s, there[0].id));
    EXPECT_GE(strata_sim_now(rig.world), began + 1000 * 1000 * 1000);
    expect_sent(&rig, 1, blocks[1].size, 0);
    EXPECT_OK(strata_import_end(rig.s, there[1].id));
    expect_sent(&rig, 0, 0, 0);
}

/* A block that two devices use: each is done before its own import has ended. */
TEST(limbo, the_last_import_on_each_device_waits_for_it) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, ONE_HANDLE));
    strata_block_t blocks[2] = {rig_allocate(&rig, NULL, MIB), rig_allocate(&rig, NULL, MIB)};
    strata_shared_t shared[2] = {0};
    strata_imported_t first, second, other;
    for (int i = 0; i < 2; i++) ASSERT_OK(strata_export(rig.s, blocks[i].ref, &shared[i]));
    ASSERT_OK(strata_import(rig.s, strata_gpu(1), &shared[0], &first));
    ASSERT_OK(strata_import(rig.s, strata_gpu(1), &shared[1], &second)); /* the view stays for it */
    ASSERT_OK(strata_import(rig.s, strata_gpu(0), &shared[0], &other));
    for (int i = 0; i < 2; i++) strata_shared_close(&shared[i]);
    const strata_access_t access = {(uintptr_t)first.ptr, first.size, true};
    uint64_t began = strata_sim_now(rig.world);
    ASSERT_OK(strata_device_work(rig.devices[1], NULL, 1000 * 1000 * 1000, &access, 1));
    EXPECT_OK(strata_import_end(rig.s, first.id));
    EXPECT_GE(strata_sim_now(rig.world), began + 1000 * 1000 * 1000);
    expect_sent(&rig, 2, blocks[0].size + blocks[1].size, 0);
    EXPECT_OK(strata_import_end(rig.s, other.id));
    EXPECT_OK(strata_import_end(rig.s, second.id));
    expect_sent(&rig, 0, 0, 0);
}

/* ---- failures ---- */

TEST(limbo, an_export_that_fails_half_way_leaves_the_figures) {
    OPENED(rig_t, rig, rig_finish, open_one(&rig, CACHED, 4 * GIB));
    strata_block_t block = make_join(&rig);
    strata_shared_t shared = {0};
    ASSERT_OK(strata_export(rig.s, block.ref, &shared)); /* whose handles are files from now on */
    EXPECT_GE(shared.count, 2);
    strata_shared_close(&shared);
    int descriptors = descriptors_of_exports(&rig);
    shared.count = 7;
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_export_memory, 2, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_export(rig.s, block.ref, &shared));
    strata_sim_clear_faults(rig.devices[0]);
    expect_sent(&rig, 0, 0, 0);
    EXPECT_EQ(shared.count, 7);
    EXPECT_EQ(open_descriptors(), descriptors);
}

static void add_exports(const strata_layer_figure_t *figure, void *context) {
    if (strcmp(figure->name, "exports") == 0) *(uint64_t *)context += figure->value;
}

static uint64_t exports_of(rig_t *rig) {
    uint64_t exports = 0;
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, add_exports, &exports));
    return exports;
}

/* So many descriptors may be opened from now on. */
static void allow(rlim_t more, struct rlimit *before) {
    struct rlimit limit;
    int lowest = dup(0);
    close(lowest);
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, before), 0);
    limit = *before;
    limit.rlim_cur = (rlim_t)lowest + more;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The segments, then both ends of the pipe; or the segments, then the second lease of a known block. */
TEST(limbo, an_export_without_descriptors_leaves_the_figures) {
    for (int known = 0; known < 2; known++) {
        OPENED(rig_t, rig, rig_finish, open_one(&rig, ONE_HANDLE, 4 * GIB));
        strata_block_t block = rig_allocate(&rig, NULL, 3 * MIB);
        strata_shared_t shared = {0}, kept = {0};
        strata_status_t status = STRATA_E_DEVICE;
        if (known) ASSERT_OK(strata_export(rig.s, block.ref, &kept));
        int descriptors = descriptors_of_exports(&rig);
        uint64_t exports = exports_of(&rig);
        rlim_t most = 0;
        for (; most < 10 && status != STRATA_OK; most++) {
            struct rlimit before;
            allow(most, &before);
            status = strata_export(rig.s, block.ref, &shared);
            ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
            if (status == STRATA_OK) break;
            EXPECT_EQ(status, STRATA_E_DEVICE);
            EXPECT_EQ(open_descriptors(), descriptors);
            EXPECT_EQ(exports_of(&rig), exports);
            expect_sent(&rig, known ? 1 : 0, known ? block.size : 0, 0);
        }
        EXPECT_OK(status);
        EXPECT_GE(most, 3);
        EXPECT_GE(shared.lease, 0);
        strata_shared_close(&shared);
        strata_shared_close(&kept);
    }
}

TEST(limbo, an_import_without_a_descriptor_leaves_nothing) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, ONE_HANDLE));
    strata_block_t block = rig_allocate(&rig, NULL, 3 * MIB);
    strata_shared_t shared = {0};
    strata_imported_t there = {.id = 5};
    struct rlimit before;
    ASSERT_OK(strata_export(rig.s, block.ref, &shared));
    int descriptors = open_descriptors();
    allow(0, &before);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_import(rig.s, strata_gpu(1), &shared, &there));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(there.id, 5);
    EXPECT_EQ(open_descriptors(), descriptors);
    strata_shared_close(&shared);
    expect_sent(&rig, 0, 0, 0);
}
