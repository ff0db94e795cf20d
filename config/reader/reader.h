/* From a tree to the strategy model. */
#ifndef STRATA_CONFIG_READER_H
#define STRATA_CONFIG_READER_H

#include <stdio.h>

#include "config/tree.h"
#include "platform/host/file.h"
#include "strategy/model.h"

enum { STRATA_EXTENDS_DEPTH = 8, STRATA_WRONGS_MOST = 100 };

/* Where errors go. Loading ends at the first; checking writes them all and continues. */
typedef struct strata_wrongs {
    FILE *out; /* NULL: loading */
    size_t count;
} strata_wrongs_t;

typedef struct strata_reader {
    strata_strategy_t *strategy;
    strata_arena_t *scratch; /* trees */
    strata_wrongs_t *wrongs;
    unsigned broken; /* bits of places whose stacks could not be read: they are not planned */
    unsigned broken_own[STRATA_MODEL_DEVICES]; /* the same for a device's own stacks */
    size_t layers, lost; /* in the place that is being read: so far, and those that could not be read */
    uint32_t extended; /* how many `extends:` deep */
    bool allow_code; /* `load:` may load shared objects */
} strata_reader_t;

/* A text to read, and its name in messages. */
typedef struct strata_text {
    strata_source_of_value_t source;
    const char *file; /* "training.yaml", "preset strata", "<text>" */
    const char *short_name; /* the strategy's, if it gives itself none */
    const char *path; /* of a file, for paths relative to it; else NULL */
    const char *text;
    size_t length;
} strata_text_t;

/* How a failure ends here: while checking, E_STRATEGY is written down and becomes OK; everything else stays. */
strata_status_t strata_note_wrong(strata_wrongs_t *wrongs, strata_status_t status);

/* Applies a text to reader->strategy: what it says replaces what was there. */
strata_status_t strata_read_text(strata_reader_t *reader, const strata_text_t *text);
/* E_STRATEGY, with the nearest name, if there is none of that name. */
strata_status_t strata_read_preset(strata_reader_t *reader, const char *name);
/* E_IO. A file that is named by another must be a regular file (platform/host/file.h). */
strata_status_t strata_read_file(strata_reader_t *reader, const char *path, strata_file_named_t named);
/* A preset's name or a file's path, as `extends:` and STRATA_STRATEGY have them; relative to `beside` (a file), if not NULL. */
strata_status_t strata_read_named(strata_reader_t *reader, const char *name, const char *beside, const strata_origin_t *origin);

/* Loads the shared objects of a list, if the reader may. */
strata_status_t strata_read_load(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *list);

/* E_STRATEGY for a value of several lines where none is allowed: node->broken. Texts for people may have them. */
strata_status_t strata_fail_broken(const strata_origin_t *origin);

/* Reads a list of layers as the stack of a place, for all devices or for a single one (`own`, else NULL). */
strata_status_t strata_read_stack(strata_reader_t *reader, const strata_text_t *text, strata_place_kind_t place,
                                  strata_model_device_t *own, const strata_tree_t *list);
/* The same into any array of stacks by place. `broken` gets the place's bit if the stack could not be read whole. */
strata_status_t strata_read_stack_of(strata_reader_t *reader, const strata_text_t *text, strata_place_kind_t place,
                                     strata_model_stack_t *stacks, unsigned *broken, const strata_tree_t *list);
/* Reads a list of layers as a stack, wherever it stands. */
strata_status_t strata_read_list(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *list,
                                 strata_model_stack_t *stack);
/* Reads the options of a layer, in its own mapping. */
strata_status_t strata_read_options(strata_reader_t *reader, const strata_text_t *text, strata_model_layer_t *layer,
                                    const strata_tree_t *node);
/* Reads what stands beside a stack in its mapping, `out_of_memory:` and `idle:`, once the stack is read; of a router's branch the former
 * alone. */
strata_status_t strata_read_beside(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *map,
                                   strata_model_stack_t *stack);
bool strata_stands_beside(const char *key);
strata_status_t strata_read_reclaim(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *map,
                                    strata_model_stack_t *stack);
/* "routes" or "stacks": under which key a router has its branches. */
const char *strata_branches_key(const strata_layer_type_t *type);
/* Reads a router's branches. */
strata_status_t strata_read_branches(strata_reader_t *reader, const strata_text_t *text, strata_model_layer_t *layer,
                                     const strata_tree_t *node);
/* A router without them: what to write. */
strata_status_t strata_fail_no_branches(const strata_model_layer_t *layer);
/* `devices:` as a mapping: stacks of single devices. */
strata_status_t strata_read_own_stacks(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node);
/* `pools:`, `streams:` and `graph:`: stacks by the name of a pool, by a pattern of stream names, and of captured graphs. */
strata_status_t strata_read_pools(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node);
strata_status_t strata_read_streams(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node);
strata_status_t strata_read_graph(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node);
strata_status_t strata_read_plain(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node);
/* Checks and keeps `devices:`; the profile of a file is read, relative to `beside` (a file), if not NULL. */
strata_status_t strata_read_devices(strata_strategy_t *strategy, const char *devices, const char *beside,
                                    const strata_origin_t *origin);

/* `file` is kept by the strategy. */
static inline strata_origin_t strata_origin_of(const strata_text_t *text, uint32_t line, uint32_t column) {
    return (strata_origin_t){.source = text->source, .file = text->file, .line = line, .column = column};
}

#endif
