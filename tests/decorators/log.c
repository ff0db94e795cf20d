/* log: a line for each request and each free, and what becomes of them if the file takes none. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/decorators/decorators.h"

enum { LINES = 300, LETTERS = 600 };

/* A facade whose requests are logged into a file of its own. */
typedef struct logged {
    rig_t rig;
    char path[32];
    char lines[LINES][LETTERS];
    size_t count;
} logged_t;

static void open_logged(logged_t *self, const char *stack, uint64_t capacity) {
    char text[512];
    snprintf(self->path, sizeof self->path, "log-XXXXXX");
    int file = mkstemp(self->path);
    EXPECT_GE(file, 0);
    close(file);
    snprintf(text, sizeof text, stack, self->path);
    decorated_open(&self->rig, text, NULL, &(strata_sim_options_t){.capacity = capacity});
}

static void close_logged(logged_t *self) {
    rig_finish(&self->rig);
    (void)unlink(self->path);
}

static void read_lines(logged_t *self) {
    FILE *file = fopen(self->path, "r");
    self->count = 0;
    ASSERT_TRUE(file != NULL);
    while (self->count < LINES && fgets(self->lines[self->count], LETTERS, file)) self->count++;
    fclose(file);
}

/* The value of a key; "": the line has none. */
static const char *value(const logged_t *self, size_t line, const char *key) {
    static char found[LETTERS];
    char wanted[32];
    snprintf(wanted, sizeof wanted, " %s=", key);
    const char *at = strstr(self->lines[line], wanted);
    snprintf(found, sizeof found, "%.*s", at ? (int)strcspn(at + strlen(wanted), " \n") : 0, at ? at + strlen(wanted) : "");
    return found;
}

#define EXPECT_VALUE(line, key, wanted) EXPECT_STREQ(value(&l, line, key), wanted)

static void expect_about(const logged_t *self, size_t line, const strata_block_t *block) {
    EXPECT_EQ(strtoull(value(self, line, "ptr"), NULL, 0), (uintptr_t)block->ptr);
    EXPECT_EQ(strtoull(value(self, line, "got"), NULL, 0), block->size);
}

#define OVER_A_CACHE "[{log: {path: '%s'}}, {auto_growth: {chunk_size: 2MiB}}, system]"

TEST(log, each_request_and_each_free_is_a_line) {
    OPENED(logged_t, l, close_logged, open_logged(&l, OVER_A_CACHE, 0));
    strata_stream_t stream = rig_stream(&l.rig);
    strata_block_t a = rig_allocate(&l.rig, stream, 1000), b = rig_allocate(&l.rig, stream, 300);
    EXPECT_OK(strata_free(l.rig.s, a.ref));
    read_lines(&l);
    ASSERT_EQ(l.count, 3);
    EXPECT_VALUE(0, "event", "alloc");
    EXPECT_VALUE(0, "place", "gpu:0");
    EXPECT_VALUE(0, "asked", "1000");
    EXPECT_VALUE(0, "how", "growth");
    EXPECT_EQ(strtoull(value(&l, 0, "stream"), NULL, 0), (uintptr_t)stream);
    expect_about(&l, 0, &a);
    EXPECT_VALUE(1, "how", "hit");
    EXPECT_VALUE(1, "asked", "300");
    expect_about(&l, 1, &b);
    EXPECT_VALUE(2, "event", "free");
    EXPECT_VALUE(2, "asked", "1000");
    expect_about(&l, 2, &a);
    EXPECT_EQ(strtoull(value(&l, 2, "stream"), NULL, 0), (uintptr_t)stream);
    EXPECT_EQ(decorated_figure(rig_stack(&l.rig, stream), "log", "lines"), 3);
    EXPECT_EQ(decorated_figure(rig_stack(&l.rig, stream), "log", "lost"), 0);
}

TEST(log, a_request_that_fails_is_a_line_with_its_reason) {
    OPENED(logged_t, l, close_logged, open_logged(&l, "[{log: {path: '%s'}}, system]", 64 * MIB));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&l.rig, NULL, 100 * MIB));
    read_lines(&l);
    ASSERT_GT(l.count, 0);
    EXPECT_VALUE(0, "event", "refused");
    EXPECT_VALUE(0, "asked", "104857600");
    EXPECT_VALUE(0, "why", "STRATA_E_NO_MEMORY");
    (void)rig_allocate(&l.rig, NULL, MIB);
    size_t before = l.count;
    read_lines(&l);
    ASSERT_EQ(l.count, before + 1);
    EXPECT_VALUE(before, "how", "miss");
}

/* A name makes neither lines nor keys. */
TEST(log, names_are_one_word) {
    OPENED(logged_t, l, close_logged, open_logged(&l, OVER_A_CACHE, 0));
    char longest[400];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    ASSERT_OK(strata_annotate(l.rig.s, "mat mul"));
    (void)rig_allocate_tagged(&l.rig, NULL, 3000, "a b\nevent=free\tptr=0x1");
    (void)rig_allocate_tagged(&l.rig, NULL, 3000, longest);
    ASSERT_OK(strata_annotate(l.rig.s, NULL));
    read_lines(&l);
    ASSERT_EQ(l.count, 2);
    EXPECT_VALUE(0, "tag", "a_b_event_free_ptr_0x1");
    EXPECT_VALUE(0, "operator", "mat_mul");
    EXPECT_VALUE(0, "event", "alloc");
    EXPECT_EQ(strlen(value(&l, 1, "tag")), 63);
    EXPECT_VALUE(1, "operator", "mat_mul");
}

typedef struct storm {
    logged_t *logged;
    strata_stream_t stream;
} storm_t;

static void *allocate_many(void *context) {
    const storm_t *storm = context;
    for (int i = 0; i < 50; i++) {
        strata_block_t block;
        EXPECT_OK(strata_allocate(storm->logged->rig.s, storm->logged->rig.gpu, storm->stream, 1000, &block));
        EXPECT_OK(strata_free(storm->logged->rig.s, block.ref));
    }
    return NULL;
}

/* Each of another stream, so of another instance of the layer. */
TEST(log, lines_of_threads_do_not_mix) {
    OPENED(logged_t, l, close_logged, open_logged(&l, OVER_A_CACHE, 0));
    pthread_t threads[2];
    storm_t storms[2];
    for (int i = 0; i < 2; i++) {
        storms[i] = (storm_t){&l, rig_stream(&l.rig)};
        ASSERT_EQ(pthread_create(&threads[i], NULL, allocate_many, &storms[i]), 0);
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    read_lines(&l);
    ASSERT_EQ(l.count, 200);
    for (size_t i = 0; i < l.count; i++) {
        EXPECT_EQ(strncmp(l.lines[i], "ns=", 3), 0);
        EXPECT_EQ(strtoull(value(&l, i, "got"), NULL, 0), 1024);
    }
}

TEST(log, without_a_path_hits_skip_it) {
    DECORATED(rig, "[log, auto_growth, system]", 0);
    (void)rig_allocate(&rig, NULL, 1000);
    (void)rig_allocate(&rig, NULL, 1000);
    EXPECT_EQ(rig_stack(&rig, NULL)->attention_allocate, 0);
    EXPECT_EQ(decorated_figure(rig_stack(&rig, NULL), "log", "lines"), 0);
}

/* ---- failures ---- */

/* Every write fails as on a full disk: the program does not notice before it closes, and then once. */
TEST(log, a_full_disk_breaks_no_request) {
    rig_t rig;
    decorated_open(&rig, "[{log: {path: /dev/full}}, auto_growth, system]", NULL, &(strata_sim_options_t){.capacity = GIB});
    strata_stream_t streams[2] = {rig_stream(&rig), rig_stream(&rig)};
    for (int i = 0; i < 4; i++) EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, streams[i % 2], 1000).ref));
    EXPECT_EQ(decorated_figure(rig_stack(&rig, streams[0]), "log", "lost"), 4);
    EXPECT_EQ(decorated_figure(rig_stack(&rig, streams[0]), "log", "lines"), 0);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, 4 * GIB)); /* the write's failure is not the reason */
    EXPECT_STATUS(STRATA_E_IO, strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_TRUE(strstr(strata_last_error()->text, "log: /dev/full cannot be written: No space left") != NULL);
    rig_end(&rig);
}

/* The reason of a refusal is not what the log says of itself. */
TEST(log, a_full_disk_leaves_the_reason_of_a_refusal) {
    rig_t rig;
    strata_block_t block;
    const strata_allocate_options_t asked = {.struct_size = sizeof asked, .size = 4 * MIB, .flags = STRATA_NO_REPORT};
    decorated_open(&rig, "[{log: {path: /dev/full}}, {limit: {bytes: 1MiB}}, system]", NULL, &(strata_sim_options_t){0});
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig.s, rig.gpu, NULL, &asked, &block));
    EXPECT_TRUE(strstr(strata_last_error()->text, "limit") != NULL);
    EXPECT_TRUE(strstr(strata_last_error()->text, "/dev/full") == NULL);
    EXPECT_STATUS(STRATA_E_IO, strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    rig_end(&rig);
}

TEST(log, a_file_that_cannot_be_opened_is_refused_by_name) {
    static const char *const paths[] = {"/nowhere/at/all.log", "log-pipe"};
    (void)unlink("log-pipe"); /* of a run that was ended */
    ASSERT_EQ(mkfifo("log-pipe", 0600), 0); /* that nobody reads */
    for (size_t i = 0; i < COUNT(paths); i++) {
        char text[128];
        strata_t s;
        snprintf(text, sizeof text, "devices: sim\nstack: [log: {path: %s}, auto_growth, system]\n", paths[i]);
        EXPECT_STATUS(STRATA_E_IO,
                      strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t), .text = text}, &s));
        EXPECT_TRUE(strstr(strata_last_error()->text, paths[i]) != NULL);
    }
    (void)unlink("log-pipe");
}

TEST(log, each_process_may_have_a_file_of_its_own) {
    char path[64];
    snprintf(path, sizeof path, "log-of-%ld", (long)getpid());
    {
        DECORATED(rig, "[{log: {path: log-of-%p}}, auto_growth, system]", 0);
        (void)rig_allocate(&rig, NULL, 1000);
        EXPECT_EQ(access(path, F_OK), 0);
    }
    (void)unlink(path);
}
