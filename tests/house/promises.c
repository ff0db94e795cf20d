/* Every test that docs/promises.md, docs/security.md and docs/peers-tests.md name is there. A row is | rule | suite.name, ... |. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"
#include "tests/house/house.h"

/* Reports every test named in the last column of a row that `tests` (ctest -N: "  Test #1: suite.name") does not list. */
static size_t check_promises(const char *path, const char *page, const char *tests, report_t *report) {
    char line[2048], wanted[300];
    size_t named = 0;
    for (int number = 1; next_line(&page, line, sizeof line); number++) {
        size_t length = strlen(line);
        while (length && (isspace((unsigned char)line[length - 1]) || line[length - 1] == '|')) line[--length] = '\0';
        char *column = strrchr(line, '|');
        if (line[0] != '|' || !column) continue;
        for (char *word = strtok(column, "|`, \t"); word; word = strtok(NULL, "|`, \t")) {
            if (!strchr(word, '.')) continue;
            named++;
            snprintf(wanted, sizeof wanted, ": %s\n", word);
            if (!strstr(tests, wanted)) report_add(report, "%s:%d: no test is called %s", path, number, word);
        }
    }
    return named;
}

/* Reports every test of a suite of tests/peers, "peers_...", that the page does not name. */
static size_t check_all_named(const char *path, const char *page, const char *tests, report_t *report) {
    char line[400], wanted[400];
    size_t found = 0;
    while (next_line(&tests, line, sizeof line)) {
        const char *name = strstr(line, ": peers_");
        if (!name) continue;
        found++;
        snprintf(wanted, sizeof wanted, "`%s`", name + 2);
        if (!strstr(page, wanted)) report_add(report, "%s: does not name the test %s", path, name + 2);
    }
    return found;
}

static void expect_named(const char *path, bool peers) {
    static report_t report;
    char *page = tree_read(path);
    if (!page) TEST_SKIP("there is no such page");
    char *listed = command_output("'" STRATA_CTEST "' --test-dir '" STRATA_BINARY_DIR "' -N");
    if (listed && strstr(listed, "_NOT_BUILT")) {
        free(page);
        free(listed);
        TEST_SKIP("not every test program is built");
    }
    report = (report_t){.count = 0};
    EXPECT_TRUE(listed);
    if (listed) EXPECT_GT(check_promises(path, page, listed, &report), 0);
    if (listed && peers) EXPECT_GT(check_all_named(path, page, listed, &report), 0);
    free(page);
    free(listed);
    if (report.count) FAIL_TEST("%s", report.text);
}

TEST(house, promises_name_tests_that_exist) { expect_named("docs/promises.md", false); }
TEST(house, what_is_promised_of_security_names_tests_that_exist) { expect_named("docs/security.md", false); }
TEST(house, tests_of_peers_are_named_and_exist) { expect_named("docs/peers-tests.md", true); }

TEST(house, promises_rule_can_fail) {
    static report_t report;
    static const char page[] = "# Promises\n| rule | test |\n|---|---|\n| a.b | `sim.one`, sim.two |\n| c | sim.thre |\n";
    EXPECT_EQ(check_promises("docs/promises.md", page, "  Test #1: sim.one\n  Test #2: sim.three\n", &report), 3);
    EXPECT_EQ(report.count, 2);
    EXPECT_CONTAINS(report.text, "docs/promises.md:4: no test is called sim.two");
    EXPECT_CONTAINS(report.text, "docs/promises.md:5: no test is called sim.thre");
}

TEST(house, peers_rule_can_fail) {
    static report_t report;
    static const char page[] = "| row | test |\n|---|---|\n| 1 | `peers_a.one` |\n";
    EXPECT_EQ(check_all_named("docs/p.md", page, "  Test #1: peers_a.one\n  Test #2: peers_a.on\n  Test #3: a.two\n", &report), 2);
    EXPECT_EQ(report.count, 1);
    EXPECT_CONTAINS(report.text, "docs/p.md: does not name the test peers_a.on");
}
