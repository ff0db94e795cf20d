/* Pieces made by a thread while earlier ones are read, and large gzip files, which are unpacked so. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/host/host_memory.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "trace/text/input.h"
#include "trace/text/prefetch.h"

enum { MANY = 1000, LETTERS = 6 << 20 };

/* ---- pieces ---- */

/* Piece k has k + 1 bytes, each k; there are `count`, and then a failure or the end. */
typedef struct source {
    uint32_t made, count;
    bool fails;
    _Atomic uint32_t calls;
} source_t;

static strata_status_t make(void *context, char *bytes, size_t *count) {
    source_t *source = context;
    atomic_fetch_add(&source->calls, 1);
    bool ends = source->made == source->count;
    if (ends && source->fails) return strata_fail(STRATA_E_IO, 0, "piece %u cannot be had", source->made);
    *count = ends ? 0 : source->made + 1;
    memset(bytes, (int)(source->made & 0xff), *count);
    source->made++;
    return STRATA_OK;
}

static void read_pieces(strata_prefetch_t *ahead, uint32_t count) {
    const char *bytes;
    size_t got;
    for (uint32_t k = 0; k < count && !strata_test_has_failed(); k++) {
        ASSERT_OK(strata_prefetch_next(ahead, &bytes, &got));
        ASSERT_EQ(got, k + 1);
        EXPECT_EQ((unsigned char)bytes[0], k & 0xff);
        EXPECT_EQ((unsigned char)bytes[k], k & 0xff);
    }
}

TEST(ahead, pieces_come_in_order_and_the_end_is_told_again) {
    source_t source = {.count = MANY};
    strata_prefetch_t *ahead = strata_prefetch_begin(make, &source);
    ASSERT_TRUE(ahead);
    read_pieces(ahead, MANY);
    for (int i = 0; i < 3; i++) {
        const char *bytes;
        size_t got = 1;
        EXPECT_OK(strata_prefetch_next(ahead, &bytes, &got));
        EXPECT_EQ(got, 0);
    }
    strata_prefetch_end(ahead);
    EXPECT_EQ(atomic_load(&source.calls), MANY + 1);
}

TEST(ahead, a_failure_comes_after_the_pieces_before_it_and_again) {
    source_t source = {.count = 7, .fails = true};
    strata_prefetch_t *ahead = strata_prefetch_begin(make, &source);
    ASSERT_TRUE(ahead);
    read_pieces(ahead, 7);
    for (int i = 0; i < 3; i++) {
        const char *bytes;
        size_t got;
        EXPECT_STATUS(STRATA_E_IO, strata_prefetch_next(ahead, &bytes, &got));
        EXPECT_STREQ(strata_last_error()->text, "piece 7 cannot be had");
    }
    strata_prefetch_end(ahead);
}

/* Whether the thread has made all, waits for room, or has hardly begun. */
TEST(ahead, whoever_has_enough_ends_it) {
    for (uint32_t count = 0; count < 12; count++)
        for (uint32_t read = 0; read <= count; read++) {
            source_t source = {.count = count};
            strata_prefetch_t *ahead = strata_prefetch_begin(make, &source);
            ASSERT_TRUE(ahead);
            read_pieces(ahead, read);
            if (read % 3 == 1) usleep(200);
            strata_prefetch_end(ahead);
        }
}

/* It is not more than a few pieces ahead, and never writes to the one that is read. */
TEST(ahead, runs_no_further_than_its_room) {
    source_t source = {.count = MANY};
    const char *bytes;
    size_t got;
    strata_prefetch_t *ahead = strata_prefetch_begin(make, &source);
    ASSERT_TRUE(ahead);
    EXPECT_OK(strata_prefetch_next(ahead, &bytes, &got));
    usleep(20 * 1000);
    EXPECT_LE(atomic_load(&source.calls), 8);
    EXPECT_EQ(bytes[0], 0);
    strata_prefetch_end(ahead);
}

TEST(ahead, without_memory_there_is_none_and_no_error) {
    source_t source = {.count = 1};
    (void)strata_fail(STRATA_E_IO, 0, "from before");
    strata_host_fail_at(1, 0);
    EXPECT_TRUE(strata_prefetch_begin(make, &source) == NULL);
    strata_host_fail_at(0, 0);
    EXPECT_STREQ(strata_last_error()->text, "from before");
}

/* ---- gzip ---- */

static char *letters(void) {
    char *text = malloc(LETTERS);
    uint32_t random = 1;
    for (size_t i = 0; text && i < LETTERS; i++) {
        random = random * 1664525u + 1013904223u;
        text[i] = (char)('a' + (random >> 24) % 7);
    }
    return text;
}

static void gone(char **text) { free(*text); }

/* How many bytes came as they should before the end, or what ended them: *status. */
static size_t read_all(const char *path, const char *wanted, size_t times, strata_status_t *status) {
    strata_input_t *input;
    const char *bytes;
    size_t count = 1, sum = 0;
    *status = strata_input_open(path, &input);
    if (*status != STRATA_OK) return 0;
    while ((*status = strata_input_read(input, &bytes, &count)) == STRATA_OK && count > 0) {
        for (size_t i = 0; i < count; i++)
            if (sum + i >= times * LETTERS || bytes[i] != wanted[(sum + i) % LETTERS]) FAIL_TEST("byte %zu is another", sum + i);
        sum += count;
        if (strata_test_has_failed()) break;
    }
    if (*status != STRATA_OK) EXPECT_EQ(*status, strata_input_read(input, &bytes, &count));
    strata_input_close(input);
    return sum;
}

TEST(ahead, large_gzip_files_are_what_was_packed) {
    char *text CLOSED_BY(gone) = letters();
    size_t packed;
    strata_status_t status;
    ASSERT_TRUE(text);
    EXPECT_EQ(read_all(write_gzip("large.gz", text, LETTERS), text, 1, &status), LETTERS);
    EXPECT_OK(status);
    char *once CLOSED_BY(gone) = read_bytes(temporary("large.gz"), &packed);
    char *twice CLOSED_BY(gone) = malloc(2 * packed);
    ASSERT_TRUE(once && twice);
    memcpy(twice, once, packed);
    memcpy(twice + packed, once, packed);
    EXPECT_EQ(read_all(write_file("members.gz", twice, 2 * packed), text, 2, &status), 2 * LETTERS);
    EXPECT_OK(status);
}

/* All that comes before the damage is delivered first, and the damage is told again. */
TEST(ahead, damage_far_into_a_file_is_told_after_what_is_before_it) {
    char *text CLOSED_BY(gone) = letters();
    size_t packed;
    strata_status_t status;
    ASSERT_TRUE(text);
    char *whole CLOSED_BY(gone) = read_bytes(write_gzip("whole.gz", text, LETTERS), &packed);
    ASSERT_TRUE(whole);
    size_t got = read_all(write_file("cut.gz", whole, packed * 3 / 4), text, 1, &status);
    EXPECT_STATUS(STRATA_E_FORMAT, status);
    EXPECT_GT(got, LETTERS * 7 / 10);
    EXPECT_CONTAINS(strata_last_error()->text, "the gzip data is cut off");
    whole[packed - 5] ^= 1;
    EXPECT_EQ(read_all(write_file("sum.gz", whole, packed), text, 1, &status), LETTERS);
    EXPECT_STATUS(STRATA_E_FORMAT, status);
    EXPECT_CONTAINS(strata_last_error()->text, "the gzip data is damaged");
}

/* A reader that has seen enough: the thread ends with the input. */
TEST(ahead, an_input_is_closed_at_any_moment) {
    char *text CLOSED_BY(gone) = letters();
    ASSERT_TRUE(text);
    const char *path = write_gzip("left.gz", text, LETTERS);
    for (int reads = 0; reads < 60; reads += 4) {
        strata_input_t *input;
        const char *bytes;
        size_t count;
        ASSERT_OK(strata_input_open(path, &input));
        for (int i = 0; i < reads; i++) EXPECT_OK(strata_input_read(input, &bytes, &count));
        strata_input_close(input);
    }
}
