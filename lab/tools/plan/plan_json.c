#include "lab/tools/plan/plan_json.h"

#include <string.h>
#include <sys/stat.h>

#include "lab/replay/compare/json.h"
#include "trace/text/output.h"

static void write_buffer(strata_output_t *out, const strata_plan_table_t *t, size_t i, uint64_t offset) {
    const strata_plan_buffer_t *b = &t->buffers[i];
    (void)strata_output_print(out, "%s\n  {\"name\":", i ? "," : "");
    strata_json_text(out, strata_plan_table_name(t, i));
    (void)strata_output_print(out, ",\"lower\":%llu,\"upper\":%llu,\"size\":%llu,\"alignment\":%llu", (unsigned long long)b->lower,
                              (unsigned long long)b->upper, (unsigned long long)b->size,
                              (unsigned long long)(b->alignment ? b->alignment : 1));
    (void)strata_output_print(out, ",\"kind\":%u,\"fork\":%u,\"branch\":%u,\"output\":%s,\"held\":%s,\"offset\":%llu}", b->kind,
                              b->fork, b->branch, b->flags & STRATA_PLAN_OUTPUT ? "true" : "false",
                              b->flags & STRATA_PLAN_HELD ? "true" : "false", (unsigned long long)offset);
}

static strata_status_t may_replace(const char *path) {
    struct stat there;
    bool is = true;
    if (strcmp(path, "-") == 0 || stat(path, &there) != 0 || !S_ISREG(there.st_mode) || there.st_size == 0) return STRATA_OK;
    strata_status_t status = strata_plan_json_detect(path, &is);
    if (status != STRATA_OK || is) return status;
    return strata_fail(STRATA_E_INVALID, 0, "%s exists and is not JSON; write another name, or remove it first", path);
}

strata_status_t strata_plan_json_write(const char *path, const strata_plan_summary_t *summary, const strata_plan_table_t *t,
                                       const uint64_t *offsets) {
    strata_output_t *out = NULL;
    strata_status_t status = may_replace(path);
    if (status == STRATA_OK) status = strata_output_open(path, &out);
    if (status != STRATA_OK) return status;
    const strata_plan_result_t *r = &summary->result;
    (void)strata_output_print(out, "{\"planner\":\"%s\",\"buffers\":%zu,\"peak_bytes\":", summary->planner, t->count);
    if (summary->no_plan) (void)strata_output_print(out, "null");
    else (void)strata_output_print(out, "%llu", (unsigned long long)r->peak);
    (void)strata_output_print(out, ",\"lower_bound_bytes\":%llu", (unsigned long long)r->lower_bound);
    (void)strata_output_print(out, ",\"proved\":%s,\"seconds\":%.6f", r->proved ? "true" : "false", (double)r->time_ns / 1e9);
    if (offsets) (void)strata_output_print(out, ",\"plan\":[");
    for (size_t i = 0; offsets && i < t->count; i++) write_buffer(out, t, i, offsets[i]);
    (void)strata_output_print(out, offsets ? "\n]}\n" : "}\n");
    return strata_output_finish(out);
}
