/* What the host gives: its memory, failed in turn; mapped memory where it is wanted; files; locks and time. */
#include "platform/host/host_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/clock.h"
#include "platform/host/call_stack.h"
#include "platform/host/file.h"
#include "platform/host/host_nodes.h"
#include "platform/host/host_text.h"
#include "platform/lock.h"
#include "tests/harness/test.h"

#define PAGE ((size_t)4096)

/* ---- memory that can be failed ---- */

/* Allocation i of four: one by each of the ways. */
static bool allocate(int way) {
    size_t got;
    void *memory = way == 0   ? strata_host_new(4, 8)
                   : way == 1 ? strata_host_resize(NULL, 4, 8)
                   : way == 2 ? (void *)strata_host_strdup("text")
                              : strata_host_reserve(PAGE, PAGE, &got);
    if (memory && way == 3) strata_host_unreserve(memory, got);
    else strata_host_delete(memory);
    return memory != NULL;
}

TEST(platform_host, the_kth_allocation_fails_and_with_onward_all_after_it) {
    for (int onward = 0; onward < 2; onward++) {
        for (int k = 1; k <= 4; k++) {
            uint64_t before = strata_host_allocations();
            strata_host_fail_at((uint64_t)k, onward);
            for (int i = 0; i < 6; i++) {
                bool fails = i + 1 == k || (onward && i + 1 > k);
                if (allocate(i % 4) == fails) FAIL_TEST("allocation %d of %d, onward %d", i + 1, k, onward);
                if (fails) EXPECT_EQ(strata_last_error()->status, STRATA_E_HOST_MEMORY);
            }
            strata_host_fail_at(0, onward);
            EXPECT_TRUE(allocate(0));
            EXPECT_EQ(strata_host_allocations(), before + 7);
        }
    }
}

TEST(platform_host, new_memory_is_zero_and_a_resize_that_fails_leaves_the_old) {
    uint8_t *memory = strata_host_new(3, 100);
    ASSERT_NE(memory, NULL);
    for (int i = 0; i < 300; i++) EXPECT_EQ(memory[i], 0);
    memset(memory, 7, 300);
    EXPECT_EQ(strata_host_resize(memory, SIZE_MAX / 2, 3), NULL);
    EXPECT_EQ(strata_last_error()->status, STRATA_E_HOST_MEMORY);
    strata_host_fail_at(1, 0);
    EXPECT_EQ(strata_host_resize(memory, 2, 300), NULL);
    strata_host_fail_at(0, 0);
    EXPECT_EQ(memory[299], 7);
    memory = strata_host_resize(memory, 2, 300);
    ASSERT_NE(memory, NULL);
    EXPECT_EQ(memory[299], 7);
    strata_host_delete(memory);
    char *copy = strata_host_strdup("words");
    EXPECT_STREQ(copy, "words");
    strata_host_delete(copy);
}

/* Where the size does not fit it is halved, down to the least and no further. */
TEST(platform_host, a_reservation_is_halved_until_it_fits) {
    size_t got = 0, huge = (size_t)1 << 62;
    uint8_t *memory = strata_host_reserve(16 * PAGE, PAGE, &got);
    ASSERT_NE(memory, NULL);
    EXPECT_EQ(got, 16 * PAGE);
    EXPECT_EQ(memory[0] | memory[16 * PAGE - 1], 0);
    memset(memory, 9, 2 * PAGE);
    EXPECT_TRUE(strata_host_discard(memory, PAGE));
    EXPECT_EQ(memory[0], 0);
    EXPECT_EQ(memory[PAGE], 9);
    strata_host_unreserve(memory, got);
    got = 77;
    EXPECT_EQ(strata_host_reserve(huge, huge, &got), NULL);
    EXPECT_EQ(strata_last_error()->status, STRATA_E_HOST_MEMORY);
    EXPECT_EQ(got, 77);
    memory = strata_host_reserve(huge, PAGE, &got);
    ASSERT_NE(memory, NULL);
    EXPECT_TRUE(got >= PAGE && got < huge && (got & (got - 1)) == 0);
    strata_host_unreserve(memory, got);
    EXPECT_FALSE(strata_host_discard((void *)(uintptr_t)3, PAGE));
    EXPECT_FALSE(strata_host_advise_huge_pages((void *)(uintptr_t)3, PAGE));
    EXPECT_GE(strata_host_memory_size(), (uint64_t)1 << 20);
    EXPECT_EQ(strata_host_memory_size() % PAGE, 0);
}

/* The first 64 nodes that the kernel allows this process; 0: it does not say. */
static uint64_t nodes_allowed(void) {
    char line[1024], digits[17] = "";
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "Mems_allowed:", 13) != 0) continue;
        size_t count = 16;
        for (const char *at = line + strlen(line); count > 0 && *--at != '\t';)
            if (*at != ',' && *at != '\n') digits[--count] = *at;
        memset(digits, '0', count);
    }
    if (file) fclose(file);
    return strtoull(digits, NULL, 16);
}

TEST(platform_host, the_nodes_are_those_that_the_kernel_allows) {
    errno = 0;
    uint64_t nodes = strata_host_nodes();
    if (nodes_allowed() == 0 || (nodes == 0 && errno != 0)) TEST_SKIP("the kernel does not tell the nodes of its memory");
    EXPECT_EQ(nodes, nodes_allowed());
}

static bool is_mapped(const uint8_t *page) {
    unsigned char in;
    return mincore((void *)(uintptr_t)page, PAGE, &in) == 0;
}

/* Aligned, all of it there, and given back whole. */
TEST(platform_host, memory_is_mapped_where_it_is_aligned) {
    for (size_t alignment = PAGE; alignment <= 64 * PAGE; alignment *= 4) {
        uint8_t *memory = strata_host_map(3 * PAGE, alignment);
        ASSERT_NE(memory, NULL);
        EXPECT_EQ((uintptr_t)memory % alignment, 0);
        memset(memory, 1, 3 * PAGE);
        EXPECT_FALSE(is_mapped(memory + 3 * PAGE)); /* what was only room to align in */
        EXPECT_FALSE(strata_host_prefer_node(memory, 3 * PAGE, STRATA_HOST_NODES));
        strata_host_unmap(memory, 3 * PAGE);
        for (size_t i = 0; i < 3; i++) EXPECT_FALSE(is_mapped(memory + i * PAGE));
    }
    EXPECT_EQ(strata_host_map(SIZE_MAX - PAGE, 2 * PAGE), NULL);
}

/* ---- files ---- */

typedef struct folder {
    char path[64], file[96], pipe[96], none[96];
} folder_t;

static void folder_open(folder_t *folder) {
    snprintf(folder->path, sizeof folder->path, "/tmp/strata-platform-XXXXXX");
    ASSERT_NE(mkdtemp(folder->path), NULL);
    snprintf(folder->file, sizeof folder->file, "%s/file", folder->path);
    snprintf(folder->pipe, sizeof folder->pipe, "%s/pipe", folder->path);
    snprintf(folder->none, sizeof folder->none, "%s/none", folder->path);
    FILE *file = fopen(folder->file, "w");
    ASSERT_NE(file, NULL);
    fputs("bytes", file);
    fclose(file);
    ASSERT_EQ(mkfifo(folder->pipe, 0600), 0);
}

static void folder_close(folder_t *folder) {
    unlink(folder->file);
    unlink(folder->pipe);
    rmdir(folder->path);
}

static void expect_refused(const char *path, strata_file_named_t named, const char *why) {
    int file = -7;
    EXPECT_SAYS(STRATA_E_IO, strata_file_open(path, named, &file), path);
    EXPECT_CONTAINS(strata_last_error()->text, why);
    EXPECT_EQ(file, -7);
}

TEST(platform_host, a_file_is_opened_to_be_read_by_this_process_alone) {
    folder_t folder;
    folder_open(&folder);
    for (int named = STRATA_FILE_NAMED_BY_USER; named <= STRATA_FILE_NAMED_BY_FILE; named++) {
        int file = -1;
        char bytes[8] = "";
        ASSERT_OK(strata_file_open(folder.file, (strata_file_named_t)named, &file));
        EXPECT_EQ(read(file, bytes, sizeof bytes), 5);
        EXPECT_STREQ(bytes, "bytes");
        EXPECT_TRUE(fcntl(file, F_GETFD) & FD_CLOEXEC);
        EXPECT_FALSE(fcntl(file, F_GETFL) & O_NONBLOCK);
        EXPECT_EQ(fcntl(file, F_GETFL) & O_ACCMODE, O_RDONLY);
        close(file);
        expect_refused(folder.path, (strata_file_named_t)named, "directory");
        expect_refused(folder.none, (strata_file_named_t)named, "No such file");
    }
    EXPECT_OK(strata_file_is_regular(folder.file));
    EXPECT_STATUS(STRATA_E_IO, strata_file_is_regular(folder.pipe));
    EXPECT_STATUS(STRATA_E_IO, strata_file_is_regular(folder.none));
    folder_close(&folder);
}

/* A pipe and a device are the user's to name, and a text's never; a socket is nobody's. None is waited for. */
TEST(platform_host, pipes_and_devices_are_for_the_user_to_name) {
    folder_t folder;
    int file = -1;
    char byte;
    folder_open(&folder);
    ASSERT_OK(strata_file_open(folder.pipe, STRATA_FILE_NAMED_BY_USER, &file));
    EXPECT_EQ(read(file, &byte, 1), 0); /* without a writer it is at its end */
    EXPECT_FALSE(fcntl(file, F_GETFL) & O_NONBLOCK);
    close(file);
    ASSERT_OK(strata_file_open("/dev/null", STRATA_FILE_NAMED_BY_USER, &file));
    close(file);
    expect_refused(folder.pipe, STRATA_FILE_NAMED_BY_FILE, "not a regular file");
    expect_refused("/dev/null", STRATA_FILE_NAMED_BY_FILE, "not a regular file");
    folder_close(&folder);
}

/* Bytes are appended to a file. A folder, a link, or a pipe without a reader is refused. */
TEST(platform_host, what_is_added_follows_what_is_there) {
    folder_t folder;
    int file = -1, reader;
    char link[96], pattern[96], numbered[96], bytes[16] = "";
    folder_open(&folder);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(strata_file_append(folder.file, &file));
        EXPECT_TRUE(fcntl(file, F_GETFD) & FD_CLOEXEC);
        EXPECT_EQ(write(file, "+", 1), 1);
        close(file);
    }
    ASSERT_OK(strata_file_open(folder.file, STRATA_FILE_NAMED_BY_USER, &file));
    EXPECT_EQ(read(file, bytes, sizeof bytes), 7);
    EXPECT_STREQ(bytes, "bytes++");
    close(file);
    EXPECT_SAYS(STRATA_E_IO, strata_file_append(folder.path, &file), "cannot append to the file");
    EXPECT_STATUS(STRATA_E_IO, strata_file_append(folder.pipe, &file));
    reader = open(folder.pipe, O_RDONLY | O_NONBLOCK);
    ASSERT_OK(strata_file_append(folder.pipe, &file));
    EXPECT_EQ(write(file, "+", 1), 1);
    EXPECT_EQ(read(reader, bytes, sizeof bytes), 1);
    close(file);
    close(reader);
    snprintf(link, sizeof link, "%s/link", folder.path);
    ASSERT_EQ(symlink(folder.file, link), 0);
    EXPECT_STATUS(STRATA_E_IO, strata_file_append(link, &file));
    unlink(link);
    snprintf(pattern, sizeof pattern, "%s/of-%%p.log", folder.path);
    snprintf(numbered, sizeof numbered, "%s/of-%ld.log", folder.path, (long)getpid());
    ASSERT_OK(strata_file_append(pattern, &file));
    close(file);
    EXPECT_EQ(unlink(numbered), 0);
    ASSERT_OK(strata_file_append("/dev/null", &file));
    close(file);
    ASSERT_OK(strata_file_append("stderr", &file));
    EXPECT_GT(file, STDERR_FILENO);
    close(file);
    folder_close(&folder);
}

TEST(platform_host, a_pattern_has_the_number_of_the_process) {
    static const struct {
        const char *pattern, *before, *after; /* `after` NULL: there is no number */
    } rows[] = {{"%p", "", ""}, {"a%pb", "a", "b"}, {"%q", "%q", NULL}, {"a%", "a%", NULL}, {"p%%p", "p%", ""}, {"", "", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[64], wanted[64];
        if (rows[i].after) snprintf(wanted, sizeof wanted, "%s%ld%s", rows[i].before, (long)getpid(), rows[i].after);
        else snprintf(wanted, sizeof wanted, "%s", rows[i].before);
        strata_file_expand(rows[i].pattern, path, sizeof path);
        EXPECT_STREQ(path, wanted);
    }
    char path[32];
    strata_file_expand("0123456789012345678901234567890123456789", path, sizeof path);
    EXPECT_STREQ(path, "01234567"); /* the room of a number is kept */
}

/* It is in no folder while it is open. */
TEST(platform_host, a_scratch_file_has_no_name) {
    folder_t folder;
    int file = -1;
    char byte = 0;
    folder_open(&folder);
    folder_close(&folder);
    ASSERT_EQ(mkdir(folder.path, 0700), 0);
    ASSERT_OK(strata_file_scratch(folder.path, &file));
    EXPECT_TRUE(fcntl(file, F_GETFD) & FD_CLOEXEC);
    EXPECT_EQ(pwrite(file, "x", 1, 5), 1);
    EXPECT_EQ(pread(file, &byte, 1, 5), 1);
    EXPECT_EQ(byte, 'x');
    EXPECT_EQ(rmdir(folder.path), 0);
    close(file);
    EXPECT_SAYS(STRATA_E_IO, strata_file_scratch(folder.path, &file), "cannot create a file there");
}

/* ---- call stacks ---- */

static uint32_t deep(uint32_t calls, uint64_t *frames, uint32_t most) {
    uint32_t count = calls > 0 ? deep(calls - 1, frames, most) : strata_call_stack_capture(frames, most);
    frames[most] += 1; /* the call above is not the last thing that is done */
    return count;
}

TEST(call_stack, has_no_more_frames_than_are_asked_for) {
    static const uint32_t asked[] = {0, 1, 2, 5};
    strata_call_stack_ready();
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        uint64_t frames[STRATA_CALL_STACK_MAX + 1] = {0};
        EXPECT_EQ(deep(8, frames, asked[i]), asked[i]);
        EXPECT_EQ(frames[asked[i]], 9); /* nothing was written behind them */
    }
}

static bool is_named(uint64_t frame, const char *end) {
    char name[STRATA_CALL_STACK_NAME];
    strata_call_stack_name(frame, name);
    const char *found = strstr(name, end);
    return found && found[strlen(end)] == '\0';
}

/* A call at the end of a function returns to the first byte of the next one. No sanitizer replaces div(). */
TEST(call_stack, a_frame_is_named_by_the_call_before_it) {
    uint64_t begin = (uintptr_t)&div;
    EXPECT_TRUE(is_named(begin + 1, " div"));
    EXPECT_FALSE(is_named(begin, " div"));
    EXPECT_TRUE(is_named(0, "0x0"));
}

/* ---- locks, conditions, time ---- */

typedef struct heard {
    strata_lock_observer_t observer;
    strata_lock_t *lock;
    int acquired, releasing;
} heard_t;

static void on_acquired(strata_lock_observer_t *self, strata_lock_t *lock) {
    heard_t *heard = (heard_t *)(void *)self;
    heard->acquired += lock == heard->lock && (atomic_load(&lock->state) & STRATA_LOCK_HELD);
}

static void on_releasing(strata_lock_observer_t *self, strata_lock_t *lock) {
    heard_t *heard = (heard_t *)(void *)self;
    heard->releasing += lock == heard->lock && (atomic_load(&lock->state) & STRATA_LOCK_HELD);
}

/* Each hand-over is heard with the lock held, in a wait too; while it is not active nothing is. */
TEST(platform_host, an_observer_hears_of_every_hand_over) {
    strata_lock_t lock;
    strata_condition_t condition;
    heard_t heard = {.observer = {.acquired = on_acquired, .releasing = on_releasing}, .lock = &lock};
    strata_lock_init(&lock, STRATA_RANK_STACK, &heard.observer);
    strata_condition_init(&condition);
    strata_lock(&lock);
    strata_unlock(&lock);
    EXPECT_EQ(heard.acquired + heard.releasing, 0);
    strata_lock_observer_activate(&heard.observer);
    strata_lock(&lock);
    EXPECT_EQ(heard.acquired * 10 + heard.releasing, 10);
    strata_condition_wait(&condition, &lock, 1);
    EXPECT_EQ(heard.acquired * 10 + heard.releasing, 21);
    strata_unlock(&lock);
    EXPECT_EQ(heard.acquired * 10 + heard.releasing, 22);
    strata_condition_destroy(&condition);
    strata_lock_destroy(&lock);
}

typedef struct sleeper {
    strata_lock_t lock;
    strata_condition_t condition;
    uint64_t timeout;
    bool asleep, go, woke;
} sleeper_t;

static void *sleep_until_told(void *context) {
    sleeper_t *sleeper = context;
    strata_lock(&sleeper->lock);
    sleeper->asleep = true;
    strata_condition_broadcast(&sleeper->condition);
    while (!sleeper->go) strata_condition_wait(&sleeper->condition, &sleeper->lock, sleeper->timeout);
    sleeper->woke = true;
    strata_unlock(&sleeper->lock);
    return NULL;
}

/* With a bound or without one, a sleeper gives the lock up and is woken. */
TEST(platform_host, a_sleeper_gives_the_lock_up_and_is_woken) {
    static const uint64_t timeouts[] = {UINT64_MAX, UINT64_C(3600) * 1000000000 - 1};
    for (size_t i = 0; i < 2; i++) {
        sleeper_t sleeper = {.timeout = timeouts[i]};
        pthread_t thread;
        strata_lock_init(&sleeper.lock, STRATA_RANK_STACK, NULL);
        strata_condition_init(&sleeper.condition);
        ASSERT_EQ(pthread_create(&thread, NULL, sleep_until_told, &sleeper), 0);
        strata_lock(&sleeper.lock);
        while (!sleeper.asleep) strata_condition_wait(&sleeper.condition, &sleeper.lock, UINT64_MAX);
        sleeper.go = true;
        strata_condition_broadcast(&sleeper.condition);
        strata_unlock(&sleeper.lock);
        pthread_join(thread, NULL);
        EXPECT_TRUE(sleeper.woke);
        strata_condition_destroy(&sleeper.condition);
        strata_lock_destroy(&sleeper.lock);
    }
}

/* A broadcast is for all of them. */
TEST(platform_host, every_sleeper_is_woken) {
    sleeper_t sleeper = {.timeout = UINT64_MAX};
    pthread_t threads[3];
    strata_lock_init(&sleeper.lock, STRATA_RANK_STACK, NULL);
    strata_condition_init(&sleeper.condition);
    for (int i = 0; i < 3; i++) {
        strata_lock(&sleeper.lock);
        sleeper.asleep = false;
        ASSERT_EQ(pthread_create(&threads[i], NULL, sleep_until_told, &sleeper), 0);
        while (!sleeper.asleep) strata_condition_wait(&sleeper.condition, &sleeper.lock, UINT64_MAX);
        strata_unlock(&sleeper.lock);
    }
    strata_lock(&sleeper.lock);
    sleeper.go = true;
    strata_condition_broadcast(&sleeper.condition);
    strata_unlock(&sleeper.lock);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    strata_condition_destroy(&sleeper.condition);
    strata_lock_destroy(&sleeper.lock);
}

/* A bound is a length of time from now: of many waits that nobody ends not all are over at once. */
TEST(platform_host, a_bounded_wait_lasts) {
    strata_lock_t lock;
    strata_condition_t condition;
    bool lasted = false;
    strata_lock_init(&lock, STRATA_RANK_STACK, NULL);
    strata_condition_init(&condition);
    strata_lock(&lock);
    for (int i = 0; i < 20 && !lasted; i++) {
        uint64_t begin = strata_real_now();
        strata_condition_wait(&condition, &lock, 20000000);
        lasted = strata_real_now() - begin >= 20000000;
    }
    EXPECT_TRUE(lasted);
    strata_unlock(&lock);
    strata_condition_destroy(&condition);
    strata_lock_destroy(&lock);
}

/* A bounded wait that nobody ends is over no sooner than its bound; spurious ends are waited out. */
TEST(platform_host, a_bounded_wait_ends_by_itself) {
    strata_lock_t lock;
    strata_condition_t condition;
    strata_lock_init(&lock, STRATA_RANK_STACK, NULL);
    strata_condition_init(&condition);
    strata_lock(&lock);
    uint64_t begin = strata_real_now(), end = begin + 2000000;
    while (strata_real_now() < end) strata_condition_wait(&condition, &lock, end - strata_real_now());
    EXPECT_GE(strata_real_now() - begin, 2000000);
    strata_unlock(&lock);
    strata_condition_destroy(&condition);
    strata_lock_destroy(&lock);
}

TEST(platform_host, the_real_clock_sleeps_to_a_moment) {
    strata_clock_t *clock = strata_real_clock();
    EXPECT_FALSE(clock->is_virtual);
    uint64_t begin = clock->now(clock);
    EXPECT_LE(begin, strata_real_now());
    clock->sleep_until(clock, begin + 1000000);
    EXPECT_GE(clock->now(clock), begin + 1000000);
    clock->sleep_until(clock, 5); /* long past */
}

/* ---- text ---- */

TEST(host_text, holds_what_is_written) {
    strata_host_text_t text;
    char *whole = NULL;
    ASSERT_OK(strata_host_text_begin(&text));
    ASSERT_OK(strata_host_text_end(&text, &whole));
    EXPECT_STREQ(whole, "");
    strata_host_delete(whole);
    ASSERT_OK(strata_host_text_begin(&text));
    for (int i = 0; i < 10000; i++) fprintf(text.out, "%d ", i);
    ASSERT_OK(strata_host_text_end(&text, &whole));
    EXPECT_EQ(text.length, strlen(whole));
    EXPECT_EQ(strncmp(whole, "0 1 2 ", 6), 0);
    EXPECT_STREQ(whole + text.length - 5, "9999 ");
    strata_host_delete(whole);
}

/* Whichever allocation fails, either the whole text exists or nothing does. */
TEST(host_text, survives_every_failed_allocation) {
    bool succeeded = false;
    for (uint64_t k = 1; !succeeded && k < 20; k++) {
        strata_host_text_t text;
        char *whole = NULL;
        strata_host_fail_at(k, false);
        strata_status_t status = strata_host_text_begin(&text);
        if (status == STRATA_OK) {
            for (int i = 0; i < 10000; i++) fprintf(text.out, "%d ", i);
            status = strata_host_text_end(&text, &whole);
        }
        strata_host_fail_at(0, false);
        succeeded = status == STRATA_OK;
        EXPECT_EQ(succeeded, whole != NULL);
        if (!succeeded) EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
        strata_host_delete(whole);
    }
    EXPECT_TRUE(succeeded);
}
