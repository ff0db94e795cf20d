/* The thread that looks for idleness: over a real clock, so over the CUDA device. */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "facade/registry/facade.h"
#include "platform/clock.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

#define MIB    (UINT64_C(1) << 20)
#define CHUNKS "stack: [stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n"
#define VMM    "stack: [stream_safe, auto_growth_vmm, vmm]\n"
#define SOON   "idle: {after: 50ms}\n"
#define LATE   "idle: {after: 3600s}\n"

static strata_t open_text(const char *text) {
    strata_t s = 0;
    fake_reset();
    fake_options.memory = UINT64_C(16) << 30;
    fake_options.address_space = UINT64_C(1) << 44;
    strata_open_options_t options = {
        .struct_size = sizeof options, .text = text, .devices = "gpu:0", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    EXPECT_OK(strata_open(&options, &s));
    return s;
}

static void close_it(strata_t s) {
    fake_run(NULL);
    EXPECT_OK(strata_close(s, STRATA_CLOSE_BUSY, NULL, NULL));
}

static void nap(long ms) { nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL); }

static uint64_t reserved(strata_t s) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(s, strata_gpu(0), &figures));
    return figures.reserved_bytes;
}

static void use(strata_t s, uint64_t bytes) {
    strata_block_t block;
    EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, bytes, &block));
    EXPECT_OK(strata_free(s, block.ref));
}

/* On a stream that is at work, of which nobody was told, such as with a kernel of the program. It works before the free: whoever looks
 * for idleness may look right after that, should this thread sleep then. */
static strata_stream_t use_and_work(strata_t s, uint64_t bytes) {
    strata_stream_t stream = NULL;
    strata_block_t block;
    EXPECT_OK(strata_stream_create(s, strata_gpu(0), 0, &stream));
    EXPECT_OK(strata_allocate(s, strata_gpu(0), stream, bytes, &block));
    fake_submit((CUstream)stream);
    EXPECT_OK(strata_free(s, block.ref));
    return stream;
}

static int threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && readdir(tasks)) count++;
    if (tasks) closedir(tasks);
    return count - 2;
}

static void *do_nothing(void *context) { return context; }

/* A sanitizer has a thread of its own from the first one on that the program starts. */
static int threads_at_first(void) {
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, do_nothing, NULL), 0);
    pthread_join(thread, NULL);
    nap(20);
    return threads();
}

/* The system shows one that has ended for a moment more. */
static void expect_threads(int count) {
    for (int i = 0; i < 100 && threads() != count; i++) nap(10);
    EXPECT_EQ(threads(), count);
}

/* In real time a test can only say what comes at last; when, the simulated clock shows (tests/facade/caches/idle.c). */
static bool goes_back(strata_t s) {
    for (int i = 0; i < 500 && reserved(s) > 0; i++) {
        fake_run(NULL);
        nap(10);
    }
    return reserved(s) == 0;
}

TEST(cuda_idle, gives_back_without_a_call) {
    static const char *const texts[] = {CHUNKS SOON, VMM SOON};
    for (int i = 0; i < 2; i++) {
        strata_t s = open_text(texts[i]);
        for (int round = 0; round < 2; round++) {
            use(s, 100 * MIB);
            EXPECT_GE(reserved(s), 100 * MIB);
            EXPECT_TRUE(goes_back(s));
        }
        close_it(s);
    }
}

TEST(cuda_idle, has_a_thread_only_where_a_stack_says_so) {
    int before = threads_at_first();
    strata_t s = open_text(CHUNKS);
    expect_threads(before);
    strata_open_options_t says = {.struct_size = sizeof says, .text = CHUNKS LATE, .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    EXPECT_OK(strata_change_strategy(s, &says));
    expect_threads(before + 1);
    says.text = CHUNKS;
    EXPECT_OK(strata_change_strategy(s, &says));
    expect_threads(before);
    close_it(s);
}

/* It sleeps for minutes, and wakes for the close. */
TEST(cuda_idle, ends_with_the_facade_at_once) {
    int before = threads_at_first();
    strata_t s = open_text(CHUNKS LATE);
    expect_threads(before + 1);
    strata_block_t block;
    EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, MIB, &block));
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(s, STRATA_CLOSE_BUSY, NULL, NULL));
    expect_threads(before + 1);
    EXPECT_OK(strata_free(s, block.ref));
    uint64_t began = strata_real_now();
    close_it(s);
    EXPECT_LE(strata_real_now() - began, UINT64_C(5000000000));
    expect_threads(before);
}

TEST(cuda_idle, frees_nothing_while_the_stream_works) {
    strata_t s = open_text(CHUNKS SOON);
    strata_stream_t stream = use_and_work(s, 100 * MIB);
    uint64_t frees = fake_count("MemFree");
    nap(300);
    EXPECT_EQ(fake_count("MemFree"), frees);
    EXPECT_TRUE(goes_back(s));
    EXPECT_OK(strata_stream_forget(s, strata_gpu(0), stream));
    EXPECT_OK(strata_stream_destroy(s, strata_gpu(0), stream));
    close_it(s);
    for (uint64_t i = 0; i < fake_calls(); i++)
        if (strcmp(fake_call_at(i)->name, "MemFree") == 0) EXPECT_EQ(fake_call_at(i)->pending, 0);
}

/* The thread is no thread of the program: a request that can wait for nobody is refused at once. */
TEST(cuda_idle, is_not_waited_for) {
    strata_t s = open_text(CHUNKS LATE "out_of_memory: {timeout: 30s}\n");
    strata_block_t block;
    uint64_t began = strata_real_now();
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(s, strata_gpu(0), NULL, UINT64_C(32) << 30, &block));
    EXPECT_LE(strata_real_now() - began, UINT64_C(10000000000));
    close_it(s);
}

/* ---- other threads, other processes, the end ---- */

typedef struct worker {
    strata_t s;
    int failures;
} worker_t;

static void *work(void *context) {
    worker_t *worker = context;
    for (int i = 0; i < 400; i++) {
        strata_block_t block;
        worker->failures += strata_allocate(worker->s, strata_gpu(0), NULL, (1 + (uint64_t)i % 40) * MIB, &block) != STRATA_OK;
        worker->failures += strata_free(worker->s, block.ref) != STRATA_OK;
        if (i % 20 == 0) nap(20);
        if (i % 20 == 10) fake_run(NULL);
    }
    return NULL;
}

TEST(cuda_idle, looks_while_others_ask) {
    static const char *const texts[] = {CHUNKS "idle: {after: 10ms}\n", VMM "idle: {after: 10ms}\n"};
    for (int t = 0; t < 2; t++) {
        strata_t s = open_text(texts[t]);
        worker_t workers[2] = {{s, 0}, {s, 0}};
        pthread_t thread[2];
        for (int i = 0; i < 2; i++) ASSERT_EQ(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
        for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
        EXPECT_EQ(workers[0].failures + workers[1].failures, 0);
        EXPECT_OK(strata_validate(s));
        EXPECT_TRUE(goes_back(s));
        close_it(s);
    }
}

static int answer_of_child = -1;

/* Registered before the facade is opened, so it runs after what the facade has registered, and before what a sanitizer has: it looks for
 * leaks there, and may wait for a lock of its own that a thread of the parent held. */
static void end_child(void) {
    if (answer_of_child >= 0) _exit(answer_of_child);
}

/* The child has no such thread, and waits for none when it ends. */
TEST(cuda_idle, a_child_of_fork_ends_without_it) {
    (void)atexit(end_child);
    strata_t s = open_text(CHUNKS SOON);
    use(s, 10 * MIB);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        strata_block_t block;
        alarm(20);
        answer_of_child = strata_allocate(s, strata_gpu(0), NULL, MIB, &block) == STRATA_E_FORKED ? 0 : 1;
        exit(answer_of_child);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(goes_back(s));
    close_it(s);
}

#define LEAVES_OPEN "STRATA_TEST_LEAVES_OPEN"

/* Registered before the facade is opened, so it runs after what the facade has registered. */
static void expect_silence(void) {
    uint64_t before = fake_calls();
    nap(200);
    if (fake_calls() != before) _exit(7);
}

/* The program ends with an open facade, in a process of its own: once it does, nobody calls the driver. */
TEST(cuda_idle, is_silent_at_the_end_of_the_process) {
    if (getenv(LEAVES_OPEN)) {
        (void)atexit(expect_silence);
        (void)use_and_work(open_text(CHUNKS "idle: {after: 10ms}\n"), 10 * MIB); /* it asks again and again whether that is done */
        nap(100);
        return;
    }
    EXPECT_EQ(setenv(LEAVES_OPEN, "1", 1), 0);
    char command[4200], self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    ASSERT_TRUE(length > 0);
    self[length] = '\0';
    snprintf(command, sizeof command, "'%s' --gtest_filter=cuda_idle.is_silent_at_the_end_of_the_process >/dev/null", self);
    EXPECT_EQ(system(command), 0);
    EXPECT_EQ(unsetenv(LEAVES_OPEN), 0);
}
