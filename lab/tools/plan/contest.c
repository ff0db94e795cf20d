#include "lab/tools/plan/contest.h"

#include <inttypes.h>
#include <string.h>

#include "platform/host/host_memory.h"

typedef struct entry {
    const char *name;
    strata_plan_result_t result;
    strata_plan_dependencies_t passes;
    uint64_t *offsets; /* NULL without a plan */
    uint64_t apart; /* the peak if branches share nothing; 0 if there is none */
    char why[160]; /* the reason for having no plan */
} entry_t;

static const char *const planners[] = {
#define PLANNER_NAME(name, what) #name,
    STRATA_PLANNER_MAP(PLANNER_NAME)
#undef PLANNER_NAME
};
enum { PLANNERS = sizeof planners / sizeof *planners, ENTRIES = PLANNERS + 1 }; /* the last entry is the plan in the file */

typedef struct contest {
    const strata_plan_input_t *input;
    const strata_plan_options_t *options;
    strata_plan_buffer_t *planned, *together; /* the buffers, and without their forks */
    bool forks, given;
    entry_t entries[ENTRIES];
    const entry_t *best;
} contest_t;

static strata_status_t run_planner(contest_t *c, entry_t *entry) {
    const strata_plan_table_t *t = &c->input->table;
    strata_plan_options_t options = *c->options;
    options.planner = entry->name;
    uint64_t *offsets = strata_host_new(t->count + 1, sizeof *offsets);
    if (!offsets) return STRATA_E_HOST_MEMORY;
    strata_plan_result_t apart = {.struct_size = sizeof apart};
    entry->result.struct_size = sizeof entry->result;
    entry->passes.struct_size = sizeof entry->passes;
    strata_status_t status = STRATA_OK;
    if (c->forks && strata_plan_make(&options, c->planned, t->count, offsets, &apart) == STRATA_OK) entry->apart = apart.peak;
    status = strata_plan_make(&options, c->together, t->count, offsets, &entry->result);
    if (status == STRATA_OK) status = strata_plan_check(c->together, t->count, offsets, NULL);
    if (status == STRATA_OK) status = strata_plan_input_depend(c->input, c->planned, offsets, &entry->passes);
    if (status == STRATA_OK) {
        entry->offsets = offsets;
        return STRATA_OK;
    }
    strata_host_delete(offsets);
    snprintf(entry->why, sizeof entry->why, "%.150s", strata_last_error()->text);
    return status == STRATA_E_UNSUPPORTED ? STRATA_OK : status;
}

/* ---- the tables ---- */

static void print_peaks(FILE *out, const contest_t *c) {
    fprintf(out, "%-8s %16s %8s %7s %6s %9s", "planner", "peak", "ratio", "proved", "pools", "seconds");
    fprintf(out, c->forks ? " %16s\n" : "\n", "peak, apart");
    for (size_t i = 0; i < ENTRIES; i++) {
        const entry_t *e = &c->entries[i];
        if (!e->offsets) {
            if (e->name) fprintf(out, "%-8s no plan: %s\n", e->name, e->why);
            continue;
        }
        double bound = e->result.lower_bound ? (double)e->result.lower_bound : 1;
        fprintf(out, "%-8s %16" PRIu64 " %8.4f %7s %6u %9.3f", e->name, e->result.peak, (double)e->result.peak / bound,
                e->result.proved ? "yes" : "no", e->result.pools ? e->result.pools : 1, (double)e->result.time_ns / 1e9);
        if (c->forks && e->apart) fprintf(out, " %16" PRIu64, e->apart);
        fprintf(out, "\n");
    }
}

/* Compares each plan with the best one: buffers at other addresses, and the difference of the peaks. */
static void print_differences(FILE *out, const contest_t *c) {
    const strata_plan_table_t *t = &c->input->table;
    fprintf(out, "\nagainst %s's plan\n%-8s %10s %10s %10s %16s\n", c->best->name, "planner", "elsewhere", "higher", "lower",
            "more bytes");
    for (size_t i = 0; i < ENTRIES; i++) {
        const entry_t *e = &c->entries[i];
        size_t higher = 0, lower = 0;
        for (size_t k = 0; e->offsets && k < t->count; k++) {
            higher += e->offsets[k] > c->best->offsets[k];
            lower += e->offsets[k] < c->best->offsets[k];
        }
        if (e->offsets && e != c->best)
            fprintf(out, "%-8s %10zu %10zu %10zu %16" PRIu64 "\n", e->name, higher + lower, higher, lower,
                    e->result.peak - c->best->result.peak);
    }
}

/* Sharing between branches saves memory and causes implicit dependencies. Prints both. */
static void print_passes(FILE *out, const contest_t *c) {
    fprintf(out, "\n%-8s %10s %18s %10s %18s", "planner", "reuses", "bytes passed on", "implicit", "implicit bytes");
    fprintf(out, c->forks ? " %16s\n" : "\n", "saved by them");
    for (size_t i = 0; i < ENTRIES; i++) {
        const entry_t *e = &c->entries[i];
        if (!e->offsets) continue;
        fprintf(out, "%-8s %10" PRIu64 " %18" PRIu64 " %10" PRIu64 " %18" PRIu64, e->name, e->passes.reuses, e->passes.bytes,
                e->passes.implicit, e->passes.implicit_bytes);
        if (c->forks && e->apart) fprintf(out, " %16" PRIi64, (int64_t)(e->apart - e->result.peak));
        fprintf(out, "\n");
    }
    if (c->forks)
        fprintf(out, "\nimplicit: passed on between branches without any other order, so the later one must wait for the earlier.\n"
                     "peak, apart: the peak if branches share no memory, so none waits.\n");
}

/* Enters the plan in the file, if all of its buffers are fixed. */
static strata_status_t add_given(contest_t *c) {
    const strata_plan_table_t *t = &c->input->table;
    entry_t *e = &c->entries[PLANNERS];
    e->offsets = strata_host_new(t->count + 1, sizeof *e->offsets);
    if (!e->offsets) return STRATA_E_HOST_MEMORY;
    e->name = "given";
    e->passes.struct_size = sizeof e->passes;
    for (size_t i = 0; i < t->count; i++) e->offsets[i] = t->buffers[i].offset;
    strata_status_t status = strata_plan_check(c->together, t->count, e->offsets, &e->result.peak);
    if (status == STRATA_OK) status = strata_plan_lower_bound(c->together, t->count, &e->result.lower_bound);
    if (status == STRATA_OK) status = strata_plan_input_depend(c->input, c->planned, e->offsets, &e->passes);
    e->result.proved = e->result.peak == e->result.lower_bound;
    return status;
}

/* Prepares the buffers for the planners, with their forks and without. If the file is a plan, its offsets are dropped. */
static void prepare(contest_t *c) {
    const strata_plan_table_t *t = &c->input->table;
    c->given = t->count > 0;
    for (size_t i = 0; i < t->count; i++) {
        c->given = c->given && (t->buffers[i].flags & STRATA_PLAN_FIXED);
        c->forks = c->forks || t->buffers[i].fork;
    }
    for (size_t i = 0; i < t->count; i++) {
        c->planned[i] = t->buffers[i];
        if (c->given) c->planned[i].flags &= ~(uint32_t)STRATA_PLAN_FIXED;
        c->together[i] = c->planned[i];
        c->together[i].fork = 0;
    }
}

static strata_status_t run_all(contest_t *c) {
    strata_status_t status = STRATA_OK;
    prepare(c);
    for (size_t i = 0; i < PLANNERS && status == STRATA_OK; i++) {
        c->entries[i].name = planners[i];
        status = run_planner(c, &c->entries[i]);
        const entry_t *e = &c->entries[i];
        if (e->offsets && (!c->best || e->result.peak < c->best->result.peak)) c->best = e;
    }
    return status == STRATA_OK && c->given ? add_given(c) : status;
}

strata_status_t strata_plan_contest(FILE *out, const strata_plan_input_t *input, const strata_plan_options_t *options) {
    contest_t c = {.input = input, .options = options};
    c.planned = strata_host_new(input->table.count + 1, sizeof *c.planned);
    c.together = strata_host_new(input->table.count + 1, sizeof *c.together);
    strata_status_t status = c.planned && c.together ? run_all(&c) : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK && c.best) {
        fprintf(out, "%zu buffers, lower bound %" PRIu64 "\n\n", input->table.count, c.best->result.lower_bound);
        print_peaks(out, &c);
        print_differences(out, &c);
        print_passes(out, &c);
    }
    for (size_t i = 0; i < ENTRIES; i++) strata_host_delete(c.entries[i].offsets);
    strata_host_delete(c.together);
    strata_host_delete(c.planned);
    return status;
}
