/* The arguments of compare, replay, report, stats and export, checked as far as possible without opening a file. */
#ifndef STRATA_TOOLS_ARGUMENTS_H
#define STRATA_TOOLS_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lab/tools/options/options.h"

enum { STRATA_ARGUMENT_STRATEGIES = 32, STRATA_ARGUMENT_SETS = 64, STRATA_ARGUMENT_LABEL = 64, STRATA_JOBS_MAX = 32 };
#define STRATA_ARGUMENT_LAG_NS UINT64_C(5000000) /* the default of --gpu-lag */

typedef struct strata_argument_strategy {
    const char *name;
    const char *label; /* NULL if derived from the name */
    bool if_possible; /* from `--strategy all`; left out if the device cannot run it */
    const char *set[STRATA_ARGUMENT_SETS];
    size_t set_count;
} strata_argument_strategy_t;

typedef struct strata_arguments {
    strata_argument_strategy_t strategies[STRATA_ARGUMENT_STRATEGIES];
    size_t strategy_count;
    const char *set[STRATA_ARGUMENT_SETS]; /* given before the first strategy, for all strategies that have the path */
    size_t set_count;
    const char *device; /* NULL if the strategies name it */
    uint64_t capacity; /* 0 for the device's */
    uint64_t lag_ns;
    uint64_t host_jitter; /* 0 for none */
    uint64_t repeat, jobs;
    bool smallest;
    bool keep_going; /* continue after invalid traces */
    bool check;
    bool legacy_default;
    bool allow_code;
    uint32_t shard, shards; /* this shard has every `shards`-th trace, from number `shard` on */
    const char *json; /* NULL for none; "-" for stats */
    const char *report; /* the page's file, or NULL for none */
    size_t at; /* of stats: the row; if 0, at_end decides */
    bool at_end; /* the last row, else that of the highest reserved bytes */
    bool prometheus;
    bool blocks;
    uint64_t steps; /* of stats: 0 for no lines of rows */
    unsigned draw; /* STRATA_DRAW_*, or 0 for nothing */
    bool curve;
    char **given; /* the traces of all shards, within argv */
    size_t given_count;
    size_t trace_count; /* of this shard */
} strata_arguments_t;

/* The options of each command. */
extern const strata_option_t strata_compare_options[], strata_replay_options[], strata_report_options[], strata_stats_options[],
    strata_export_options[];

/* Returns STRATA_EXIT_DONE, or STRATA_EXIT_USAGE after printing the reason. Moves the traces to the front of argv. */
int strata_arguments_read(const strata_command_t *self, int argc, char **argv, strata_arguments_t *arguments);

/* Returns the path of a trace of this shard. */
const char *strata_arguments_trace(const strata_arguments_t *arguments, size_t index);
/* Removes a trace of this shard; later ones move down. */
void strata_arguments_drop_trace(strata_arguments_t *arguments, size_t index);
/* Returns the name of a trace of this shard. It is its file name, with as many folders as distinguish it from
 * all given traces, including those of other shards. */
const char *strata_arguments_trace_name(const strata_arguments_t *arguments, size_t index);

#endif
