/* Options from one table of rows: every kind, its bounds, its printing; and the nearest word. */
#include "allocation/options/option.h"
#include "platform/status.h"
#include "platform/text/nearest.h"
#include "tests/harness/test.h"

typedef struct options {
    bool flag;
    uint64_t count, size, time;
    double fraction;
    uint32_t choice;
    char text[STRATA_OPTION_TEXT_BYTES];
} options_t;

static const strata_option_row_t rows[] = {
    {"flag", STRATA_OPTION_BOOL, offsetof(options_t, flag), "true", 0, 0, NULL, "a flag"},
    {"count", STRATA_OPTION_COUNT, offsetof(options_t, count), "12", 2, 100, NULL, "a count"},
    {"size", STRATA_OPTION_SIZE, offsetof(options_t, size), "20MiB", 1024, 1ull << 40, NULL, "a size"},
    {"time", STRATA_OPTION_TIME, offsetof(options_t, time), "100ms", 1000, 0, NULL, "a time"},
    {"fraction", STRATA_OPTION_FRACTION, offsetof(options_t, fraction), "0.8", 100000, 1000000, NULL, "a fraction"},
    {"text", STRATA_OPTION_TEXT, offsetof(options_t, text), "none", 0, 0, NULL, "a text"},
    {"choice", STRATA_OPTION_CHOICE, offsetof(options_t, choice), "address", 0, 0, "address|any|size", "a choice"},
    {0},
};
static const strata_layer_type_t type = {.name = "fake", .options_size = sizeof(options_t), .options = rows};

static void expect_set(const char *name, const char *text, const char *printed) {
    options_t options = {.flag = false};
    char back[64] = "";
    const strata_option_row_t *row = strata_option_find(&type, name);
    ASSERT_NE(row, NULL);
    EXPECT_OK(strata_option_set(row, &options, text));
    strata_option_print(row, &options, back, sizeof back);
    EXPECT_STREQ(back, printed);
    options_t again = {.flag = false};
    EXPECT_OK(strata_option_set(row, &again, back));
    EXPECT_EQ(memcmp((char *)&again + row->offset, (char *)&options + row->offset, row->kind == STRATA_OPTION_BOOL ? 1 : 4), 0);
}

static void expect_unset(const char *name, const char *text, const char *what) {
    options_t options = {.flag = true, .count = 7, .size = 7, .time = 7, .fraction = 7, .choice = 7}, before = options;
    const strata_option_row_t *row = strata_option_find(&type, name);
    ASSERT_NE(row, NULL);
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_option_set(row, &options, text), what);
    EXPECT_EQ(strncmp(strata_last_error()->text, name, strlen(name)), 0);
    EXPECT_EQ(memcmp(&options, &before, sizeof options), 0);
}

TEST(options, defaults_come_from_the_rows) {
    options_t options = {.flag = false};
    strata_option_defaults(&type, &options);
    EXPECT_TRUE(options.flag);
    EXPECT_EQ(options.count, 12);
    EXPECT_EQ(options.size, 20 << 20);
    EXPECT_EQ(options.time, 100000000);
    EXPECT_NEAR(options.fraction, 0.8, 1e-12);
    EXPECT_EQ(options.choice, 0);
    EXPECT_EQ(strata_option_count(&type), 7);
    EXPECT_EQ(strata_option_find(&type, "flags"), NULL);
}

TEST(options, values_are_set_and_printed) {
    expect_set("flag", "false", "false");
    expect_set("count", "100", "100");
    expect_set("size", "1024", "1KiB");
    expect_set("time", "1us", "1us");
    expect_set("time", "never", "never");
    expect_set("fraction", "0.100000001", "0.100000001");
    expect_set("fraction", "1.000", "1");
    expect_set("choice", "size", "size");
    expect_set("text", "run-%p.csv.gz", "run-%p.csv.gz");
    expect_set("text", "caf\303\251 \360\237\231\202", "caf\303\251 \360\237\231\202");
    expect_set("text", "  a b ", "a b");
}

TEST(options, wrong_values_are_refused) {
    expect_unset("flag", "yes", "neither true nor false; write true");
    expect_unset("flag", "perhaps", "write one of them");
    expect_unset("count", "1", "\"1\" is too small; write a value from 2 to 100");
    expect_unset("count", "101", "too large");
    expect_unset("count", "18446744073709551616", "64 bits");
    expect_unset("count", "1.5", "not a count");
    expect_unset("size", "1023", "too small; write a value from 1KiB to 1TiB");
    expect_unset("size", "unlimited", "too large");
    expect_unset("time", "999ns", "too small; write a value from 1us to never");
    expect_unset("fraction", "1.000000001", "too large; write a value from 0.1 to 1");
    expect_unset("fraction", "0.099999999", "too small");
    expect_unset("fraction", "0,5", "not a fraction");
    expect_unset("fraction", "0.1234567891", "not a fraction");
    expect_unset("choice", "adress", "write address (the choices are address, any or size)");
    char long_text[STRATA_OPTION_TEXT_BYTES + 1];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    expect_unset("text", long_text, "is not a valid text; write 1 to 255 bytes");
    expect_unset("text", "a\nb", "without control characters");
    expect_unset("text", "a\177b", "without control characters");
    expect_unset("text", "a\302\2332J", "without control characters");
    expect_unset("text", "a\342\200\256b", "without control characters");
    expect_unset("text", "a\377", "of UTF-8");
    expect_unset("text", "a\303", "of UTF-8");
    expect_unset("text", "", "is not a valid text");
    expect_unset("text", "  ", "is not a valid text");
    expect_unset("choice", "zzzzzzzz", "write address, any or size");
}

static const char *const words[] = {"retry", "stream_safe", "auto_growth", "system", "chunk_size"};

static const char *word(size_t index, const void *context) {
    (void)context;
    return words[index];
}

static const char *nearest(const char *misspelt) {
    const char *found = strata_nearest_word(misspelt, sizeof words / sizeof *words, word, NULL);
    return found ? found : "nothing";
}

static const char *swapped_word(size_t index, const void *words_of) { return ((const char *const *)words_of)[index]; }

/* Two other letters, which are as far, come first. */
TEST(options, two_swapped_letters_are_one_mistake) {
    static const char *const last[] = {"axyd", "abdc"}, *const first[] = {"abxy", "bacd"};
    EXPECT_STREQ(strata_nearest_word("abcd", 2, swapped_word, last), "abdc");
    EXPECT_STREQ(strata_nearest_word("abcd", 2, swapped_word, first), "bacd");
}

static const char *one_word(size_t index, const void *alone) {
    (void)index;
    return alone;
}

/* Exact limits: a third of the letters may be wrong, and half of the word may be missing; one letter more is too much. */
TEST(options, words_are_near_up_to_a_bound) {
    static const struct {
        const char *misspelt, *word;
        bool near;
    } pairs[] = {{"abcdefxyz", "abcdef...", true},
                 {"abcdewxyz", "abcdef...", false},
                 {"abcdwxyz", "abcd....", false},
                 {"abcdefxy", "abcdef..", true},
                 {"abx", "abc", true},
                 {"axx", "abc", false},
                 {"ax", "ab", false},
                 {"abcd", "abcdefgh", true},
                 {"abcd", "abcdefghi", false},
                 {"abc", "abcdef", true},
                 {"ab", "abcd", false},
                 {"FLAGS_a", "FLAGS_allocator_strategy", false}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const char *found = strata_nearest_word(pairs[i].misspelt, 1, one_word, pairs[i].word);
        if (!!found != pairs[i].near) FAIL_TEST("%s is %s to %s", pairs[i].misspelt, found ? "near" : "far", pairs[i].word);
    }
}

TEST(options, every_word_is_listed_where_none_is_near) {
    char text[64], small[12];
    strata_nearest_or_all("retri", 5, word, NULL, text, sizeof text);
    EXPECT_STREQ(text, "retry");
    strata_nearest_or_all("zz", 3, word, NULL, text, sizeof text);
    EXPECT_STREQ(text, "one of retry, stream_safe, auto_growth");
    strata_nearest_or_all("zz", 1, word, NULL, text, sizeof text);
    EXPECT_STREQ(text, "retry");
    strata_nearest_or_all("zz", 3, word, NULL, small, sizeof small);
    EXPECT_STREQ(small, "one of retr");
}

TEST(options, nearest_words_are_found) {
    EXPECT_STREQ(nearest("retrie"), "retry");
    EXPECT_STREQ(nearest("auto_grwoth"), "auto_growth");
    EXPECT_STREQ(nearest("Stream-Safe"), "stream_safe");
    EXPECT_STREQ(nearest("chunk"), "chunk_size");
    EXPECT_STREQ(nearest("sys"), "system");
    EXPECT_STREQ(nearest("binning"), "nothing");
    EXPECT_STREQ(nearest("streams"), "nothing");
    EXPECT_STREQ(nearest(""), "nothing");
    EXPECT_STREQ(nearest("zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"), "nothing");
}
