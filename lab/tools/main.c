/* The program `strata`: runs the command that its first argument names, and ends the process. */
#include <stdarg.h>
#include <string.h>

#include "config/words.h"
#include "lab/tools/options/options.h"
#include "lab/tools/screen/signals.h"
#include "platform/text/printable.h"
#include "strata/strata.h"

int strata_usage_error(const strata_command_t *self, const char *format, ...) {
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    strata_make_printable(text, false);
    fprintf(stderr, "strata %s: %s; see strata help %s\n", self->name, text, self->name);
    return STRATA_EXIT_USAGE;
}

int strata_print_failure(void) {
    const strata_error_t *error = strata_last_error();
    /* An error in a file begins with its position, as editors and other tools expect it. */
    fprintf(stderr, "%s%s\n", error->line ? "" : "strata: ", error->text);
    bool theirs = error->status == STRATA_E_HOST_MEMORY || error->status == STRATA_E_DEVICE ||
                  error->status == STRATA_E_DEVICE_LOST || error->status == STRATA_E_CORRUPT;
    return theirs ? STRATA_EXIT_FAILED : STRATA_EXIT_USAGE;
}

int strata_check_written(strata_status_t status) {
    if (status == STRATA_OK) return STRATA_EXIT_DONE;
    (void)strata_print_failure();
    return STRATA_EXIT_FAILED;
}

static int run(const strata_command_t *command, int argc, char **argv) {
    if (!strata_options_has_help(command, argc, argv)) return command->run(command, argc, argv);
    strata_command_print(command, stdout);
    return STRATA_EXIT_DONE;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        strata_commands_print(stderr);
        return STRATA_EXIT_USAGE;
    }
    const char *name = argv[1];
    bool help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    if (strcmp(name, "--version") == 0) name = "version";
    const strata_command_t *command = help ? &strata_command_help : strata_command_find(name);
    if (!command) return strata_command_unknown(name);
    strata_signals_end_cleanly();
    int status = run(command, argc - 2, argv + 2);
    int written = strata_check_written(strata_config_written(stdout));
    return status == STRATA_EXIT_DONE ? written : status;
}
