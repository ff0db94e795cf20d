/* scripts/gpu on a simulated device: what its report says is what the command says. Only what a GPU alone has is missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/tools/ran.h"
#include "tests/trace/files.h"

static int run_script(const char *arguments, const char *out) {
    char *command CLOSED_BY(text_gone) = NULL;
    if (asprintf(&command, "'%s/scripts/gpu' --built '%s' --out '%s' %s >/dev/null 2>&1", STRATA_SOURCE_DIR, STRATA_BINARY_DIR, out,
                 arguments) < 0)
        return -1;
    int status = system(command);
    return status >= 0 && (status & 0x7f) == 0 ? status >> 8 : -1;
}

TEST(gpu_script, writes_a_report_of_what_the_command_says) {
    if (system("command -v python3 >/dev/null 2>&1") != 0) TEST_SKIP("there is no python3");
    char out[256], path[300];
    size_t count;
    snprintf(out, sizeof out, "%s", temporary("gpu-report"));
    ASSERT_EQ(run_script("--device sim:h100 --part stumbles --runs 2", out), 0);
    snprintf(path, sizeof path, "%s/report.md", out);
    char *report CLOSED_BY(text_gone) = read_bytes(path, &count);
    ASSERT_TRUE(report);
    report[count - 1] = '\0';
    ran_t run = run_well("compare --device sim:h100 --repeat 1 --strategy strata --json - '%s'",
                         project_trace_path("streams-sharded-training.csv.gz"));
    char row[64];
    const char *end = strstr(run.out, "\"end_ms\":");
    ASSERT_TRUE(end);
    snprintf(row, sizeof row, "| %.1f |", strtod(end + strlen("\"end_ms\":"), NULL));
    EXPECT_CONTAINS(report, "a simulated device (sim:h100), no GPU");
    EXPECT_CONTAINS(report, row);
    EXPECT_CONTAINS(report, "| 2 |");
}

TEST(gpu_script, tells_of_a_part_that_fails) {
    if (system("command -v python3 >/dev/null 2>&1") != 0) TEST_SKIP("there is no python3");
    char out[256], path[300];
    size_t count;
    snprintf(out, sizeof out, "%s", temporary("gpu-failed"));
    EXPECT_EQ(run_script("--device sim:nowhere --part stumbles --runs 1", out), 1);
    snprintf(path, sizeof path, "%s/report.md", out);
    char *report CLOSED_BY(text_gone) = read_bytes(path, &count);
    ASSERT_TRUE(report);
    report[count - 1] = '\0';
    EXPECT_CONTAINS(report, "## Failed");
}
