/* Facades over the CUDA device: a child of fork(), and a driver that shuts down while memory is live. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "facade/registry/facade.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/facade/support/ends.h"
#include "tests/harness/test.h"

static bool begin(const char *preset, ends_t *ends) {
    fake_reset();
    fake_options.memory = UINT64_C(16) << 30;
    fake_options.address_space = UINT64_C(1) << 44;
    strata_open_options_t options = {
        .struct_size = sizeof options, .preset = preset, .devices = "gpu:0", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    *ends = (ends_t){.place = strata_gpu(0)};
    strata_status_t status = strata_open(&options, &ends->s);
    if (status == STRATA_OK) status = strata_stream_create(ends->s, ends->place, 0, &ends->stream);
    if (status == STRATA_OK) ends_fill(ends);
    if (status == STRATA_OK) status = strata_allocate(ends->s, ends->place, NULL, 5000, &ends->block);
    if (status != STRATA_OK) FAIL_TEST("%s: %s", preset, strata_last_error()->text);
    return status == STRATA_OK && !strata_test_has_failed();
}

/* 0, the number of the call that is wrong, or 249: the driver was called. */
static int forked(const ends_t *ends) {
    uint64_t before = fake_calls();
    int wrong = ends_forked_calls(ends);
    return wrong ? wrong : fake_calls() == before ? 0 : 249;
}

static void fork_under(const char *preset) {
    ends_t ends;
    if (!begin(preset, &ends)) return;
    int wrong = ends_in_child(forked, &ends);
    if (wrong) FAIL_TEST("%s: the child's answer is %d", preset, wrong);
    EXPECT_OK(strata_free(ends.s, ends.block.ref));
    fake_run(NULL);
    EXPECT_OK(strata_close(ends.s, STRATA_CLOSE_FORCE, NULL, NULL));
}

TEST(cuda_facade, a_forked_child_calls_no_driver_under_every_preset) {
    const char *name;
    for (size_t i = 0; (name = strata_strategy_name(i)) != NULL; i++) fork_under(name);
    fake_reset();
}

/* The driver says so once; from then on nobody asks it, whatever the program calls, and everything that gives back succeeds. */
static void shut_down_under(const char *preset, const char *first) {
    ends_t ends;
    strata_status_t status;
    const char *call;
    if (!begin(preset, &ends)) return;
    fake_options.deinitialised = true;
    size_t at = 0;
    while ((call = ends_call(&(ends_t){.s = 0}, at, &status)) != NULL && strncmp(call, first, strlen(first)) != 0) at++;
    ASSERT_NE(call, NULL);
    (void)ends_call(&ends, at, &status);
    strata_mem_info_t info = {.struct_size = sizeof info};
    EXPECT_STATUS(STRATA_E_SHUTDOWN, strata_mem_info(ends.s, ends.place, &info));
    uint64_t before = fake_calls();
    for (size_t i = 0; (call = ends_call(&ends, i, &status)) != NULL; i++) {
        bool gives_back = strncmp(call, "strata_free(", 12) == 0 || strncmp(call, "strata_release(", 15) == 0 ||
                          strncmp(call, "strata_trim(", 12) == 0;
        bool stale = status == STRATA_E_STALE || status == STRATA_E_UNKNOWN_POINTER;
        if (gives_back && status != STRATA_OK && !stale) FAIL_TEST("%s: %s answered %s", preset, call, strata_status_name(status));
        if (fake_calls() != before) FAIL_TEST("%s: %s called the driver", preset, call);
        before = fake_calls();
    }
    EXPECT_OK(strata_close(ends.s, STRATA_CLOSE_FORCE, NULL, NULL));
    EXPECT_EQ(fake_calls(), before);
}

TEST(cuda_facade, a_driver_that_shuts_down_is_asked_no_more_under_every_preset) {
    static const char *const first[] = {"strata_free(", "strata_release(", "strata_stream_forget(", "strata_mem_info("};
    const char *name;
    for (size_t i = 0; (name = strata_strategy_name(i)) != NULL; i++)
        for (size_t k = 0; k < 4; k++) shut_down_under(name, first[k]);
    fake_reset();
}

static uint64_t threshold_of_the_default_pool(void) {
    strata_cuda_driver_t program = fake_table();
    CUcontext popped;
    CUmemoryPool pool = NULL;
    uint64_t threshold = 7;
    program.CtxPushCurrent(fake_context(0));
    EXPECT_EQ(program.DeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
    (void)program.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
    program.CtxPopCurrent(&popped);
    return threshold;
}

/* Each has opened the GPU for itself: its default pool is one all the same. */
TEST(cuda_facade, two_on_one_gpu_leave_its_default_pool_as_it_was_found) {
    ends_t first, second;
    fake_reset();
    strata_open_options_t options = {.struct_size = sizeof options,
                                     .text = "stack: [cuda_malloc_async]",
                                     .devices = "gpu:0",
                                     .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    ASSERT_OK(strata_open(&options, &first.s));
    ASSERT_OK(strata_allocate(first.s, strata_gpu(0), NULL, 1000, &first.block));
    ASSERT_OK(strata_open(&options, &second.s));
    ASSERT_OK(strata_allocate(second.s, strata_gpu(0), NULL, 1000, &second.block));
    EXPECT_EQ(threshold_of_the_default_pool(), UINT64_MAX);
    EXPECT_OK(strata_close(first.s, STRATA_CLOSE_FORCE, NULL, NULL));
    EXPECT_EQ(threshold_of_the_default_pool(), UINT64_MAX);
    CUcontext kept; /* by the program */
    strata_cuda_driver_t program = fake_table();
    EXPECT_EQ(program.DevicePrimaryCtxRetain(&kept, 0), CUDA_SUCCESS);
    EXPECT_OK(strata_close(second.s, STRATA_CLOSE_FORCE, NULL, NULL));
    EXPECT_EQ(threshold_of_the_default_pool(), 0);
    fake_reset();
}

/* Frees pinned memory that default streams used: by each device that is open at that moment. */
typedef struct pinned_user {
    strata_t s;
    _Atomic int rounds;
    _Atomic bool enough;
    int failures;
} pinned_user_t;

static void *use_pinned(void *argument) {
    pinned_user_t *user = argument;
    for (; !atomic_load(&user->enough); user->rounds++) {
        strata_block_t block;
        if (strata_allocate(user->s, strata_pinned(), NULL, 1000, &block) == STRATA_OK)
            user->failures += strata_record_stream(user->s, block.ref, NULL) != STRATA_OK ||
                              strata_free(user->s, block.ref) != STRATA_OK;
        else user->failures++;
    }
    return NULL;
}

static void wait_for_rounds(pinned_user_t *user, int rounds) {
    for (int until = atomic_load(&user->rounds) + rounds; atomic_load(&user->rounds) < until;) sched_yield();
}

/* For ThreadSanitizer: who waits for all devices looks at them without a lock while one more is opened. */
TEST(cuda_facade, a_device_is_opened_while_all_are_looked_at) {
    fake_reset();
    strata_open_options_t options = {
        .struct_size = sizeof options, .preset = "strata", .devices = "gpu", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    static pinned_user_t user;
    pthread_t thread;
    strata_block_t block;
    ASSERT_OK(strata_open(&options, &user.s));
    EXPECT_EQ(fake_retains(1), 0);
    ASSERT_EQ(pthread_create(&thread, NULL, use_pinned, &user), 0);
    wait_for_rounds(&user, 20);
    EXPECT_OK(strata_allocate(user.s, strata_gpu(1), NULL, 1000, &block));
    EXPECT_EQ(fake_retains(1), 1);
    EXPECT_STATUS(STRATA_E_NO_DEVICE, strata_allocate(user.s, strata_gpu(2), NULL, 1000, &block));
    wait_for_rounds(&user, 20);
    atomic_store(&user.enough, true);
    pthread_join(thread, NULL);
    EXPECT_EQ(user.failures, 0);
    EXPECT_OK(strata_close(user.s, STRATA_CLOSE_FORCE, NULL, NULL));
    fake_reset();
}

/* What a program has that closes nothing: handlers of exit() run when the driver has ended its own part. */
static ends_t left;

static void close_late(void) {
    fake_options.deinitialised = true;
    strata_status_t status = strata_close(left.s, STRATA_CLOSE_FORCE, NULL, NULL);
    if (status != STRATA_OK) _Exit(2);
}

static int leave_open(const ends_t *nothing) {
    (void)nothing;
    (void)atexit(close_late);
    exit(begin("strata", &left) ? 0 : 1);
}

/* In a process of its own: nothing has been opened here before. */
TEST(cuda_facade, closing_at_exit_after_the_drivers_end) {
    if (strata_facade_ever_opened()) TEST_SKIP("this process has opened a facade before: run this test alone");
    EXPECT_EQ(ends_in_child(leave_open, NULL), 0);
}

/* ---- options of pinned memory ---- */

static unsigned long long flags_with(const char *setting) {
    fake_reset();
    strata_t s;
    strata_block_t block;
    strata_open_options_t options = {.struct_size = sizeof options,
                                     .preset = "system",
                                     .devices = "gpu:0",
                                     .set = &setting,
                                     .set_count = setting ? 1 : 0,
                                     .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    EXPECT_OK(strata_open(&options, &s));
    EXPECT_OK(strata_allocate(s, strata_pinned(), NULL, 1 << 20, &block));
    unsigned long long flags = fake_last("MemHostAlloc") ? fake_last("MemHostAlloc")->extra : ~0ull;
    EXPECT_OK(strata_free(s, block.ref));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_BUSY, NULL, NULL));
    return flags;
}

TEST(cuda_facade, pinned_memory_is_asked_for_as_the_options_say) {
    unsigned long long both = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    EXPECT_EQ(flags_with(NULL), both);
    EXPECT_EQ(flags_with("pinned.system.portable=false"), CU_MEMHOSTALLOC_DEVICEMAP);
    EXPECT_EQ(flags_with("pinned.system.mapped=false"), CU_MEMHOSTALLOC_PORTABLE);
    EXPECT_EQ(flags_with("pinned.system.write_combined=true"), both | CU_MEMHOSTALLOC_WRITECOMBINED);
    fake_reset();
}
