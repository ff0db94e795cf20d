/* A trace through a pipe comes as its writer gives it, and what is written into one is for its reader alone. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/status.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "trace/text/output.h"
#include "trace/trace.h"

typedef struct given {
    int pipe; /* both ends of it: the test goes on whoever reads */
    const char *bytes;
    size_t count;
    atomic_bool over; /* nobody reads any more */
} given_t;

/* The first byte alone, and the others when it has been read. */
static void *give(void *argument) {
    given_t *given = argument;
    int unread = 1;
    bool good = write(given->pipe, given->bytes, 1) == 1;
    while (good && unread && !atomic_load(&given->over)) {
        good = ioctl(given->pipe, FIONREAD, &unread) == 0;
        sched_yield();
    }
    if (good && write(given->pipe, given->bytes + 1, given->count - 1) < 0) good = false;
    close(given->pipe);
    return good ? given : NULL;
}

static strata_trace_t *load_piped(const char *bytes, size_t count) {
    const char *path = temporary("pipe");
    strata_trace_t *trace = NULL;
    pthread_t thread;
    void *good = NULL;
    EXPECT_EQ(mkfifo(path, 0600), 0);
    given_t given = {.pipe = open(path, O_RDWR | O_CLOEXEC), .bytes = bytes, .count = count};
    EXPECT_EQ(pthread_create(&thread, NULL, give, &given), 0);
    EXPECT_OK(strata_trace_load(path, &trace));
    atomic_store(&given.over, true);
    pthread_join(thread, &good);
    EXPECT_NE(good, NULL);
    EXPECT_EQ(unlink(temporary("pipe")), 0);
    return trace;
}

/* gzip is told by two bytes, plain text by either. */
TEST(piped, a_first_byte_that_comes_alone_is_read_with_the_others) {
    static const char text[] = "op,id,size,stream,time_us\nalloc,1,1000,0,0\nfree,1,0,0,7\n";
    for (int packed = 0; packed < 2; packed++) {
        size_t count = 0;
        char *bytes = read_bytes(packed ? write_gzip("whole", text, strlen(text)) : write_text("whole", text), &count);
        ASSERT_NE(bytes, NULL);
        strata_trace_t *trace CLOSED_BY(trace_cleanup) = load_piped(bytes, count);
        free(bytes);
        if (!trace) continue;
        EXPECT_EQ(trace->count, 2);
        EXPECT_EQ(trace->events[0].value, 1000);
        EXPECT_EQ(trace->events[1].time_us, 7);
    }
}

/* The open file that has this path; -1: none but `other`. */
static int other_file_of(const char *path, int other) {
    struct stat wanted, found;
    if (stat(path, &wanted) != 0) return -1;
    for (int file = 0; file < 1024; file++)
        if (file != other && fstat(file, &found) == 0 && found.st_ino == wanted.st_ino && found.st_dev == wanted.st_dev)
            return file;
    return -1;
}

/* Else its reader would wait for the end of a program that knows nothing of it. */
TEST(piped, a_program_that_is_started_meanwhile_does_not_keep_the_pipe_open) {
    char path[300];
    strata_output_t *output = NULL;
    snprintf(path, sizeof path, "%s", temporary("written"));
    ASSERT_EQ(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_OK(strata_output_open(path, &output));
    int written = other_file_of(path, reader);
    ASSERT_GE(written, 0);
    EXPECT_TRUE(fcntl(written, F_GETFD) & FD_CLOEXEC);
    EXPECT_OK(strata_output_finish(output));
    close(reader);
    EXPECT_EQ(unlink(path), 0);
}
