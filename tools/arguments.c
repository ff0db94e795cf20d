#include "tools/arguments.h"

#include <stdlib.h>
#include <string.h>

#include "allocation/option.h"
#include "platform/arithmetic.h"
#include "replay/draw.h"
#include "trace/trace.h"

typedef struct reading {
    const strata_command_t *self;
    strata_arguments_t *arguments;
} reading_t;

/* One option with its value, or a flag without: STRATA_EXIT_DONE, or what strata_wrong_usage() answered. */
typedef int (*take_fn)(const reading_t *reading, const char *value);

static strata_argument_strategy_t *latest(const reading_t *reading) {
    size_t count = reading->arguments->strategy_count;
    return count ? &reading->arguments->strategies[count - 1] : NULL;
}

static int take_strategy(const reading_t *reading, const char *value) {
    strata_arguments_t *arguments = reading->arguments;
    if (arguments->strategy_count == STRATA_ARGUMENT_STRATEGIES)
        return strata_wrong_usage(reading->self, "more than %d strategies", STRATA_ARGUMENT_STRATEGIES);
    arguments->strategies[arguments->strategy_count++].name = value;
    return STRATA_EXIT_DONE;
}

static int take_set(const reading_t *reading, const char *value) {
    strata_argument_strategy_t *strategy = latest(reading);
    const char **set = strategy ? strategy->set : reading->arguments->set;
    size_t *count = strategy ? &strategy->set_count : &reading->arguments->set_count;
    if (!strchr(value, '=')) return strata_wrong_usage(reading->self, "--set %.80s: write PATH=VALUE", value);
    if (*count == STRATA_ARGUMENT_SETS) return strata_wrong_usage(reading->self, "more than %d --set", STRATA_ARGUMENT_SETS);
    set[(*count)++] = value + strspn(value, " ");
    return STRATA_EXIT_DONE;
}

static int take_label(const reading_t *reading, const char *value) {
    strata_argument_strategy_t *strategy = latest(reading);
    if (!strategy) return strata_wrong_usage(reading->self, "--label %.40s stands before the first --strategy", value);
    if (strategy->label) return strata_wrong_usage(reading->self, "%.80s has two labels", strategy->name);
    if (!*value || strlen(value) >= STRATA_ARGUMENT_LABEL)
        return strata_wrong_usage(reading->self, "a label has 1 to %d letters", STRATA_ARGUMENT_LABEL - 1);
    strategy->label = value;
    return STRATA_EXIT_DONE;
}

static int take_device(const reading_t *reading, const char *value) {
    reading->arguments->device = value;
    return STRATA_EXIT_DONE;
}

static int take_capacity(const reading_t *reading, const char *value) {
    uint64_t bytes = 0;
    if (strata_parse_size(value, &bytes) != STRATA_OK)
        return strata_wrong_usage(reading->self, "--capacity: %s", strata_last_error()->text);
    if (bytes == 0) return strata_wrong_usage(reading->self, "--capacity is 0; write a size or unlimited");
    reading->arguments->capacity = bytes;
    return STRATA_EXIT_DONE;
}

static int take_lag(const reading_t *reading, const char *value) {
    uint64_t ns = 0;
    if (strata_parse_time(value, &ns) != STRATA_OK)
        return strata_wrong_usage(reading->self, "--gpu-lag: %s", strata_last_error()->text);
    if (ns > STRATA_TRACE_TIME_MAX * 1000) return strata_wrong_usage(reading->self, "--gpu-lag %.40s is too long", value);
    if (ns % 1000 != 0) return strata_wrong_usage(reading->self, "--gpu-lag %.40s: write whole microseconds", value);
    reading->arguments->lag_ns = ns;
    return STRATA_EXIT_DONE;
}

static int take_repeat(const reading_t *reading, const char *value) {
    char *end;
    unsigned long number = strtoul(value, &end, 10);
    if (*end || *value < '0' || *value > '9' || number < 1 || number > STRATA_FIGURE_REPEATS)
        return strata_wrong_usage(reading->self, "--repeat %.40s: write a number from 1 to %d", value, STRATA_FIGURE_REPEATS);
    reading->arguments->repeat = (uint32_t)number;
    return STRATA_EXIT_DONE;
}

/* A whole number of at most 9 digits; false: `text` is none, or goes on with something but `behind`. */
static bool whole(const char *text, char behind, uint32_t *number, const char **rest) {
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 9 || text[digits] != behind) return false;
    *number = (uint32_t)strtoul(text, NULL, 10);
    *rest = text + digits;
    return true;
}

/* What the launcher of several processes told this one. */
static bool launcher_shard(strata_arguments_t *arguments) {
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"SLURM_PROCID", "SLURM_NTASKS"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = getenv(names[i][0]), *size = getenv(names[i][1]), *rest;
        if (rank && size && whole(rank, '\0', &arguments->shard, &rest) && whole(size, '\0', &arguments->shards, &rest))
            return true;
    }
    return false;
}

static int take_shard(const reading_t *reading, const char *value) {
    strata_arguments_t *arguments = reading->arguments;
    const char *rest = "";
    if (strcmp(value, "auto") == 0) {
        if (!launcher_shard(arguments))
            return strata_wrong_usage(reading->self, "--shard auto: no launcher says its rank and size");
    } else if (!whole(value, '/', &arguments->shard, &rest) || !whole(rest + 1, '\0', &arguments->shards, &rest)) {
        return strata_wrong_usage(reading->self, "--shard %.40s: write 0/4 to 3/4, or auto", value);
    }
    if (arguments->shard < arguments->shards) return STRATA_EXIT_DONE;
    return strata_wrong_usage(reading->self, "--shard %u/%u: the first is 0/%u", arguments->shard, arguments->shards,
                              arguments->shards);
}

static int take_json(const reading_t *reading, const char *value) {
    if (!*value) return strata_wrong_usage(reading->self, "--json wants a file, or -");
    reading->arguments->json = value;
    return STRATA_EXIT_DONE;
}

static int take_at(const reading_t *reading, const char *value) {
    strata_arguments_t *arguments = reading->arguments;
    const char *rest = "";
    uint32_t row = 0;
    arguments->at_end = strcmp(value, "end") == 0;
    if (!arguments->at_end && strcmp(value, "peak") != 0 && (!whole(value, '\0', &row, &rest) || row == 0))
        return strata_wrong_usage(reading->self, "--at %.40s: write the number of a row, the first is 1, or peak, or end",
                                  value);
    arguments->at = row;
    return STRATA_EXIT_DONE;
}

/* ---- flags ---- */

static int take_json_flag(const reading_t *reading, const char *none) {
    (void)none;
    reading->arguments->json = "-";
    return STRATA_EXIT_DONE;
}

static int take_prometheus(const reading_t *reading, const char *none) {
    (void)none;
    reading->arguments->prometheus = true;
    return STRATA_EXIT_DONE;
}

static int take_blocks(const reading_t *reading, const char *none) {
    (void)none;
    reading->arguments->blocks = true;
    return STRATA_EXIT_DONE;
}

static int take_smallest(const reading_t *reading, const char *none) {
    (void)none;
    reading->arguments->smallest = true;
    return STRATA_EXIT_DONE;
}

static int take_check(const reading_t *reading, const char *none) {
    (void)none;
    reading->arguments->check = true;
    return STRATA_EXIT_DONE;
}

/* --draw alone, or --draw=WHAT. */
static int take_draw(const reading_t *reading, const char *value) {
    static const struct {
        const char *name;
        unsigned what;
    } words[] = {{"all", STRATA_DRAW_ALL}, {"fragmented", STRATA_DRAW_FRAGMENTED}, {"largest", STRATA_DRAW_LARGEST}};
    unsigned *draw = &reading->arguments->draw;
    if (!value) *draw |= STRATA_DRAW_ALL | STRATA_DRAW_FRAGMENTED;
    for (size_t i = 0; i < sizeof words / sizeof *words && value; i++) {
        if (strcmp(value, words[i].name) != 0) continue;
        *draw |= words[i].what;
        value = NULL;
    }
    if (!value) return STRATA_EXIT_DONE;
    return strata_wrong_usage(reading->self, "--draw=%.40s: write all, fragmented or largest, or --draw alone", value);
}

static int take_legacy(const reading_t *reading, const char *none) {
    (void)none;
    reading->arguments->legacy_default = true;
    return STRATA_EXIT_DONE;
}

static int take_code(const reading_t *reading, const char *none) {
    (void)none;
    reading->arguments->allow_code = true;
    return STRATA_EXIT_DONE;
}

/* ---- options ---- */

enum { COMPARE = 1, STATS = 2, BOTH = 3 };

/* EITHER: a flag that may have a value all the same, behind "=". */
typedef enum form { VALUE, FLAG, EITHER } form_t;

static const struct option_of {
    const char *name;
    take_fn take;
    form_t form;
    unsigned commands;
} options[] = {
    {"--strategy", take_strategy, VALUE, BOTH}, {"--set", take_set, VALUE, BOTH},
    {"--device", take_device, VALUE, BOTH},     {"--capacity", take_capacity, VALUE, BOTH},
    {"--gpu-lag", take_lag, VALUE, BOTH},       {"--legacy-default-stream", take_legacy, FLAG, BOTH},
    {"--allow-code", take_code, FLAG, BOTH},    {"--label", take_label, VALUE, COMPARE},
    {"--repeat", take_repeat, VALUE, COMPARE},  {"--shard", take_shard, VALUE, COMPARE},
    {"--smallest", take_smallest, FLAG, COMPARE}, {"--check", take_check, FLAG, COMPARE},
    {"--json", take_json, VALUE, COMPARE},      {"--draw", take_draw, EITHER, COMPARE},
    {"--json", take_json_flag, FLAG, STATS},    {"--prometheus", take_prometheus, FLAG, STATS},
    {"--blocks", take_blocks, FLAG, STATS},     {"--at", take_at, VALUE, STATS},
};
enum { OPTIONS = sizeof options / sizeof *options };

static unsigned command_of(const reading_t *reading) {
    return strcmp(reading->self->name, "stats") == 0 ? STATS : COMPARE;
}

/* What the command does not have is no word to write instead. */
static const char *option_word(size_t index, const void *reading) {
    return options[index].commands & command_of(reading) ? options[index].name : "";
}

/* The option of "--name" or "--name=value"; *value is what follows the sign, or NULL. */
static const struct option_of *find_option(const reading_t *reading, const char *argument, const char **value) {
    size_t length = strcspn(argument, "=");
    *value = argument[length] ? argument + length + 1 : NULL;
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct option_of *option = &options[i];
        if (!(option->commands & command_of(reading))) continue;
        if (strlen(option->name) == length && strncmp(option->name, argument, length) == 0) return option;
    }
    return NULL;
}

static int unknown_option(const reading_t *reading, const char *argument) {
    const char *near = strata_nearest_word(argument, OPTIONS, option_word, reading);
    return strata_wrong_usage(reading->self, "unknown option %.60s%s%s", argument, near ? "; did you mean " : "",
                              near ? near : "");
}

/* Takes the option at argv[*at], and its value behind it. */
static int take_option(const reading_t *reading, int argc, char **argv, int *at) {
    const char *value;
    const struct option_of *option = find_option(reading, argv[*at], &value);
    if (!option) return unknown_option(reading, argv[*at]);
    if (option->form == FLAG && value) return strata_wrong_usage(reading->self, "%s takes no value", option->name);
    if (option->form != VALUE) return option->take(reading, value);
    if (!value && *at + 1 < argc) value = argv[++*at];
    return value ? option->take(reading, value) : strata_wrong_usage(reading->self, "%s wants a value", option->name);
}

/* What fits no replay of one trace at one row. */
static int check_stats(const reading_t *reading) {
    const strata_arguments_t *arguments = reading->arguments;
    if (arguments->trace_count != 1) return strata_wrong_usage(reading->self, "one trace, please");
    if (arguments->json && arguments->prometheus)
        return strata_wrong_usage(reading->self, "--json or --prometheus, not both");
    if (arguments->blocks && arguments->prometheus)
        return strata_wrong_usage(reading->self, "Prometheus reads no blocks; write --json --blocks");
    return STRATA_EXIT_DONE;
}

static int check_compare(const reading_t *reading) {
    const char *json = reading->arguments->json;
    if (!reading->arguments->draw || !json || strcmp(json, "-") != 0) return STRATA_EXIT_DONE;
    return strata_wrong_usage(reading->self, "--json - writes where --draw does; write --json FILE");
}

/* ---- traces ---- */

const char *strata_arguments_trace(const strata_arguments_t *arguments, size_t index) {
    return arguments->given[arguments->shard + index * arguments->shards];
}

static size_t count_shard(const strata_arguments_t *arguments) {
    size_t rest = arguments->given_count - strata_min(arguments->shard, arguments->given_count);
    return (rest + arguments->shards - 1) / arguments->shards;
}

/* Whether the last parts of a path are these. */
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

/* Their runs would be each other's. */
static int check_traces(const reading_t *reading) {
    const strata_arguments_t *arguments = reading->arguments;
    for (size_t i = 0; i < arguments->given_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(arguments->given[i], arguments->given[k]) == 0)
                return strata_wrong_usage(reading->self, "%.200s is given twice", arguments->given[i]);
    return STRATA_EXIT_DONE;
}

int strata_arguments_read(const strata_command_t *self, int argc, char **argv, strata_arguments_t *arguments) {
    reading_t reading = {.self = self, .arguments = arguments};
    *arguments = (strata_arguments_t){.lag_ns = 5000000, .repeat = 3, .shards = 1, .given = argv};
    bool only_traces = false;
    for (int i = 0; i < argc; i++) {
        if (only_traces || argv[i][0] != '-' || !argv[i][1]) {
            argv[arguments->given_count++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            only_traces = true;
        } else {
            int status = take_option(&reading, argc, argv, &i);
            if (status != STRATA_EXIT_DONE) return status;
        }
    }
    if (arguments->strategy_count == 0) return strata_wrong_usage(self, "no --strategy");
    if (strcmp(self->name, "compare") != 0 && arguments->strategy_count > 1)
        return strata_wrong_usage(self, "one --strategy alone (strata compare takes several)");
    if (arguments->given_count == 0) return strata_wrong_usage(self, "no trace");
    arguments->trace_count = count_shard(arguments);
    int status = command_of(&reading) == STATS ? check_stats(&reading) : check_compare(&reading);
    return status == STRATA_EXIT_DONE ? check_traces(&reading) : status;
}
