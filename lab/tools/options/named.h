/* A strategy as the command line names it. */
#ifndef STRATA_TOOLS_NAMED_H
#define STRATA_TOOLS_NAMED_H

#include <stddef.h>

#include "config/config.h"

/* Sets request->preset to a preset's name, or request->file to a file's path. */
void strata_named_strategy(const char *name, strata_config_request_t *request);
/* Sets `label` to the default label: the preset's name, or the file's name without folder and .yaml. */
void strata_named_label(const char *name, char *label, size_t capacity);

#endif
