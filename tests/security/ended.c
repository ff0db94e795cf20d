/* Files whose end fails: what the system takes and tells only then that it has lost, or cannot put in its place. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/facade/support/fixture.h"
#include "tests/harness/files.h"
#include "tests/security/ending.h"
#include "tests/security/kept.h"
#include "trace/text/output.h"

static const struct {
    ending_t ending;
    int why;
} ends[] = {{ENDING_FSYNC, ENOSPC}, {ENDING_FSYNC, EIO},     {ENDING_FSYNC, EDQUOT}, {ENDING_CLOSE, EDQUOT},
            {ENDING_CLOSE, EIO},    {ENDING_RENAME, ENOSPC}, {ENDING_RENAME, EXDEV}, {ENDING_RENAME, EACCES}};

enum { ENDS = sizeof ends / sizeof *ends };

/* The number that the next file gets: the same as before where none was left open. */
static int next_file(void) {
    int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)close(file);
    return file;
}

static const char *words_for(int why) {
    static char text[200];
    snprintf(text, sizeof text, "cannot be written: %s", strerror(why));
    return text;
}

static strata_status_t write_and_fail(const char *path, ending_t ending, int why) {
    ending_fails(ending, why);
    strata_status_t status = write_much(path, 10000);
    ending_fails(ending, 0);
    return status;
}

TEST(ended, what_fails_at_the_end_leaves_what_was_there) {
    static const char *const names[] = {"ended.txt", "ended.csv.gz"};
    for (int i = 0; i < 2 * ENDS; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s", write_text(names[i % 2], BEFORE));
        int next = next_file();
        EXPECT_STATUS(STRATA_E_IO, write_and_fail(path, ends[i / 2].ending, ends[i / 2].why));
        EXPECT_EQ(next_file(), next);
        expect_kept(path, strata_last_error()->text, words_for(ends[i / 2].why));
    }
}

TEST(ended, what_fails_at_the_end_leaves_nothing_where_nothing_was) {
    for (int i = 0; i < ENDS; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s", temporary("new.txt"));
        EXPECT_STATUS(STRATA_E_IO, write_and_fail(path, ends[i].ending, ends[i].why));
        EXPECT_NE(access(path, F_OK), 0);
        EXPECT_EQ(parts_beside(path), 0);
    }
}

/* The reason is the first one's, not that of what was tried after it. */
TEST(ended, of_several_failures_the_first_is_told) {
    char path[256];
    snprintf(path, sizeof path, "%s", write_text("several.txt", BEFORE));
    ending_fails(ENDING_CLOSE, EIO);
    ending_fails(ENDING_RENAME, EACCES);
    EXPECT_STATUS(STRATA_E_IO, write_and_fail(path, ENDING_FSYNC, ENOSPC));
    expect_kept(path, strata_last_error()->text, words_for(ENOSPC));
    ending_fails(ENDING_RENAME, EACCES);
    EXPECT_STATUS(STRATA_E_IO, write_and_fail(path, ENDING_CLOSE, EIO));
    expect_kept(path, strata_last_error()->text, words_for(EIO));
    ending_fails(ENDING_RENAME, 0);
}

/* So a file system says that it has nothing to do. */
TEST(ended, a_file_that_cannot_be_synchronised_is_written) {
    char path[256];
    struct stat found;
    snprintf(path, sizeof path, "%s", write_text("plain.txt", BEFORE));
    EXPECT_OK(write_and_fail(path, ENDING_FSYNC, EINVAL));
    EXPECT_TRUE(stat(path, &found) == 0 && found.st_size == 10000);
    EXPECT_EQ(parts_beside(path), 0);
}

/* A rename that the system itself refuses. */
TEST(ended, a_folder_that_came_meanwhile_stays) {
    char path[256];
    strata_output_t *out;
    snprintf(path, sizeof path, "%s", temporary("came.txt"));
    ASSERT_OK(strata_output_open(path, &out));
    ASSERT_EQ(mkdir(path, 0700), 0);
    (void)strata_output_print(out, "text");
    EXPECT_SAYS(STRATA_E_IO, strata_output_finish(out), "came.txt cannot be written: Is a directory");
    EXPECT_EQ(parts_beside(path), 0);
    EXPECT_EQ(rmdir(path), 0);
}

/* It is neither synchronised nor renamed; that its end fails is told all the same. */
TEST(ended, a_pipe_whose_end_fails_is_told) {
    char path[256];
    snprintf(path, sizeof path, "%s", temporary("ended_pipe"));
    ASSERT_EQ(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    ASSERT_GE(reader, 0);
    EXPECT_OK(write_and_fail(path, ENDING_FSYNC, EIO));
    EXPECT_OK(write_and_fail(path, ENDING_RENAME, EIO));
    EXPECT_SAYS(STRATA_E_IO, write_and_fail(path, ENDING_CLOSE, EIO), "ended_pipe cannot be written: Input/output error");
    (void)close(reader);
    EXPECT_EQ(unlink(path), 0);
}

/* ---- whoever writes files ---- */

TEST(ended, a_running_programs_trace_is_told_at_close) {
    for (int i = 0; i < ENDS; i++) {
        char path[256], text[600];
        snprintf(path, sizeof path, "%s", write_text("recorded.csv", BEFORE));
        snprintf(text, sizeof text, "version: 1\nstack: [retry, trace: {path: \"%s\"}, stream_safe, auto_growth, system]\n", path);
        OPENED(rig_t, rig, rig_end, rig_open_on(&rig, rig_strategy(text, NULL, 0), &(strata_sim_options_t){.capacity = 0}, 0));
        rig.borrowed_strategy = false;
        strata_block_t block = rig_allocate(&rig, NULL, 1000);
        EXPECT_OK(strata_free(rig.s, block.ref));
        ending_fails(ends[i].ending, ends[i].why);
        EXPECT_STATUS(STRATA_E_IO, strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
        ending_fails(ends[i].ending, 0);
        expect_kept(path, strata_last_error()->text, words_for(ends[i].why));
        EXPECT_CONTAINS(strata_last_error()->text, "the facade is closed, but ");
    }
}

TEST(ended, a_memory_map_is_told_in_the_report) {
    for (int i = 0; i < ENDS; i++) {
        char folder[256], text[600];
        strata_block_t none;
        snprintf(folder, sizeof folder, "%s", temporary("ended_maps"));
        ASSERT_EQ(mkdir(folder, 0700), 0);
        snprintf(text, sizeof text,
                 "version: 1\nstack: [bfc: {memory_debug: true, memory_limit: 1MiB, memory_dump: \"%s/map\"}, system]\n", folder);
        RIG(rig, text, 0);
        ending_fails(ends[i].ending, ends[i].why);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 2 * MIB, &none));
        ending_fails(ends[i].ending, 0);
        EXPECT_CONTAINS(strata_last_error()->text, "memory map could not be written to ");
        EXPECT_CONTAINS(strata_last_error()->text, words_for(ends[i].why));
        EXPECT_EQ(rmdir(folder), 0);
    }
}
