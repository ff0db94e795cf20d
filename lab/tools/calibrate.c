/* strata calibrate: measures the cost of a device's calls, as a profile for simulated devices. */
#include <stdio.h>
#include <string.h>

#include "config/files.h"
#include "config/profile/profile.h"
#include "lab/replay/timeline/target.h"
#include "lab/tools/calibrate/fit.h"
#include "lab/tools/options/options.h"
#include "lab/tools/screen/report_file.h"
#include "platform/host/host_memory.h"

enum { REPEATS = 50 };
/* The first bytes of both kinds of files, which identify an old one. */
#define MARK "# strata calibrate"

typedef struct arguments {
    const char *device, *profile, *rows;
    uint64_t repeats;
    bool markdown;
} arguments_t;

/* ---- output ---- */

/* Returns true if sim:PATH names it. */
static bool is_profile_name(const char *path) {
    char text[STRATA_CONFIG_PATH + 8];
    const char *named;
    size_t length;
    int count, written = snprintf(text, sizeof text, "sim:%s", path);
    return written > 0 && (size_t)written < sizeof text && strata_device_names_file(text, &named, &length, &count) &&
           !named[length];
}

static void print_profile(const strata_measure_t *measure, const strata_fitted_t *fitted, strata_output_t *out) {
    strata_output_print(out, MARK ": %s, medians of %d calls. docs/profile-file.md has the keys.\n", measure->device->name,
                        (int)measure->repeats);
    strata_profile_write(out, &fitted->profile, strata_fit_note, fitted);
}

/* ---- the command ---- */

typedef struct outputs {
    strata_output_t *profile, *rows; /* `rows` is NULL if it is not requested */
} outputs_t;

/* Opens the outputs before the measurement, which takes a while, because a name may be wrong. */
static int open_outputs(const arguments_t *arguments, const char *path, outputs_t *outputs) {
    strata_status_t status = strata_marked_open(path, "-o", MARK, &outputs->profile);
    if (status == STRATA_OK && arguments->rows) status = strata_marked_open(arguments->rows, "--csv", MARK, &outputs->rows);
    return status == STRATA_E_INVALID ? strata_print_failure() : strata_check_written(status);
}

static int write_outputs(const strata_measure_t *measure, const char *path, strata_fitted_t *fitted, outputs_t *outputs) {
    strata_fit_profile(measure, strata_sim_profile(strata_sim_profile_name(0)), fitted);
    char name[256] = "calibrated";
    if (strcmp(path, "-") != 0) strata_config_short_name(path, name, sizeof name);
    strata_profile_name(name, fitted->profile.name);
    print_profile(measure, fitted, outputs->profile);
    int status = strata_check_written(strata_output_finish(outputs->profile));
    outputs->profile = NULL;
    if (status != STRATA_EXIT_DONE || !outputs->rows) return status;
    strata_measure_print(measure, outputs->rows);
    status = strata_check_written(strata_output_finish(outputs->rows));
    outputs->rows = NULL;
    return status;
}

static int calibrate(const arguments_t *arguments, strata_measure_t *measure) {
    const char *path = arguments->profile ? arguments->profile : "-";
    outputs_t outputs = {NULL, NULL};
    strata_fitted_t *fitted = strata_host_new(1, sizeof *fitted);
    measure->repeats = arguments->repeats;
    int status = fitted ? open_outputs(arguments, path, &outputs) : strata_print_failure();
    if (status == STRATA_EXIT_DONE && strata_measure_all(measure) != STRATA_OK) status = strata_print_failure();
    if (status == STRATA_EXIT_DONE) status = write_outputs(measure, path, fitted, &outputs);
    strata_output_abandon(outputs.profile);
    strata_output_abandon(outputs.rows);
    strata_host_delete(fitted);
    return status;
}

/* Only one device is measured, even if several are named. */
static strata_status_t open_device(const char *name, strata_arena_t *memory, strata_machine_t *machine) {
    strata_device_choice_t choice;
    strata_target_t target = {.capacity = 0};
    const char *shown;
    strata_status_t status = strata_devices_choose(memory, name, NULL, STRATA_FILE_NAMED_BY_USER, &choice, &shown);
    if (status != STRATA_OK) return status;
    strata_target_of(&choice, &target);
    status = strata_machine_open(&target, 1, machine);
    if (status == STRATA_OK || target.profile) return status;
    char why[256];
    snprintf(why, sizeof why, "%.250s", strata_last_error()->text);
    return strata_fail(status, 0, "no GPU to measure: %s; to try the command, write --device sim:h100", why);
}

static int run_calibrate(const strata_command_t *self, int argc, char **argv) {
    arguments_t arguments = {.device = "gpu", .repeats = REPEATS};
    int words;
    int status = strata_options_read(self, &arguments, argc, argv, &words);
    if (status != STRATA_EXIT_DONE) return status;
    if (words > 0) return strata_usage_error(self, "takes only options; to write to a file, use -o %.60s", argv[0]);
    if (arguments.profile && strcmp(arguments.profile, "-") != 0 && !is_profile_name(arguments.profile))
        return strata_usage_error(self, "-o %.60s: the name of a profile must end in .yaml", arguments.profile);
    if (arguments.markdown) return strata_check_written(strata_profile_page(stdout));
    strata_machine_t machine = {0};
    strata_arena_t *memory = strata_arena_new();
    strata_measure_t *measure = strata_host_new(1, sizeof *measure);
    strata_status_t opened = memory && measure ? open_device(arguments.device, memory, &machine) : STRATA_E_HOST_MEMORY;
    if (opened == STRATA_OK) measure->device = machine.devices[0];
    status = opened == STRATA_OK ? calibrate(&arguments, measure) : strata_print_failure();
    strata_machine_close(&machine);
    strata_host_delete(measure);
    strata_arena_delete(memory);
    return status;
}

static const strata_option_t options[] = {
    {"-o", "FILE", STRATA_ONCE, strata_parse_text, offsetof(arguments_t, profile), 0, 0,
     "file for the profile (standard output), to be used as --device sim:FILE; its name must end in .yaml"},
    {"--csv", "FILE", STRATA_ONCE, strata_parse_text, offsetof(arguments_t, rows), 0, 0,
     "file for the samples: a row for each call and size, with the median, minimum and maximum of the repeats"},
    {"--device", "DEVICE", STRATA_ONCE, strata_parse_text, offsetof(arguments_t, device), 0, 0,
     "device to measure, such as gpu:1 (gpu); a simulated one is timed by its own clock"},
    {"--repeats", "N", STRATA_ONCE, strata_parse_number, offsetof(arguments_t, repeats), 1, STRATA_REPEATS_MAX,
     "repeats of each call (50)"},
    {"--markdown", NULL, STRATA_ONCE, strata_parse_flag, offsetof(arguments_t, markdown), 0, 0,
     "prints docs/profile-file.md and measures nothing"},
    STRATA_OPTIONS_END,
};

const strata_command_t strata_command_calibrate = {
    .name = "calibrate",
    .run = run_calibrate,
    .words = "",
    .help = "measures a GPU's calls for a profile",
    .options = options,
    .example = "--device sim:h100 --repeats 2",
    .more = "Makes every call that a profile prices, at sizes from 4 KiB to 1 GiB or to half of the free memory. It fits the line "
            "with the least relative error through the medians. Values that cannot be measured are those of h100. A comment at each "
            "key of the profile shows whether it was measured. The command takes about half a minute on an idle GPU.\n\n"
            "The command only replaces files that it wrote itself."
            "\n\n"
            "Exit status: 0 done, 1 a call failed, 2 wrong usage, no GPU, or a file that must not be replaced."};
