/* strata plan: decides the addresses of buffers with known lifetimes. */
#include <inttypes.h>
#include <string.h>

#include "allocation/options/option.h"
#include "lab/tools/options/options.h"
#include "lab/tools/plan/contest.h"
#include "lab/tools/plan/input.h"
#include "lab/tools/plan/picture.h"
#include "lab/tools/plan/plan_json.h"
#include "lab/tools/plan/progress.h"
#include "lab/tools/screen/terminal.h"
#include "platform/arithmetic.h"
#include "platform/clock.h"
#include "platform/host/host_memory.h"

#define TIME_MAX UINT64_C(86400000000000)
enum { CHECK_NS = 2000 /* approximate time of the validator per buffer */ };

typedef struct arguments {
    const char *planner, *json, *out, *svg;
    uint64_t time_ns, capacity;
    strata_plan_reading_t reading;
    strata_plan_pools_t pools;
    bool close_gaps, draw, compare, apart, lines;
} arguments_t;

typedef struct session {
    arguments_t a;
    const char *path;
    strata_plan_input_t input;
    uint64_t *offsets;
    strata_plan_summary_t summary;
    strata_plan_dependencies_t passes;
} session_t;

/* ---- the command line ---- */

static int parse_time(const strata_parsing_t *parsing, const char *value) {
    arguments_t *a = parsing->into;
    if (strata_parse_time(value, &a->time_ns) != STRATA_OK)
        return strata_usage_error(parsing->self, "--time: %s", strata_last_error()->text);
    if (a->time_ns == 0 || a->time_ns > TIME_MAX)
        return strata_usage_error(parsing->self, "--time %.40s: write a time from 1ns to 86400s", value);
    return STRATA_EXIT_DONE;
}

static int parse_capacity(const strata_parsing_t *parsing, const char *value) {
    arguments_t *a = parsing->into;
    if (strata_parse_size(value, &a->capacity) != STRATA_OK)
        return strata_usage_error(parsing->self, "--capacity: %s", strata_last_error()->text);
    if (a->capacity == 0) return strata_usage_error(parsing->self, "--capacity is 0; write a size, or leave it out");
    return STRATA_EXIT_DONE;
}

static int parse_step(const strata_parsing_t *parsing, const char *value) {
    arguments_t *a = parsing->into;
    uint64_t step = 0;
    if (strcmp(value, "all") == 0) {
        a->reading.step = STRATA_PLAN_STEP_ALL;
        return STRATA_EXIT_DONE;
    }
    for (const char *at = value; *at && step < UINT32_MAX; at++)
        step = *at >= '0' && *at <= '9' ? 10 * step + (uint64_t)(*at - '0') : UINT32_MAX;
    if (step == 0 || step >= UINT32_MAX)
        return strata_usage_error(parsing->self, "--step %.40s: write a number from 1, or all", value);
    a->reading.step = step;
    return STRATA_EXIT_DONE;
}

static int parse_pools(const strata_parsing_t *parsing, const char *value) {
    static const char *const words[] = {"intermediates", "none", "outputs", "combined"};
    arguments_t *a = parsing->into;
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        a->pools = (strata_plan_pools_t)i;
        if (strcmp(value, words[i]) == 0) return STRATA_EXIT_DONE;
    }
    return strata_usage_error(parsing->self, "--pools %.40s: write intermediates, none, outputs or combined", value);
}

static int parse_streams(const strata_parsing_t *parsing, const char *value) {
    arguments_t *a = parsing->into;
    a->apart = strcmp(value, "apart") == 0;
    if (a->apart || strcmp(value, "together") == 0) return STRATA_EXIT_DONE;
    return strata_usage_error(parsing->self, "--streams %.40s: write together or apart", value);
}

#define TEXT(name, letters, member, meaning)                                                                                       \
    { name, letters, STRATA_ONCE, strata_parse_text, offsetof(arguments_t, member), 0, 0, meaning }
#define FLAG(name, member, meaning)                                                                                                \
    { name, NULL, STRATA_ONCE, strata_parse_flag, offsetof(arguments_t, member), 0, 0, meaning }
#define PARSED(name, letters, parse, meaning)                                                                                      \
    { name, letters, STRATA_ONCE, parse, 0, 0, 0, meaning }

static const strata_option_t options[] = {
    TEXT("--planner", "NAME", planner, "auto, greedy, exact, reuse or tree (auto)"),
    PARSED("--time", "TIME", parse_time, "time limit, including reading the file; with --compare, of each planner (10s)"),
    PARSED("--capacity", "SIZE", parse_capacity,
           "size that the plan must fit into; stops soon after a plan fits, and at once if the lower bound is larger"),
    PARSED("--step", "N|all", parse_step, "plans the N-th step of a trace, or all of it (a repeated step, if there is one)"),
    PARSED("--streams", "HOW", parse_streams,
           "for traces with several streams: together shares addresses between streams, in the host's order, where that lowers the "
           "peak; apart never does (together)"),
    PARSED("--pools", "MODE", parse_pools, "pools of the planner tree: intermediates, none, outputs or combined (intermediates)"),
    FLAG("--close-gaps", close_gaps, "repairs known gaps of the peers in the planners reuse and tree"),
    FLAG("--ignore-offsets", reading.ignore_offsets, "ignores the offsets in the file"),
    TEXT("--json", "FILE", json, "writes the figures as JSON (- for standard output)"),
    TEXT("-o", "FILE", out, "writes the plan, as JSON if the name ends in .json, else as CSV"),
    FLAG("--draw", draw, "draws the plan: time across, addresses up"),
    TEXT("--svg", "FILE", svg, "writes the plan as a picture"),
    FLAG("--lines", lines, "prints the action of the planner reuse at every line of the program: allocate, reuse, free, null"),
    FLAG("--compare", compare, "compares all planners: figures, differences between plans, and reuses that make streams wait"),
    STRATA_OPTIONS_END,
};

/* ---- what it prints ---- */

static void print_figures(const session_t *s) {
    const strata_plan_result_t *r = &s->summary.result;
    const strata_plan_input_t *input = &s->input;
    const char *name = strrchr(s->path, '/');
    printf("%s: %zu buffers%s%s\n", name ? name + 1 : s->path, input->table.count, *input->about ? ", " : "", input->about);
    printf("  planner      %s\n", s->summary.planner);
    printf("  peak         %" PRIu64 " bytes (%.2f MiB)\n", r->peak, (double)r->peak / 1048576);
    printf("  lower bound  %" PRIu64 " bytes\n", r->lower_bound);
    printf("  ratio        %.4f\n", r->lower_bound ? (double)r->peak / (double)r->lower_bound : 1.0);
    printf("  proved       %s\n", r->proved ? "yes" : "no");
    printf("  time         %.3f s\n", (double)r->time_ns / 1e9);
    if (r->pools) printf("  pools        %u\n", r->pools);
    if (s->a.capacity)
        printf("  capacity     %" PRIu64 " bytes: %s\n", s->a.capacity, r->peak <= s->a.capacity ? "fits" : "does not fit");
    if (s->passes.implicit)
        printf("  implicit     %" PRIu64 " reuses of %" PRIu64 " bytes between streams: each makes one stream wait for another\n",
               s->passes.implicit, s->passes.implicit_bytes);
}

/* Sets the forks from `forks`, or removes them if it is NULL. */
static void set_forks(strata_plan_table_t *t, const uint32_t *forks) {
    for (size_t i = 0; i < t->count; i++) t->buffers[i].fork = forks ? forks[i] : 0;
}

/* Forks count only if a plan must obey them. The bound for all streams together ignores them. */
static strata_status_t bound_of(session_t *s, uint64_t *bound) {
    strata_plan_table_t *t = &s->input.table;
    bool share = s->input.streams && !s->a.apart;
    uint32_t *forks = share ? strata_host_new(t->count + 1, sizeof *forks) : NULL;
    if (share && !forks) return STRATA_E_HOST_MEMORY;
    for (size_t i = 0; share && i < t->count; i++) forks[i] = t->buffers[i].fork;
    if (share) set_forks(t, NULL);
    strata_status_t status = strata_plan_lower_bound(t->buffers, t->count, bound);
    if (share) set_forks(t, forks);
    strata_host_delete(forks);
    return status;
}

static void print_impossible(const session_t *s) {
    const char *name = strrchr(s->path, '/');
    uint64_t bound = s->summary.result.lower_bound;
    printf("%s: %zu buffers%s%s\n", name ? name + 1 : s->path, s->input.table.count, *s->input.about ? ", " : "", s->input.about);
    printf("  lower bound  %" PRIu64 " bytes (%.2f MiB)\n", bound, (double)bound / 1048576);
    printf("  capacity     %" PRIu64 " bytes: does not fit, %" PRIu64 " bytes less than the lower bound; no plan was made\n",
           s->a.capacity, bound - s->a.capacity);
}

static const char *effect_word(strata_plan_effect_t effect) {
    static const char *const words[] = {
#define EFFECT_WORD(name, what) #name,
        STRATA_PLAN_LINE_MAP(EFFECT_WORD)
#undef EFFECT_WORD
    };
    return words[effect];
}

static strata_status_t print_lines(const session_t *s, const strata_plan_options_t *o) {
    const strata_plan_table_t *t = &s->input.table;
    size_t count = 0;
    strata_plan_line_t *lines = strata_host_new(2 * t->count + 1, sizeof *lines);
    strata_status_t status = lines ? strata_plan_reuse_lines(o, t->buffers, t->count, lines, &count) : STRATA_E_HOST_MEMORY;
    for (size_t i = 0; i < count && status == STRATA_OK; i++) {
        const strata_plan_line_t *line = &lines[i];
        const char *name = strata_plan_table_name(t, line->buffer);
        printf("%10" PRIu64 "  %-8s  %s", line->time, effect_word(line->effect), name);
        if (line->effect == STRATA_PLAN_reuse) printf(" takes over %s", strata_plan_table_name(t, line->other));
        printf(" (%" PRIu64 ")\n", t->buffers[line->buffer].size);
    }
    strata_host_delete(lines);
    return status;
}

/* ---- one run ---- */

/* Streams share addresses only if that makes the peak lower. */
static strata_status_t make_sharing(session_t *s, const strata_plan_options_t *o, uint64_t *offsets, uint32_t *forks) {
    strata_plan_table_t *t = &s->input.table;
    strata_plan_options_t half = *o;
    strata_plan_result_t together = {.struct_size = sizeof together};
    half.time_ns = strata_max(half.time_ns / 2, 1);
    for (size_t i = 0; i < t->count; i++) forks[i] = t->buffers[i].fork;
    strata_status_t status = strata_plan_make(&half, t->buffers, t->count, s->offsets, &s->summary.result);
    set_forks(t, NULL);
    half.time_ns = strata_max(o->time_ns - strata_min(s->summary.result.time_ns, o->time_ns), 1);
    if (status == STRATA_OK) status = strata_plan_make(&half, t->buffers, t->count, offsets, &together);
    uint64_t spent = s->summary.result.time_ns + together.time_ns;
    if (status == STRATA_OK && together.peak < s->summary.result.peak) {
        memcpy(s->offsets, offsets, t->count * sizeof *offsets);
        s->summary.result = together;
    }
    s->summary.result.time_ns = spent;
    s->summary.result.lower_bound = together.lower_bound;
    s->summary.result.proved = s->summary.result.peak <= together.lower_bound;
    if (status == STRATA_OK) status = strata_plan_check(t->buffers, t->count, s->offsets, NULL);
    set_forks(t, forks);
    s->passes.struct_size = sizeof s->passes;
    if (status == STRATA_OK) status = strata_plan_input_depend(&s->input, t->buffers, s->offsets, &s->passes);
    return status;
}

static strata_status_t make(session_t *s, const strata_plan_options_t *o) {
    strata_plan_table_t *t = &s->input.table;
    bool share = s->input.streams && !s->a.apart;
    uint32_t *forks = share ? strata_host_new(t->count + 1, sizeof *forks) : NULL;
    uint64_t *offsets = share ? strata_host_new(t->count + 1, sizeof *offsets) : NULL;
    s->offsets = strata_host_new(t->count + 1, sizeof *s->offsets);
    s->summary.result.struct_size = sizeof s->summary.result;
    strata_status_t status = s->offsets && (!share || (forks && offsets)) ? STRATA_OK : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK && share) status = make_sharing(s, o, offsets, forks);
    if (status == STRATA_OK && !share) status = strata_plan_make(o, t->buffers, t->count, s->offsets, &s->summary.result);
    if (status == STRATA_OK && !share) status = strata_plan_check(t->buffers, t->count, s->offsets, NULL);
    strata_host_delete(offsets);
    strata_host_delete(forks);
    return status;
}

static bool ends_in(const char *path, const char *end) {
    size_t length = strlen(path), of_end = strlen(end);
    return length >= of_end && strcmp(path + length - of_end, end) == 0;
}

static strata_status_t write_files(const session_t *s) {
    const arguments_t *a = &s->a;
    const strata_plan_table_t *t = &s->input.table;
    strata_status_t status = STRATA_OK;
    if (a->json) status = strata_plan_json_write(a->json, &s->summary, t, NULL);
    if (status == STRATA_OK && a->out && ends_in(a->out, ".json"))
        status = strata_plan_json_write(a->out, &s->summary, t, s->offsets);
    else if (status == STRATA_OK && a->out) status = strata_plan_table_write(t, s->offsets, a->out);
    if (status == STRATA_OK && a->svg) status = strata_plan_svg(a->svg, t, s->offsets);
    return status;
}

static int report_plan(session_t *s, const strata_plan_options_t *o) {
    bool quiet = (s->a.json && strcmp(s->a.json, "-") == 0) || (s->a.out && strcmp(s->a.out, "-") == 0);
    uint64_t *bound = &s->summary.result.lower_bound;
    strata_status_t status = s->a.capacity ? bound_of(s, bound) : STRATA_OK;
    if (status == STRATA_OK && s->a.capacity && *bound > s->a.capacity) {
        s->summary.no_plan = true;
        if (!quiet) print_impossible(s);
        if (s->a.json) status = strata_plan_json_write(s->a.json, &s->summary, &s->input.table, NULL);
        if (status != STRATA_OK) (void)strata_print_failure();
        return STRATA_EXIT_FAILED;
    }
    strata_plan_progress_begin(s->summary.planner, s->a.time_ns);
    if (status == STRATA_OK) status = make(s, o);
    strata_plan_progress_end();
    if (status != STRATA_OK) return strata_print_failure();
    if (!quiet) print_figures(s);
    if (s->a.lines) status = print_lines(s, o);
    if (status == STRATA_OK && s->a.draw)
        status = strata_plan_draw(stdout, &s->input.table, s->offsets, strata_terminal_width(100));
    if (status != STRATA_OK) return strata_print_failure();
    if (write_files(s) != STRATA_OK) {
        (void)strata_print_failure();
        return strata_last_error()->status == STRATA_E_INVALID ? STRATA_EXIT_USAGE : STRATA_EXIT_FAILED;
    }
    return s->a.capacity && s->summary.result.peak > s->a.capacity ? STRATA_EXIT_FAILED : STRATA_EXIT_DONE;
}

static int run_plan(const strata_command_t *self, int argc, char **argv) {
    static session_t session;
    arguments_t *a = &session.a;
    uint64_t begin = strata_real_now();
    *a = (arguments_t){.planner = "auto", .time_ns = UINT64_C(10000000000)};
    int words;
    int status = strata_options_read(self, a, argc, argv, &words);
    if (status != STRATA_EXIT_DONE) return status;
    if (words != 1) return strata_usage_error(self, words ? "takes one file" : "no file; write a trace, a CSV or a plan");
    if (a->out && strcmp(a->out, argv[0]) == 0)
        return strata_usage_error(self, "-o %.200s is also the input; write another name", a->out);
    if (a->compare && (a->json || a->out || a->svg || a->draw || a->lines))
        return strata_usage_error(self, "--compare only prints tables; leave out --json, -o, --svg, --draw and --lines");
    session.path = argv[0];
    session.summary.planner = a->planner;
    strata_plan_options_t o = {.struct_size = sizeof o,
                               .planner = a->planner,
                               .time_ns = a->time_ns,
                               .capacity = a->capacity,
                               .pools = a->pools,
                               .close_gaps = a->close_gaps};
    if (strata_plan_input_read(argv[0], &a->reading, &session.input) != STRATA_OK) return strata_print_failure();
    /* Reading took a part of the time, and checking will take another. A plan is made even if no time is left. */
    uint64_t spent = strata_real_now() - begin + session.input.table.count * CHECK_NS;
    if (!a->compare) o.time_ns = a->time_ns > spent ? a->time_ns - spent : 1;
    if (!a->compare) status = report_plan(&session, &o);
    else if (strata_plan_contest(stdout, &session.input, &o) != STRATA_OK) status = strata_print_failure();
    strata_host_delete(session.offsets);
    strata_plan_input_delete(&session.input);
    return status;
}

const strata_command_t strata_command_plan = {
    .name = "plan",
    .run = run_plan,
    .words = "FILE",
    .help = "computes every address in advance from known lifetimes",
    .options = options,
    .example = "--planner exact --capacity 1MiB --draw buffers.csv",
    .more = "FILE is a trace, of which a repeated step is planned; CSV with a row for each buffer (id,lower,upper,size and "
            "optionally alignment, offset, kind, fork, branch, output); or a plan that -o wrote. docs/planning.md describes the "
            "planners and formats.\n"
            "\n"
            "Exit status: 0 done, 1 the plan does not fit into --capacity or a file could not be written, 2 wrong usage or file."};
