/* scripts/gpu on a simulated device: what its report says is what the command says. Only what a GPU alone has is missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"

static int run_script(const char *arguments, const char *out) {
    char *command CLOSED_BY(text_cleanup) = NULL;
    if (asprintf(&command, "'%s/scripts/gpu' --built '%s' --out '%s' %s >/dev/null 2>&1", STRATA_SOURCE_DIR, STRATA_BINARY_DIR, out,
                 arguments) < 0)
        return -1;
    int status = system(command);
    return status >= 0 && (status & 0x7f) == 0 ? status >> 8 : -1;
}

/* Returns the report, which the caller frees; NULL if the script ended otherwise. */
static char *report_of(const char *arguments, const char *folder, int status) {
    char out[256], path[300];
    size_t count;
    snprintf(out, sizeof out, "%s", temporary(folder));
    EXPECT_EQ(run_script(arguments, out), status);
    snprintf(path, sizeof path, "%s/report.md", out);
    char *report = read_bytes(path, &count);
    if (report) report[count - 1] = '\0';
    return report;
}

TEST(gpu_script, writes_a_report_of_what_the_command_says) {
    if (system("command -v python3 >/dev/null 2>&1") != 0) TEST_SKIP("there is no python3");
    char *report CLOSED_BY(text_cleanup) = report_of("--device sim:h100 --part stumbles --runs 2", "gpu-report", 0);
    ASSERT_TRUE(report);
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

TEST(gpu_script, compares_layouts_with_the_simulator) {
    if (system("command -v python3 >/dev/null 2>&1") != 0) TEST_SKIP("there is no python3");
    char *report CLOSED_BY(text_cleanup) = report_of("--device sim:h100 --part layouts", "gpu-layouts", 0);
    ASSERT_TRUE(report);
    EXPECT_CONTAINS(report, "| handles side by side under bfc | ");
    EXPECT_CONTAINS(report, "| pinned memory as in Paddle | ");
    EXPECT_LACKS(report, "None");
}

TEST(gpu_script, tells_of_a_part_that_fails) {
    if (system("command -v python3 >/dev/null 2>&1") != 0) TEST_SKIP("there is no python3");
    char *report CLOSED_BY(text_cleanup) = report_of("--device sim:nowhere --part stumbles --runs 1", "gpu-failed", 1);
    ASSERT_TRUE(report);
    EXPECT_CONTAINS(report, "## Failed");
}

/* A driver's tool and a Python with PyTorch that say what the test wants; the script believes them. */
static void make_tool(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    ASSERT_TRUE(file != NULL);
    fprintf(file, "#!/bin/sh\n%s\n", text);
    fclose(file);
    EXPECT_EQ(chmod(path, 0755), 0);
}

#define TOLD                                                                                                                       \
    "case \"$2\" in whole) loss=%s;; *) loss=1;; esac\n"                                                                           \
    "[ \"$1\" = -c ] || echo RESULTS \"{\\\"version\\\": \\\"9\\\", \\\"losses\\\": [$loss], \\\"graphs\\\": 1, "                  \
    "\\\"out of memory\\\": 1, \\\"peaks\\\": [1048576, 2097152]}\""

/* Equal losses are what a training under a door must have. */
TEST(gpu_script, trains_under_each_door_and_compares_the_losses) {
    if (system("command -v python3 >/dev/null 2>&1") != 0) TEST_SKIP("there is no python3");
    static const char *const losses[] = {"1", "2"};
    for (int differs = 0; differs < 2; differs++) {
        char folder[256], path[600], text[1024], command[2048];
        size_t count;
        snprintf(folder, sizeof folder, "%s", temporary(differs ? "gpu-differs" : "gpu-trains"));
        EXPECT_TRUE(mkdir(folder, 0755) == 0 || access(folder, W_OK) == 0);
        snprintf(path, sizeof path, "%s/nvidia-smi", folder);
        make_tool(path, "echo 'Some GPU, 1.0, 1 MiB'");
        snprintf(path, sizeof path, "%s/python", folder);
        snprintf(text, sizeof text, TOLD, losses[differs]);
        make_tool(path, text);
        snprintf(command, sizeof command,
                 "PATH='%s':\"$PATH\" STRATA_TORCH_PYTHON='%s' '%s/scripts/gpu' --built '%s' --out '%s/out' "
                 "--part trainings >/dev/null 2>&1",
                 folder, path, STRATA_SOURCE_DIR, STRATA_BINARY_DIR, folder);
        int status = system(command);
        EXPECT_EQ(WEXITSTATUS(status), differs);
        snprintf(path, sizeof path, "%s/out/report.md", folder);
        char *report CLOSED_BY(text_cleanup) = read_bytes(path, &count);
        ASSERT_TRUE(report);
        report[count - 1] = '\0';
        EXPECT_CONTAINS(report, "| native | equal | 1 | 1 | 1.0, 2.0 |");
        EXPECT_CONTAINS(report, differs ? "| whole | DIFFERENT |" : "| whole | equal |");
    }
}
