/* Turns the settings that people already have for other allocators into strategies. */
#ifndef STRATA_CONFIG_IMPORT_IMPORT_H
#define STRATA_CONFIG_IMPORT_IMPORT_H

#include <stdio.h>

#include "config/reader/reader.h"

enum {
    STRATA_IMPORT_BYTES = 16384, /* longest string */
    STRATA_IMPORT_SETTINGS = 256, /* most settings in one string */
    STRATA_IMPORT_VALUE = 256 /* bytes of one value, the terminating zero included */
};

#define STRATA_IMPORT_PREFIX "import:" /* "import:pytorch" names the strategy that the environment's variables describe */

typedef struct strata_import_request {
    const char *peer; /* "pytorch", "paddle" or "tensorflow", optionally with a version: "pytorch@2.9" */
    const char *text; /* the settings; if NULL, the peer's variables in the environment are read */
    /* only keys of this version of the peer are allowed; if NULL, the version in `peer`, or else every version */
    const char *as_of;
} strata_import_request_t;

typedef struct strata_import strata_import_t;

/* Parses a string and looks up its keys. Returns E_STRATEGY for an unknown key (with the nearest one),
 * for an invalid value, and for input above a limit. The error begins with "<pytorch>:line:column: " or
 * the variable's name. Returns E_HOST_MEMORY if out of memory. */
strata_status_t strata_import_new(const strata_import_request_t *request, strata_import_t **import);
/* Accepts NULL. */
void strata_import_delete(strata_import_t *import);

/* Applies the preset that the string selects to reader->strategy, and then the settings. Call it once per import. */
strata_status_t strata_read_import(strata_reader_t *reader, strata_import_t *import);

/* Call it after strata_read_import(). Writes each setting that this strategy does not follow as one line
 * after `before`: "PLACE: KEY has no equivalent: why" or "PLACE: KEY is ignored: why". */
void strata_import_print(const strata_import_t *import, const char *before, FILE *out);
/* Writes the imported strategy as a file. Returns E_IO if it cannot be written. */
strata_status_t strata_import_write(const strata_import_t *import, const strata_strategy_t *strategy, FILE *out);

/* Returns true if a strategy's name is of the form "import:...". */
bool strata_import_is(const char *name);
/* Writes docs/import.md from the tables. Returns E_IO if it cannot be written. */
strata_status_t strata_import_page(FILE *out);

#endif
