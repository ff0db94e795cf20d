/* The shared library exports what the public headers promise, and needs libyaml, zlib and the C library only. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"
#include "tests/house/house.h"

/* Names, each between spaces, so that strstr finds whole ones. */
typedef struct names {
    char text[65536];
    size_t length, count;
} names_t;

static bool has_name(const names_t *names, const char *name) {
    char spaced[260];
    snprintf(spaced, sizeof spaced, " %.250s ", name);
    return strstr(names->text, spaced) != NULL;
}

static void add_name(names_t *names, const char *name) {
    if (names->length + strlen(name) + 3 > sizeof names->text || has_name(names, name)) return;
    names->length += (size_t)sprintf(names->text + names->length, " %.250s ", name);
    names->count++;
}

/* `difference` hears of every name of `some` that is not in `others`. */
static void check_names(const names_t *some, const names_t *others, const char *what, report_t *difference) {
    char name[256];
    for (const char *at = some->text; (at += strspn(at, " ")), *at; at += strcspn(at, " ")) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
        if (!has_name(others, name)) report_add(difference, "%s %s", name, what);
    }
}

/* STRATA_API type name(...): the last word before the first bracket or semicolon. */
static void add_marked(names_t *names, const char *text) {
    static const char mark[] = "STRATA_API ";
    char name[256];
    for (const char *at = text; (at = strstr(at, mark)) != NULL;) {
        const char *line = at;
        while (line > text && line[-1] != '\n') line--;
        at += strlen(mark);
        if (line[0] == '#') continue;
        const char *end = at + strcspn(at, "([;=");
        while (end > at && isspace((unsigned char)end[-1])) end--;
        const char *begin = end;
        while (begin > at && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_')) begin--;
        snprintf(name, sizeof name, "%.*s", (int)(end - begin), begin);
        add_name(names, name);
    }
}

static names_t promised, defined;

static void add_header(const char *path, const char *text, report_t *report) {
    (void)report;
    static const char folder[] = "include/";
    if (starts_with(path, folder)) add_marked(&promised, text);
}

/* nm -D --defined-only: "address type name@@version". 'A' are the versions themselves. */
static void add_defined(names_t *names, const char *text) {
    char line[512], type, name[256];
    while (next_line(&text, line, sizeof line)) {
        if (sscanf(line, "%*s %c %255[^@\n]", &type, name) == 2 && type != 'A') add_name(names, name);
    }
}

/* The lines of ldd: "\tname => path (address)", or the loader's path alone. */
static void check_needed(const char *text, const char *sanitizers, report_t *report) {
    static const char *const allowed[] = {"linux-vdso.",      "libyaml-0.",  "libz.",  "libc.",    "libm.",
                                          "libdl.",           "libpthread.", "librt.", "/lib/ld-", "/lib64/ld-",
                                          "statically linked"};
    static const char *const sanitizer[] = {"libasan.", "libubsan.", "libtsan.", "libstdc++.", "libgcc_s."};
    char line[512];
    while (next_line(&text, line, sizeof line)) {
        const char *name = line + strspn(line, " \t");
        bool known = *name == '\0';
        for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) known = known || starts_with(name, allowed[i]);
        for (size_t i = 0; *sanitizers && i < sizeof sanitizer / sizeof *sanitizer; i++)
            known = known || starts_with(name, sanitizer[i]);
        if (!known) report_add(report, "needs %s", name);
    }
}

TEST(house, library_exports_what_the_headers_promise) {
    static report_t report;
    tree_check(c_files, add_header, &report);
    char *text = command_output("nm -D --defined-only " STRATA_LIBRARY_FILE);
    ASSERT_TRUE(text);
    add_defined(&defined, text);
    free(text);
    EXPECT_GT(promised.count, 10);
    check_names(&promised, &defined, "is promised by a header and not exported", &report);
    check_names(&defined, &promised, "is exported and in no public header", &report);
    if (report.count) FAIL_TEST("%s", report.text);
}

TEST(house, exports_rule_can_fail) {
    static names_t headers, library;
    static report_t report;
    add_marked(&headers, "#define STRATA_API x\nSTRATA_API const char *strata_a(int b);\nSTRATA_API int\nstrata_b(void);\n"
                         "STRATA_API extern const int strata_c[];\n");
    EXPECT_EQ(headers.count, 3);
    add_defined(&library,
                "0000000000001139 T strata_a@@STRATA_1\n0000000000001140 R strata_c\n000000 A STRATA_1\n00001 B yaml_x\n");
    check_names(&headers, &library, "missing", &report);
    check_names(&library, &headers, "surplus", &report);
    EXPECT_STREQ(report.text, "strata_b missing\nyaml_x surplus\n");
}

TEST(house, library_needs_yaml_zlib_and_libc_only) {
    static report_t report;
    char *text = command_output("ldd " STRATA_LIBRARY_FILE);
    ASSERT_TRUE(text);
    check_needed(text, STRATA_SANITIZERS, &report);
    EXPECT_CONTAINS(text, "libc.");
    free(text);
    if (report.count) FAIL_TEST("%s", report.text);
}

TEST(house, needs_rule_can_fail) {
    static report_t report;
    check_needed("\tlibyaml-0.so.2 => /usr/lib/libyaml-0.so.2 (0x1)\n\tlibcuda.so.1 => /x (0x1)\n\tlibcudart.so.12 => /x (0x1)\n",
                 "", &report);
    EXPECT_EQ(report.count, 2);
    EXPECT_CONTAINS(report.text, "needs libcuda.so.1");
    EXPECT_CONTAINS(report.text, "needs libcudart.so.12");
}
