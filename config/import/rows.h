/* The tables: every key of every peer, its meaning here, and since when the peer has it. Reading, writing and docs/import.md follow
 * them. A key that is in no table is unknown. */
#ifndef STRATA_CONFIG_IMPORT_ROWS_H
#define STRATA_CONFIG_IMPORT_ROWS_H

#include "config/import/import.h"

/* How a value is written. */
typedef enum import_kind {
    IMPORT_CONF, /* keys and values of its own: key:value,key:value */
    IMPORT_BOOL, /* the spellings of gflags: true, t, yes, y, 1 and their opposites, in any case */
    IMPORT_BOOL_PYTORCH, /* True or False */
    IMPORT_BOOL_DIGIT, /* 1 or 0; any word counts as 1 before PyTorch 2.7 */
    IMPORT_BOOL_EXACT, /* true or false */
    IMPORT_BOOL_TENSORFLOW, /* true, false, 1 or 0, in any case */
    IMPORT_BOOL_JAX, /* false, False and 0 are false, every other word is true */
    IMPORT_COUNT, /* a whole number, as it is */
    IMPORT_BYTES,
    IMPORT_MIB,
    IMPORT_GIB,
    IMPORT_MS,
    IMPORT_FRACTION, /* .75, 0.75, 1 */
    IMPORT_REAL, /* a fraction with an optional sign */
    IMPORT_WORD, /* one of the cases' words */
    IMPORT_WORD_ANY_CASE,
    IMPORT_TEXT
} import_kind_t;

typedef enum import_verb {
    IMPORT_END, /* ends the cases of a row */
    IMPORT_SET, /* `what`: paths; each one that the strategy has gets the value */
    IMPORT_FIX, /* `what`: "path=value path=value": all of them */
    /* `what`: the preset that it means, then as IMPORT_FIX, or PLACE=strata: the place is as in the preset strata. The last such row
     * of the table decides. */
    IMPORT_PRESET,
    IMPORT_EXCHANGE, /* `what`: "PLACE.LAYER OTHER", then as IMPORT_FIX: the place's stack has the layer OTHER instead of LAYER */
    IMPORT_DROP, /* `what`: a layer to remove from the gpu's stack */
    IMPORT_NOTHING, /* nothing to do; `what` says why, or NULL: that is so already */
    IMPORT_NONE /* there is no equivalent; `what` says why */
} import_verb_t;

/* In a path "+layer.option" the layer is put into the gpu's stack if it is not there. */
typedef struct import_case {
    const char *word; /* the value: true, false, a number, a word; NULL: every other one */
    import_verb_t verb;
    const char *what;
} import_case_t;

enum { IMPORT_CASES = 6 };

typedef struct import_row {
    const char *key;
    const char *since, *until; /* versions; NULL: not known, still there */
    import_kind_t kind;
    bool inner; /* a key inside an IMPORT_CONF value */
    import_case_t cases[IMPORT_CASES];
    const char *remark; /* for the page; NULL: none */
} import_row_t;

/* What one key of a string became. */
typedef struct import_setting {
    const import_row_t *row;
    const char *value; /* as written */
    char meant[STRATA_IMPORT_VALUE + 8]; /* as an option reads it */
    strata_origin_t origin; /* of the key */
    import_case_t act;
    const char *passed_over; /* why it is ignored; NULL: it counts */
    const char *warning; /* printed after "KEY=VALUE" although the setting takes effect; NULL: none */
    const char *target; /* the first path that it set */
    bool implied; /* not in the input: a default of the framework that another setting implies */
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
    const char *preset; /* that a string is applied to */
    const char *old_preset; /* the one of versions before `old`; NULL: none */
    const char *old;
    struct {
        const char *first, *last;
    } known[4]; /* versions that there are, patches of the last counted in; closed by NULL */
    const char *version; /* how the peer's versions are written, for messages and the page */
    const char *later, *says; /* from this version on the preset is not the peer's default, and why not; NULL: it is */
    const char *example; /* a string, for the page */
    const import_row_t *rows; /* closed by a NULL key */
    const import_range_t *ranges; /* terminated by a NULL key; NULL: none, the options check their own bounds */
    const char *refuses; /* "PyTorch refuses others": printed after the accepted range */
    /* Resolves keys that depend on each other: it may change actions, ignore settings, add implied ones, or fail with E_STRATEGY.
     * May be NULL. */
    strata_status_t (*settle)(strata_import_t *import);
} import_peer_t;

extern const import_peer_t strata_import_pytorch, strata_import_paddle, strata_import_tensorflow;

/* NULL after the last. */
const import_peer_t *strata_import_peer_at(size_t index);

struct strata_import {
    const import_peer_t *peer;
    const char *preset; /* decided on */
    const char *said; /* the string, or NULL: the environment */
    const char *as_of; /* NULL: every version */
    uint64_t version;
    strata_arena_t *memory;
    import_setting_t *settings; /* STRATA_IMPORT_SETTINGS of them, in the order of the string */
    size_t count;
    const import_setting_t *decided; /* the setting that selects the preset; NULL: the peer's default preset */
    bool touched[STRATA_PLACE_KINDS];
};

/* split.c: the string to settings whose rows are known. */
strata_status_t strata_import_split(strata_import_t *import, const char *text);
/* edit.c: every setting's act over the strategy, whose preset is read. */
strata_status_t strata_import_edit(strata_import_t *import, strata_strategy_t *strategy);
/* "2.9" and "2025-01" as numbers that compare. False: it is no version. */
bool strata_import_version(const char *text, uint64_t *version);
/* The same of one that the peer is known to have. */
bool strata_import_known(const import_peer_t *peer, const char *text, uint64_t *version);
/* "1.9 to 1.13, 2.0 to 2.13". */
void strata_import_known_text(const import_peer_t *peer, char *text, size_t capacity);
/* Returns true if the requested version has a key that came with `since`, or if no version was requested. */
bool strata_import_has(const strata_import_t *import, const char *since);
/* value.c: the value as an option reads it, and the case that it is. */
strata_status_t strata_import_value(const strata_import_t *import, import_setting_t *setting);
/* Room for one setting more; the texts are kept. */
strata_status_t strata_import_add(strata_import_t *import, const import_row_t *row, const char *value, size_t length,
                                  const strata_origin_t *origin);
/* Adds a default of the framework, implied by `because`. */
strata_status_t strata_import_imply(strata_import_t *import, const char *key, const char *value, const import_setting_t *because);
/* The counting setting of a key, NULL: there is none. */
import_setting_t *strata_import_find(const strata_import_t *import, const char *key);
/* Returns "key:value" or "KEY=value" as written; the import owns it. NULL: out of host memory. */
const char *strata_import_written(strata_import_t *import, const import_setting_t *setting);
/* Formats a text that the import owns. NULL: out of host memory. */
const char *strata_import_text(strata_import_t *import, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
