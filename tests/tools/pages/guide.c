/* Compares docs/guide.md with the output of its commands, part by part (tests/tools/support/shown.h).
 *
 * Not run here: the two commands `python -m strata.torch ...`, which need PyTorch and a GPU, and the Python programs. tests/python/test_guide.py
 * runs them with a stand-in for PyTorch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"
#include "tests/tools/support/shown.h"

#define PAGE "docs/guide.md"

typedef struct part {
    const char *heading;
    size_t commands; /* that are run; more are welcome */
    size_t refused; /* of them, end with an error, as the page says */
} part_t;

static const part_t tuning = {"From PYTORCH_CUDA_ALLOC_CONF to a tuned strategy", 7, 0};
static const part_t layer = {"A layer of your own", 5, 1};
static const part_t report = {"Reading an out-of-memory report", 2, 0};
static const char page_part[] = "The report page"; /* has no commands that are run */

static const char *find_part(const char *page, const char *heading) {
    char line[128];
    snprintf(line, sizeof line, "\n## %s\n", heading);
    return strstr(page, line);
}

/* The part alone: its files and its commands. */
static void expect_part(const part_t *part) {
    shown_t shown;
    size_t commands = 0, refused = 0;
    char *page CLOSED_BY(text_cleanup) = page_text(PAGE);
    ASSERT_NE(page, NULL);
    const char *begin = find_part(page, part->heading);
    ASSERT_NE(begin, NULL);
    char *end = strstr(begin + 4, "\n## ");
    if (end) end[1] = '\0';
    EXPECT_GT(write_shown_files(begin), 0);
    for (const char *at = begin; next_shown(&at, "", &shown);) {
        if (expect_shown(PAGE, &shown) != 0) refused++;
        commands++;
    }
    EXPECT_GE(commands, part->commands);
    EXPECT_EQ(refused, part->refused);
}

TEST(guide, the_parts_are_the_whole_page) {
    char *page CLOSED_BY(text_cleanup) = page_text(PAGE);
    ASSERT_NE(page, NULL);
    size_t parts = 0;
    for (const char *at = page; (at = strstr(at, "\n## ")) != NULL; at++) parts++;
    EXPECT_EQ(parts, 4);
    EXPECT_TRUE(find_part(page, tuning.heading) && find_part(page, layer.heading));
    EXPECT_TRUE(find_part(page, report.heading) && find_part(page, page_part));
    const char *first = page;
    shown_t shown;
    ASSERT_TRUE(next_shown(&first, "", &shown));
    EXPECT_GT((size_t)(first - page), (size_t)(find_part(page, tuning.heading) - page));
}

TEST(guide, a_setting_becomes_a_tuned_strategy) { expect_part(&tuning); }

/* As an installation's: it says where the headers are. */
static void describe_package(void) {
    write_text("strata.pc",
               "Name: strata\nDescription: layers of GPU memory allocators\nVersion: 0\nCflags: -I" STRATA_SOURCE_DIR "/include\n");
    setenv("PKG_CONFIG_PATH", temporary("."), 1);
}

TEST(guide, a_layer_is_built_checked_and_used) {
    if (run_line("command -v cc && command -v pkg-config").exit_status != 0) TEST_SKIP("no cc, or no pkg-config");
    describe_package();
    expect_part(&layer);
}

TEST(guide, an_out_of_memory_report_is_read) { expect_part(&report); }
