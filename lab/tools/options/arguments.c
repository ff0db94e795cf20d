#include "lab/tools/options/arguments.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocation/options/option.h"
#include "config/config.h"
#include "lab/replay/draw/draw.h"
#include "platform/arithmetic.h"
#include "trace/trace.h"

static strata_argument_strategy_t *latest(strata_arguments_t *arguments) {
    size_t count = arguments->strategy_count;
    return count ? &arguments->strategies[count - 1] : NULL;
}

#define ALL_PRESETS "all"

static int add_strategy(const strata_parsing_t *parsing, strata_argument_strategy_t strategy) {
    strata_arguments_t *arguments = parsing->into;
    if (arguments->strategy_count == STRATA_ARGUMENT_STRATEGIES)
        return strata_usage_error(parsing->self, "more than %d strategies", STRATA_ARGUMENT_STRATEGIES);
    arguments->strategies[arguments->strategy_count++] = strategy;
    return STRATA_EXIT_DONE;
}

/* The default comes first, then the other presets by name. */
static int add_presets(const strata_parsing_t *parsing) {
    int status = add_strategy(parsing, (strata_argument_strategy_t){.name = "strata", .if_possible = true});
    for (size_t i = 0; strata_preset_name(i) && status == STRATA_EXIT_DONE; i++)
        if (strcmp(strata_preset_name(i), "strata") != 0)
            status = add_strategy(parsing, (strata_argument_strategy_t){.name = strata_preset_name(i), .if_possible = true});
    return status;
}

static int parse_strategy(const strata_parsing_t *parsing, const char *value) {
    bool all = strcmp(value, ALL_PRESETS) == 0, many = parsing->option->often == STRATA_MANY;
    if (all && !many) return strata_usage_error(parsing->self, "takes one strategy; strata compare takes --strategy all");
    return all ? add_presets(parsing) : add_strategy(parsing, (strata_argument_strategy_t){.name = value});
}

static int parse_set(const strata_parsing_t *parsing, const char *value) {
    strata_arguments_t *arguments = parsing->into;
    strata_argument_strategy_t *strategy = latest(arguments);
    const char **set = strategy ? strategy->set : arguments->set;
    size_t *count = strategy ? &strategy->set_count : &arguments->set_count;
    if (!strchr(value, '=')) return strata_usage_error(parsing->self, "--set %.80s: write PATH=VALUE", value);
    if (strategy && strategy->if_possible)
        return strata_usage_error(
            parsing->self, "--set %.80s follows --strategy all; write it before, to set all strategies that have the path", value);
    if (*count == STRATA_ARGUMENT_SETS)
        return strata_usage_error(parsing->self, "--set is given more than %d times", STRATA_ARGUMENT_SETS);
    set[(*count)++] = value + strspn(value, " ");
    return STRATA_EXIT_DONE;
}

static int parse_label(const strata_parsing_t *parsing, const char *value) {
    strata_argument_strategy_t *strategy = latest(parsing->into);
    if (!strategy)
        return strata_usage_error(parsing->self, "--label %.40s is before the first --strategy; write it after its strategy",
                                  value);
    if (strategy->if_possible)
        return strata_usage_error(parsing->self, "--label %.40s follows --strategy all; name one strategy before it", value);
    if (strategy->label) return strata_usage_error(parsing->self, "%.80s has two labels", strategy->name);
    if (!*value || strlen(value) >= STRATA_ARGUMENT_LABEL)
        return strata_usage_error(parsing->self, "a label must have 1 to %d characters", STRATA_ARGUMENT_LABEL - 1);
    strategy->label = value;
    return STRATA_EXIT_DONE;
}

static int parse_capacity(const strata_parsing_t *parsing, const char *value) {
    strata_arguments_t *arguments = parsing->into;
    uint64_t bytes = 0;
    if (strata_parse_size(value, &bytes) != STRATA_OK)
        return strata_usage_error(parsing->self, "--capacity: %s", strata_last_error()->text);
    if (bytes == 0) return strata_usage_error(parsing->self, "--capacity is 0; write a size or unlimited");
    arguments->capacity = bytes;
    return STRATA_EXIT_DONE;
}

static int parse_lag(const strata_parsing_t *parsing, const char *value) {
    strata_arguments_t *arguments = parsing->into;
    uint64_t ns = 0;
    if (strata_parse_time(value, &ns) != STRATA_OK)
        return strata_usage_error(parsing->self, "--gpu-lag: %s", strata_last_error()->text);
    if (ns > STRATA_TRACE_TIME_MAX * 1000) return strata_usage_error(parsing->self, "--gpu-lag %.40s is too long", value);
    if (ns % 1000 != 0) return strata_usage_error(parsing->self, "--gpu-lag %.40s: write whole microseconds", value);
    arguments->lag_ns = ns;
    return STRATA_EXIT_DONE;
}

/* Reads a whole number of at most 9 digits. Returns false if `text` has none, or if something other than `after` follows it. */
static bool whole(const char *text, char after, uint32_t *number, const char **rest) {
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 9 || text[digits] != after) return false;
    *number = (uint32_t)strtoul(text, NULL, 10);
    *rest = text + digits;
    return true;
}

/* Reads the rank and size that the launcher of several processes gave this one. */
static bool launcher_shard(strata_arguments_t *arguments) {
    static const char *const names[][2] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = getenv(names[i][0]), *size = getenv(names[i][1]), *rest;
        if (rank && size && whole(rank, '\0', &arguments->shard, &rest) && whole(size, '\0', &arguments->shards, &rest))
            return true;
    }
    return false;
}

static int parse_shard(const strata_parsing_t *parsing, const char *value) {
    strata_arguments_t *arguments = parsing->into;
    const char *rest = "";
    if (strcmp(value, "auto") == 0) {
        if (!launcher_shard(arguments))
            return strata_usage_error(parsing->self, "--shard auto: no launcher has set its rank and size; write 0/4 to 3/4");
    } else if (!whole(value, '/', &arguments->shard, &rest) || !whole(rest + 1, '\0', &arguments->shards, &rest)) {
        return strata_usage_error(parsing->self, "--shard %.40s: write 0/4 to 3/4, or auto", value);
    }
    if (arguments->shard < arguments->shards) return STRATA_EXIT_DONE;
    return strata_usage_error(parsing->self, "--shard %u/%u: the first is 0/%u", arguments->shard, arguments->shards,
                              arguments->shards);
}

static int parse_at(const strata_parsing_t *parsing, const char *value) {
    strata_arguments_t *arguments = parsing->into;
    const char *rest = "";
    uint32_t row = 0;
    arguments->at_end = strcmp(value, "end") == 0;
    if (!arguments->at_end && strcmp(value, "peak") != 0 && (!whole(value, '\0', &row, &rest) || row == 0))
        return strata_usage_error(parsing->self, "--at %.40s: write the number of a row from 1, peak or end", value);
    arguments->at = row;
    return STRATA_EXIT_DONE;
}

static int parse_json_flag(const strata_parsing_t *parsing, const char *none) {
    strata_arguments_t *arguments = parsing->into;
    (void)none;
    arguments->json = "-";
    return STRATA_EXIT_DONE;
}

/* Takes --draw alone, or --draw=WHAT. */
static int parse_draw(const strata_parsing_t *parsing, const char *value) {
    static const struct {
        const char *name;
        unsigned what;
    } words[] = {{"all", STRATA_DRAW_ALL}, {"fragmented", STRATA_DRAW_FRAGMENTED}, {"largest", STRATA_DRAW_LARGEST}};
    strata_arguments_t *arguments = parsing->into;
    unsigned *draw = &arguments->draw;
    if (!value) *draw |= STRATA_DRAW_ALL | STRATA_DRAW_FRAGMENTED;
    for (size_t i = 0; i < sizeof words / sizeof *words && value; i++) {
        if (strcmp(value, words[i].name) != 0) continue;
        *draw |= words[i].what;
        value = NULL;
    }
    if (!value) return STRATA_EXIT_DONE;
    return strata_usage_error(parsing->self, "--draw=%.40s: write all, fragmented or largest, or --draw alone", value);
}

/* ---- the rows ---- */

#define REPORT_FILE "report.html"

#define FLAG(name, member, meaning)                                                                                                \
    { name, NULL, STRATA_ONCE, strata_parse_flag, offsetof(strata_arguments_t, member), 0, 0, meaning }
#define PARSED(name, value, often, parse, meaning)                                                                                 \
    { name, value, often, parse, 0, 0, 0, meaning }
#define STRATEGY(often) PARSED("--strategy", "NAME|FILE", often, parse_strategy, "a preset (strata presets) or a YAML file")
#define DEVICE                                                                                                                     \
    {                                                                                                                              \
        "--device", "DEVICE", STRATA_ONCE, strata_parse_text, offsetof(strata_arguments_t, device), 0, 0,                          \
            "sim:h100, sim:a100, sim:l4, sim:a10, sim:rtx4090, sim:h200, sim:b200, sim:h100x2 (two), sim:my-gpu.yaml "             \
            "(docs/profile-file.md), gpu:0 ... (as in the strategy, but sim:h100 instead of gpu if "                               \
            "there is no GPU). A replay opens as many devices as its trace has"                                                    \
    }
#define COMMON                                                                                                                     \
    PARSED("--capacity", "SIZE", STRATA_ONCE, parse_capacity,                                                                      \
           "limit of a strategy on a simulated device, such as 24GiB, or unlimited (memory of the device)"),                       \
        PARSED("--gpu-lag", "TIME", STRATA_ONCE, parse_lag, "max delay of the GPU behind the host in traces without work (5ms)"),  \
        {"--host-jitter",                                                                                                          \
         "SEED",                                                                                                                   \
         STRATA_ONCE,                                                                                                              \
         strata_parse_number,                                                                                                      \
         offsetof(strata_arguments_t, host_jitter),                                                                                \
         1,                                                                                                                        \
         UINT32_MAX,                                                                                                               \
         "seed of random host delays, like those of a virtual machine (simulated devices only)"},                                  \
        FLAG("--legacy-default-stream", legacy_default, "stream 0 of the trace is the legacy default stream"),                     \
        FLAG("--allow-code", allow_code, "lets strategies load shared objects with layers (load:), which runs their code")

#define REPEAT(usual)                                                                                                              \
    {                                                                                                                              \
        "--repeat", "N", STRATA_ONCE, strata_parse_number, offsetof(strata_arguments_t, repeat), 1, STRATA_FIGURE_REPEATS,         \
            "runs of each strategy, in turns, to measure host time (" usual ")"                                                    \
    }
#define KEEP_GOING                                                                                                                 \
    FLAG("--keep-going", keep_going,                                                                                               \
         "continues after an invalid trace, which is reported, left out and listed in the JSON; the exit status is 1")
#define JOBS                                                                                                                       \
    {                                                                                                                              \
        "--jobs", "N", STRATA_ONCE, strata_parse_number, offsetof(strata_arguments_t, jobs), 1, STRATA_JOBS_MAX,                   \
            "strategies replayed at once, on simulated devices (number of processors); this only affects host time, which is "     \
            "most exact with 1"                                                                                                    \
    }
#define STRATEGY_ROWS                                                                                                              \
    PARSED("--set", "PATH=VALUE", STRATA_MANY, parse_set,                                                                          \
           "sets an option of the preceding strategy, or, before the first, of all strategies that have the path"),                \
        PARSED("--label", "LABEL", STRATA_MANY, parse_label, "label of the preceding strategy (name of the preset or file)"),      \
        DEVICE, COMMON

#define COMPARE_ROWS                                                                                                               \
    STRATEGY_ROWS, REPEAT("3"),                                                                                                    \
        FLAG("--smallest", smallest,                                                                                               \
             "also finds the minimum capacity that serves every request, even above the given one (simulated devices only)"),      \
        FLAG("--check", check,                                                                                                     \
             "runs the happens-before checker in each first run, which then measures no host time (simulated devices only); the "  \
             "table counts hazards, and standard error shows the first three of each run with their histories"),                   \
        KEEP_GOING,                                                                                                                \
        PARSED("--shard", "I/N|auto", STRATA_ONCE, parse_shard,                                                                    \
               "replays only every N-th trace, from number I on (0 is the first); auto: the launcher's rank and size "             \
               "(OMPI_COMM_WORLD_*, PMI_*, SLURM_*). See strata merge"),                                                           \
        {"--json",                                                                                                                 \
         "FILE|-",                                                                                                                 \
         STRATA_ONCE,                                                                                                              \
         strata_parse_text,                                                                                                        \
         offsetof(strata_arguments_t, json),                                                                                       \
         0,                                                                                                                        \
         0,                                                                                                                        \
         "writes the figures as JSON (strata fields); with - no table is printed"},                                                \
        {"--report",                                                                                                               \
         "FILE",                                                                                                                   \
         STRATA_ONCE,                                                                                                              \
         strata_parse_text,                                                                                                        \
         offsetof(strata_arguments_t, report),                                                                                     \
         0,                                                                                                                        \
         0,                                                                                                                        \
         "writes an HTML page with the curves of all strategies (docs/guide.md)"},                                                 \
        PARSED("--draw", "[=all|fragmented|largest]", STRATA_MANY, parse_draw,                                                     \
               "draws the chunks at the peak, strategies side by side: all of them, small; the fragmented one (in use, with "      \
               "the most free bytes); or the largest. Without a value: the first two. The width is COLUMNS, else the "             \
               "terminal's, else 80")

#define CURVE_ROW                                                                                                                  \
    FLAG("--curve", curve,                                                                                                         \
         "draws memory over the rows, a line of blocks for each strategy, with the peaks marked; default without --strategy")

const strata_option_t strata_compare_options[] = {
    PARSED(
        "--strategy", "NAME|FILE", STRATA_MANY, parse_strategy,
        "a preset (strata presets), a YAML file, or all (every preset that the device can run); default: the presets that matter "
        "for the format of the file"),
    COMPARE_ROWS, JOBS, CURVE_ROW, STRATA_OPTIONS_END};
const strata_option_t strata_replay_options[] = {STRATEGY(STRATA_REQUIRED), COMPARE_ROWS, CURVE_ROW, STRATA_OPTIONS_END};

const strata_option_t strata_report_options[] = {
    {"-o", "FILE", STRATA_ONCE, strata_parse_text, offsetof(strata_arguments_t, report), 0, 0,
     "file for the page (" REPORT_FILE ")"},
    PARSED("--strategy", "NAME|FILE", STRATA_MANY, parse_strategy,
           "a preset (strata presets), a YAML file, or all: every preset that the device can run; may be repeated "
           "(pytorch and strata)"),
    STRATEGY_ROWS,
    KEEP_GOING,
    REPEAT("1"),
    JOBS,
    STRATA_OPTIONS_END,
};

const strata_option_t strata_stats_options[] = {
    STRATEGY(STRATA_REQUIRED),
    PARSED("--set", "PATH=VALUE", STRATA_MANY, parse_set, "sets an option of the strategy"),
    PARSED("--at", "ROW|peak|end", STRATA_ONCE, parse_at,
           "after this row (1 is the first below the header), at the first peak of reserved device memory, or at the end "
           "(peak)"),
    FLAG("--blocks", blocks, "also prints every chunk and block"),
    PARSED("--json", NULL, STRATA_ONCE, parse_json_flag,
           "prints JSON: the fields of strata_statistics_json(), the blocks, the trace's streams"),
    {"--steps", "N", STRATA_ONCE, strata_parse_number, offsetof(strata_arguments_t, steps), 1, UINT32_MAX,
     "first prints a line for each row: the address of its block, the bytes held, and after every N-th row the figures that "
     "changed"},
    FLAG("--prometheus", prometheus, "prints the text format of Prometheus"),
    DEVICE,
    COMMON,
    STRATA_OPTIONS_END,
};

const strata_option_t strata_export_options[] = {
    STRATEGY(STRATA_REQUIRED),
    PARSED("--set", "PATH=VALUE", STRATA_MANY, parse_set, "sets an option of the strategy"),
    DEVICE,
    COMMON,
    STRATA_OPTIONS_END,
};

/* Refuses arguments that do not fit a replay of one trace at one row. */
static int check_stats(const strata_command_t *self, const strata_arguments_t *arguments) {
    if (arguments->trace_count != 1) return strata_usage_error(self, "takes one trace");
    if (arguments->json && arguments->prometheus)
        return strata_usage_error(self, "--json and --prometheus exclude each other; write one");
    if (arguments->blocks && arguments->prometheus)
        return strata_usage_error(self, "--prometheus cannot print blocks; write --json --blocks");
    return STRATA_EXIT_DONE;
}

static int check_compare(const strata_command_t *self, const strata_arguments_t *arguments) {
    const char *json = arguments->json, *report = arguments->report;
    if (report && strcmp(report, "-") == 0)
        return strata_usage_error(self, "a page cannot go to standard output; write a file name instead of -");
    if (!arguments->draw || !json || strcmp(json, "-") != 0) return STRATA_EXIT_DONE;
    return strata_usage_error(self, "--json - and --draw both write to standard output; write --json FILE");
}

/* ---- traces ---- */

const char *strata_arguments_trace(const strata_arguments_t *arguments, size_t index) {
    return arguments->given[arguments->shard + index * arguments->shards];
}

void strata_arguments_drop_trace(strata_arguments_t *arguments, size_t index) {
    arguments->trace_count--;
    for (size_t i = index; i < arguments->trace_count; i++)
        arguments->given[arguments->shard + i * arguments->shards] = arguments
                                                                         ->given[arguments->shard + (i + 1) * arguments->shards];
}

static size_t count_shard(const strata_arguments_t *arguments) {
    size_t rest = arguments->given_count - strata_min(arguments->shard, arguments->given_count);
    return (rest + arguments->shards - 1) / arguments->shards;
}

/* Returns true if the last parts of a path are these. */
static bool ends_with(const char *path, const char *parts) {
    size_t length = strlen(path), of_parts = strlen(parts);
    if (of_parts > length || strcmp(path + length - of_parts, parts) != 0) return false;
    return of_parts == length || path[length - of_parts - 1] == '/';
}

static bool another_ends_with(const strata_arguments_t *arguments, const char *path, const char *parts) {
    for (size_t i = 0; i < arguments->given_count; i++)
        if (arguments->given[i] != path && ends_with(arguments->given[i], parts)) return true;
    return false;
}

const char *strata_arguments_trace_name(const strata_arguments_t *arguments, size_t index) {
    const char *path = strata_arguments_trace(arguments, index), *name = path + strlen(path);
    do {
        if (name > path) name--;
        while (name > path && name[-1] != '/') name--;
    } while (name > path && another_ends_with(arguments, path, name));
    return name;
}

static bool is_strategy(const char *word) {
    size_t length = strlen(word);
    return (length > 5 && strcmp(word + length - 5, ".yaml") == 0) || (length > 4 && strcmp(word + length - 4, ".yml") == 0) ||
           (strata_preset_text(word) && access(word, F_OK) != 0);
}

/* Two traces with one name could not be distinguished. */
static int check_traces(const strata_command_t *self, const strata_arguments_t *arguments) {
    for (size_t i = 0; i < arguments->given_count; i++)
        if (is_strategy(arguments->given[i]))
            return strata_usage_error(self, "%.200s is a strategy, not a trace; write --strategy %.200s", arguments->given[i],
                                      arguments->given[i]);
    for (size_t i = 0; i < arguments->given_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(arguments->given[i], arguments->given[k]) == 0)
                return strata_usage_error(self, "%.200s is given twice", arguments->given[i]);
    return STRATA_EXIT_DONE;
}

/* Sets the defaults of a page. */
static void fill_report(strata_arguments_t *arguments) {
    static const char *const compared[] = {"pytorch", "strata"};
    if (!arguments->report) arguments->report = REPORT_FILE;
    if (arguments->strategy_count > 0) return;
    for (size_t i = 0; i < sizeof compared / sizeof *compared; i++)
        arguments->strategies[arguments->strategy_count++].name = compared[i];
}

int strata_arguments_read(const strata_command_t *self, int argc, char **argv, strata_arguments_t *arguments) {
    int words = 0;
    *arguments = (strata_arguments_t){
        .lag_ns = STRATA_ARGUMENT_LAG_NS, .repeat = 3, .jobs = strata_processors(STRATA_JOBS_MAX), .shards = 1, .given = argv};
    if (self->options == strata_report_options) arguments->repeat = 1;
    int status = strata_options_read(self, arguments, argc, argv, &words);
    if (status != STRATA_EXIT_DONE) return status;
    arguments->given_count = (size_t)words;
    if (arguments->given_count == 0) return strata_usage_error(self, "no trace; write a .csv or .csv.gz file after the options");
    arguments->trace_count = count_shard(arguments);
    if (self->options == strata_report_options) fill_report(arguments);
    status = self->options == strata_stats_options ? check_stats(self, arguments) : check_compare(self, arguments);
    return status == STRATA_EXIT_DONE ? check_traces(self, arguments) : status;
}
