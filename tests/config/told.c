/* What is told: check, explain, the list of layers, docs/layers.md. */
#include <stdio.h>
#include <stdlib.h>

#include "config/words.h"
#include "tests/config/refused.h"
#include "tests/harness/owned.h"
#include "tests/paths.h"

static const char *checked(const char *name, const char *yaml, size_t *count) {
    FILE *out = tmpfile();
    *count = strata_config_check(file_of(name, yaml), false, out);
    return read_back(out);
}

typedef struct faulty {
    const char *name, *yaml;
    const char *places[12]; /* of its errors, in their order */
} faulty_t;

static const faulty_t faulty[] = {
    {"a_strategy",
     "version: 3\n"
     "stak: 1\n"
     "devices: gpuu\n"
     "stack:\n"
     "  - retry: {timeout: 100, wait_frist: true}\n"
     "  - stream_save\n"
     "  - auto_growth: {chunk_size: 20MB, order: adress}\n"
     "  - system\n"
     "places:\n"
     "  pinned: [auto_growth, retry, system]\n"
     "  host: [retry]\n"
     "  hosd: [system]\n",
     {"1:10", "2:1", "3:10", "5:22", "5:27", "6:5", "7:31", "7:44", "12:3", "10:12", "11:10"}},
    {"pools_and_streams",
     "pools:\n"
     "  weights: [auto_grwoth, system]\n"
     "  cache: {stack: [auto_growth], places: {hots: [system]}}\n"
     "streams:\n"
     "  \"c?\": [system]\n"
     "  \"d*\": [retry: {timeout: 1}, system]\n",
     {"2:13", "3:42", "5:3", "6:27", "3:19"}},
    {"a_stack_of_graphs",
     "graph:\n"
     "  keep: true\n"
     "  stack: [auto_grwoth, system]\n"
     "  places: {managed: [system], hots: [system]}\n",
     {"2:3", "3:11", "4:31", "4:21"}},
    {"routers",
     "stack:\n"
     "  - binning:\n"
     "      routes:\n"
     "        - {up_to: 1MX, stack: [auto_growth: {chunk_syze: 1MiB}, system]}\n"
     "        - {stack: [sistem]}\n"
     "places:\n"
     "  pinned: [fallback]\n",
     {"4:19", "4:46", "5:20", "7:12"}},
};

TEST_EACH(check, tells_every_error_in_a_line, faulty_t, faulty) {
    size_t count, lines = 0, wanted = 0;
    const char *text = checked("wrong.yaml", row->yaml, &count);
    for (const char *at = text; *at; at++) lines += *at == '\n';
    EXPECT_EQ(lines, count);
    for (; row->places[wanted]; wanted++) {
        char place[64];
        snprintf(place, sizeof place, "wrong.yaml:%s: ", row->places[wanted]);
        const char *found = strstr(text, place);
        if (!found) FAIL_TEST("no line of %s in\n%s", place, text);
        text = found ? found : text;
    }
    EXPECT_EQ(count, wanted);
}

TEST(check, says_nothing_of_a_right_file) {
    size_t count;
    EXPECT_STREQ(checked("right.yaml", "version: 1\nstack: [stream_safe, auto_growth: {chunk_size: 1MiB}, system]\n", &count), "");
    EXPECT_EQ(count, 0);
}

TEST(check, a_missing_layer_is_told_once) {
    size_t count;
    EXPECT_CONTAINS(checked("missing.yaml", "stack: [auto_growth, sistem]\n", &count), "no layer \"sistem\"");
    EXPECT_EQ(count, 1);
    const char *text = checked("replaced.yaml", "extends: missing.yaml\nstack: [auto_growth]\n", &count);
    EXPECT_CONTAINS(text, "missing.yaml:1:22: ");
    EXPECT_CONTAINS(text, "replaced.yaml:2:9: \"auto_growth\" has nothing below it");
    EXPECT_EQ(count, 2);
}

TEST(check, a_file_that_is_no_yaml_is_one_error) {
    size_t count;
    EXPECT_CONTAINS(checked("broken.yaml", "stack: [", &count), "broken.yaml:2:1: ");
    EXPECT_EQ(count, 1);
    FILE *out = tmpfile();
    EXPECT_EQ(strata_config_check("no/such.yaml", false, out), 1);
    EXPECT_CONTAINS(read_back(out), "no/such.yaml: cannot read the file: ");
}

TEST(check, a_flood_of_errors_ends) {
    static char yaml[16384];
    size_t length = (size_t)sprintf(yaml, "version: 1\n"), count;
    for (int i = 0; i < 200; i++) length += (size_t)sprintf(yaml + length, "key%d: 1\n", i);
    const char *text = checked("flood.yaml", yaml, &count);
    EXPECT_EQ(count, 100);
    EXPECT_CONTAINS(text, "flood.yaml:101:1: ");
    EXPECT_CONTAINS(text, "more than 99 errors; the rest is not shown\n");
}

TEST(explain, tells_every_value_and_where_it_came_from) {
    const char *set[] = {"auto_growth.alignment=256"};
    const char *path = file_of("explained.yaml", "description: to be told\n"
                                                 "devices: sim:h100\n"
                                                 "stack:\n"
                                                 "  - stream_safe\n"
                                                 "  - auto_growth: {name: blocks, chunk_size: 1.5MiB}\n"
                                                 "  - system\n");
    char wanted[2048];
    strata_config_request_t request = {.file = path, .set = set, .set_count = 1, .environment = true};
    setenv("STRATA_SET", "stream_safe.poll=block", 1);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(&request);
    unsetenv("STRATA_SET");
    FILE *out = tmpfile();
    EXPECT_OK(strata_config_explain(strategy, out));
    const char *text = read_back(out);
    snprintf(wanted, sizeof wanted,
             "strategy explained: to be told  [%s:1:1]\ndevices: sim:h100  [%s:2:10]\n\nstack (gpu), outermost first\n", path,
             path);
    EXPECT_CONTAINS(text, wanted);
    snprintf(wanted, sizeof wanted, "  stream_safe: decorator of scope stream, one instance for each stream  [%s:4:5]\n", path);
    EXPECT_CONTAINS(text, wanted);
    snprintf(wanted, sizeof wanted, "  blocks (auto_growth): cache of scope stream, one instance for each stream  [%s:5:5]\n",
             path);
    EXPECT_CONTAINS(text, wanted);
    snprintf(wanted, sizeof wanted, "    chunk_size               1.5MiB       %s:5:45\n", path);
    EXPECT_CONTAINS(text, wanted);
    EXPECT_CONTAINS(text, "    poll                     block        STRATA_SET\n");
    EXPECT_CONTAINS(text, "    alignment                256          --set\n");
    EXPECT_CONTAINS(text, "    order                    address      default\n");
    EXPECT_CONTAINS(text, "source of scope device, one instance for each device, shared by all its streams");
    EXPECT_CONTAINS(text, "\npinned, outermost first; one stack serves all streams\n");
    EXPECT_CONTAINS(text, "preset strata:");
}

/* The stack of one place names a `retry`, by either name; those of the others do not. */
TEST(explain, shows_the_retry_that_is_added) {
    static const char *const texts[] = {"stack: [retry, system]\n", "stack: [system]\nout_of_memory: {timeout: 1s}\n",
                                        "stack: [system]\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(texts[i]);
        FILE *out = tmpfile();
        EXPECT_OK(strata_config_explain_short(strategy, out));
        const char *added = strstr(read_back(out),
                                   "stack (gpu), outermost first\n  retry: {timeout: 0}: added, because the stack has none");
        EXPECT_EQ(added != NULL, i == 2);
    }
}

TEST(explain, a_full_disk_is_an_error) {
    FILE *out = fopen("/dev/full", "w");
    if (!out) TEST_SKIP("no /dev/full on this machine");
    strata_strategy_t *strategy = load_text("stack: [system]");
    EXPECT_STATUS(STRATA_E_IO, strata_config_explain(strategy, out));
    EXPECT_STATUS(STRATA_E_IO, strata_config_layers(out, true));
    EXPECT_STATUS(STRATA_E_IO, strata_config_grammar(out));
    strata_strategy_delete(strategy);
    fclose(out);
}

TEST(layers, as_text_have_every_option) {
    FILE *out = tmpfile();
    EXPECT_OK(strata_config_layers(out, false));
    const char *text = read_back(out);
    const strata_layer_type_t *type;
    for (size_t i = 0; (type = strata_layer_at(i)); i++) {
        EXPECT_EQ(strata_layer_find(type->name), type);
        EXPECT_CONTAINS(text, type->name);
        EXPECT_CONTAINS(text, type->doc);
        for (const strata_option_row_t *row = type->options; row && row->name; row++) {
            EXPECT_CONTAINS(text, row->name);
            EXPECT_CONTAINS(text, row->doc);
        }
        for (const strata_stat_row_t *row = type->stats; row && row->name; row++) EXPECT_CONTAINS(text, row->doc);
    }
    EXPECT_EQ(strata_layer_find("no_such_layer"), NULL);
}

TEST(layers, the_page_is_current) {
    FILE *out = tmpfile();
    EXPECT_OK(strata_config_layers(out, true));
    char *now CLOSED_BY(text_cleanup) = strdup(read_back(out));
    FILE *page = fopen(STRATA_SOURCE_DIR "/docs/layers.md", "rb");
    ASSERT_NE(page, NULL);
    const char *text = read_back(page);
    if (strcmp(text, now) != 0) FAIL_TEST("docs/layers.md is not what `strata layers --markdown` writes");
}

/* A layer of thread scope that has an instance for each stream of its threads. */
TEST(explain, says_who_shares_what_a_thread_has) {
    static const struct {
        const char *streams, *gpu, *pinned;
    } rows[] = {{"own", "one instance for each stream of each thread", "one instance for each thread  "},
                {"ignored", "one instance for each thread, shared by all its streams", "one instance for each thread  "}};
    for (int i = 0; i < 2; i++) {
        char yaml[300];
        snprintf(yaml, sizeof yaml,
                 "stack: [thread_local: {streams: %s}, system]\nplaces:\n  pinned: [thread_local: {streams: %s}, system]\n",
                 rows[i].streams, rows[i].streams);
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(yaml);
        FILE *out = tmpfile();
        EXPECT_OK(strata_config_explain(strategy, out));
        const char *text = read_back(out);
        EXPECT_CONTAINS(text, rows[i].gpu);
        const char *pinned = strstr(text, "\npinned, outermost first");
        EXPECT_CONTAINS(pinned, rows[i].pinned);
    }
}

/* What does not fit goes on below, indented; a text's own lines do too, and an empty one has no blanks. */
TEST(told, long_text_is_wrapped) {
    char *told CLOSED_BY(text_cleanup) = NULL;
    size_t length;
    FILE *out = open_memstream(&told, &length);
    strata_print_wrapped(out, "one two three\n  four\n\nfive", 4, 12);
    fclose(out);
    EXPECT_STREQ(told, "one two\n    three\n      four\n\n    five\n");
}
