#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "allocation/option.h"
#include "config/words.h"
#include "platform/printable.h"
#include "strata/strata.h"
#include "tools/command.h"

#define COMPARE_USAGE                                                                                                          \
    "--strategy NAME|FILE [--set PATH=VALUE]... [--label L] [--strategy ...]\n"                                               \
    "           [--device sim:h100|sim:a100|gpu:0] [--capacity 24GiB|unlimited] [--gpu-lag 5ms] [--repeat N]\n"               \
    "           [--smallest] [--check] [--legacy-default-stream] [--allow-code] [--shard I/N|auto] [--json FILE|-]\n"                       \
    "           [--draw[=all|fragmented|largest]] TRACE..."

static const char compare_more[] =
    "Replays each trace (.csv or .csv.gz) under each strategy and prints a table.\n"
    "\n"
    "  --strategy NAME|FILE      a preset (strata presets) or a YAML file; at least one\n"
    "  --set PATH=VALUE          sets an option of the strategy before it, or, before the first, of all that have the path\n"
    "  --label L                 names the strategy before it in the table; else the preset's name or the file's\n"
    "  --device D                sim:h100, sim:a100, gpu:0 ...; else what the strategy says, and where it says gpu and\n"
    "                            there is none, sim:h100\n"
    "  --capacity SIZE           what a strategy may use of a simulated device; else what the device has\n"
    "  --gpu-lag TIME            how far the GPU runs behind the host in traces without work (5ms)\n"
    "  --repeat N                runs of each strategy, in turn, for the host's time (3)\n"
    "  --smallest                finds the least capacity that serves all, too (simulated devices alone)\n"
    "  --check                   the happens-before checker watches each first run (simulated devices alone), which gives no\n"
    "                            host's time: its hazards stand in the table, the first three of each run with their\n"
    "                            histories on standard error\n"
    "  --legacy-default-stream   stream 0 of the trace is the legacy default stream\n"
    "  --allow-code              strategies may load shared objects with layers (load:), and so run their code\n"
    "  --shard I/N               takes every N-th trace alone, from number I on (0 is the first); auto: by the launcher's\n"
    "                            rank and size (OMPI_COMM_WORLD_*, PMI_*, SLURM_*). See strata merge\n"
    "  --json FILE|-             writes the figures as JSON (strata fields); with - no table is printed\n"
    "  --draw[=WHAT]             draws what lies where when most is reserved, the strategies side by side: all chunks small,\n"
    "                            the fragmented one (of those in use the one with most free bytes) or the largest;\n"
    "                            without WHAT the first two. As wide as COLUMNS says, else the terminal, else 80\n"
    "\n"
    "Exit status: 0 done (out-of-memory stands in the table), 1 an operation failed otherwise, or a hazard was found, 2 wrong\n"
    "usage, strategy or trace, or a strategy has too little when it is opened (preallocate): then nothing is compared.\n";

static const char stats_more[] =
    "Replays the trace up to a row and tells what every place, stream and layer holds there.\n"
    "\n"
    "  --strategy NAME|FILE      a preset (strata presets) or a YAML file\n"
    "  --set PATH=VALUE          sets an option of the strategy\n"
    "  --at ROW|peak|end         behind which row, 1 the first under the header; peak: where most is reserved of devices for\n"
    "                            the first time; end: the last (peak)\n"
    "  --blocks                  every chunk and block too\n"
    "  --json                    as JSON: the fields of strata_statistics_json(), the blocks, the trace's streams\n"
    "  --prometheus              in the text format that Prometheus reads\n"
    "  --device D                sim:h100, sim:a100, gpu:0 ...; else what the strategy says, and where it says gpu and\n"
    "                            there is none, sim:h100\n"
    "  --capacity SIZE           what the strategy may use of a simulated device; else what the device has\n"
    "  --gpu-lag TIME            how far the GPU runs behind the host in a trace without work (5ms)\n"
    "  --legacy-default-stream   stream 0 of the trace is the legacy default stream\n"
    "  --allow-code              the strategy may load shared objects with layers (load:), and so run their code\n"
    "\n"
    "docs/layers.md explains the figures of layers, strata.h all others. Exit status: 0 done (out-of-memory is told), 1 an\n"
    "operation failed otherwise, 2 wrong usage, strategy or trace, or the strategy has too little when it is opened.\n";

const strata_command_t strata_commands[] = {
    {"compare", strata_command_compare, COMPARE_USAGE, "replays traces under several strategies and compares them",
     compare_more},
    {"replay", strata_command_compare, COMPARE_USAGE, "the same for one strategy", compare_more},
    {"stats", strata_command_stats,
     "--strategy NAME|FILE [--set PATH=VALUE]... [--at ROW|peak|end] [--blocks]\n"
     "           [--json|--prometheus] [--device sim:h100|sim:a100|gpu:0] [--capacity 24GiB|unlimited] [--gpu-lag 5ms]\n"
     "           [--legacy-default-stream] [--allow-code] TRACE",
     "tells what every place, stream and layer holds at a row of a trace", stats_more},
    {"merge", strata_command_merge, "[--json FILE|-] FILE...", "makes one comparison of the JSON files of several shards",
     "Writes to standard output where no --json says otherwise. A trace may stand once under each label.\n"},
    {"check", strata_command_check, "[--allow-code] FILE...", "checks strategy files: nothing is said where nothing is wrong",
     "One line an error, file:line:column, on standard error. Exit status: 0 good, 2 wrong.\n"},
    {"explain", strata_command_explain, "NAME|FILE [--allow-code] [--set PATH=VALUE]...",
     "prints each stack as built, every value with where it came from",
     "STRATA_SET of the environment counts; without a name STRATA_STRATEGY does, else the preset strata.\n"},
    {"diff", strata_command_diff, "NAME|FILE NAME|FILE", "tells what two strategies differ in",
     "Layers that one alone has, and values that differ, each with where it came from. The environment's STRATA_SET counts for\n"
     "neither. Exit status: 0 done, 2 wrong.\n"},
    {"layers", strata_command_layers, "[--markdown] [--load FILE.so]...", "lists the layers and their options",
     "--load brings the layers of a shared object, and runs its code.\n"},
    {"conform", strata_command_conform, "FILE.so...",
     "checks the layers of shared objects: the conformance suite, one line a check",
     "Loads each object, and so runs its code, and checks each of its layers in the stacks where it may stand, on a simulated\n"
     "device, with the defaults of its options. Exit status: 0 all checks passed, 1 one failed, 2 the object or its\n"
     "layers cannot be loaded.\n"},
    {"torture", strata_command_torture,
     "[--programs N] [--seed S] [--first I] [--strategy NAME|FILE]... [--layers FILE.so]...\n"
     "           [--allow-code] [--stacks N] [--jobs N]",
     "runs random stream programs under every strategy: hazards, contents, leaks",
     "Programs of several streams, host threads and devices, each in order by its own events and borrows, so that whatever the\n"
     "happens-before checker finds is the allocator's fault. Simulated devices with contents. A failing program is made small and\n"
     "printed as a C test (docs/torture.md).\n"
     "\n"
     "  --programs N           how many (500)\n"
     "  --seed S               what they are drawn by (1)\n"
     "  --first I              begins with program I of the seed (0)\n"
     "  --strategy NAME|FILE   a preset or a strategy file, instead of all presets and random legal stacks\n"
     "  --layers FILE.so       the layers of a shared object, in random legal stacks; runs its code\n"
     "  --allow-code           strategies may load shared objects with layers (load:), and so run their code\n"
     "  --stacks N             random legal stacks, three for each program in turn (200)\n"
     "  --jobs N               processes at a time (as many as processors)\n"
     "\n"
     "Exit status: 0 nothing is wrong, 1 something failed, 2 wrong usage, strategy or layer.\n"},
    {"grammar", strata_command_grammar, "", "explains strategy files (docs/strategy.md)", NULL},
    {"presets", strata_command_presets, "[NAME]", "lists the presets, or prints one", NULL},
    {"import", strata_command_import, "pytorch|paddle|tensorflow [STRING] [--as-of VERSION]\n"
     "       strata import --markdown",
     "makes a strategy of what another allocator is told",
     "STRING is the value of PYTORCH_CUDA_ALLOC_CONF, or NAME=VALUE NAME=VALUE; without it the environment's variables are read.\n"
     "The strategy goes to standard output, what has no equivalent to standard error too. --as-of takes the keys of one version\n"
     "alone. --markdown prints docs/import.md: every key and what it becomes. A running program reads the environment under the\n"
     "strategy import:pytorch. Exit status: 0 done, 2 a wrong string.\n"},
    {"fields", strata_command_fields, "", "explains the figures of a comparison (docs/fields.md)", NULL},
    {"help", strata_command_help, "[COMMAND]", "explains a command", NULL},
    {"version", strata_command_version, "", "prints the version", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const strata_command_t *find_command(const char *name) {
    const strata_command_t *command = strata_commands;
    while (command->name && strcmp(command->name, name) != 0) command++;
    return command->name ? command : NULL;
}

static const char *command_word(size_t index, const void *unused) {
    (void)unused;
    return strata_commands[index].name;
}

static void unknown_command(const char *given) {
    char name[64];
    snprintf(name, sizeof name, "%.40s", given);
    strata_make_printable(name, false);
    size_t count = sizeof strata_commands / sizeof *strata_commands - 1;
    const char *near = strata_nearest_word(name, count, command_word, NULL);
    fprintf(stderr, "strata: there is no command \"%s\"; %s%s\n", name, near ? "did you mean strata " : "see strata help",
            near ? near : "");
}

int strata_wrong_usage(const strata_command_t *self, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    strata_make_printable(text, false);
    fprintf(stderr, "strata %s: %s; see strata help %s\n", self->name, text, self->name);
    return STRATA_EXIT_WRONG;
}

int strata_tell_failure(void) {
    const strata_error_t *error = strata_last_error();
    /* What is wrong in a file begins with its place, as editors and other tools want it. */
    fprintf(stderr, "%s%s\n", error->line ? "" : "strata: ", error->text);
    bool theirs = error->status == STRATA_E_HOST_MEMORY || error->status == STRATA_E_DEVICE ||
                  error->status == STRATA_E_DEVICE_LOST || error->status == STRATA_E_CORRUPT;
    return theirs ? STRATA_EXIT_FAILED : STRATA_EXIT_WRONG;
}

int strata_tell_written(strata_status_t status) {
    if (status == STRATA_OK) return STRATA_EXIT_DONE;
    (void)strata_tell_failure();
    return STRATA_EXIT_FAILED;
}

static void print_commands(FILE *out) {
    fprintf(out, "strata %s: GPU memory allocators built out of layers\n\n", strata_version());
    for (const strata_command_t *command = strata_commands; command->name; command++)
        fprintf(out, "  strata %-8s  %s\n", command->name, command->help);
    fprintf(out, "\nstrata help COMMAND tells more.\n");
}

int strata_command_help(const strata_command_t *self, int argc, char **argv) {
    (void)self;
    if (argc == 0) {
        print_commands(stdout);
        return STRATA_EXIT_DONE;
    }
    const strata_command_t *command = find_command(argv[0]);
    if (!command) {
        unknown_command(argv[0]);
        return STRATA_EXIT_WRONG;
    }
    printf("strata %s %s\n\n%s.\n", command->name, command->usage, command->help);
    if (command->more) printf("\n%s", command->more);
    return STRATA_EXIT_DONE;
}

int strata_command_version(const strata_command_t *self, int argc, char **argv) {
    (void)argv;
    if (argc > 0) return strata_wrong_usage(self, "takes no arguments");
    printf("%s\n", strata_version());
    return STRATA_EXIT_DONE;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_commands(stderr);
        return STRATA_EXIT_WRONG;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0) name = "version";
    const strata_command_t *command = find_command(name);
    if (!command) {
        unknown_command(name);
        return STRATA_EXIT_WRONG;
    }
    int status = command->run(command, argc - 2, argv + 2);
    int written = strata_tell_written(strata_config_written(stdout));
    return status == STRATA_EXIT_DONE ? written : status;
}
