/* Every test that docs/promises.md names is there. A row is | rule | suite.name, ... |. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"
#include "tests/house/house.h"

/* Reports every test named in the last column of a row that `tests` (ctest -N: "  Test #1: suite.name") does not list. */
static size_t check_promises(const char *page, const char *tests, report_t *report) {
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
            if (!strstr(tests, wanted)) report_add(report, "docs/promises.md:%d: no test is called %s", number, word);
        }
    }
    return named;
}

TEST(house, promises_name_tests_that_exist) {
    static report_t report;
    char *page = tree_read("docs/promises.md");
    if (!page) TEST_SKIP("there is no docs/promises.md");
    char *listed = command_output("'" STRATA_CTEST "' --test-dir '" STRATA_BINARY_DIR "' -N");
    if (listed && strstr(listed, "_NOT_BUILT")) {
        free(page);
        free(listed);
        TEST_SKIP("not every test program is built");
    }
    EXPECT_TRUE(listed);
    if (listed) EXPECT_GT(check_promises(page, listed, &report), 0);
    free(page);
    free(listed);
    if (report.count) FAIL_TEST("%s", report.text);
}

TEST(house, promises_rule_can_fail) {
    static report_t report;
    static const char page[] = "# Promises\n| rule | test |\n|---|---|\n| a.b | `sim.one`, sim.two |\n| c | sim.thre |\n";
    EXPECT_EQ(check_promises(page, "  Test #1: sim.one\n  Test #2: sim.three\n", &report), 3);
    EXPECT_EQ(report.count, 2);
    EXPECT_CONTAINS(report.text, "docs/promises.md:4: no test is called sim.two");
    EXPECT_CONTAINS(report.text, "docs/promises.md:5: no test is called sim.thre");
}
