/* Chooses devices from their name, where a profile may be a file. */
#include <stdio.h>
#include <string.h>

#include "config/files.h"
#include "config/profile/profile.h"
#include "strategy/model.h"

/* Builds "sim:", the path relative to the working directory, and the rest of the name ("x2"). */
static strata_status_t show(strata_arena_t *memory, const char *path, const char *rest, const char **shown) {
    char text[STRATA_CONFIG_PATH + 16];
    int length = snprintf(text, sizeof text, "sim:%s%.4s", path, rest);
    *shown = strata_arena_strndup(memory, text, (size_t)length);
    return *shown ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

strata_status_t strata_devices_choose(strata_arena_t *memory, const char *text, const char *base, strata_file_named_t named,
                                      strata_device_choice_t *choice, const char **shown) {
    const char *name;
    size_t length;
    int count;
    if (!strata_device_names_file(text, &name, &length, &count)) {
        *shown = strata_arena_strndup(memory, text, strlen(text));
        return *shown ? strata_device_choice_parse(text, choice) : STRATA_E_HOST_MEMORY;
    }
    if (count < 1 || count > STRATA_MODEL_DEVICES)
        return strata_fail(STRATA_E_INVALID, 0,
                           "\"%.64s\" is not a number of devices; write x2 to x%d after the file, or "
                           "nothing",
                           name + length, STRATA_MODEL_DEVICES);
    char path[STRATA_CONFIG_PATH];
    char *bare = strata_arena_strndup(memory, name, length);
    strata_sim_profile_t *profile = strata_arena_alloc(memory, 1, sizeof *profile);
    if (!bare || !profile) return STRATA_E_HOST_MEMORY;
    if (!strata_path_relative_to(bare, base, path, sizeof path))
        return strata_fail(STRATA_E_INVALID, 0, "the path of the profile is longer than %d bytes", STRATA_CONFIG_PATH - 1);
    strata_status_t status = strata_profile_load(path, named, profile);
    if (status == STRATA_OK) status = show(memory, path, name + length, shown);
    if (status == STRATA_OK) *choice = (strata_device_choice_t){.profile = profile, .count = (uint32_t)count, .ordinal = -1};
    return status;
}
