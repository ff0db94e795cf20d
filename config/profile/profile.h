/* Reads and writes device profiles as files (docs/profile-file.md), and parses device names that may
 * contain such a file. */
#ifndef STRATA_CONFIG_PROFILE_H
#define STRATA_CONFIG_PROFILE_H

#include <stdio.h>

#include "platform/host/file.h"
#include "strategy/arena.h"
#include "strategy/devices.h"
#include "trace/text/output.h"

/* Derives a profile's name from a file name or any other text. Letters, digits, ".", "_" and "-" remain,
 * and any other byte becomes "_". The name has 1 to 31 characters. */
void strata_profile_name(const char *text, char name[32]);

/* Reads a text. Returns E_STRATEGY with "file:line:column: " and a correction, or E_HOST_MEMORY; *profile
 * is unchanged after a failure. `file` is its name in messages. The profile's name is derived from `name`
 * unless the text sets one. */
strata_status_t strata_profile_read(const char *file, const char *name, const char *text, size_t length,
                                    strata_sim_profile_t *profile);
/* Reads a file by its path. Returns the errors of strata_profile_read(), and E_IO if the file cannot be read. */
strata_status_t strata_profile_load(const char *path, strata_file_named_t named, strata_sim_profile_t *profile);

/* Writes a file that strata_profile_read() can read: every field with its meaning, followed by the `note`
 * for its key, if any. Costs are rounded to 1 ns and to 1 ns per GiB. A failure is reported when the
 * output is finished. */
typedef const char *(*strata_profile_note_fn)(const char *key, const void *context);
void strata_profile_write(strata_output_t *out, const strata_sim_profile_t *profile, strata_profile_note_fn note,
                          const void *context);
/* Writes docs/profile-file.md. */
strata_status_t strata_profile_page(FILE *out);

/* Parses a cost such as "37.1us + 74us/GiB". Returns E_STRATEGY without a position. */
strata_status_t strata_cost_parse(const char *text, strata_sim_cost_t *cost);
void strata_cost_print(const strata_sim_cost_t *cost, char *text, size_t capacity);

/* Parses device names from `devices:`, the library's `devices` and --device. Accepts the names of
 * strata_device_choice_parse() and "sim:FILE.yaml". The file's path is relative to the file `base`, if
 * that is not NULL. The profile and *shown, the same text with the resolved path, are allocated from
 * `memory`. Returns E_INVALID if the text names no devices, or E_IO, E_STRATEGY or E_HOST_MEMORY. */
strata_status_t strata_devices_choose(strata_arena_t *memory, const char *text, const char *base, strata_file_named_t named,
                                      strata_device_choice_t *choice, const char **shown);

#endif
