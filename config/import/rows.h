/* Tables of every key of every peer: its meaning here, and the first peer version that has it. Reading,
 * writing and docs/import.md all use these tables. A key that is in no table is unknown. */
#ifndef STRATA_CONFIG_IMPORT_ROWS_H
#define STRATA_CONFIG_IMPORT_ROWS_H

#include "config/import/import.h"

/* The notation of a value. */
typedef enum import_kind {
    IMPORT_CONF, /* contains its own keys and values: key:value,key:value */
    IMPORT_BOOL, /* the spellings of gflags: true, t, yes, y, 1 and their opposites, in any case */
    IMPORT_BOOL_PYTORCH, /* True or False */
    IMPORT_BOOL_DIGIT, /* 1 or 0; any word counts as 1 before PyTorch 2.7 */
    IMPORT_BOOL_EXACT, /* true or false */
    IMPORT_BOOL_TENSORFLOW, /* true, false, 1 or 0, in any case */
    IMPORT_BOOL_JAX, /* false, False and 0 are false; every other word is true */
    IMPORT_COUNT, /* a whole number, unchanged */
    IMPORT_BYTES,
    IMPORT_MIB,
    IMPORT_GIB,
    IMPORT_MS,
    IMPORT_FRACTION, /* .75, 0.75, 1 */
    IMPORT_REAL, /* a fraction with an optional sign */
    IMPORT_WORD, /* one of the words of the row's cases */
    IMPORT_WORD_ANY_CASE,
    IMPORT_TEXT
} import_kind_t;

typedef enum import_verb {
    IMPORT_END, /* ends the cases of a row */
    IMPORT_SET, /* `what` lists paths; each one that the strategy has is set to the value */
    IMPORT_FIX, /* `what` is "path=value path=value"; all of them are set */
    /* `what` is the preset to use, followed by values as in IMPORT_FIX, or by PLACE=strata, which keeps
     * the place as in the preset strata. The last such row of the table decides. */
    IMPORT_PRESET,
    IMPORT_EXCHANGE, /* `what` is "PLACE.LAYER OTHER", then values as in IMPORT_FIX; OTHER replaces LAYER in the place's stack */
    IMPORT_DROP, /* `what` is a layer to remove from the gpu's stack */
    IMPORT_NOTHING, /* nothing to do; `what` is the reason, or NULL if that is the case already */
    IMPORT_NONE /* there is no equivalent; `what` is the reason */
} import_verb_t;

/* A path "+layer.option" adds the layer to the gpu's stack if it is missing. */
typedef struct import_case {
    const char *word; /* the value: true, false, a number or a word; NULL matches every other one */
    import_verb_t verb;
    const char *what;
} import_case_t;

enum { IMPORT_CASES = 6 };

typedef struct import_row {
    const char *key;
    const char *since, *until; /* first and last version; NULL if unknown, or if the key still exists */
    import_kind_t kind;
    bool inner; /* a key inside an IMPORT_CONF value */
    import_case_t cases[IMPORT_CASES];
    const char *remark; /* for the page; may be NULL */
} import_row_t;

/* One key of a string and its effect. */
typedef struct import_setting {
    const import_row_t *row;
    const char *value; /* as in the input */
    char converted[STRATA_IMPORT_VALUE + 8]; /* in the notation of options */
    strata_origin_t origin; /* position of the key */
    import_case_t action;
    const char *skip_reason; /* the reason why it is ignored, or NULL if it takes effect */
    const char *warning; /* printed after "KEY=VALUE" although the setting takes effect; may be NULL */
    const char *target; /* the first path that it set */
    bool implied; /* true for a framework default that another setting implies; it is not in the input */
} import_setting_t;

/* The values that a framework accepts for a key. */
typedef struct import_range {
    const char *key;
    double least, most;
    bool open; /* both bounds are excluded */
    bool power_of_two;
    const char *accepted; /* for a message: "a number above 0 and below 1" */
} import_range_t;

typedef struct import_peer {
    const char *name;
    const char *preset; /* the preset that a string is applied to */
    const char *old_preset; /* the preset for versions before `old`; may be NULL */
    const char *old;
    struct {
        const char *first, *last;
    } known[4]; /* ranges of existing versions, which include patches of the last one; terminated by NULL */
    const char *version; /* an example of the peer's version format, for messages and the page */
    /* since version `later` the preset is not the peer's default; `later_note` is the reason; NULL if it still is */
    const char *later, *later_note;
    const char *example; /* an example string, for the page */
    const import_row_t *rows; /* terminated by a NULL key */
    const import_range_t *ranges; /* terminated by a NULL key; if NULL, the options check their own bounds */
    const char *refuses; /* printed after the accepted range, as in "PyTorch refuses others" */
    /* Resolves keys that depend on each other. It may change actions, ignore settings, add implied ones,
     * or fail with E_STRATEGY. May be NULL. */
    strata_status_t (*resolve)(strata_import_t *import);
} import_peer_t;

extern const import_peer_t strata_import_pytorch, strata_import_paddle, strata_import_tensorflow;

/* Returns the peer by index, or NULL after the last. */
const import_peer_t *strata_import_peer_at(size_t index);

struct strata_import {
    const import_peer_t *peer;
    const char *preset; /* the chosen preset */
    const char *input; /* the string, or NULL if the environment was read */
    const char *as_of; /* NULL allows every version */
    uint64_t version;
    strata_arena_t *memory;
    import_setting_t *settings; /* STRATA_IMPORT_SETTINGS entries, in the order of the string */
    size_t count;
    const import_setting_t *decided; /* the setting that selects the preset; NULL means the peer's default preset */
    bool touched[STRATA_PLACE_KINDS];
};

/* split.c: Splits the string into settings with known rows. */
strata_status_t strata_import_split(strata_import_t *import, const char *text);
/* edit.c: Applies the action of every setting to the strategy, after its preset was read. */
strata_status_t strata_import_edit(strata_import_t *import, strata_strategy_t *strategy);
/* Converts "2.9" or "2025-01" to a number that can be compared. Returns false if it is no version. */
bool strata_import_version(const char *text, uint64_t *version);
/* Works like strata_import_version(), but accepts only versions that the peer is known to have. */
bool strata_import_known(const import_peer_t *peer, const char *text, uint64_t *version);
/* Prints the known versions, as in "1.9 to 1.13, 2.0 to 2.13". */
void strata_import_known_text(const import_peer_t *peer, char *text, size_t capacity);
/* Returns true if the requested version has a key that was introduced in `since`, or if no version was requested. */
bool strata_import_has(const strata_import_t *import, const char *since);
/* value.c: Converts the value to the notation of options and selects its case. */
strata_status_t strata_import_value(const strata_import_t *import, import_setting_t *setting);
/* Appends a setting and copies its texts. */
strata_status_t strata_import_add(strata_import_t *import, const import_row_t *row, const char *value, size_t length,
                                  const strata_origin_t *origin);
/* Adds a default of the framework, implied by `because`. */
strata_status_t strata_import_imply(strata_import_t *import, const char *key, const char *value, const import_setting_t *because);
/* Returns the effective setting of a key, or NULL if there is none. */
import_setting_t *strata_import_find(const strata_import_t *import, const char *key);
/* Returns "key:value" or "KEY=value" as written, or NULL if out of host memory. The import owns the text. */
const char *strata_import_written(strata_import_t *import, const import_setting_t *setting);
/* Formats a text that the import owns. Returns NULL if out of host memory. */
const char *strata_import_text(strata_import_t *import, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
