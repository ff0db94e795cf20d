/* A planning problem as CSV, or a plan: what can be read is planned by every planner, and each plan is one; what was written reads
 * the same. */
#include <string.h>
#include <unistd.h>

#include "planning/file/table.h"
#include "tests/fuzz/fuzz.h"

enum { BUFFERS_MAX = 200 };

static const char *const planners[] = {
#define PLANNER_NAME(name, what) #name,
    STRATA_PLANNER_MAP(PLANNER_NAME)
#undef PLANNER_NAME
};

static const char *copy_path(void) {
    static char path[64];
    snprintf(path, sizeof path, "/dev/shm/strata-fuzz-plan-%ld.csv", (long)getpid());
    return path;
}

static void expect_refused(strata_status_t status) {
    FUZZ_EXPECT(status == STRATA_E_FORMAT || status == STRATA_E_INVALID || status == STRATA_E_LIMIT ||
                status == STRATA_E_UNSUPPORTED);
    FUZZ_EXPECT(strata_last_error()->text[0] != '\0');
}

static void write_and_read(const strata_plan_table_t *table, const uint64_t *offsets) {
    strata_plan_table_t again;
    FUZZ_EXPECT_OK(strata_plan_table_write(table, offsets, copy_path()));
    FUZZ_EXPECT_OK(strata_plan_table_read(copy_path(), &again));
    FUZZ_EXPECT(again.count == table->count);
    for (size_t i = 0; i < again.count; i++) {
        const strata_plan_buffer_t *a = &table->buffers[i], *b = &again.buffers[i];
        FUZZ_EXPECT(a->lower == b->lower && a->upper == b->upper && a->size == b->size && b->offset == offsets[i]);
        FUZZ_EXPECT(strcmp(strata_plan_table_name(table, i), strata_plan_table_name(&again, i)) == 0);
    }
    strata_plan_table_delete(&again);
    (void)unlink(copy_path());
}

static void plan(const strata_plan_table_t *table, const char *planner) {
    uint64_t offsets[BUFFERS_MAX], peak = 0;
    strata_plan_options_t options = {
        .struct_size = sizeof options, .planner = planner, .time_ns = 200000, .close_gaps = table->count % 2};
    strata_plan_result_t result = {.struct_size = sizeof result};
    strata_plan_dependencies_t passes = {.struct_size = sizeof passes};
    strata_status_t status = strata_plan_make(&options, table->buffers, table->count, offsets, &result);
    if (status != STRATA_OK) {
        expect_refused(status);
        return;
    }
    FUZZ_EXPECT_OK(strata_plan_check(table->buffers, table->count, offsets, &peak));
    FUZZ_EXPECT(peak == result.peak && result.lower_bound <= peak);
    FUZZ_EXPECT_OK(strata_plan_depend(table->buffers, table->count, offsets, NULL, NULL, &passes));
    FUZZ_EXPECT(passes.implicit == 0);
    if (planner == planners[0]) write_and_read(table, offsets);
}

void fuzz_plan(const uint8_t *bytes, size_t count) {
    strata_plan_table_t table;
    bool is = false;
    const char *path = fuzz_file(bytes, count);
    strata_status_t status = strata_plan_table_detect(path, &is);
    if (status != STRATA_OK) expect_refused(status);
    status = strata_plan_table_read(path, &table);
    if (status != STRATA_OK) {
        expect_refused(status);
        return;
    }
    for (size_t i = 0; i < sizeof planners / sizeof *planners && table.count <= BUFFERS_MAX; i++) plan(&table, planners[i]);
    strata_plan_table_delete(&table);
}
