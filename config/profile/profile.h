/* Device profiles as files (docs/profile-file.md), and what names devices where a profile may be a file. */
#ifndef STRATA_CONFIG_PROFILE_H
#define STRATA_CONFIG_PROFILE_H

#include <stdio.h>

#include "platform/host/file.h"
#include "strategy/arena.h"
#include "strategy/devices.h"
#include "trace/text/output.h"

/* A profile's name made of a file's or of anything: letters, digits, ".", "_" and "-", and "_" for all else; 1 to 31 of them. */
void strata_profile_name(const char *text, char name[32]);

/* Reads a text. E_STRATEGY with "file:line:column: " and what to write; E_HOST_MEMORY; *profile is whole or as it was. `file`: its name
 * in messages; `name`: of it the profile's is made, if it gives itself none. */
strata_status_t strata_profile_read(const char *file, const char *name, const char *text, size_t length,
                                    strata_sim_profile_t *profile);
/* The same of a file, by its path. E_IO if it cannot be read. */
strata_status_t strata_profile_load(const char *path, strata_file_named_t named, strata_sim_profile_t *profile);

/* Writes a file that strata_profile_read() reads: every field, with its meaning, and with `note` after it, if it has one for the key. Costs
 * are rounded to 1 ns, and to 1 ns a GiB. A failure is told when the output is finished. */
typedef const char *(*strata_profile_note_fn)(const char *key, const void *context);
void strata_profile_write(strata_output_t *out, const strata_sim_profile_t *profile, strata_profile_note_fn note,
                          const void *context);
/* docs/profile-file.md. */
strata_status_t strata_profile_page(FILE *out);

/* "37.1us + 74us/GiB". E_STRATEGY, without the place. */
strata_status_t strata_cost_parse(const char *text, strata_sim_cost_t *cost);
void strata_cost_print(const strata_sim_cost_t *cost, char *text, size_t capacity);

/* What `devices:`, the library's `devices` and --device say: as strata_device_choice_parse(), and "sim:FILE.yaml". The file's path is
 * relative to `beside` (a file), if not NULL; its profile comes from `memory`, and so does *shown, the same text with that path. E_INVALID:
 * it names no devices; E_IO, E_STRATEGY, E_HOST_MEMORY. */
strata_status_t strata_devices_choose(strata_arena_t *memory, const char *text, const char *beside, strata_file_named_t named,
                                      strata_device_choice_t *choice, const char **shown);

#endif
