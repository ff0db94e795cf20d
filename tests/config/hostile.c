/* Hostile files end fast and take little memory. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "config/tree.h"
#include "tests/config/refused.h"
#include "tests/harness/owned.h"

enum { LARGEST = STRATA_TREE_BYTES };

typedef struct measured {
    struct timespec begin;
    long peak;
} measured_t;

static measured_t measure(void) {
    measured_t measured;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    measured.peak = usage.ru_maxrss;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &measured.begin);
    return measured;
}

/* In five seconds of a processor, which is a hundredth of what a step for each pair of bytes would take, and in 64 MiB more than the process
 * ever had. */
static void expect_small(measured_t before) {
    measured_t now = measure();
    double seconds = (double)(now.begin.tv_sec - before.begin.tv_sec) + (double)(now.begin.tv_nsec - before.begin.tv_nsec) / 1e9;
    EXPECT_LT(seconds, 5.0);
    EXPECT_LT(now.peak - before.peak, 64 * 1024);
}

/* `head`, then `part` as often as fits into `size` bytes, then `tail`. To be freed. */
static char *flood(const char *head, const char *part, const char *tail, size_t size) {
    char *text = calloc(size + strlen(tail) + 1, 1);
    if (!text) abort();
    size_t length = (size_t)sprintf(text, "%s", head), each = strlen(part);
    for (; length + each + strlen(tail) <= size; length += each) memcpy(text + length, part, each);
    strcpy(text + length, tail);
    return text;
}

static void expect_end(char *text, const char *what) {
    strata_strategy_t *strategy = NULL;
    measured_t before = measure();
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.text = text}, &strategy));
    expect_small(before);
    EXPECT_CONTAINS(strata_last_error()->text, what);
    EXPECT_GT(strata_last_error()->line, 0);
    free(text);
}

static void expect_flood(const char *head, const char *part, const char *tail, const char *what) {
    expect_end(flood(head, part, tail, LARGEST - 1), what);
}

TEST(hostile, an_alias_bomb_is_refused_at_its_first_alias) {
    expect_refused("a: &a [x, x, x, x, x, x, x, x, x]\n"
                   "b: &b [*a, *a, *a, *a, *a, *a, *a, *a]\n"
                   "c: &c [*b, *b, *b, *b, *b, *b, *b, *b]\n"
                   "d: [*c, *c, *c, *c, *c, *c, *c, *c]\n",
                   2, 8, "aliases", "write the value itself");
}

TEST(hostile, depth) {
    expect_flood("stack: ", "[", "", "nested more than 64 deep");
    expect_flood("stack: ", "{a: ", "", "nested more than 64 deep");
    expect_flood("", "- ", "", "nested more than 64 deep");
    expect_flood("", "? ", "", "");
}

TEST(hostile, counts) {
    expect_flood("stack:\n", "- system\n", "", "more than 65536 values");
    expect_flood("stack: [", "a,", "]", "more than 65536 values");
    expect_flood("strategy: x\n", "k: 1\n", "", "\"k\" is here twice");
    expect_flood("--- a\n", "--- a\n", "", "a second document");
}

TEST(hostile, ten_thousand_layers) {
    char *text CLOSED_BY(text_cleanup) = flood("stack:\n", "- retry\n", "- system\n", 7 + 10000 * 8 + 9);
    strata_strategy_t *strategy = NULL;
    measured_t before = measure();
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.text = text}, &strategy));
    expect_small(before);
    EXPECT_STREQ(strata_last_error()->text, "<text>:66:3: a stack has at most 64 layers, but this one has 10001; remove some");
}

TEST(hostile, sixty_four_layers_are_the_most) {
    char *most CLOSED_BY(text_cleanup) = flood("stack:\n", "- auto_growth\n", "- system\n", 7 + 63 * 14 + 9);
    char *more CLOSED_BY(text_cleanup) = flood("stack:\n", "- auto_growth\n", "- system\n", 7 + 64 * 14 + 9);
    strata_strategy_t *strategy = load_text(most);
    ASSERT_NE(strategy, NULL);
    EXPECT_EQ(strategy->stacks[STRATA_PLACE_GPU].count, 64);
    strata_strategy_delete(strategy);
    expect_refused(more, 66, 3, "a stack has at most 64 layers", "remove some");
}

TEST(hostile, many_keys) {
    static char text[65536];
    size_t length = 0;
    for (int i = 0; i < 300; i++) length += (size_t)sprintf(text + length, "k%d: 1\n", i);
    expect_refused(text, 257, 1, "at most 256 keys", "remove some");
}

TEST(hostile, long_values) {
    expect_flood("strategy: ", "x", "\n", "longer than 4096 bytes");
    expect_flood("strategy: \"", "\\x41", "\"\n", "longer than 4096 bytes");
    expect_flood("strategy: |\n", " x\n", "", "longer than 4096 bytes");
    expect_flood("", "k", ": 1\n", "");
    expect_flood("a: !", "x", " 1\n", "");
    expect_flood("a: &", "x", " 1\n", "");
    expect_flood("a: 1 #", "x", "\n", "no key \"a\"");
    expect_flood("%TAG ! ", "x", "\n--- a\n", "");
}

/* As many different ones as fit, between `head` and `tail`, each in a line that `line_break` ends. */
static void expect_directives(const char *head, const char *line_break, const char *tail) {
    char *text = calloc(LARGEST, 1);
    if (!text) abort();
    size_t length = (size_t)sprintf(text, "%s", head);
    for (unsigned i = 0; length + strlen(tail) + 32 < LARGEST; i++)
        length += (size_t)sprintf(text + length, "%%TAG !%x! !%s", i, line_break);
    strcpy(text + length, tail);
    expect_end(text, "remove this line");
}

TEST(hostile, directives) {
    expect_directives("", "\n", "---\nstack: [system]\n");
    expect_directives("\xef\xbb\xbf # a strategy\n\n%YAML 1.1 # of the year\n", "\r\n", "---\nstack: [system]\n");
    expect_directives("\xef\xbb\xbf\xef\xbb\xbf\xef\xbb\xbf", "\n", "---\nstack: [system]\n");
    expect_directives("", "\r", "--- a\r");
    expect_directives("#\xc2\x85", "\xc2\x85", "--- a\n");
    expect_directives("#\xe2\x80\xa8", "\xe2\x80\xa8", "--- a\n");
    expect_directives("#\xe2\x80\xa9", "\xe2\x80\xa9", "--- a\n");
    expect_directives("stack: [system] # \xc3\xa4\n", "\n", "--- a\n");
    expect_directives("stack: [system]\n... # \xc3\xa4\n...\n#\n", "\n", "--- a\n");
    expect_directives("---\n", "\n", "--- a\n");
    expect_directives("...\n", "\n", "--- a\n");
    expect_flood("", "%YAML 1.1\n", "--- a\n", "duplicate %YAML directive");
    expect_flood("stack: [system]\n", "%YAML 1.1\n", "--- a\n", "duplicate %YAML directive");
}

TEST(hostile, a_file_of_a_gigabyte_is_not_read) {
    const char *path = file_of("huge.yaml", "strategy: ");
    strata_strategy_t *strategy = NULL;
    ASSERT_EQ(truncate(path, 1 << 30), 0);
    measured_t before = measure();
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.file = path}, &strategy),
                "huge.yaml:1:1: the file is larger than 1 MiB");
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.file = "/dev/zero"}, &strategy));
    expect_small(before);
    ASSERT_EQ(truncate(path, 4096), 0);
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.file = path}, &strategy),
                "huge.yaml:1:11: a NUL byte is here");
    unlink(path);
}

TEST(hostile, every_cut_and_every_changed_byte_ends) {
    const char *right = strata_preset_text("strata");
    size_t length = strlen(right);
    char *text CLOSED_BY(text_cleanup) = strdup(right);
    ASSERT_NE(text, NULL);
    for (size_t i = 0; i < length; i++) {
        static const char wrong[] = {'\0', '\t', '{', '"', '*', '\x80', '-', ':'};
        for (size_t j = 0; j < sizeof wrong; j++) {
            strata_strategy_t *strategy = NULL;
            text[i] = wrong[j];
            if (strata_config_load(&(strata_config_request_t){.text = text}, &strategy) == STRATA_OK) {
                strata_strategy_delete(strategy);
            } else {
                ASSERT_EQ(strata_last_error()->status, STRATA_E_STRATEGY);
            }
        }
        text[i] = right[i];
    }
}
