/* A YAML text as a tree: every node with its line and column. What hostile text could do with YAML is refused here. */
#ifndef STRATA_CONFIG_TREE_H
#define STRATA_CONFIG_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"
#include "strategy/arena.h"

enum {
    STRATA_TREE_BYTES = 1 << 20, /* of a file */
    STRATA_TREE_DEPTH = 64, /* collections in collections */
    STRATA_TREE_NODES = 65536,
    STRATA_TREE_KEYS = 256, /* of one mapping */
    STRATA_TREE_SCALAR = 4096 /* bytes of one value */
};

typedef enum strata_tree_kind { STRATA_TREE_SCALAR_NODE, STRATA_TREE_LIST, STRATA_TREE_MAP } strata_tree_kind_t;

typedef struct strata_tree strata_tree_t;
struct strata_tree {
    strata_tree_kind_t kind;
    uint32_t line, column; /* from 1 */
    const char *text; /* of a scalar */
    bool broken; /* a scalar that goes over the end of a line or contains a tab: one blank each in the text */
    bool empty; /* a scalar that says nothing: "", ~, null, without quotes */
    const char *key; /* in a mapping, with its own place */
    uint32_t key_line, key_column;
    size_t count; /* of a list or mapping */
    strata_tree_t *first, *next;
};

/* Reads one document. E_STRATEGY with "file:line:column: " for duplicate keys, aliases, tags, directives other than %YAML, keys
 * that are not words, a second document, and whatever exceeds a limit; E_HOST_MEMORY. The tree and its texts come from `arena`. */
strata_status_t strata_tree_read(strata_arena_t *arena, const char *file, const char *text, size_t length, strata_tree_t **tree);

/* The value of a key, or NULL. */
const strata_tree_t *strata_tree_get(const strata_tree_t *map, const char *key);

#endif
