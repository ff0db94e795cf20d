/* Files of texts: their paths and names, and reading one whole. */
#ifndef STRATA_CONFIG_FILES_H
#define STRATA_CONFIG_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "platform/host/file.h"

enum { STRATA_CONFIG_PATH = 4096 /* of a path, with its end */ };

/* The whole file, up to a piece more than a text may have (STRATA_TREE_BYTES). E_IO, E_HOST_MEMORY. The caller gives the text back by
 * strata_host_delete(), also after a failure. */
strata_status_t strata_config_read_whole(const char *path, strata_file_named_t named, char **text, size_t *length);
/* "training" of "some/where/training.yaml". */
void strata_config_short_name(const char *path, char *name, size_t capacity);
/* `name` as seen from the folder of the file `beside` (NULL: none). False: longer than `capacity`. */
bool strata_call_beside(const char *name, const char *beside, char *path, size_t capacity);

#endif
