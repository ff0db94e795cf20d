/* From a tree to the strategy model. */
#ifndef STRATA_CONFIG_READER_H
#define STRATA_CONFIG_READER_H

#include <stdio.h>

#include "config/tree.h"
#include "strategy/model.h"

enum { STRATA_EXTENDS_DEPTH = 8, STRATA_WRONGS_MOST = 100 };

/* Where wrong things go. Loading ends at the first; checking writes them all and goes on. */
typedef struct strata_wrongs {
    FILE *out; /* NULL: loading */
    size_t count;
} strata_wrongs_t;

typedef struct strata_reader {
    strata_strategy_t *strategy;
    strata_arena_t *scratch; /* trees */
    strata_wrongs_t *wrongs;
    unsigned broken;         /* bits of places whose stacks could not be read: they are not planned */
    uint32_t extended;       /* how many `extends:` deep */
    bool allow_code;         /* `load:` may load shared objects */
} strata_reader_t;

/* A text to read, and what to call it. */
typedef struct strata_text {
    strata_source_of_value_t source;
    const char *file;       /* "training.yaml", "preset strata", "<text>" */
    const char *short_name; /* the strategy's, if it gives itself none */
    const char *path;       /* of a file, for paths beside it; else NULL */
    const char *text;
    size_t length;
} strata_text_t;

/* What a failure means for the rest: while checking, E_STRATEGY is written down and OK comes back; all else stays. */
strata_status_t strata_note_wrong(strata_wrongs_t *wrongs, strata_status_t status);

/* Lays a text over reader->strategy: what it says replaces what was there. */
strata_status_t strata_read_text(strata_reader_t *reader, const strata_text_t *text);
/* E_STRATEGY if there is none of that name, with the nearest. */
strata_status_t strata_read_preset(strata_reader_t *reader, const char *name);
/* E_IO. */
strata_status_t strata_read_file(strata_reader_t *reader, const char *path);
/* A preset's name or a file's path, as `extends:` and STRATA_STRATEGY have them; relative to `beside` (a file), if not NULL. */
strata_status_t strata_read_named(strata_reader_t *reader, const char *name, const char *beside, const strata_origin_t *origin);

/* `name` as seen from the folder of the file `beside` (NULL: none). False: longer than `capacity`. */
bool strata_path_beside(const char *name, const char *beside, char *path, size_t capacity);
/* Loads the shared objects of a list, if the reader may. */
strata_status_t strata_read_load(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *list);

/* Reads a list of layers as the stack of a place. */
strata_status_t strata_read_stack(strata_reader_t *reader, const strata_text_t *text, strata_place_kind_t place,
                                  const strata_tree_t *list);
/* Checks and keeps `devices:`. */
strata_status_t strata_read_devices(strata_strategy_t *strategy, const char *devices, const strata_origin_t *origin);

/* `file` is kept by the strategy. */
static inline strata_origin_t strata_origin_of(const strata_text_t *text, uint32_t line, uint32_t column) {
    return (strata_origin_t){.source = text->source, .file = text->file, .line = line, .column = column};
}

#endif
