/* The mutations written by hand: each is written as a row must be, and each cache that reproduces a peer's allocator has a suite of them. Which
 * layers those are docs/layers.md says: caches whose line tells whose allocator they are, as in "(Paddle's thread_local)". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/house/house.h"
#include "tests/paths.h"

enum { LEAST = 10, NAME = 64 };

static const char table_path[] = "scripts/mutation/table", page_path[] = "docs/layers.md";

static bool is_peers_allocator(const char *page, const char *layer) {
    char heading[NAME + 8], line[400];
    snprintf(heading, sizeof heading, "\n### %s\n\n", layer);
    const char *section = strstr(page, heading);
    if (!section) return false;
    section += strlen(heading);
    const char *open = next_line(&section, line, sizeof line) ? strrchr(line, '(') : NULL;
    return open && strstr(open, "'s ");
}

static size_t rows_of(const char *table, const char *layer) {
    char line[400], begin[NAME + 8];
    size_t rows = 0;
    snprintf(begin, sizeof begin, "[%s: ", layer);
    while (next_line(&table, line, sizeof line)) rows += starts_with(line, begin);
    return rows;
}

/* A row of the page's first table is | [name](#name) | role | ...; the number of caches that are held to the rule. */
static size_t check_suites(const char *page, const char *table, report_t *report) {
    char line[400], layer[NAME];
    size_t held = 0;
    for (const char *rest = page; next_line(&rest, line, sizeof line);) {
        if (sscanf(line, "| [%63[a-z_]](#%*[a-z_]) | cache |", layer) != 1 || !strstr(line, ") | cache |")) continue;
        if (!is_peers_allocator(page, layer)) continue;
        held++;
        size_t rows = rows_of(table, layer);
        if (rows < LEAST) report_add(report, "%s: %zu of %s, %d are the least", table_path, rows, layer, LEAST);
    }
    return held;
}

TEST(house, peers_caches_have_mutants) {
    static report_t report;
    char *page = tree_read(page_path), *table = tree_read(table_path);
    ASSERT_TRUE(page && table);
    report = (report_t){.count = 0};
    EXPECT_GT(check_suites(page, table, &report), 0);
    free(page);
    free(table);
    if (report.count) FAIL_TEST("%s", report.text);
}

TEST(house, mutants_rule_can_fail) {
    static report_t report;
    static const char page[] = "| [a](#a) | cache | x |\n| [b](#b) | cache | x |\n"
                               "| [c](#c) | cache | x |\n| [d](#d) | source | x |\n"
                               "\n### a\n\nbest fit (Acme's pool).\n\n### b\n\nkeeps blocks (no one's).\n"
                               "\n### c\n\nfirst fit (Acme's heap).\n\n### d\n\nasks (Acme's driver).\n";
    char table[400] = "";
    for (int i = 0; i < LEAST; i++) strcat(table, "[a: row] x\n");
    for (int i = 0; i < LEAST - 1; i++) strcat(table, "[c: row] x\n");
    strcat(table, "[row] of c\n[ca: row] x\n");
    report = (report_t){.count = 0};
    EXPECT_EQ(check_suites(page, table, &report), 2);
    EXPECT_EQ(report.count, 1);
    EXPECT_CONTAINS(report.text, "scripts/mutation/table: 9 of c, 10 are the least");
}

/* Whether a row fits the tree is for the campaign to say: who changes a function need not write its mutations anew at once. */
TEST(house, mutants_are_written_as_rows_are) {
    if (system("command -v python3 >/dev/null 2>&1") != 0) TEST_SKIP("there is no python3");
    char *told CLOSED_BY(text_cleanup) = command_output("'" STRATA_SOURCE_DIR
                                                        "/scripts/mutants' --form 2>&1; echo \"ended with $?\"");
    ASSERT_TRUE(told);
    EXPECT_STREQ(told, "ended with 0\n");
}
