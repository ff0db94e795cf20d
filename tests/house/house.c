#include "tests/house/house.h"

#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/paths.h"

const char *const c_files[] = {".c", ".h", ".hpp", ".cc", ".cpp", ".def", NULL};
const char *const text_files[] = {".c",   ".h",           ".hpp",         ".cc",     ".cpp",  ".def", ".md",
                                  ".txt", ".cmake",       ".in",          ".map",    ".yaml", ".sh",  ".json",
                                  ".py",  "scripts/demo", "scripts/test", ".ci/run", NULL};

void report_add(report_t *report, const char *format, ...) {
    report->count++;
    size_t room = sizeof report->text - report->length;
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(report->text + report->length, room, format, arguments);
    va_end(arguments);
    if (written < 0 || (size_t)written + 2 > room) {
        report->text[report->length] = '\0';
        return;
    }
    report->length += (size_t)written;
    report->text[report->length++] = '\n';
    report->text[report->length] = '\0';
}

bool starts_with(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

bool ends_with(const char *text, const char *with) {
    size_t length = strlen(text), wanted = strlen(with);
    return length >= wanted && strcmp(text + length - wanted, with) == 0;
}

bool next_line(const char **text, char *line, size_t capacity) {
    if (!**text) return false;
    size_t length = strcspn(*text, "\n");
    size_t copied = length < capacity ? length : capacity - 1;
    memcpy(line, *text, copied);
    line[copied] = '\0';
    *text += length + ((*text)[length] == '\n');
    return true;
}

static char *read_stream(FILE *stream) {
    size_t length = 0, capacity = 65536;
    char *text = malloc(capacity);
    for (size_t got; text && (got = fread(text + length, 1, capacity - length - 1, stream)) > 0;) {
        length += got;
        if (capacity - length > 1) continue;
        char *larger = realloc(text, capacity *= 2);
        if (!larger) free(text);
        text = larger;
    }
    if (text) text[length] = '\0';
    return text;
}

static void root_path(const char *path, char *whole, size_t capacity) {
    snprintf(whole, capacity, "%s/%s", STRATA_SOURCE_DIR, path);
}

bool tree_has(const char *path) {
    char whole[1024];
    struct stat status;
    root_path(path, whole, sizeof whole);
    return stat(whole, &status) == 0;
}

char *tree_read(const char *path) {
    char whole[1024];
    root_path(path, whole, sizeof whole);
    FILE *file = fopen(whole, "rb");
    if (!file) return NULL;
    char *text = read_stream(file);
    fclose(file);
    return text;
}

char *command_output(const char *command) {
    FILE *pipe = popen(command, "r");
    if (!pipe) return NULL;
    char *text = read_stream(pipe);
    if (pclose(pipe) == 0) return text;
    free(text);
    return NULL;
}

/* Not of the tree: what git keeps for itself, and builds wherever they are. */
static bool is_foreign(const char *name, const char *path) {
    char cache[600];
    snprintf(cache, sizeof cache, "%s/CMakeCache.txt", path);
    return strcmp(path, "build") == 0 || (name[0] == '.' && strcmp(name, ".ci") != 0) || tree_has(cache);
}

typedef struct walk {
    const char *const *endings; /* NULL: folders are wanted */
    rule_fn rule;
    report_t *report;
    size_t seen;
} walk_t;

static void walk_file(walk_t *walk, const char *path) {
    bool wanted = false;
    for (const char *const *ending = walk->endings; ending && *ending; ending++) wanted = wanted || ends_with(path, *ending);
    char *text CLOSED_BY(text_cleanup) = wanted ? tree_read(path) : NULL;
    if (!text) return;
    walk->seen++;
    walk->rule(path, text, walk->report);
}

static void walk_folder(walk_t *walk, const char *folder) {
    char whole[1024], path[512];
    root_path(folder, whole, sizeof whole);
    DIR *directory = opendir(whole);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        snprintf(path, sizeof path, "%s%s%.255s", folder, *folder ? "/" : "", entry->d_name);
        if (is_foreign(entry->d_name, path)) continue;
        if (entry->d_type == DT_DIR) {
            walk_folder(walk, path);
        } else {
            walk_file(walk, path);
        }
    }
    closedir(directory);
    if (walk->endings || !*folder) return;
    walk->seen++;
    walk->rule(folder, "", walk->report);
}

size_t tree_check(const char *const *endings, rule_fn rule, report_t *report) {
    walk_t walk = {.endings = endings, .rule = rule, .report = report};
    walk_folder(&walk, "");
    return walk.seen;
}

size_t tree_check_folders(rule_fn rule, report_t *report) { return tree_check(NULL, rule, report); }

void expect_clean(const char *const *endings, rule_fn rule) {
    static report_t report;
    report = (report_t){.count = 0};
    EXPECT_GT(tree_check(endings, rule, &report), 10);
    if (report.count) FAIL_TEST("%zu violations:\n%s", report.count, report.text);
}

void expect_found(rule_fn rule, const char *path, const char *text, const char *part) {
    static report_t report;
    report = (report_t){.count = 0};
    rule(path, text, &report);
    EXPECT_EQ(report.count, 1);
    EXPECT_CONTAINS(report.text, part);
}

void expect_nothing(rule_fn rule, const char *path, const char *text) {
    static report_t report;
    report = (report_t){.count = 0};
    rule(path, text, &report);
    if (report.count) FAIL_TEST("found in a text that breaks no rule:\n%s", report.text);
}

static bool is_library(const char *path) {
    static const char *const ranks[] = {"platform/",    "trace/",       "allocation/", "planning/",  "strategy/",
                                        "config/",      "facade/",      "programs/",   "lab/trace/", "lab/replay/",
                                        "lab/conform/", "lab/torture/", "lab/tools/",  NULL};
    for (size_t i = 0; ranks[i]; i++)
        if (starts_with(path, ranks[i])) return true;
    return false;
}

static bool is_excepted(const char *path, const char *const *exceptions) {
    for (size_t i = 0; exceptions[i]; i++)
        if (strcmp(path, exceptions[i]) == 0 || (ends_with(exceptions[i], "/") && starts_with(path, exceptions[i]))) return true;
    return false;
}

void report_calls(const char *path, const char *text, const char *const *calls, const char *const *exceptions, report_t *report) {
    if (!is_library(path) || is_excepted(path, exceptions)) return;
    for (size_t i = 0; calls[i]; i++) {
        size_t length = strlen(calls[i]);
        for (const char *at = text; (at = strstr(at, calls[i])); at += length) {
            bool begins = at == text || !(isalnum((unsigned char)at[-1]) || strchr("_.>\"", at[-1]));
            if (begins && at[length] == '(' && at[length + 1] != ')') report_add(report, "%s: calls %s()", path, calls[i]);
        }
    }
}
