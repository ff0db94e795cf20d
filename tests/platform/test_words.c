/* Failing with a reason, and what of a text a terminal may get. */
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "platform/status.h"
#include "platform/text/printable.h"
#include "tests/harness/address_space.h"
#include "tests/harness/test.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the last error ---- */

TEST(platform_words, a_failure_keeps_all_that_it_was_told) {
    EXPECT_EQ(strata_fail(STRATA_E_DEVICE, 719, "%s %d", "said", 5), STRATA_E_DEVICE);
    const strata_error_t *error = strata_last_error();
    EXPECT_EQ(error->status, STRATA_E_DEVICE);
    EXPECT_EQ(error->device_code, 719);
    EXPECT_STREQ(error->text, "said 5");
    EXPECT_EQ(strata_fail_at(STRATA_E_FORMAT, 12, 34, "a:12:34: %s", "wrong"), STRATA_E_FORMAT);
    error = strata_last_error();
    EXPECT_EQ(error->status, STRATA_E_FORMAT);
    EXPECT_EQ(error->device_code, 0);
    EXPECT_EQ(error->line, 12);
    EXPECT_EQ(error->column, 34);
    EXPECT_STREQ(error->text, "a:12:34: wrong");
    strata_fail(STRATA_E_IO, 3, "again");
    EXPECT_EQ(error->line, 0);
    EXPECT_EQ(error->column, 0);
}

/* Who knows more puts it in front, and leaves the rest; the text may be an argument of its own successor. */
TEST(platform_words, a_context_stands_in_front_and_changes_nothing_else) {
    strata_fail_at(STRATA_E_FORMAT, 12, 34, "the reason");
    EXPECT_EQ(strata_fail_context("reading %s", "a.csv"), STRATA_E_FORMAT);
    const strata_error_t *error = strata_last_error();
    EXPECT_STREQ(error->text, "reading a.csv: the reason");
    EXPECT_EQ(error->line, 12);
    EXPECT_EQ(error->column, 34);
    strata_fail(STRATA_E_DEVICE, 2, "<%s>", strata_last_error()->text);
    EXPECT_STREQ(strata_last_error()->text, "<reading a.csv: the reason>");
    EXPECT_EQ(strata_fail_context("outer"), STRATA_E_DEVICE);
    EXPECT_EQ(strata_last_error()->device_code, 2);
}

TEST(platform_words, an_error_that_was_kept_is_the_last_again) {
    strata_fail_at(STRATA_E_FORMAT, 12, 34, "kept");
    const strata_error_t kept = *strata_last_error();
    strata_fail(STRATA_E_IO, 7, "what was undone after it");
    EXPECT_EQ(strata_fail_again(&kept), STRATA_E_FORMAT);
    EXPECT_STREQ(strata_last_error()->text, "kept");
    EXPECT_EQ(strata_last_error()->line, 12);
    EXPECT_EQ(strata_last_error()->device_code, 0);
}

/* ---- no memory for the words ---- */

typedef struct speaker {
    sem_t speak, spoke, leave;
    strata_error_t said;
} speaker_t;

/* All that malloc() has, as a chain. */
static void *take_all(void) {
    void *head = NULL;
    for (size_t bytes = 4096; bytes >= 16; bytes /= 2)
        for (void **more; (more = malloc(bytes)) != NULL; head = more) *more = head;
    return head;
}

static void give_all_back(void *head) {
    for (void *next; head; head = next) {
        next = *(void **)head;
        free(head);
    }
}

static void *speak_when_told(void *arg) {
    speaker_t *me = arg;
    sem_wait(&me->speak);
    void *taken = take_all(); /* of an arena of its own */
    strata_fail(STRATA_E_HOST_MEMORY, 0, "the words of one");
    me->said = *strata_last_error();
    sem_post(&me->spoke);
    sem_wait(&me->leave);
    give_all_back(taken);
    return NULL;
}

static void start(speaker_t *speaker, pthread_t *thread) {
    sem_t *all[] = {&speaker->speak, &speaker->spoke, &speaker->leave};
    for (int i = 0; i < 3; i++) ASSERT_EQ(sem_init(all[i], 0, 0), 0);
    ASSERT_EQ(pthread_create(thread, NULL, speak_when_told, speaker), 0);
}

static void end(speaker_t *speaker, pthread_t thread) {
    sem_post(&speaker->leave);
    pthread_join(thread, NULL);
}

/* The first thread without memory has words, the next the meaning of the status; the exit of the first leaves them to another. */
TEST(platform_words, a_host_without_memory_is_told_so_in_words) {
    enum { SPEAKERS = 3 };
    static speaker_t speakers[SPEAKERS];
    pthread_t threads[SPEAKERS];
    struct rlimit before;
    if (!malloc_may_fail()) TEST_SKIP("malloc() ends the program here instead of failing");
    for (int i = 0; i < SPEAKERS; i++) start(&speakers[i], &threads[i]);
    ASSERT_TRUE(bound_address_space(0, &before));
    void *taken = take_all();
    for (int i = 0; i < SPEAKERS; i++) {
        sem_post(&speakers[i].speak);
        sem_wait(&speakers[i].spoke);
        if (i > 0) end(&speakers[i - 1], threads[i - 1]);
    }
    unbound_address_space(&before);
    give_all_back(taken);
    end(&speakers[SPEAKERS - 1], threads[SPEAKERS - 1]);
    for (int i = 0; i < SPEAKERS; i++) EXPECT_EQ(speakers[i].said.status, STRATA_E_HOST_MEMORY);
    EXPECT_STREQ(speakers[0].said.text, "the words of one");
    EXPECT_STREQ(speakers[1].said.text, strata_status_text(STRATA_E_HOST_MEMORY));
    EXPECT_STREQ(speakers[2].said.text, "the words of one");
}

/* Only the report of E_NO_MEMORY has lines; a context has none. */
TEST(platform_words, lines_are_of_reports_alone) {
    strata_fail(STRATA_E_NO_MEMORY, 2, "one\ntwo\tthree");
    EXPECT_STREQ(strata_last_error()->text, "one\ntwo?three");
    EXPECT_EQ(strata_fail_context("a\nb"), STRATA_E_NO_MEMORY);
    EXPECT_STREQ(strata_last_error()->text, "a?b: one\ntwo?three");
    static const strata_status_t others[] = {STRATA_E_IO, STRATA_E_HOST_MEMORY, STRATA_E_DEVICE, STRATA_E_LIMIT};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        strata_fail(others[i], 0, "one\ntwo");
        EXPECT_STREQ(strata_last_error()->text, "one?two");
    }
}

TEST(platform_words, a_text_too_long_is_cut_and_ends) {
    static char large[8192];
    memset(large, 'x', sizeof large - 1);
    strata_fail(STRATA_E_IO, 0, "%s", large);
    EXPECT_EQ(strlen(strata_last_error()->text), sizeof strata_last_error()->text - 1);
    EXPECT_EQ(strata_fail_context("%s", large), STRATA_E_IO);
    EXPECT_EQ(strlen(strata_last_error()->text), 511 + 2 + 3500);
}

static void *fail_elsewhere(void *text) {
    strata_error_t *before = text;
    *before = *strata_last_error();
    strata_fail(STRATA_E_BUSY, 0, "of the other thread");
    return NULL;
}

TEST(platform_words, each_thread_has_its_own) {
    pthread_t thread;
    strata_error_t theirs;
    strata_fail(STRATA_E_IO, 5, "mine");
    ASSERT_EQ(pthread_create(&thread, NULL, fail_elsewhere, &theirs), 0);
    pthread_join(thread, NULL);
    EXPECT_EQ(theirs.status, STRATA_OK);
    EXPECT_STREQ(strata_last_error()->text, "mine");
}

TEST(platform_words, every_status_has_its_name_and_its_words) {
#define CHECK_STATUS(name, number, words)                                                                                          \
    EXPECT_EQ(STRATA_##name, number);                                                                                              \
    EXPECT_STREQ(strata_status_name(STRATA_##name), "STRATA_" #name);                                                              \
    EXPECT_STREQ(strata_status_text(STRATA_##name), words);
    STRATA_STATUS_MAP(CHECK_STATUS)
#undef CHECK_STATUS
    EXPECT_STREQ(strata_status_name((strata_status_t)999), "STRATA_?");
    EXPECT_STREQ(strata_status_text((strata_status_t)999), "unknown status");
}

/* ---- characters ---- */

/* Texts by the length of their first letter; each row ends with NULL. */
static void expect_lengths(size_t length_of(const char *text), const char *const texts[5][20]) {
    for (size_t length = 0; length < 5; length++)
        for (size_t i = 0; texts[length][i]; i++)
            if (length_of(texts[length][i]) != length) FAIL_TEST("text %zu of length %zu", i, length);
}

/* The first and the last of each length, and what lies beyond: overlong, of a surrogate, above U+10FFFF, cut short. */
TEST(platform_words, what_is_utf8_is_told_by_its_bytes) {
    static const char *const texts[5][20] = {{"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                                              "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc2",
                                              "\xc2\x41", "\xe2\x82", "\xe2\x41\x80", "\xe2\x82\x41", "\xf0\x90\x80",
                                              "\xf0\x90\x80\x41", "\xf8\x88\x80\x80\x80"},
                                             {"A", "\x7f"},
                                             {"\xc2\x80", "\xdf\xbf"},
                                             {"\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf"},
                                             {"\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}};
    expect_lengths(strata_utf8_length, texts);
}

/* Beside each end of what a terminal obeys stands what it shows. */
TEST(platform_words, what_a_terminal_obeys_is_not_printable) {
    static const char *const texts[5][20] = {
        {"\x1f", "\x7f", "\t", "\n", "\xc2\x80", "\xc2\x9f", "\xe2\x80\xa8", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9"},
        {" ", "~"},
        {"\xc2\xa0", "\xc3\x80"},
        {"\xe2\x80\xa7", "\xe2\x80\xaf", "\xe2\x81\xa5", "\xe2\x81\xaa", "\xe2\x82\xa8", "\xe3\x80\xa8"},
        {"\xf0\x9f\x98\x80"}};
    expect_lengths(strata_printable_length, texts);
}

TEST(platform_words, what_is_not_printable_becomes_a_question_mark_for_each_byte) {
    char text[] = "a\x1b[1m\xc3\xa9\xc2\x9b\xff\n\x1b"
                  "z\n";
    strata_make_printable(text, true);
    EXPECT_STREQ(text, "a?[1m\xc3\xa9???\n?z\n");
    strata_make_printable(text, false);
    EXPECT_STREQ(text, "a?[1m\xc3\xa9?????z?");
}

/* ---- arithmetic ---- */

TEST(platform_words, sums_that_do_not_fit_are_refused_and_leave_the_result) {
    uint64_t result = 77;
    EXPECT_TRUE(strata_add(UINT64_MAX - 1, 1, &result));
    EXPECT_EQ(result, UINT64_MAX);
    result = 77;
    EXPECT_FALSE(strata_round_up(UINT64_MAX, 2, &result));
    EXPECT_FALSE(strata_round_up(UINT64_MAX - 510, 512, &result));
    EXPECT_EQ(result, 77);
    EXPECT_TRUE(strata_round_up(UINT64_MAX - 511, 512, &result));
    EXPECT_EQ(result, UINT64_MAX - 511);
    EXPECT_TRUE(strata_round_up(1, 512, &result));
    EXPECT_EQ(result, 512);
    EXPECT_TRUE(strata_round_up(512, 512, &result));
    EXPECT_EQ(result, 512);
    EXPECT_EQ(strata_round_down(1023, 512), 512);
    EXPECT_FALSE(strata_is_power_of_two(0));
    EXPECT_TRUE(strata_is_power_of_two(1));
    EXPECT_FALSE(strata_is_power_of_two(3));
    EXPECT_TRUE(strata_is_power_of_two(UINT64_C(1) << 63));
    EXPECT_EQ(strata_min(3, 5) * 10 + strata_max(3, 5), 35);
    EXPECT_EQ(strata_min(5, 3) * 10 + strata_max(5, 3), 35);
}
