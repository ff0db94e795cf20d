/* Helpers for files of text: paths, names, and reading a file whole. */
#ifndef STRATA_CONFIG_FILES_H
#define STRATA_CONFIG_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "platform/host/file.h"

enum { STRATA_CONFIG_PATH = 4096 /* bytes of a path, the terminating zero included */ };

/* Reads the whole file, up to one piece more than a text may have (STRATA_TREE_BYTES). Returns E_IO or
 * E_HOST_MEMORY. The caller frees the text with strata_host_delete(), also after a failure. */
strata_status_t strata_config_read_whole(const char *path, strata_file_named_t named, char **text, size_t *length);
/* Reduces a path to its short name: "some/where/training.yaml" becomes "training". */
void strata_config_short_name(const char *path, char *name, size_t capacity);
/* Resolves `name` relative to the folder of the file `base`, which may be NULL. Returns false if the
 * path does not fit in `capacity`. */
bool strata_path_relative_to(const char *name, const char *base, char *path, size_t capacity);

#endif
