/* Files under way are known as long as they are, whoever writes them; a child that was forked knows none of its parent's. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "trace/text/output.h"
#include "trace/text/partial.h"

static strata_output_t *begin(const char *name) {
    strata_output_t *output = NULL;
    EXPECT_OK(strata_output_open(temporary(name), &output));
    EXPECT_OK(strata_output_print(output, "text\n"));
    return output;
}

static bool stands(const char *name) { return access(temporary(name), F_OK) == 0; }

static bool part_stands(const char *name) {
    char part[64];
    snprintf(part, sizeof part, "%s.%ld.0.part", name, (long)getpid());
    return stands(part);
}

TEST(begun, what_is_under_way_is_taken_away_and_nothing_else) {
    strata_output_t *finished = begin("finished.txt"), *abandoned = begin("abandoned.txt"), *first = begin("first.txt"),
                    *second = begin("second.txt");
    EXPECT_OK(strata_output_finish(finished));
    strata_output_abandon(abandoned);
    EXPECT_TRUE(part_stands("first.txt") && part_stands("second.txt"));
    strata_partial_unlink_all();
    EXPECT_FALSE(part_stands("first.txt"));
    EXPECT_FALSE(part_stands("second.txt"));
    EXPECT_TRUE(stands("finished.txt"));
    EXPECT_STATUS(STRATA_E_IO, strata_output_finish(first));
    strata_output_abandon(second);
}

TEST(begun, a_child_takes_nothing_of_its_parent_away) {
    strata_output_t *output = begin("parent.txt");
    pid_t child = fork();
    if (child == 0) {
        strata_partial_unlink_all();
        _exit(0);
    }
    EXPECT_EQ(waitpid(child, NULL, 0), child);
    EXPECT_TRUE(part_stands("parent.txt"));
    EXPECT_OK(strata_output_finish(output));
    EXPECT_TRUE(stands("parent.txt"));
}

/* ---- threads ---- */

enum { THREADS = 4, FILES = 10 };

static atomic_uint running;

static void *write_files(void *number) {
    char path[300];
    snprintf(path, sizeof path, "%s", (const char *)number);
    for (int i = 0; i < FILES; i++) {
        strata_output_t *output = NULL;
        if (strata_output_open(path, &output) != STRATA_OK) continue;
        if (i % 2) strata_output_abandon(output);
        else (void)strata_output_finish(output); /* which fails where its file was taken away */
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

TEST(begun, while_others_begin_and_end) {
    pthread_t threads[THREADS];
    char paths[THREADS][300], name[32];
    atomic_store(&running, THREADS);
    for (int i = 0; i < THREADS; i++) {
        snprintf(name, sizeof name, "threads-%d.txt", i);
        snprintf(paths[i], sizeof paths[i], "%s", temporary(name));
        ASSERT_EQ(pthread_create(&threads[i], NULL, write_files, paths[i]), 0);
    }
    while (atomic_load(&running) > 0) strata_partial_unlink_all();
    for (int i = 0; i < THREADS; i++) EXPECT_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        snprintf(name, sizeof name, "threads-%d.txt", i);
        EXPECT_FALSE(part_stands(name));
    }
}
