/* Reads the tree of a strategy file into the strategy model. */
#ifndef STRATA_CONFIG_READER_H
#define STRATA_CONFIG_READER_H

#include <stdio.h>

#include "config/tree.h"
#include "platform/host/file.h"
#include "strategy/model.h"

enum { STRATA_EXTENDS_DEPTH = 8, STRATA_ERRORS_MAX = 100 };

/* The destination of errors. Loading stops at the first error; checking writes each error and continues. */
typedef struct strata_error_sink {
    FILE *out; /* NULL while loading */
    size_t count;
} strata_error_sink_t;

typedef struct strata_reader {
    strata_strategy_t *strategy;
    strata_arena_t *scratch; /* memory of the trees */
    strata_error_sink_t *error_sink;
    unsigned broken; /* bits of places with stacks that could not be read; they are not planned */
    unsigned broken_own[STRATA_MODEL_DEVICES]; /* the same bits for a device's own stacks */
    size_t layers, unread_layers; /* in the current place: layers read so far, and layers that could not be read */
    uint32_t extended; /* current depth of `extends:` */
    bool allow_code; /* `load:` may load shared objects */
} strata_reader_t;

/* A text to read, and its name in messages. */
typedef struct strata_text {
    strata_source_of_value_t source;
    const char *file; /* "training.yaml", "preset strata", "<text>" */
    const char *short_name; /* the strategy's name if the text sets none */
    const char *path; /* path of a file, the base of relative paths; else NULL */
    const char *text;
    size_t length;
} strata_text_t;

/* Ends a failure. While checking, E_STRATEGY is written and becomes OK; every other status is returned unchanged. */
strata_status_t strata_note_error(strata_error_sink_t *error_sink, strata_status_t status);

/* Applies a text to reader->strategy. Its values replace earlier ones. */
strata_status_t strata_read_text(strata_reader_t *reader, const strata_text_t *text);
/* Reads a preset by name. Returns E_STRATEGY with the nearest name if there is none. */
strata_status_t strata_read_preset(strata_reader_t *reader, const char *name);
/* Reads a file. Returns E_IO if it cannot be read. A file that is named by another must be a regular file
 * (platform/host/file.h). */
strata_status_t strata_read_file(strata_reader_t *reader, const char *path, strata_file_named_t named);
/* Reads a preset by name or a file by path, as `extends:` and STRATA_STRATEGY allow. The path is relative
 * to the file `beside`, if that is not NULL. */
strata_status_t strata_read_named(strata_reader_t *reader, const char *name, const char *beside, const strata_origin_t *origin);

/* Loads the shared objects of a list. Fails unless the reader allows code. */
strata_status_t strata_read_load(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *list);

/* Returns E_STRATEGY for a value of several lines (node->broken). Only texts for people may have several. */
strata_status_t strata_fail_broken(const strata_origin_t *origin);

/* Reads a list of layers as the stack of a place, for all devices or for a single one (`own`, else NULL). */
strata_status_t strata_read_stack(strata_reader_t *reader, const strata_text_t *text, strata_place_kind_t place,
                                  strata_model_device_t *own, const strata_tree_t *list);
/* Reads a stack into an array of stacks by place. Sets the place's bit in *broken if the stack could not
 * be read completely. */
strata_status_t strata_read_stack_of(strata_reader_t *reader, const strata_text_t *text, strata_place_kind_t place,
                                     strata_model_stack_t *stacks, unsigned *broken, const strata_tree_t *list);
/* Reads a list of layers as a stack, in any context. */
strata_status_t strata_read_list(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *list,
                                 strata_model_stack_t *stack);
/* Reads the options of a layer from its own mapping. */
strata_status_t strata_read_options(strata_reader_t *reader, const strata_text_t *text, strata_model_layer_t *layer,
                                    const strata_tree_t *node);
/* Reads the keys beside a stack, `out_of_memory:` and `idle:`, after the stack itself. A router's branch
 * may have only the former. */
strata_status_t strata_read_stack_keys(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *map,
                                       strata_model_stack_t *stack);
bool strata_is_stack_key(const char *key);
strata_status_t strata_read_reclaim(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *map,
                                    strata_model_stack_t *stack);
/* Returns "routes" or "stacks", the key that holds a router's branches. */
const char *strata_branches_key(const strata_layer_type_t *type);
/* Reads a router's branches. */
strata_status_t strata_read_branches(strata_reader_t *reader, const strata_text_t *text, strata_model_layer_t *layer,
                                     const strata_tree_t *node);
/* Reports a router without branches and gives an example. */
strata_status_t strata_fail_no_branches(const strata_model_layer_t *layer);
/* Reads `devices:` as a mapping of single devices to stacks. */
strata_status_t strata_read_own_stacks(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node);
/* Reads `pools:`, `streams:` and `graph:`: stacks by pool name, by a pattern of stream names, and for captured graphs. */
strata_status_t strata_read_pools(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node);
strata_status_t strata_read_streams(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node);
strata_status_t strata_read_graph(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node);
strata_status_t strata_read_plain(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node);
/* Checks and keeps `devices:`. If it names a profile file, reads it relative to the file `beside`, if
 * that is not NULL. */
strata_status_t strata_read_devices(strata_strategy_t *strategy, const char *devices, const char *beside,
                                    const strata_origin_t *origin);

/* Returns a position. The text's `file` must be kept by the strategy. */
static inline strata_origin_t strata_origin_of(const strata_text_t *text, uint32_t line, uint32_t column) {
    return (strata_origin_t){.source = text->source, .file = text->file, .line = line, .column = column};
}

#endif
