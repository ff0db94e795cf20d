/* The settings that people already have for other allocators, as strategies. */
#ifndef STRATA_CONFIG_IMPORT_IMPORT_H
#define STRATA_CONFIG_IMPORT_IMPORT_H

#include <stdio.h>

#include "config/reader/reader.h"

enum {
    STRATA_IMPORT_BYTES = 16384, /* of a string */
    STRATA_IMPORT_SETTINGS = 256, /* in it */
    STRATA_IMPORT_VALUE = 256 /* bytes of one value, the terminating zero included */
};

#define STRATA_IMPORT_PREFIX "import:" /* "import:pytorch": the name of the strategy that the environment's variables mean */

typedef struct strata_import_request {
    const char *peer; /* "pytorch", "paddle", "tensorflow"; also with a version: "pytorch@2.9" */
    const char *text; /* NULL: the peer's variables in the environment */
    const char *as_of; /* the version of the peer whose keys are allowed; NULL: as `peer` says, else every version */
} strata_import_request_t;

typedef struct strata_import strata_import_t;

/* Parses a string and looks its keys up. E_STRATEGY with "<pytorch>:line:column: " (or the variable's name) for an unknown key,
 * with the nearest one; for a value that is none; for whatever exceeds a limit. E_HOST_MEMORY. */
strata_status_t strata_import_new(const strata_import_request_t *request, strata_import_t **import);
/* NULL is allowed. */
void strata_import_delete(strata_import_t *import);

/* Applies the preset that the string means to reader->strategy, and then the string. Once for each import. */
strata_status_t strata_read_import(strata_reader_t *reader, strata_import_t *import);

/* After strata_read_import(): the settings that this strategy does not follow, one line each: "PLACE: KEY has no equivalent: why"
 * or "PLACE: KEY is ignored: why", each after `before`. */
void strata_import_tell(const strata_import_t *import, const char *before, FILE *out);
/* The same strategy as a file. E_IO. */
strata_status_t strata_import_write(const strata_import_t *import, const strata_strategy_t *strategy, FILE *out);

/* Whether a strategy's name is one of these: "import:...". */
bool strata_import_is(const char *name);
/* docs/import.md, made from the tables. E_IO. */
strata_status_t strata_import_page(FILE *out);

#endif
