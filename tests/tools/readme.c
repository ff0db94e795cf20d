/* What README.md shows of the command is what the command prints.
 *
 * A block that begins with "    $ strata ..." is run; what follows is its output, standard error before standard output. "..."
 * stands for any lines. Blanks are counted as one, for a column is as wide as its widest cell; of host_ns_per_op, which no run has
 * twice, the name alone is compared.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/tools/ran.h"
#include "tests/trace/files.h"

enum { LINE = 512, SHOWN = 8192 };

/* ---- lines ---- */

/* The line at *at, without its end; false after the last. */
static bool next_line(const char **at, char *line) {
    size_t length = strcspn(*at, "\n");
    if (!**at) return false;
    snprintf(line, LINE, "%.*s", (int)length, *at);
    *at += length + ((*at)[length] == '\n');
    return true;
}

static bool same_words(const char *a, const char *b) {
    static const char changing[] = "host_ns_per_op ";
    while (isspace((unsigned char)*a)) a++;
    while (isspace((unsigned char)*b)) b++;
    if (strncmp(a, changing, strlen(changing)) == 0) return strncmp(b, changing, strlen(changing)) == 0;
    for (;; a++, b++) {
        size_t skip_a = strspn(a, " "), skip_b = strspn(b, " ");
        a += skip_a;
        b += skip_b;
        if ((skip_a > 0) != (skip_b > 0) && *a && *b) return false;
        if (*a != *b) return false;
        if (!*a) return true;
    }
}

/* NULL: the output is what is shown; else the first line that is not there. */
static const char *missing_line(const char *shown, const char *printed) {
    static char wanted[LINE];
    char line[LINE];
    bool gap = false;
    while (next_line(&shown, wanted)) {
        if (strcmp(wanted, "...") == 0) {
            gap = true;
            continue;
        }
        bool found = false;
        while (!found && next_line(&printed, line)) {
            found = same_words(wanted, line);
            if (!found && !gap) return wanted;
        }
        if (!found) return wanted;
        gap = false;
    }
    return gap || !*printed ? NULL : "(the end)";
}

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

/* ---- the page ---- */

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

/* Runs the command of "    $ strata ..." with the traces where they are. */
static void expect_shown(const char *command, const char *shown) {
    static char printed[65536];
    char here[LINE * 2];
    const char *traces = strstr(command, "traces/");
    if (traces)
        snprintf(here, sizeof here, "%.*s%s", (int)(traces - command), command, project_trace_path(traces + strlen("traces/")));
    else snprintf(here, sizeof here, "%s", command);
    ran_t ran = run_command("%s", here);
    snprintf(printed, sizeof printed, "%s%s", ran.errors, ran.out);
    const char *missing = missing_line(shown, printed);
    if (missing) FAIL_TEST("README.md: strata %s does not print the line\n%s\nbut\n%s", command, missing, printed);
}

TEST(readme, shows_what_the_command_prints) {
    static const char prompt[] = "    $ strata ";
    static char shown[SHOWN];
    size_t length = 0, commands = 0;
    char *page CLOSED_BY(text_gone) = read_bytes(STRATA_SOURCE_DIR "/README.md", &length);
    ASSERT_NE(page, NULL);
    page[length] = '\0';
    write_strategies(page);
    for (const char *at = page; (at = strstr(at, prompt)) != NULL; commands++) {
        char command[LINE], line[LINE];
        at += strlen(prompt);
        next_line(&at, command);
        size_t used = 0, kept = 0;
        /* Empty lines belong to the output where more of it follows. */
        while (*at == '\n' || (strncmp(at, "    ", 4) == 0 && strncmp(at, prompt, strlen(prompt)) != 0)) {
            next_line(&at, line);
            used += (size_t)snprintf(shown + used, SHOWN - used, "%s\n", *line ? line + 4 : "");
            ASSERT_LT(used, SHOWN);
            if (*line) kept = used;
        }
        shown[kept] = '\0';
        expect_shown(command, shown);
    }
    EXPECT_GE(commands, 5);
}
