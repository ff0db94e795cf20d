/* strata report and compare --report: the page as a file, and as a browser shows it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "platform/clock.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"

#define SMALL  project_trace_path("alexnet-training.csv.gz")
#define DEVICE "--device sim:h100"

static long size_of(const char *name) {
    struct stat file;
    return stat(temporary(name), &file) == 0 ? (long)file.st_size : -1;
}

TEST(report, writes_a_page) {
    ran_t ran = run_well("report " DEVICE " %s", SMALL);
    EXPECT_STREQ(ran.out, "report.html: 2 strategies on 1 trace\n");
    char *page CLOSED_BY(text_cleanup) = written_text("report.html");
    ASSERT_TRUE(page != NULL);
    EXPECT_CONTAINS(page, "\"label\": \"pytorch\"");
    EXPECT_CONTAINS(page, "\"label\": \"strata\"");
    ran = run_well("report " DEVICE " --strategy system -o mine.html %s", SMALL);
    EXPECT_STREQ(ran.out, "mine.html: 1 strategy on 1 trace\n");
}

/* A comparison prints its table all the same, and its figures are those of the page. */
TEST(report, goes_with_a_comparison) {
    ran_t ran = run_well("compare " DEVICE " --repeat 1 --strategy system --report page.html --json report-figures.json %s", SMALL);
    EXPECT_CONTAINS(ran.out, "peak_reserved_bytes");
    char *page CLOSED_BY(text_cleanup) = written_text("page.html"),
               *json CLOSED_BY(text_cleanup) = written_text("report-figures.json");
    ASSERT_TRUE(page && json);
    EXPECT_CONTAINS(page, json);
}

TEST(report, replaces_its_own_pages_alone) {
    write_text("mine.html", "<!doctype html>\n<title>mine</title>\n");
    expect_wrong_use("report " DEVICE " -o mine.html nothing.csv", "nothing.csv");
    ran_t ran = run_command("report " DEVICE " -o mine.html %s", SMALL);
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_CONTAINS(ran.errors, "mine.html: the file exists and is not of this command");
    char *kept CLOSED_BY(text_cleanup) = written_text("mine.html");
    EXPECT_STREQ(kept, "<!doctype html>\n<title>mine</title>\n");
    run_well("report " DEVICE " -o again.html %s", SMALL);
    run_well("report " DEVICE " -o again.html --strategy system %s", SMALL);
    ran = run_command("report " DEVICE " -o nowhere/page.html %s", SMALL);
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.errors, "nowhere/page.html");
    expect_wrong_use("report -o - x.csv", "a page cannot go to standard output");
    expect_wrong_use("report", "no trace");
}

/* Out-of-memory stands in the page; it is no failure of the command. */
TEST(report, tells_out_of_memory) {
    run_well("report " DEVICE " --capacity 64MiB --strategy strata -o oom.html %s", SMALL);
    char *page CLOSED_BY(text_cleanup) = written_text("oom.html");
    ASSERT_TRUE(page != NULL);
    EXPECT_CONTAINS(page, "\"refused\": [\n{\"row\": ");
}

/* ---- a million events ---- */

enum { EVENTS = 1000000, LIVE = 20000 };

/* One block that is far larger than all others lives for one row, somewhere in the middle. */
static bool write_million(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    static uint32_t live[LIVE];
    uint32_t count = 0, next = 1;
    uint64_t random = 7;
    fprintf(file, "op,id,size,stream,time_us\n");
    for (uint32_t row = 0; row < EVENTS; row++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t draw = (uint32_t)(random >> 33);
        if (row == 654320) {
            fprintf(file, "alloc,0,7777777777,0,%u\n", row);
        } else if (row == 654321) {
            fprintf(file, "free,0,0,0,%u\n", row);
        } else if (count < LIVE && (count == 0 || draw % 2 == 0)) {
            fprintf(file, "alloc,%u,%u,%u,%u\n", next, 256u << (draw >> 8) % 13, draw % 3, row);
            live[count++] = next++ | (draw % 3) << 30;
        } else {
            uint32_t young = count < 64 ? count : 64, at = count - 1 - (draw >> 8) % young;
            fprintf(file, "free,%u,0,%u,%u\n", live[at] & 0x3fffffff, live[at] >> 30, row);
            live[at] = live[--count];
        }
    }
    return fclose(file) == 0;
}

static void expect_peak_row(const char *page) {
    const char *peak = strstr(page, "\"peaks\": {\"requested\": {\"bytes\": ");
    ASSERT_TRUE(peak != NULL);
    EXPECT_CONTAINS(peak, "\"row\": 654321,");
    EXPECT_GT(strtoull(peak + strlen("\"peaks\": {\"requested\": {\"bytes\": "), NULL, 10), 7777777777);
}

TEST(report, a_million_events_are_a_small_page) {
    if (*STRATA_SANITIZERS) TEST_SKIP("sanitizers cost time");
    ASSERT_TRUE(write_million(temporary("million.csv")));
    uint64_t began = strata_real_now();
    run_well("report " DEVICE " -o million.html million.csv");
    printf("2 strategies on %d events: %ld bytes in %.2f s\n", EVENTS, size_of("million.html"),
           (double)(strata_real_now() - began) / 1e9);
    EXPECT_GT(size_of("million.html"), 100000);
    EXPECT_LT(size_of("million.html"), 3000000);
    char *page CLOSED_BY(text_cleanup) = written_text("million.html");
    ASSERT_TRUE(page != NULL);
    expect_peak_row(page);
}

/* Streams, tags of the longest names that a trace can hold, each byte of which JSON writes as six, and requests that fail. */
static void write_hostile(int number, int rows) {
    char name[40];
    snprintf(name, sizeof name, "hostile%d.csv", number);
    FILE *file = fopen(temporary(name), "w");
    ASSERT_TRUE(file != NULL);
    fprintf(file, "op,id,size,stream,time_us,tag\n");
    for (int i = 0; i < rows; i++) {
        fprintf(file, "alloc,%d,%d,%d,%d,%05d", i, i % 40 == 39 ? 1 << 30 : 400000, i, i, i);
        for (int k = 0; k < 250; k++) fputc(1, file);
        fputc('\n', file);
    }
    EXPECT_EQ(fclose(file), 0);
}

static void expect_small(int candidates, int traces) {
    char arguments[12000] = "report " DEVICE " --capacity 1GiB -o hostile.html", more[200];
    for (int i = 0; i < candidates; i++) {
        snprintf(more, sizeof more, " --strategy %s --label l%d%060d", i % 2 ? "system" : "pytorch", i, 7);
        strcat(arguments, more);
    }
    for (int i = 0; i < traces; i++) {
        snprintf(more, sizeof more, " hostile%d.csv", i);
        strcat(arguments, more);
    }
    run_well("%s", arguments);
    printf("%d runs of hostile traces: %ld bytes\n", candidates * traces, size_of("hostile.html"));
    EXPECT_LT(size_of("hostile.html"), 3000000);
}

TEST(report, of_a_hostile_trace_is_small) {
    if (*STRATA_SANITIZERS) TEST_SKIP("sanitizers cost time");
    write_hostile(0, 1000);
    expect_small(2, 1);
    char *page CLOSED_BY(text_cleanup) = written_text("hostile.html");
    ASSERT_TRUE(page != NULL);
    EXPECT_CONTAINS(page, "\"more_streams\": 936");
    EXPECT_CONTAINS(page, "more, left out\"]");
    EXPECT_CONTAINS(page, "all others");
}

TEST(report, of_many_hostile_traces_is_small) {
    if (*STRATA_SANITIZERS) TEST_SKIP("sanitizers cost time");
    for (int i = 0; i < 128; i++) write_hostile(i, 100);
    expect_small(2, 128);
}

/* The most runs that a page takes: whatever they hold, it stays small. */
TEST(report, of_many_runs_is_small) {
    if (*STRATA_SANITIZERS) TEST_SKIP("sanitizers cost time");
    static const char *const traces[] = {
        "alexnet-training",           "ddp-2rank-v100",        "lm-benchmark-step", "lm-medium-ctx256-training",
        "lm-medium-ctx512-inference", "lm-small-bf16-forward", "streams-prefetch",  "streams-sharded-training"};
    char arguments[4096] = "report " DEVICE " -o many.html";
    for (int i = 0; i < 32; i++) {
        char more[64];
        snprintf(more, sizeof more, " --strategy %s --label s%d", i % 2 ? "pytorch" : "strata", i);
        strcat(arguments, more);
    }
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        char more[256];
        snprintf(more, sizeof more, " %s/traces/%s.csv.gz", STRATA_SOURCE_DIR, traces[i]);
        strcat(arguments, more);
    }
    ran_t ran = run_well("%s", arguments);
    EXPECT_STREQ(ran.out, "many.html: 32 strategies on 8 traces\n");
    printf("256 runs: %ld bytes\n", size_of("many.html"));
    EXPECT_LT(size_of("many.html"), 3000000);
}
