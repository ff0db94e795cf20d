/* Files, functions and folders stay small, top-level folders have a README, and nothing is left behind in the files. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"
#include "tests/house/house.h"

enum { MOST_LINES = 600, MOST_FUNCTION_LINES = 60, MOST_FILES = 25, FOLDERS = 200, NAME = 128 };

static void rule_file_length(const char *path, const char *text, report_t *report) {
    size_t lines = 0;
    for (; *text; text++) lines += *text == '\n';
    if (lines > MOST_LINES) report_add(report, "%s: %zu lines, %d are the most", path, lines, MOST_LINES);
}

/* In the tree's style a function begins with a line at column 0, its last heading line ends with ") {", and "}" at column 0
 * ends it; one that is whole on its line is short. Macros of several lines are passed over. */
static void rule_function_length(const char *path, const char *text, report_t *report) {
    char line[512], heading[512] = "";
    size_t start = 0;
    bool inside = false, macro = false;
    for (size_t number = 1; next_line(&text, line, sizeof line); number++) {
        bool in_macro = macro;
        macro = ends_with(line, "\\") && (in_macro || line[0] == '#');
        if (in_macro || line[0] == '#') continue;
        if (!inside && (isalpha((unsigned char)line[0]) || line[0] == '_')) {
            start = number;
            snprintf(heading, sizeof heading, "%s", line);
        }
        if (!inside && start && ends_with(line, ") {")) {
            inside = true;
        } else if (!inside && (ends_with(line, ";") || ends_with(line, "{") || ends_with(line, "}"))) {
            start = 0;
        } else if (inside && line[0] == '}') {
            if (number - start + 1 > MOST_FUNCTION_LINES)
                report_add(report, "%s:%zu: %zu lines, %d are the most: %s", path, start, number - start + 1, MOST_FUNCTION_LINES,
                           heading);
            inside = false;
            start = 0;
        }
    }
}

/* The README of a top-level folder describes the folders in it. */
static void rule_readme(const char *path, const char *text, report_t *report) {
    (void)text;
    char readme[600];
    if (strchr(path, '/') || strcmp(path, "include") == 0 || strcmp(path, ".ci") == 0) return;
    snprintf(readme, sizeof readme, "%s/README.md", path);
    if (!tree_has(readme)) report_add(report, "%s has no README.md", path);
}

static struct {
    char name[NAME];
    int files;
} folders[FOLDERS];

/* Reports the first file that is one too many in its folder. Nobody reads a list of fifty names to find the right one. */
static void rule_folder_size(const char *path, const char *text, report_t *report) {
    (void)text;
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) : 0, at = 0;
    while (at < FOLDERS && folders[at].files && (strncmp(folders[at].name, path, (size_t)length) || folders[at].name[length])) at++;
    if (at == FOLDERS || length >= NAME) {
        report_add(report, "%s: more than %d folders, or a name of more than %d bytes", path, FOLDERS, NAME);
        return;
    }
    snprintf(folders[at].name, NAME, "%.*s", length, path);
    if (++folders[at].files == MOST_FILES + 1) report_add(report, "%s: its folder has more than %d files", path, MOST_FILES);
}

/* Names of temporary files end in letters that look like a mark: a dash or a quote before them is no beginning of a word. */
static bool is_word(const char *text, const char *at, size_t length) {
    bool before = at > text && (isalnum((unsigned char)at[-1]) || strchr("_-\"", at[-1]));
    bool after = isalnum((unsigned char)at[length]) || at[length] == '_';
    return !before && !after;
}

/* The words are written in pieces, so that this file does not break its own rule. */
static void rule_marks(const char *path, const char *text, report_t *report) {
    static const char *const marks[] = {"TO"
                                        "DO",
                                        "FIX"
                                        "ME",
                                        "XX"
                                        "X",
                                        "HA"
                                        "CK",
                                        "<<<<"
                                        "<<<",
                                        ">>>>"
                                        ">>>"};
    static const char *const machines[] = {"/wo"
                                           "rk/",
                                           "/ho"
                                           "me/",
                                           "/ro"
                                           "ot/",
                                           "/Us"
                                           "ers/"};
    char line[1024];
    for (int number = 1; next_line(&text, line, sizeof line); number++) {
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
            const char *at = strstr(line, marks[i]);
            if (at && is_word(line, at, strlen(marks[i]))) report_add(report, "%s:%d: left over: %s", path, number, line);
        }
        for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
            const char *at = strstr(line, machines[i]);
            if (at && (at == line || !isalnum((unsigned char)at[-1])) && (at == line || at[-1] != '.'))
                report_add(report, "%s:%d: a path of one machine: %s", path, number, line);
        }
    }
}

/* `lines` lines, the first and last as given. */
static char *planted_lines(const char *first, size_t lines, const char *last) {
    char *text = calloc(lines + 2, 64);
    if (!text) return NULL;
    size_t length = (size_t)sprintf(text, "%s\n", first);
    for (size_t i = 2; i < lines; i++) length += (size_t)sprintf(text + length, "    a++;\n");
    sprintf(text + length, "%s\n", last);
    return text;
}

static void expect_lengths(rule_fn rule, size_t most, const char *first, const char *last, const char *part) {
    char *fits = planted_lines(first, most, last), *too_long = planted_lines(first, most + 1, last);
    ASSERT_TRUE(fits && too_long);
    expect_nothing(rule, "facade/x.c", fits);
    expect_found(rule, "facade/x.c", too_long, part);
    free(fits);
    free(too_long);
}

TEST(house, files_are_short) { expect_clean(c_files, rule_file_length); }

TEST(house, files_rule_can_fail) { expect_lengths(rule_file_length, MOST_LINES, "int a;", "int b;", "601 lines"); }

TEST(house, functions_are_short) { expect_clean(c_files, rule_function_length); }

TEST(house, functions_rule_can_fail) {
    expect_lengths(rule_function_length, MOST_FUNCTION_LINES, "static int f(int a) {", "}", "x.c:1: 61 lines");
    expect_lengths(rule_function_length, MOST_FUNCTION_LINES, "static int g(void) { return 1; }\nstatic int f(int a) {", "}",
                   "x.c:2: 61 lines");
    /* Its heading takes two lines; the macro before it is not its own. */
    expect_lengths(rule_function_length, MOST_FUNCTION_LINES - 1, "#define A(c) \\\n    b\nint f(int a,\n      int b) {", "}",
                   "x.c:3: 61 lines");
}

TEST(house, folders_have_a_readme) {
    static report_t report;
    EXPECT_GT(tree_check_folders(rule_readme, &report), 10);
    if (report.count) FAIL_TEST("%s", report.text);
}

TEST(house, readme_rule_can_fail) {
    expect_found(rule_readme, "nowhere", "", "nowhere has no README.md");
    expect_nothing(rule_readme, "traces", "");
    expect_nothing(rule_readme, "traces/nowhere", "");
}

TEST(house, folders_are_small) {
    static const char *const source_files[] = {".c", ".h", ".hpp", ".cc", ".cpp", ".py", ".js", ".yaml", ".sh", NULL};
    memset(folders, 0, sizeof folders);
    expect_clean(source_files, rule_folder_size);
}

TEST(house, folder_size_rule_can_fail) {
    char path[64];
    memset(folders, 0, sizeof folders);
    for (int i = 0; i < MOST_FILES; i++) {
        snprintf(path, sizeof path, "facade/planted/%d.c", i);
        expect_nothing(rule_folder_size, path, "");
        snprintf(path, sizeof path, "facade/planted/below/%d.c", i);
        expect_nothing(rule_folder_size, path, "");
    }
    expect_found(rule_folder_size, "facade/planted/last.c", "", "facade/planted/last.c: its folder has more than 25 files");
    memset(folders, 0, sizeof folders);
}

TEST(house, nothing_is_left_after) { expect_clean(text_files, rule_marks); }

TEST(house, marks_rule_can_fail) {
    expect_found(rule_marks, "a.c",
                 "int a; /* TO"
                 "DO: b */\n",
                 "a.c:1: left over");
    expect_found(rule_marks, "a.md",
                 "x\n<<<<"
                 "<<< HEAD\n",
                 "a.md:2: left over");
    expect_found(rule_marks, "a.sh",
                 "cd /ho"
                 "me/someone\n",
                 "a.sh:1: a path of one machine");
    expect_nothing(rule_marks, "a.sh",
                   "mktemp -d /tmp/strata-XX"
                   "XXXX; mktemp -XX"
                   "X; cd frame/wo"
                   "rk/x; cat /usr/include/x.h\n");
}
