/* The figures as JSON, as a table, as a page. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/replay/compare/findings.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/replay/support/helpers.h"

/* ---- JSON, just far enough to tell whether a text is some ---- */

static const char *value_end(const char *at);

static const char *spaces(const char *at) {
    while (isspace((unsigned char)*at)) at++;
    return at;
}

static const char *string_end(const char *at) {
    if (*at++ != '"') return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < ' ') return NULL;
        if (*at == '\\' && !strchr("\"\\/bfnrtu", *++at)) return NULL;
    }
    return at + 1;
}

/* An object or array, whose members have names or not. */
static const char *group_end(const char *at, char close, bool named) {
    at = spaces(at + 1);
    if (*at == close) return at + 1;
    for (;;) {
        if (named) {
            at = string_end(spaces(at));
            if (!at || *(at = spaces(at)) != ':') return NULL;
            at++;
        }
        at = value_end(at);
        if (!at) return NULL;
        at = spaces(at);
        if (*at == close) return at + 1;
        if (*at++ != ',') return NULL;
    }
}

static const char *value_end(const char *at) {
    static const char *const words[] = {"true", "false", "null"};
    at = spaces(at);
    if (*at == '{') return group_end(at, '}', true);
    if (*at == '[') return group_end(at, ']', false);
    if (*at == '"') return string_end(at);
    for (size_t i = 0; i < 3; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0) return at + strlen(words[i]);
    char *end;
    if (*at != '-' && !isdigit((unsigned char)*at)) return NULL;
    strtod(at, &end);
    return end;
}

static bool is_json(const char *text) {
    const char *end = value_end(text);
    return end && !*spaces(end);
}

static char *json_of(const strata_figures_t *runs, size_t count) {
    char path[256];
    size_t length = 0;
    strata_output_t *out = NULL;
    snprintf(path, sizeof path, "%s", temporary("figures.json"));
    EXPECT_OK(strata_output_open(path, &out));
    if (!out) return NULL;
    strata_findings_json(out, &(strata_findings_t){.runs = runs, .candidates = count, .traces = count > 0});
    EXPECT_OK(strata_output_finish(out));
    char *text = read_bytes(path, &length);
    if (text) text[length] = '\0';
    return text;
}

static strata_figures_t some_figures(void) {
    static const char *const set[] = {"a.b=1", "c.d=x\"y", "a.b=2"};
    strata_figures_t f = {.trace = "t.csv", .label = "one", .strategy = "s", .device = "sim:h100"};
    f.options = (strata_figure_options_t){.set = set, .count = 3};
    f.capacity_bytes = STRATA_FIGURE_NULL;
    f.gpu_lag_us = 5000;
    f.fragmentation = (double)NAN;
    f.peak_requested_bytes = 1000;
    f.peak_reserved_bytes = 1335;
    f.device_calls.made[STRATA_CALL_malloc] = 48663;
    f.end_ms = 12.5;
    f.host_ns_per_op = (strata_figure_spread_t){.min = 1, .median = 2, .max = 3, .count = 3};
    f.smallest_device_bytes = STRATA_FIGURE_NULL;
    f.pinned_requested_bytes = f.pinned_reserved_bytes = STRATA_FIGURE_NULL;
    f.host_requested_bytes = f.host_reserved_bytes = STRATA_FIGURE_NULL;
    return f;
}

TEST(reports, json_has_every_field) {
    strata_figures_t figures[2] = {some_figures(), some_figures()};
    figures[1].label = "a\"\\\n\x01\xff\xc3\xa9\xc2\x85\xc2\x9b\xe2\x80\xae";
    figures[1].host_ns_per_op.count = 0;
    char *json = json_of(figures, 2);
    ASSERT_NE(json, NULL);
    EXPECT_TRUE(is_json(json));
    EXPECT_CONTAINS(json, "{\"schema\": 1, \"runs\": [{");
#define EXPECT_FIELD(kind, name, unit, meaning) EXPECT_CONTAINS(json, "\"" #name "\": ");
    STRATA_FIGURE_MAP(EXPECT_FIELD)
    EXPECT_CONTAINS(json, "\"options\": {\"c.d\": \"x\\\"y\", \"a.b\": \"2\"}");
    EXPECT_CONTAINS(json, "\"capacity_bytes\": null");
    EXPECT_CONTAINS(json, "\"gpu_lag_us\": 5000");
    EXPECT_CONTAINS(json, "\"fragmentation\": null");
    EXPECT_CONTAINS(json, "\"device_calls\": {\"malloc\": 48663, \"free\": 0, \"malloc_async\": 0");
    EXPECT_CONTAINS(json, "\"host_alloc\": 0, \"host_free\": 0}");
    EXPECT_LACKS(json, "event_create");
    EXPECT_CONTAINS(json, "\"host_ns_per_op\": {\"min\": 1.000, \"median\": 2.000, \"max\": 3.000}");
    EXPECT_CONTAINS(json, "\"label\": \"a\\\"\\\\\\u000a\\u0001\\ufffd\xc3\xa9\\u0085\\u009b\\u202e\"");
    free(json);
    json = json_of(figures, 0);
    EXPECT_STREQ(json, "{\"schema\": 1, \"runs\": []}\n");
    free(json);
}

TEST(reports, the_json_of_this_test_can_be_wrong) {
    EXPECT_FALSE(is_json("{\"a\": 1,}"));
    EXPECT_FALSE(is_json("{\"a\": nan}"));
    EXPECT_FALSE(is_json("[\"a\n\"]"));
    EXPECT_FALSE(is_json("[1 2]"));
    EXPECT_TRUE(is_json(" {\"a\": [1.5e3, \"\\u00e9\", null, {}]} "));
}

/* A page of the project holds what a printer prints. */
static char *printed(void (*print)(FILE *out)) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out) return NULL;
    print(out);
    fclose(out);
    return text;
}

TEST(reports, the_page_of_fields_is_current) {
    char path[1024];
    size_t length = 0;
    snprintf(path, sizeof path, "%s/docs/fields.md", STRATA_SOURCE_DIR);
    char *page = read_bytes(path, &length), *now = printed(strata_figures_page);
    ASSERT_TRUE(page && now);
    page[length] = '\0';
    if (strcmp(page, now) != 0) FAIL_TEST("docs/fields.md is not what `strata fields` prints");
    free(page);
    free(now);
}

static void print_table(FILE *out) {
    strata_figures_t figures[4] = {some_figures(), some_figures(), some_figures(), some_figures()};
    figures[1].label = "two";
    figures[1].modelled = true;
    figures[1].gpu_lag_us = STRATA_FIGURE_NULL;
    figures[2].trace = figures[3].trace = "u.csv";
    figures[3].smallest_device_bytes = 3 << 20;
    strata_figures_table(out, figures, 4, &(strata_table_view_t){.columns = 2});
}

/* 28 letters of 25 that there are, beside 18. */
static void print_spreads(FILE *out) {
    strata_figures_t figures[2] = {some_figures(), some_figures()};
    figures[0].host_ns_per_op = (strata_figure_spread_t){.min = 4664.4, .median = 4729.7, .max = 4810.6, .count = 3};
    figures[1].host_ns_per_op = (strata_figure_spread_t){.min = 1, .median = 2, .max = 3, .count = 3};
    strata_figures_table(out, figures, 2, &(strata_table_view_t){.columns = 2, .width = 80});
}

TEST(reports, a_row_is_cut_in_all_columns_or_none) {
    char *table CLOSED_BY(text_cleanup) = printed(print_spreads);
    ASSERT_NE(table, NULL);
    char line[256] = "", first[32], second[32];
    const char *row = strstr(table, "  host_ns_per_op ");
    ASSERT_NE(row, NULL);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(row, "\n"), row);
    EXPECT_EQ(sscanf(line, " host_ns_per_op %31s ns %31s ns", first, second), 2);
    EXPECT_STREQ(first, "4729.7");
    EXPECT_STREQ(second, "2.0");
    EXPECT_EQ(strchr(line, '('), NULL);
}

TEST(reports, the_table_can_be_read) {
    char *table CLOSED_BY(text_cleanup) = printed(print_table);
    ASSERT_NE(table, NULL);
    EXPECT_CONTAINS(table, "t.csv\n  label ");
    EXPECT_CONTAINS(table, "\nu.csv\n");
    EXPECT_CONTAINS(table, "5 ms");
    EXPECT_CONTAINS(table, "48,663");
    EXPECT_CONTAINS(table, "1.3350 x");
    EXPECT_CONTAINS(table, "12.5 ms");
    EXPECT_CONTAINS(table, "3.00 MiB");
    EXPECT_CONTAINS(table, "modelled: figures of that column");
    size_t width = 0;
    for (const char *line = strstr(table, "  label"); *line; line += strcspn(line, "\n") + 1) { /* columns are aligned */
        size_t length = strcspn(line, "\n");
        if (length == 0) break;
        if (line[2] == 'm' && line[10] == ':') break;
        if (width == 0) width = length;
        EXPECT_EQ(length, width);
    }
}
