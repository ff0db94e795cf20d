/* Folders include one another in one direction only. A cycle of folders cannot be read, tested or replaced in parts. */
#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"
#include "tests/house/house.h"

enum { FOLDERS = 160, NAME = 96 };

typedef struct graph {
    char names[FOLDERS][NAME];
    int count;
    bool includes[FOLDERS][FOLDERS], reaches[FOLDERS][FOLDERS];
    char example[FOLDERS][FOLDERS][2 * NAME]; /* a file of the one that includes a file of the other */
} graph_t;

static graph_t graph;

static int folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) : 0;
    for (int i = 0; i < graph.count; i++)
        if ((int)strlen(graph.names[i]) == length && strncmp(graph.names[i], path, (size_t)length) == 0) return i;
    if (graph.count == FOLDERS || length >= NAME) return -1;
    snprintf(graph.names[graph.count], NAME, "%.*s", length, path);
    return graph.count++;
}

/* The include graph of the tests is not of interest: nothing is built from them. */
static void rule_collect(const char *path, const char *text, report_t *report) {
    static const char opening[] = "#include \"";
    char line[512];
    if (starts_with(path, "tests/") || starts_with(path, "lab/bench/") || starts_with(path, "examples/")) return;
    while (next_line(&text, line, sizeof line)) {
        if (!starts_with(line, opening)) continue;
        char *target = line + strlen(opening);
        target[strcspn(target, "\"")] = '\0';
        int from = folder_of(path), to = folder_of(target);
        if (from < 0 || to < 0) {
            report_add(report, "%s: more than %d folders, or a name of more than %d bytes", path, FOLDERS, NAME);
            return;
        }
        if (from == to || graph.includes[from][to]) continue;
        graph.includes[from][to] = true;
        snprintf(graph.example[from][to], sizeof graph.example[from][to], "%.90s includes %.90s", path, target);
    }
}

static void close_graph(void) {
    memcpy(graph.reaches, graph.includes, sizeof graph.reaches);
    for (int middle = 0; middle < graph.count; middle++)
        for (int from = 0; from < graph.count; from++)
            for (int to = 0; graph.reaches[from][middle] && to < graph.count; to++)
                if (graph.reaches[middle][to]) graph.reaches[from][to] = true;
}

/* Reports each include that lies on a cycle. */
static void report_cycles(report_t *report) {
    close_graph();
    for (int from = 0; from < graph.count; from++)
        for (int to = 0; to < graph.count; to++) {
            if (!graph.includes[from][to] || !graph.reaches[to][from]) continue;
            report_add(report, "%s", graph.example[from][to]);
        }
}

static void collect(report_t *report) {
    memset(&graph, 0, sizeof graph);
    *report = (report_t){.count = 0};
    EXPECT_GT(tree_check(c_files, rule_collect, report), 500);
}

TEST(house, folders_include_no_cycle) {
    static report_t report;
    collect(&report);
    report_cycles(&report);
    if (report.count) FAIL_TEST("%s", report.text);
}

TEST(house, cycle_rule_can_fail) {
    static report_t report;
    collect(&report);
    rule_collect("facade/registry/planted.c", "#include <stdio.h>\n#include \"facade/open/life.h\"\n", &report);
    report_cycles(&report);
    EXPECT_GT(report.count, 1); /* the planted include, and those that close the cycle */
    EXPECT_TRUE(strstr(report.text, "facade/registry/planted.c includes facade/open/life.h") != NULL);
    EXPECT_TRUE(strstr(report.text, "facade/open/") != NULL);
    collect(&report);
    rule_collect("facade/open/planted.c", "#include \"facade/registry/facade.h\"\n", &report);
    report_cycles(&report);
    EXPECT_EQ(report.count, 0);
}
