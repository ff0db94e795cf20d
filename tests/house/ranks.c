/* Includes name files from the root and point downwards; what differs between platforms stands in platform/ alone. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"
#include "tests/house/house.h"

enum { PUBLIC = -1, ANYTHING = 8 };

static int rank_of(const char *path) {
    static const struct {
        const char *folder;
        int rank;
    } ranks[] = {{"include/", PUBLIC}, {"doors/cpp/", PUBLIC}, {"platform/", 0}, {"trace/", 0},  {"allocation/", 1},
                 {"planning/", 1},     {"strategy/", 2},       {"config/", 3},   {"facade/", 4}, {"programs/", 5},
                 {"lab/tools/", 7},    {"lab/bench/", 8},      {"lab/", 6},      {"doors/", 6}};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (starts_with(path, ranks[i].folder)) return ranks[i].rank;
    return ANYTHING; /* tests, benchmarks, examples */
}

/* The name between the quotes or brackets of an #include; false if the line is none. */
static bool included_name(const char *line, char *name, size_t capacity, bool *quoted) {
    while (*line == ' ' || *line == '\t') line++;
    if (*line++ != '#') return false;
    while (*line == ' ' || *line == '\t') line++;
    if (!starts_with(line, "include")) return false;
    line += strlen("include");
    while (*line == ' ' || *line == '\t') line++;
    if (*line != '"' && *line != '<') return false;
    *quoted = *line == '"';
    snprintf(name, capacity, "%.*s", (int)strcspn(line + 1, "\">"), line + 1);
    return true;
}

static void rule_includes(const char *path, const char *text, report_t *report) {
    char line[512], name[256], target[300], template[304];
    bool quoted;
    for (int number = 1; next_line(&text, line, sizeof line); number++) {
        if (!included_name(line, name, sizeof name, &quoted)) continue;
        const char *folder = !starts_with(name, "strata/") ? "" : ends_with(name, ".hpp") ? "doors/cpp/" : "include/";
        snprintf(target, sizeof target, "%s%s", folder, name);
        snprintf(template, sizeof template, "%s.in", target);
        if (!tree_has(target) && !tree_has(template)) {
            if (quoted) report_add(report, "%s:%d: \"%s\" is no file from the root", path, number, name);
        } else if (rank_of(target) > rank_of(path)) {
            report_add(report, "%s:%d: rank %d includes %s of rank %d", path, number, rank_of(path), name, rank_of(target));
        }
    }
}

static bool names_platform(const char *line) {
    static const char *const words[] = {"CUDA",     "NVCC", "HIP",     "ROCM",       "WIN32",       "APPLE", "linux",
                                        "__unix__", "BSD",  "ANDROID", "__x86_64__", "__aarch64__", "__arm", "__has_include"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(line, words[i])) return true;
    return false;
}

static void rule_platform(const char *path, const char *text, report_t *report) {
    if (starts_with(path, "platform/")) return;
    char line[512];
    for (int number = 1; next_line(&text, line, sizeof line); number++) {
        const char *word = line;
        while (isspace((unsigned char)*word)) word++;
        if (*word++ != '#') continue;
        while (isspace((unsigned char)*word)) word++;
        if (starts_with(word, "ifndef STRATA_") && ends_with(word, "_H")) continue; /* the guard of a header */
        if ((starts_with(word, "if") || starts_with(word, "elif")) && names_platform(word))
            report_add(report, "%s:%d: #if on a platform outside platform/: %s", path, number, line);
    }
}

TEST(house, includes_point_downwards) { expect_clean(c_files, rule_includes); }

TEST(house, includes_rule_can_fail) {
    expect_found(rule_includes, "platform/x.c", "#include \"strategy/presets.h\"\n", "platform/x.c:1: rank 0 includes");
    expect_found(rule_includes, "allocation/x.c", "int a;\n  #  include <strategy/presets.h>\n", ":2: rank 1 includes");
    expect_found(rule_includes, "include/strata/x.h", "#include \"platform/status.h\"\n", "rank -1 includes");
    expect_found(rule_includes, "programs/x.c", "#include \"lab/trace/read/feed.h\"\n", "rank 5 includes");
    expect_found(rule_includes, "facade/x.c", "#include \"doors/common/door.h\"\n", "rank 4 includes");
    expect_found(rule_includes, "strategy/x.c", "#include \"presets.h\"\n", "no file from the root");
    expect_found(rule_includes, "platform/sim/x.c", "#include \"../status.h\"\n", "no file from the root");
    expect_nothing(rule_includes, "config/x.c",
                   "#include <stdio.h>\n#include \"strategy/presets.h\"\n#include \"strata/strata.h\"\n");
}

TEST(house, platforms_differ_in_platform_only) { expect_clean(c_files, rule_platform); }

TEST(house, platform_rule_can_fail) {
    expect_found(rule_platform, "facade/x.c", "int a;\n#ifdef STRATA_HAVE_CUDA\n#endif\n", "facade/x.c:2");
    expect_found(rule_platform, "lab/tools/x.c", " # if defined(__linux__)\n#endif\n", "lab/tools/x.c:1");
    expect_nothing(rule_platform, "facade/cuda.h", "#ifndef STRATA_FACADE_CUDA_H\n#endif\n");
    expect_nothing(rule_platform, "platform/x.c", "#ifdef __linux__\n#endif\n");
    expect_nothing(rule_platform, "facade/x.c", "#ifdef STRATA_CHECK_LOCKS\n#endif\n/* CUDA if */\n");
}
