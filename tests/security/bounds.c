/* What a small file makes the command take is bounded: packed traces, endless lines, ids from everywhere, comparisons. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/tools/support/ran.h"

enum { WRONG = 2, FAILED = 1 };

/* `head`, then `part` again and again, packed. */
static void write_packed(const char *name, const char *head, const char *part, size_t times) {
    size_t length = strlen(head), each = strlen(part);
    char *text CLOSED_BY(text_cleanup) = malloc(length + times * each + 1);
    ASSERT_TRUE(text);
    memcpy(text, head, length);
    for (size_t i = 0; i < times; i++) memcpy(text + length + i * each, part, each);
    (void)write_gzip(name, text, length + times * each);
}

/* In a process of so many MiB of address space, which ends by itself. */
static void expect_bounded(unsigned megabytes, const char *arguments, int status, const char *said) {
    char line[600];
    if (*STRATA_SANITIZERS) return;
    snprintf(line, sizeof line, "timeout 60 sh -c 'ulimit -v %u; exec \"$@\"' sh -- %s", megabytes * 1024, arguments);
    ran_t ran = run_command("%s", line);
    EXPECT_EQ(ran.exit_status, status);
    EXPECT_CONTAINS(ran.errors, said);
}

#define HEADER  "op,id,size,stream,time_us\n"
#define COMPARE "compare --repeat 1 --device sim --strategy system "

TEST(bounds, a_line_without_an_end) {
    write_packed("line.csv.gz", HEADER, "aaaaaaaaaaaaaaaa", 4 << 20);
    expect_bounded(64, COMPARE "line.csv.gz", WRONG, "line.csv.gz:2:4096: the line is longer than 4095 bytes");
    write_packed("merged.json.gz", "{\"schema\": 1, \"runs\": [", "                ", 5 << 20);
    expect_bounded(256, "merge merged.json.gz", WRONG, "merged.json.gz: more than 64 MiB");
}

/* The replay reserves addresses, so that what is counted is what is touched: at most so many MiB. */
static void expect_small(unsigned megabytes, const char *arguments, const char *said) {
    ran_t ran = run_command("timeout 120 -- %s", arguments);
    struct rusage usage;
    EXPECT_EQ(ran.exit_status, 0);
    EXPECT_CONTAINS(ran.out, said);
    getrusage(RUSAGE_CHILDREN, &usage);
    if (!*STRATA_SANITIZERS) EXPECT_LT(usage.ru_maxrss / 1024, megabytes);
}

/* 40 bytes a row while it is read, and half of that in reserve: 60 MB of 10 KB. */
TEST(bounds, rows_that_pack_well) {
    write_packed("steps.csv.gz", HEADER, "step,,,,7\n", 1000000);
    expect_small(192, COMPARE "--json - steps.csv.gz", "\"operations\": 1000000,");
}

/* More than the process may have: told, and nothing is killed. */
TEST(bounds, rows_that_the_host_has_no_memory_for) {
    write_packed("many.csv.gz", HEADER, "step,,,,7\n", 5000000);
    expect_bounded(128, COMPARE "many.csv.gz", FAILED, "strata: the host refused ");
}

/* An id is a name: what lies between two costs nothing. */
TEST(bounds, ids_from_everywhere) {
    enum { ROWS = 100000 };
    char *text = malloc(ROWS * 64 + 100);
    ASSERT_TRUE(text);
    size_t length = (size_t)sprintf(text, HEADER);
    for (uint64_t i = 1; i <= ROWS; i++)
        length += (size_t)sprintf(text + length, "alloc,%llu,256,0,0\n", (unsigned long long)(i * UINT64_C(0x9e3779b97f4a7c15)));
    (void)write_gzip("ids.csv.gz", text, length);
    free(text);
    expect_small(192, COMPARE "--json - ids.csv.gz", "\"operations\": 100000,");
}

TEST(bounds, nested_and_repeated_comparisons) {
    char text[4096] = "{\"schema\": 1, \"runs\": ";
    for (int i = 0; i < 100; i++) strcat(text, "[");
    (void)write_text("deep.json", text);
    expect_bounded(64, "merge deep.json", WRONG, "deep.json:1: ");
    write_packed("runs.json.gz", "{\"schema\": 1, \"runs\": [{}", ",{}", 1 << 20);
    expect_bounded(256, "merge runs.json.gz", WRONG, "runs.json.gz:1: ");
}
