/* A strategy as the command line names it. */
#ifndef STRATA_TOOLS_NAMED_H
#define STRATA_TOOLS_NAMED_H

#include <stddef.h>

#include "config/config.h"

/* A preset's name, else a file's path; sets request->preset or request->file. */
void strata_named_strategy(const char *name, strata_config_request_t *request);
/* Its name if no label is given: the preset's, or the file's without folder and .yaml. */
void strata_named_label(const char *name, char *label, size_t capacity);

#endif
