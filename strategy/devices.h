/* Parses names of devices: `devices` of a strategy and of the library's options, and --device of the command. */
#ifndef STRATA_STRATEGY_DEVICES_H
#define STRATA_STRATEGY_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

#include "platform/sim/sim.h"
#include "platform/status.h"

typedef struct strata_device_choice {
    const strata_sim_profile_t *profile; /* NULL for real devices */
    uint32_t count; /* of simulated devices */
    int32_t ordinal; /* of the real device; -1 for all */
} strata_device_choice_t;

/* Parses the number "1" of "gpu:1". Returns -1 if it is no number, has a leading zero, or exceeds every device number. */
int strata_device_number(const char *text);

/* Parses "gpu", "gpu:1", "sim", "sim:a100" or "sim:h100x2". Returns E_INVALID with an error that lists
 * the valid names, and leaves *choice unchanged. A profile in a file is read elsewhere
 * (config/profile/profile.h). */
strata_status_t strata_device_choice_parse(const char *text, strata_device_choice_t *choice);

/* Parses "sim:some/profile.yaml", or "sim:some/profile.yamlx2" for two devices. Returns the file's path
 * inside `text`, its length and the number of devices, which may be invalid (-1) or too large. Returns
 * false if it names no file. */
bool strata_device_names_file(const char *text, const char **path, size_t *length, int *count);

#endif
