/* What names devices: `devices` of a strategy and of the library's options, --device of the command. */
#ifndef STRATA_STRATEGY_DEVICES_H
#define STRATA_STRATEGY_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

#include "platform/sim/sim.h"
#include "platform/status.h"

typedef struct strata_device_choice {
    const strata_sim_profile_t *profile; /* NULL: real devices */
    uint32_t count; /* simulated: how many */
    int32_t ordinal; /* real: -1 for all */
} strata_device_choice_t;

/* The number "1" as in "gpu:1". -1: none, one with a leading zero, or a larger one than any device has. */
int strata_device_number(const char *text);

/* "gpu", "gpu:1", "sim", "sim:a100", "sim:h100x2". E_INVALID says what may be written, and leaves *choice alone. A profile in a file is
 * read elsewhere (config/profile/profile.h). */
strata_status_t strata_device_choice_parse(const char *text, strata_device_choice_t *choice);

/* "sim:some/profile.yaml", and "sim:some/profile.yamlx2" for two of them: where in `text` the file's path begins, its length and the
 * number of devices, which may be none (-1) or too many. False: it names no file. */
bool strata_device_names_file(const char *text, const char **path, size_t *length, int *count);

#endif
