/* What README.md shows of the command is what the command prints (tests/tools/support/shown.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/tools/support/shown.h"

TEST(readme, what_is_compared) {
    EXPECT_EQ(missing_line("a  b\nc\n", "a b\nc\n"), NULL);
    EXPECT_EQ(missing_line("a\n...\nd\n", "a\nb\nc\nd\n"), NULL);
    EXPECT_EQ(missing_line("a\n...\n", "a\nb\n"), NULL);
    EXPECT_EQ(missing_line("host_ns_per_op 1 ns\n", " host_ns_per_op  2.5 ns\n"), NULL);
    EXPECT_STREQ(missing_line("a\nc\n", "a\nb\nc\n"), "c");
    EXPECT_STREQ(missing_line("a\n...\nd\n", "a\nb\n"), "d");
    EXPECT_STREQ(missing_line("a\n", "a\nb\n"), "(the end)");
    EXPECT_STREQ(missing_line("ab\n", "a b\n"), "ab");
    EXPECT_STREQ(missing_line("a 1\n", "a 2\n"), "a 1");
}

/* The strategy of the page, and the wrong one that it speaks of. */
static void write_strategies(const char *page) {
    static char text[4096], wrong[4096];
    const char *begin = strstr(page, "```yaml\n"), *end = begin ? strstr(begin + 8, "```") : NULL;
    ASSERT_TRUE(end != NULL && (size_t)(end - begin) < sizeof text);
    snprintf(text, sizeof text, "%.*s", (int)(end - begin - 8), begin + 8);
    write_text("mine.yaml", text);
    char *safe = strstr(text, "stream_safe"), *size = strstr(text, "20MiB");
    ASSERT_TRUE(safe != NULL && size != NULL && size > safe);
    *size = '\0';
    snprintf(wrong, sizeof wrong, "%.*sstream_save%s20MB%s", (int)(safe - text), text, safe + strlen("stream_safe"),
             size + strlen("20MiB"));
    write_text("wrong.yaml", wrong);
}

TEST(readme, shows_what_the_command_prints) {
    size_t commands = 0;
    shown_t shown;
    char *page CLOSED_BY(text_cleanup) = page_text("README.md");
    ASSERT_NE(page, NULL);
    write_strategies(page);
    for (const char *at = page; next_shown(&at, "strata ", &shown); commands++) expect_shown("README.md", &shown);
    EXPECT_EQ(commands, 3);
}
