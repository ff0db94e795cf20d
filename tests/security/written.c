/* A file that is written is whole or not there: a full disk, two writers at once and what stands at the name take nothing away. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/facade/support/fixture.h"
#include "tests/harness/files.h"
#include "tests/security/kept.h"
#include "tests/tools/support/ran.h"
#include "trace/text/output.h"
#include "trace/trace.h"

/* ---- a disk that is full ---- */

typedef struct full {
    struct rlimit before;
} full_t;

/* From here on no file grows beyond so many bytes. */
static full_t fill_disk(rlim_t bytes) {
    full_t full;
    struct rlimit limit;
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)getrlimit(RLIMIT_FSIZE, &full.before);
    limit = (struct rlimit){.rlim_cur = bytes, .rlim_max = full.before.rlim_max};
    (void)fflush(stdout);
    (void)setrlimit(RLIMIT_FSIZE, &limit);
    return full;
}

static void empty_disk(full_t full) { (void)setrlimit(RLIMIT_FSIZE, &full.before); }

TEST(written, a_full_disk_leaves_what_was_there) {
    static const char *const names[] = {"full.txt", "full.csv.gz"};
    static const size_t sizes[] = {10000, 1 << 20}; /* found full at the end, and in between */
    for (int i = 0; i < 4; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s", write_text(names[i % 2], BEFORE));
        full_t full = fill_disk(2048);
        strata_status_t status = write_much(path, sizes[i / 2]);
        empty_disk(full);
        EXPECT_STATUS(STRATA_E_IO, status);
        expect_kept(path, strata_last_error()->text, "cannot be written: File too large");
    }
}

static const char recorder[] = "version: 1\nstack: [retry, trace: {path: \"%s\", events: 64}, stream_safe, auto_growth, system]\n";

static void record(const char *path, int allocations, const char *close_text, strata_status_t wanted) {
    char text[600];
    snprintf(text, sizeof text, recorder, path);
    OPENED(rig_t, rig, rig_end, rig_open_on(&rig, rig_strategy(text, NULL, 0), &(strata_sim_options_t){.capacity = 0}, 0));
    rig.borrowed_strategy = false;
    full_t full = fill_disk(wanted == STRATA_OK ? RLIM_INFINITY : 2048);
    for (int i = 0; i < allocations; i++) {
        strata_block_t block = rig_allocate(&rig, NULL, 1000);
        EXPECT_OK(strata_free(rig.s, block.ref));
    }
    strata_status_t status = strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL);
    empty_disk(full);
    EXPECT_STATUS(wanted, status);
    if (close_text) expect_kept(path, strata_last_error()->text, close_text);
    EXPECT_STATUS(STRATA_E_STALE, strata_close(rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
}

TEST(written, a_trace_that_finds_no_room_is_told_at_close) {
    char path[256];
    snprintf(path, sizeof path, "%s", write_text("running.csv", BEFORE));
    record(path, 20, NULL, STRATA_OK);
    EXPECT_EQ(parts_beside(path), 0);
    (void)write_text("running.csv", BEFORE);
    record(path, 100, "the facade is closed, but ", STRATA_E_IO);
    record(path, 20000, "cannot be written: File too large", STRATA_E_IO);
}

/* A program that could not begin, or did nothing. */
TEST(written, a_trace_without_a_row_replaces_nothing) {
    char path[256];
    snprintf(path, sizeof path, "%s", write_text("nothing.csv", BEFORE));
    record(path, 0, NULL, STRATA_OK);
    expect_kept(path, path, "");
}

TEST(written, a_map_that_finds_no_room_is_told_in_the_report) {
    char folder[256], text[600];
    strata_block_t none;
    snprintf(folder, sizeof folder, "%s", temporary("maps"));
    ASSERT_EQ(mkdir(folder, 0700), 0);
    snprintf(text, sizeof text,
             "version: 1\nstack: [bfc: {memory_debug: true, memory_limit: 1MiB, memory_dump: \"%s/map\"}, system]\n", folder);
    RIG(rig, text, 0);
    full_t full = fill_disk(100);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 2 * MIB, &none));
    empty_disk(full);
    EXPECT_CONTAINS(strata_last_error()->text, "memory map could not be written to ");
    EXPECT_CONTAINS(strata_last_error()->text, "File too large");
    EXPECT_EQ(rmdir(folder), 0);
}

/* `before` is done in the shell that becomes the command; what it says on standard error comes back. */
static int run_full(const char *arguments, char *said, size_t capacity) {
    char command[2048];
    snprintf(command, sizeof command, "trap '' XFSZ; ulimit -f 0; exec %s %s 2>&1 >/dev/null", command_path(), arguments);
    FILE *pipe = popen(command, "r");
    said[pipe ? fread(said, 1, capacity - 1, pipe) : 0] = '\0';
    int status = pipe ? pclose(pipe) : -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char small_trace[] = "op,id,size,stream,time_us\nalloc,1,4096,0,0\nfree,1,0,0,9\n";
static const char one_run[] = "{\"schema\": 1, \"runs\": [{\"trace\": \"a\", \"label\": \"b\"}]}";

TEST(written, the_command_keeps_what_it_cannot_replace) {
    char path[256], trace[256], arguments[900], said[1024];
    snprintf(trace, sizeof trace, "%s", write_text("small.csv", small_trace));
    snprintf(path, sizeof path, "%s", write_text("compared.json", BEFORE));
    snprintf(arguments, sizeof arguments, "compare --device sim --strategy system --json %s %s", path, trace);
    EXPECT_NE(run_full(arguments, said, sizeof said), 0);
    expect_kept(path, said, "cannot be written: File too large");
    char shard[256];
    snprintf(shard, sizeof shard, "%s", write_text("shard.json", one_run));
    snprintf(arguments, sizeof arguments, "merge --json %s %s", path, shard);
    EXPECT_NE(run_full(arguments, said, sizeof said), 0);
    expect_kept(path, said, "cannot be written: File too large");
}

/* ---- what stands at the name ---- */

static mode_t mode_of(const char *path) {
    struct stat found;
    return stat(path, &found) == 0 ? found.st_mode & 07777 : 0;
}

TEST(written, rights_are_those_of_the_file_that_is_replaced) {
    static const mode_t modes[] = {0600, 0640, 0444, 0666};
    char path[256], part[300];
    mode_t mask = umask(022);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        strata_output_t *out;
        snprintf(path, sizeof path, "%s", write_text("rights.txt", BEFORE));
        ASSERT_EQ(chmod(path, modes[i]), 0);
        ASSERT_OK(strata_output_open(path, &out));
        snprintf(part, sizeof part, "%s.%ld.0.part", path, (long)getpid());
        EXPECT_EQ(mode_of(part), modes[i]);
        ASSERT_OK(strata_output_finish(out));
        EXPECT_EQ(mode_of(path), modes[i]);
        (void)unlink(path);
    }
    (void)umask(027);
    ASSERT_OK(write_much(path, 100));
    EXPECT_EQ(mode_of(path), 0640);
    (void)umask(mask);
    (void)unlink(path);
}

/* Only the superuser can give a file to another owner. */
TEST(written, the_owner_and_the_rights_of_the_group_are_those_of_the_file_that_is_replaced) {
    enum { OWNER = 4321, GROUP = 5432 };
    char path[256];
    struct stat found;
    if (geteuid() != 0) TEST_SKIP("only the superuser can make files of another owner");
    snprintf(path, sizeof path, "%s", write_text("owner.txt", BEFORE));
    ASSERT_EQ(chown(path, OWNER, GROUP), 0);
    ASSERT_EQ(chmod(path, 0664), 0);
    ASSERT_OK(write_much(path, 96));
    ASSERT_EQ(stat(path, &found), 0);
    EXPECT_EQ(found.st_uid, OWNER);
    EXPECT_EQ(found.st_gid, GROUP);
    EXPECT_EQ(found.st_size, 96);
    EXPECT_EQ(mode_of(path), 0664);
    (void)unlink(path);
}

TEST(written, a_symbolic_link_is_neither_followed_nor_lost) {
    char path[256], link[256], seen[300];
    snprintf(path, sizeof path, "%s", write_text("led_to.txt", BEFORE));
    snprintf(link, sizeof link, "%s", temporary("link.txt"));
    for (int dangling = 0; dangling < 2; dangling++) {
        ASSERT_EQ(symlink(dangling ? "nowhere" : path, link), 0);
        EXPECT_STATUS(STRATA_E_IO, write_much(link, 100));
        expect_kept(path, path, "");
        EXPECT_CONTAINS(strata_last_error()->text, link);
        EXPECT_CONTAINS(strata_last_error()->text, "it is a symbolic link");
        EXPECT_GT(readlink(link, seen, sizeof seen), 0);
        EXPECT_EQ(parts_beside(link), 0);
        ASSERT_EQ(unlink(link), 0);
    }
}

TEST(written, a_folder_is_refused) {
    char path[256];
    snprintf(path, sizeof path, "%s", temporary("folder.txt"));
    ASSERT_EQ(mkdir(path, 0700), 0);
    EXPECT_SAYS(STRATA_E_IO, write_much(path, 100), "folder.txt cannot be written: Is a directory");
    EXPECT_EQ(rmdir(path), 0);
}

/* As the user of a shell writes >(command), and as root has its devices tomorrow. */
TEST(written, a_pipe_is_written_into_and_stays_one) {
    char path[256], text[64];
    struct stat found;
    snprintf(path, sizeof path, "%s", temporary("pipe.txt"));
    ASSERT_EQ(mkfifo(path, 0600), 0);
    EXPECT_SAYS(STRATA_E_IO, write_much(path, 16), "pipe.txt cannot be written: the pipe has no reader");
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    ASSERT_GE(reader, 0);
    EXPECT_OK(write_much(path, 16));
    EXPECT_EQ(read(reader, text, sizeof text), 16);
    (void)close(reader);
    EXPECT_TRUE(lstat(path, &found) == 0 && S_ISFIFO(found.st_mode));
    EXPECT_EQ(parts_beside(path), 0);
    (void)unlink(path);
}

/* ---- several writers ---- */

TEST(written, of_two_at_once_the_last_to_finish_wins_whole) {
    char path[256];
    size_t count = 0;
    strata_output_t *first, *second;
    snprintf(path, sizeof path, "%s", temporary("both.txt"));
    ASSERT_OK(strata_output_open(path, &first));
    ASSERT_OK(strata_output_open(path, &second));
    (void)strata_output_print(first, "first");
    (void)strata_output_print(second, "the second");
    ASSERT_OK(strata_output_finish(second));
    ASSERT_OK(strata_output_finish(first));
    char *bytes = read_bytes(path, &count);
    EXPECT_TRUE(bytes && count == 5 && memcmp(bytes, "first", 5) == 0);
    free(bytes);
    EXPECT_EQ(parts_beside(path), 0);
}

enum { TIMES = 60, LENGTH = 200000 };

static void write_often(const char *path, char letter) {
    static char text[LENGTH];
    memset(text, letter, sizeof text);
    for (int i = 0; i < TIMES; i++) {
        strata_output_t *out;
        if (strata_output_open(path, &out) != STRATA_OK) _exit(1);
        (void)strata_output_write(out, text, sizeof text);
        if (strata_output_finish(out) != STRATA_OK) _exit(1);
    }
    _exit(0);
}

TEST(written, two_processes_never_show_half_a_file) {
    char path[256];
    snprintf(path, sizeof path, "%s", temporary("shared.txt"));
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) write_often(path, (char)('a' + i));
    }
    for (int running = 2; running > 0;) {
        size_t count = 0;
        int status = 0;
        char *bytes = read_bytes(path, &count);
        if (bytes && (count != LENGTH || bytes[0] != bytes[LENGTH - 1] || !strchr("ab", bytes[0]))) FAIL_TEST("%zu bytes", count);
        free(bytes);
        while (running > 0 && waitpid(-1, &status, WNOHANG) > 0) {
            EXPECT_EQ(status, 0);
            running--;
        }
    }
    EXPECT_EQ(parts_beside(path), 0);
}
