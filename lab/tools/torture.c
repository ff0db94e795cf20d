/* strata torture: runs random stream programs under every strategy, or under the user's own. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lab/tools/options/options.h"
#include "lab/torture/campaign.h"
#include "lab/torture/steps.h"
#include "strategy/registry/code.h"

enum { FILES = 32, OBJECTS = 16, PRINTED_MAX = 3, STACKS = 200, DRAWN_EACH = 3, OWN_STACKS = 24, SELDOM = 250, OWN_SELDOM = 20 };

typedef struct arguments {
    uint64_t programs, seed, first, length, stacks, jobs;
    uint64_t thin; /* 0 if unused */
    uint64_t steps; /* 0 if none are printed */
    bool allow_code, progress;
    const char *files[FILES], *objects[OBJECTS];
    size_t file_count, object_count;
} arguments_t;

/* ---- the command line ---- */

static int add_name(const strata_parsing_t *parsing, const char *text, const char **names, size_t most, size_t *count) {
    if (!*text) return strata_usage_error(parsing->self, "%s needs %s", parsing->option->name, parsing->option->value);
    if (*count == most) return strata_usage_error(parsing->self, "%s is given more than %zu times", parsing->option->name, most);
    names[(*count)++] = text;
    return STRATA_EXIT_DONE;
}

static int parse_strategy(const strata_parsing_t *parsing, const char *text) {
    arguments_t *a = parsing->into;
    return add_name(parsing, text, a->files, FILES, &a->file_count);
}

static int parse_layers(const strata_parsing_t *parsing, const char *text) {
    arguments_t *a = parsing->into;
    return add_name(parsing, text, a->objects, OBJECTS, &a->object_count);
}

#define NUMBER(name, letter, member, low, high, meaning)                                                                           \
    { name, letter, STRATA_ONCE, strata_parse_number, offsetof(arguments_t, member), low, high, meaning }

static const strata_option_t options[] = {
    NUMBER("--programs", "N", programs, 1, 1000000000, "number of programs (500)"),
    NUMBER("--seed", "S", seed, 0, UINT32_MAX, "seed of the programs (1)"),
    NUMBER("--first", "I", first, 0, 1000000000, "first program of the seed (0)"),
    NUMBER("--length", "N", length, 1, 100000,
           "operations of each program, nearly all on one cache, of which a third serve blocks (a few dozen, of all kinds)"),
    {"--strategy", "NAME|FILE", STRATA_MANY, parse_strategy, 0, 0, 0,
     "a preset or a strategy file, instead of all presets and random legal stacks"},
    {"--layers", "FILE.so", STRATA_MANY, parse_layers, 0, 0, 0,
     "the layers of a shared object, in random legal stacks; runs its code"},
    {"--allow-code", NULL, STRATA_ONCE, strata_parse_flag, offsetof(arguments_t, allow_code), 0, 0,
     "lets strategies load shared objects with layers (load:), which runs their code"},
    NUMBER("--stacks", "N", stacks, 0, 10000, "random legal stacks, three for each program in turn (200)"),
    {"--progress", NULL, STRATA_ONCE, strata_parse_flag, offsetof(arguments_t, progress), 0, 0,
     "reports progress on standard error (always, if that is a terminal)"},
    NUMBER("--thin", "K", thin, 1, 1000, "runs each program under every K-th strategy, in turn, instead of all"),
    NUMBER("--steps", "N", steps, 1, 1000000,
           "prints every step of the runs by one thread instead: the blocks with their addresses, and after every N-th step the "
           "figures that changed. One process runs them all (scripts/oracle)"),
    NUMBER("--jobs", "N", jobs, 1, TORTURE_JOBS, "processes at a time (number of processors)"),
    STRATA_OPTIONS_END,
};

/* ---- what it runs ---- */

/* Adds a stack with only this cache, which serves all requests of the programs. If such a stack is illegal,
 * the random stacks remain. */
static strata_status_t add_alone(torture_strategies_t *list, const strata_layer_type_t *type, const char *object) {
    char text[256];
    if (type->role != STRATA_CACHE) return STRATA_OK;
    snprintf(text, sizeof text, "stack: [stream_safe, %.60s, system]\n", type->name);
    strata_status_t status = torture_add_loading(list, type->name, text, object);
    if (status == STRATA_E_STRATEGY) printf("%s is not run by itself: %s\n", type->name, strata_last_error()->text);
    return status == STRATA_E_STRATEGY ? STRATA_OK : status;
}

/* Adds the layers of shared objects alone first, then in random stacks, because the drawn stacks must be last. */
static strata_status_t add_layers(const arguments_t *a, torture_strategies_t *list) {
    const strata_layer_type_t *const *table;
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; i < a->object_count && status == STRATA_OK; i++) {
        status = strata_code_load(a->objects[i], &table);
        for (size_t n = 0; status == STRATA_OK && table[n]; n++)
            status = add_alone(list, strata_layer_find(table[n]->name), a->objects[i]);
    }
    for (size_t i = 0; i < a->object_count && status == STRATA_OK; i++) {
        status = strata_code_load(a->objects[i], &table);
        for (size_t n = 0; status == STRATA_OK && table[n]; n++)
            status = torture_add_drawn(list, a->seed + n, OWN_STACKS, strata_layer_find(table[n]->name), a->objects[i]);
    }
    return status;
}

static strata_status_t collect(const arguments_t *a, torture_strategies_t *list) {
    strata_status_t status = STRATA_OK;
    bool own = a->file_count || a->object_count;
    if (!own) status = torture_add_presets(list);
    for (size_t i = 0; i < a->file_count && status == STRATA_OK; i++) status = torture_add_file(list, a->files[i], a->allow_code);
    if (status == STRATA_OK) status = add_layers(a, list);
    if (status == STRATA_OK && !own) status = torture_add_drawn(list, a->seed, (uint32_t)a->stacks, NULL, NULL);
    return status;
}

static double seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- progress, on a terminal ---- */

typedef struct progress {
    uint64_t programs;
    double begin, next;
    bool terminal;
} progress_t;

static void print_left(double left) {
    if (left < 90) fprintf(stderr, ", about %.0f s left", left);
    else if (left < 90 * 60) fprintf(stderr, ", about %.0f min left", left / 60);
    else fprintf(stderr, ", about %.1f h left", left / 3600);
}

/* A terminal has one line that is overwritten. Other outputs get separate lines, but fewer. */
static void show_progress(void *context, uint64_t done, uint64_t failed) {
    progress_t *progress = context;
    double now = seconds();
    if (now < progress->next) return;
    progress->next = now + (progress->terminal ? 0.2 : 5);
    fprintf(stderr, "%s%" PRIu64 " of %" PRIu64 " programs, %" PRIu64 " failed so far", progress->terminal ? "\r\033[K" : "", done,
            progress->programs, failed);
    if (done > 0) print_left((now - progress->begin) / (double)done * (double)(progress->programs - done));
    if (!progress->terminal) fputc('\n', stderr);
}

static void end_progress(const progress_t *progress) {
    if (progress->terminal) fprintf(stderr, "\r\033[K");
}

/* ---- results ---- */

static void print_sum(const torture_campaign_t *c, const torture_sum_t *sum, double took) {
    printf("%" PRIu64 " programs, %" PRIu64 " operations, %u strategies (%u of them random stacks), %" PRIu64 " schedules (%" PRIu64
           " by one thread, %" PRIu64 " by threads in turns, %" PRIu64 " by threads at once), %.0f s\n",
           sum->programs, sum->operations, c->strategies->count, c->strategies->drawn,
           sum->runs[STRATA_TORTURE_INTERLEAVED] + sum->runs[STRATA_TORTURE_TURNS] + sum->runs[STRATA_TORTURE_AT_ONCE],
           sum->runs[STRATA_TORTURE_INTERLEAVED], sum->runs[STRATA_TORTURE_TURNS], sum->runs[STRATA_TORTURE_AT_ONCE], took);
    if (sum->programs < c->programs) printf("the rest was skipped: too many runs ended their processes\n");
    printf("%" PRIu64 " blocks served, %" PRIu64 " requests refused, %" PRIu64 " runs without the memory to open\n", sum->served,
           sum->refused, sum->unopened);
    printf("%" PRIu64 " captures served, %" PRIu64 " graphs launched\n", sum->captures, sum->launches);
    printf("%" PRIu64 " hazards, %" PRIu64 " failed\n", sum->hazards, sum->failed);
}

/* The first failure of each kind is the most useful one. */
static bool is_first_of_kind(const torture_failure_t *failures, uint32_t index) {
    for (uint32_t i = 0; i < index; i++)
        if (torture_same_fault(&failures[i].verdict, &failures[index].verdict)) return false;
    return true;
}

static strata_status_t print_failures(const torture_campaign_t *c, const torture_failure_t *failures, uint32_t count) {
    strata_status_t status = STRATA_OK;
    uint32_t printed = 0;
    for (uint32_t i = 0; i < count; i++)
        printf("failed: program %" PRIu64 " under %s: %s\n", failures[i].run.number,
               c->strategies->all[failures[i].run.strategy].name, torture_fault_text(failures[i].verdict.fault));
    for (uint32_t i = 0; i < count && printed < PRINTED_MAX && status == STRATA_OK; i++) {
        if (!is_first_of_kind(failures, i)) continue;
        printf("\n");
        status = torture_report_failure(stdout, c, &failures[i], true);
        printed++;
    }
    if (count) printf("\n");
    return status;
}

static int run(torture_campaign_t *c, bool progress) {
    static torture_failure_t failures[TORTURE_FAILURES_KEPT];
    torture_sum_t sum;
    uint32_t count = 0;
    double begin = seconds();
    progress_t shown = {.programs = c->programs, .begin = begin, .terminal = isatty(STDERR_FILENO)};
    if (progress || shown.terminal) c->progress = show_progress, c->progress_context = &shown;
    strata_status_t status = torture_run_isolated(c, &sum, failures, &count);
    double took = seconds() - begin;
    end_progress(&shown);
    if (status == STRATA_OK) status = print_failures(c, failures, count);
    if (status != STRATA_OK) return strata_print_failure();
    print_sum(c, &sum, took);
    return sum.failed ? STRATA_EXIT_FAILED : STRATA_EXIT_DONE;
}

/* The sum is not printed, because it has a time and the outputs of two builds are compared. */
static int write_steps(const torture_campaign_t *c, uint64_t every) {
    strata_output_t *out;
    uint64_t failed = 0;
    strata_status_t status = strata_output_open("-", &out);
    if (status == STRATA_OK) status = torture_write_steps(c, every, out, &failed);
    if (status == STRATA_OK) status = strata_output_finish(out);
    else strata_output_abandon(out);
    if (status != STRATA_OK) return strata_print_failure();
    return failed ? STRATA_EXIT_FAILED : STRATA_EXIT_DONE;
}

/* Returns the options, besides the seed, that give the same programs and strategies. */
static const char *again(const arguments_t *a) {
    static char text[8192];
    size_t length = 0;
    for (size_t i = 0; i < a->file_count && length < sizeof text; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, " --strategy %s", a->files[i]);
    for (size_t i = 0; i < a->object_count && length < sizeof text; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, " --layers %s", a->objects[i]);
    if (a->allow_code && length < sizeof text) length += (size_t)snprintf(text + length, sizeof text - length, " --allow-code");
    if (a->stacks != STACKS && length < sizeof text)
        length += (size_t)snprintf(text + length, sizeof text - length, " --stacks %" PRIu64, a->stacks);
    if (a->thin && length < sizeof text)
        length += (size_t)snprintf(text + length, sizeof text - length, " --thin %" PRIu64, a->thin);
    if (a->length && length < sizeof text) (void)snprintf(text + length, sizeof text - length, " --length %" PRIu64, a->length);
    return text;
}

static int run_torture(const strata_command_t *self, int argc, char **argv) {
    arguments_t a = {.programs = 500, .seed = 1, .stacks = STACKS, .jobs = strata_processors(TORTURE_JOBS)};
    torture_strategies_t list = {0};
    int words;
    int result = strata_options_read(self, &a, argc, argv, &words);
    if (result != STRATA_EXIT_DONE) return result;
    if (words > 0) return strata_usage_error(self, "\"%.40s\" is not an option; write --strategy %.40s", argv[0], argv[0]);
    if (collect(&a, &list) == STRATA_OK) {
        if (a.jobs > a.programs) a.jobs = a.programs;
        torture_campaign_t campaign = {.strategies = &list,
                                       .seed = a.seed,
                                       .first = a.first,
                                       .programs = a.programs,
                                       .length = (uint32_t)a.length,
                                       .seldom = a.file_count || a.object_count ? OWN_SELDOM : SELDOM,
                                       .again = again(&a),
                                       .drawn_each = DRAWN_EACH,
                                       .thin = (uint32_t)a.thin,
                                       .jobs = (uint32_t)a.jobs};
        result = a.steps ? write_steps(&campaign, a.steps) : run(&campaign, a.progress);
    } else {
        result = strata_print_failure();
    }
    torture_strategies_delete(&list);
    return result;
}

const strata_command_t strata_command_torture = {
    .name = "torture",
    .run = run_torture,
    .words = "",
    .help = "runs random stream programs under every strategy: hazards, contents, leaks",
    .options = options,
    .example = "--programs 200 --strategy mine.yaml",
    .more = "Each program has several streams, host threads and devices, and orders its own work by events and borrows. So "
            "every hazard that the happens-before checker finds is the allocator's fault. Devices are simulated, with contents. A "
            "failing program is reduced and printed as a C program that builds against an installed Strata (docs/testing.md).\n"
            "\n"
            "Exit status: 0 no failure, 1 something failed, 2 wrong usage, strategy or layer."};
