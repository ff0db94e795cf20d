/* The suites and tests that docs/contracts.md and docs/peers.md name exist. A row is | rule | name, ... | with at least one name: a
 * suite, or a test of the peers' as suite.name. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"
#include "tests/house/house.h"
#include "tests/paths.h"

/* Reports every suite, and every test, named in a row's last column that `tests` (ctest -N: "  Test #1: suite.name") does not list; answers
 * how many are named. */
static size_t check_row(const char *at, char *line, const char *tests, report_t *report) {
    char wanted[300];
    size_t length = strlen(line), named = 0;
    while (length && isspace((unsigned char)line[length - 1])) line[--length] = '\0';
    if (length && line[length - 1] == '|') line[length - 1] = '\0';
    char *column = strrchr(line, '|');
    for (char *word = column ? strtok(column, "|`, \t") : NULL; word; word = strtok(NULL, "|`, \t")) {
        named++;
        snprintf(wanted, sizeof wanted, strchr(word, '.') ? ": %s\n" : ": %s.", word);
        if (!strstr(tests, wanted)) report_add(report, "%s: no suite and no test is called %s", at, word);
    }
    return named;
}

/* Rows stand below a line of dashes; each must name a suite or a test. */
static size_t check_promises(const char *path, const char *page, const char *tests, report_t *report) {
    char line[4096], at[300];
    size_t all = 0;
    bool rows = false;
    for (int number = 1; next_line(&page, line, sizeof line); number++) {
        bool dashes = starts_with(line, "|---");
        snprintf(at, sizeof at, "%s:%d", path, number);
        if (strlen(line) == sizeof line - 1) report_add(report, "%s: too long to be read", at);
        if (rows && line[0] == '|' && !dashes) {
            size_t named = check_row(at, line, tests, report);
            if (named == 0) report_add(report, "%s: names nothing", at);
            all += named;
        }
        rows = dashes || (rows && line[0] == '|');
    }
    return all;
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

/* What ctest lists, to be freed. NULL: not every program is built. */
static char *all_tests(void) {
    char *listed = command_output("'" STRATA_CTEST "' --test-dir '" STRATA_BINARY_DIR "' -N");
    if (!listed || !strstr(listed, "_NOT_BUILT")) return listed;
    free(listed);
    return NULL;
}

/* ---- the pages ---- */

static void expect_named(const char *path, bool peers) {
    static report_t report;
    report = (report_t){.count = 0};
    char *listed = all_tests();
    if (!listed) TEST_SKIP("not every test program is built");
    char *page = tree_read(path);
    EXPECT_TRUE(page);
    if (page) EXPECT_GT(check_promises(path, page, listed, &report), 0);
    if (page && peers) EXPECT_GT(check_all_named(path, page, listed, &report), 0);
    free(page);
    free(listed);
    if (report.count) FAIL_TEST("%s", report.text);
}

TEST(house, promises_name_suites_that_exist) { expect_named("docs/contracts.md", false); }
TEST(house, tests_of_peers_are_named_and_exist) { expect_named("docs/peers.md", true); }

TEST(house, promises_rule_can_fail) {
    static report_t report;
    static const char page[] = "# Promises\n| rule | suites |\n|---|---|\n| a.b | `sim`, sim.two |\n| c | si |\n"
                               "| d.e | `sim.one` |\n| f.g | |\n\n| no.row | at all |\n";
    EXPECT_EQ(check_promises("docs/p.md", page, "  Test #1: sim.one\n  Test #2: sim.three\n", &report), 4);
    EXPECT_EQ(report.count, 3);
    EXPECT_CONTAINS(report.text, "docs/p.md:4: no suite and no test is called sim.two");
    EXPECT_CONTAINS(report.text, "docs/p.md:5: no suite and no test is called si\n");
    EXPECT_CONTAINS(report.text, "docs/p.md:7: names nothing");
}

TEST(house, peers_rule_can_fail) {
    static report_t report;
    static const char page[] = "| row | test |\n|---|---|\n| 1 | `peers_a.one` |\n";
    EXPECT_EQ(check_all_named("docs/p.md", page, "  Test #1: peers_a.one\n  Test #2: peers_a.on\n  Test #3: a.two\n", &report), 2);
    EXPECT_EQ(report.count, 1);
    EXPECT_CONTAINS(report.text, "docs/p.md: does not name the test peers_a.on");
}
