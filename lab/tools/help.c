/* Prints help on commands from their rows and those of their options. */
#include <string.h>

#include "allocation/options/option.h"
#include "config/words.h"
#include "lab/tools/options/options.h"
#include "lab/tools/screen/terminal.h"
#include "platform/text/nearest.h"
#include "platform/text/printable.h"
#include "strata/strata.h"

enum { WIDTH = 80, NARROWEST = 40, MEANING_AT = 28, ITEM = 128 };

static const strata_command_t *const commands[] = {
    &strata_command_compare, &strata_command_replay,  &strata_command_report,  &strata_command_stats,     &strata_command_merge,
    &strata_command_check,   &strata_command_explain, &strata_command_diff,    &strata_command_layers,    &strata_command_presets,
    &strata_command_import,  &strata_command_conform, &strata_command_torture, &strata_command_calibrate, &strata_command_convert,
    &strata_command_export,  &strata_command_plan,    &strata_command_run,     &strata_command_grammar,   &strata_command_fields,
    &strata_command_help,    &strata_command_version,
};
enum { COMMANDS = sizeof commands / sizeof *commands };

const strata_command_t *strata_command_find(const char *name) {
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static const char *command_word(size_t index, const void *unused) {
    (void)unused;
    return commands[index]->name;
}

int strata_command_unknown(const char *given) {
    char name[64];
    snprintf(name, sizeof name, "%.40s", given);
    strata_make_printable(name, false);
    const char *near = strata_nearest_word(name, COMMANDS, command_word, NULL);
    fprintf(stderr, "strata: there is no command \"%s\"; %s%s\n", name, near ? "did you mean strata " : "see strata help",
            near ? near : "");
    return STRATA_EXIT_USAGE;
}

void strata_commands_print(FILE *out) {
    fprintf(out, "strata %s: GPU memory allocators built out of layers\n\n", strata_version());
    for (size_t i = 0; i < COMMANDS; i++) fprintf(out, "  strata %-9s  %s\n", commands[i]->name, commands[i]->help);
    fprintf(out, "\nFor more, run strata help COMMAND or strata COMMAND --help.\n");
}

/* ---- one command ---- */

static size_t width(void) {
    size_t said = strata_terminal_width(WIDTH);
    return said < NARROWEST ? NARROWEST : said;
}

/* Formats, for example, "--strategy NAME|FILE", "--draw[=WHAT]" or "--check". */
static void option_item(const strata_option_t *option, char item[ITEM]) {
    const char *value = option->value;
    snprintf(item, ITEM, "%s%s%s", option->name, value && *value != '[' ? " " : "", value ? value : "");
}

/* Formats an option for the usage: in brackets if it is optional, with dots if it may be repeated. */
static void usage_item(const strata_option_t *option, char item[ITEM]) {
    char bare[ITEM];
    bool needed = option->often == STRATA_REQUIRED || option->often == STRATA_REQUIRED_MANY;
    bool many = option->often == STRATA_MANY || option->often == STRATA_REQUIRED_MANY;
    option_item(option, bare);
    snprintf(item, ITEM, "%s%.100s%s%s", needed ? "" : "[", bare, needed ? "" : "]", many ? "..." : "");
}

/* An item in brackets stays on one line. */
static size_t print_item(const char *item, size_t column, size_t indent, FILE *out) {
    size_t length = strlen(item);
    if (column > indent && column + 1 + length > width()) {
        fprintf(out, "\n%*s", (int)indent - 1, "");
        column = indent - 1;
    }
    fprintf(out, " %s", item);
    return column + 1 + length;
}

static void print_usage(const strata_command_t *command, FILE *out) {
    char item[ITEM];
    int begin = fprintf(out, "usage: strata %s", command->name);
    size_t indent = begin > 0 ? (size_t)begin + 1 : 0, column = indent;
    column--;
    for (const strata_option_t *option = command->options; option && option->name; option++) {
        usage_item(option, item);
        column = print_item(item, column, indent, out);
    }
    if (*command->words) (void)print_item(command->words, column, indent, out);
    fputc('\n', out);
}

static void print_option(const char *item, const char *meaning, FILE *out) {
    int written = fprintf(out, "  %s", item);
    size_t column = written > 0 ? (size_t)written : 0;
    if (column + 2 > MEANING_AT) {
        fputc('\n', out);
        column = 0;
    }
    fprintf(out, "%*s", (int)(MEANING_AT - column), "");
    strata_print_wrapped(out, meaning, MEANING_AT, width());
}

void strata_command_print(const strata_command_t *command, FILE *out) {
    char item[ITEM], title[2 * ITEM];
    snprintf(title, sizeof title, "strata %s %s.", command->name, command->help);
    strata_print_wrapped(out, title, 0, width());
    fputc('\n', out);
    print_usage(command, out);
    if (command->more) {
        fputc('\n', out);
        strata_print_wrapped(out, command->more, 0, width());
    }
    fputc('\n', out);
    for (const strata_option_t *option = command->options; option && option->name; option++) {
        option_item(option, item);
        print_option(item, option->meaning, out);
    }
    print_option("-h, --help", "prints this", out);
    fprintf(out, "\nexample: strata %s%s%s\n", command->name, *command->example ? " " : "", command->example);
}

/* ---- help and version as commands ---- */

static int run_help(const strata_command_t *self, int argc, char **argv) {
    int words;
    int status = strata_options_read(self, NULL, argc, argv, &words);
    if (status != STRATA_EXIT_DONE) return status;
    if (words > 1) return strata_usage_error(self, "takes one command");
    const strata_command_t *command = words ? strata_command_find(argv[0]) : NULL;
    if (words && !command) return strata_command_unknown(argv[0]);
    if (command) strata_command_print(command, stdout);
    else strata_commands_print(stdout);
    return STRATA_EXIT_DONE;
}

static int run_version(const strata_command_t *self, int argc, char **argv) {
    int words;
    int status = strata_options_read(self, NULL, argc, argv, &words);
    if (status != STRATA_EXIT_DONE) return status;
    if (words > 0) return strata_usage_error(self, "takes no arguments");
    printf("%s\n", strata_version());
    return STRATA_EXIT_DONE;
}

const strata_command_t strata_command_help = {.name = "help",
                                              .run = run_help,
                                              .words = "[COMMAND]",
                                              .help = "explains a command",
                                              .example = "compare",
                                              .more = "strata COMMAND --help prints the same."};
const strata_command_t strata_command_version = {
    .name = "version", .run = run_version, .words = "", .help = "prints the version", .example = ""};
