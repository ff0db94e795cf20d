#include "lab/tools/options/named.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/import/import.h"
#include "platform/text/printable.h"

void strata_named_strategy(const char *name, strata_config_request_t *request) {
    bool path = strchr(name, '/') || strchr(name, '.');
    /* A word that is neither preset nor file is reported as a preset, because that message lists them. */
    if (!strata_preset_text(name) && !strata_import_is(name) && (path || access(name, F_OK) == 0)) {
        request->file = name;
    } else {
        request->preset = name;
    }
}

void strata_named_label(const char *name, char *label, size_t capacity) {
    const char *slash = strrchr(name, '/');
    snprintf(label, capacity, "%s", slash && slash[1] ? slash + 1 : name);
    char *dot = strrchr(label, '.');
    if (dot && dot != label && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0)) *dot = '\0';
    strata_make_printable(label, false);
}
