#include "lab/tools/options/options.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "allocation/options/option.h"
#include "platform/text/nearest.h"

/* ---- taking one ---- */

static void *target_of(const strata_parsing_t *parsing) { return (char *)parsing->into + parsing->option->offset; }

int strata_parse_flag(const strata_parsing_t *parsing, const char *none) {
    (void)none;
    *(bool *)target_of(parsing) = true;
    return STRATA_EXIT_DONE;
}

int strata_parse_text(const strata_parsing_t *parsing, const char *value) {
    if (!*value) return strata_usage_error(parsing->self, "%s needs %s", parsing->option->name, parsing->option->value);
    *(const char **)target_of(parsing) = value;
    return STRATA_EXIT_DONE;
}

uint64_t strata_processors(uint64_t most) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 0 && (uint64_t)count < most ? (uint64_t)count : most;
}

int strata_parse_number(const strata_parsing_t *parsing, const char *value) {
    const strata_option_t *option = parsing->option;
    /* A number that does not fit becomes the largest that does, which is above every bound. */
    bool digits = *value && strspn(value, "0123456789") == strlen(value);
    uint64_t number = digits ? strtoull(value, NULL, 10) : UINT64_MAX;
    if (number < option->low || number > option->high)
        return strata_usage_error(parsing->self, "%s %.40s: write a number from %" PRIu64 " to %" PRIu64, option->name, value,
                                  option->low, option->high);
    *(uint64_t *)target_of(parsing) = number;
    return STRATA_EXIT_DONE;
}

/* ---- finding ---- */

static bool wants_value(const strata_option_t *option) { return option->value && *option->value != '['; }

/* Returns the option of "--name" or "--name=value". *value is the part after the sign, or NULL. */
static const strata_option_t *find_option(const strata_command_t *self, const char *argument, const char **value) {
    size_t length = strcspn(argument, "=");
    *value = argument[length] ? argument + length + 1 : NULL;
    for (const strata_option_t *option = self->options; option && option->name; option++)
        if (strlen(option->name) == length && strncmp(option->name, argument, length) == 0) return option;
    return NULL;
}

static const char *option_word(size_t index, const void *self) { return ((const strata_command_t *)self)->options[index].name; }

static int unknown_option(const strata_command_t *self, const char *argument) {
    size_t count = 0;
    while (self->options && self->options[count].name) count++;
    const char *near = strata_nearest_word(argument, count, option_word, self);
    return strata_usage_error(self, "unknown option %.60s%s%s", argument, near ? "; did you mean " : "", near ? near : "");
}

/* ---- reading ---- */

typedef struct reading {
    const strata_command_t *self;
    void *into;
    int argc;
    char **argv;
    uint64_t seen; /* one bit per option */
} reading_t;

static int parse(reading_t *reading, const strata_option_t *option, const char *value) {
    uint64_t bit = UINT64_C(1) << (option - reading->self->options);
    bool many = option->often == STRATA_MANY || option->often == STRATA_REQUIRED_MANY;
    if ((reading->seen & bit) && !many && wants_value(option))
        return strata_usage_error(reading->self, "%s is given twice; write it once", option->name);
    reading->seen |= bit;
    return option->parse(&(strata_parsing_t){.self = reading->self, .option = option, .into = reading->into}, value);
}

/* Takes the option at argv[*at], and its value after it. */
static int parse_at(reading_t *reading, int *at) {
    const char *value;
    const strata_command_t *self = reading->self;
    const strata_option_t *option = find_option(self, reading->argv[*at], &value);
    if (!option) return unknown_option(self, reading->argv[*at]);
    if (!option->value && value) return strata_usage_error(self, "%s takes no value", option->name);
    if (!wants_value(option)) return parse(reading, option, value);
    if (!value && *at + 1 < reading->argc) {
        const char *next = reading->argv[*at + 1], *of_next;
        /* The value was left out. Otherwise "--json --device" would write a file "--device". */
        if (find_option(self, next, &of_next))
            return strata_usage_error(self, "%s has no value, because %s follows; write %s %s, or %s=%s if that is the value",
                                      option->name, next, option->name, option->value, option->name, next);
        value = reading->argv[++*at];
    }
    return value ? parse(reading, option, value)
                 : strata_usage_error(self, "%s needs a value: %s %s", option->name, option->name, option->value);
}

static int check_required(const reading_t *reading) {
    const strata_option_t *options = reading->self->options;
    for (size_t i = 0; options && options[i].name; i++) {
        if (options[i].often != STRATA_REQUIRED && options[i].often != STRATA_REQUIRED_MANY) continue;
        if (!(reading->seen & UINT64_C(1) << i))
            return strata_usage_error(reading->self, "%s is missing; write %s %s", options[i].name, options[i].name,
                                      options[i].value);
    }
    return STRATA_EXIT_DONE;
}

static bool is_word(const char *argument) { return argument[0] != '-' || !argument[1]; }

int strata_options_read(const strata_command_t *self, void *into, int argc, char **argv, int *words) {
    reading_t reading = {.self = self, .into = into, .argc = argc, .argv = argv};
    bool only_words = false;
    *words = 0;
    for (int i = 0; i < argc; i++) {
        if (only_words || is_word(argv[i])) {
            if (!*argv[i] && !self->may_be_empty)
                return strata_usage_error(self, "an argument is empty; write a name, or leave it out");
            argv[(*words)++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else {
            int status = parse_at(&reading, &i);
            if (status != STRATA_EXIT_DONE) return status;
        }
    }
    return check_required(&reading);
}

bool strata_options_has_help(const strata_command_t *self, int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        const char *value;
        if (strcmp(argv[i], "--") == 0) return false;
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) return true;
        const strata_option_t *option = find_option(self, argv[i], &value);
        if (option && wants_value(option) && !value) i++;
    }
    return false;
}
