/* Parses a YAML text into a tree that has the line and column of every node. Features of YAML that
 * hostile text could abuse are refused here. */
#ifndef STRATA_CONFIG_TREE_H
#define STRATA_CONFIG_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"
#include "strategy/arena.h"

enum {
    STRATA_TREE_BYTES = 1 << 20, /* max size of a file */
    STRATA_TREE_DEPTH = 64, /* max depth of nested collections */
    STRATA_TREE_NODES = 65536,
    STRATA_TREE_KEYS = 256, /* max number in one mapping */
    STRATA_TREE_SCALAR = 4096 /* max bytes of one value */
};

typedef enum strata_tree_kind { STRATA_TREE_SCALAR_NODE, STRATA_TREE_LIST, STRATA_TREE_MAP } strata_tree_kind_t;

typedef struct strata_tree strata_tree_t;
struct strata_tree {
    strata_tree_kind_t kind;
    uint32_t line, column; /* from 1 */
    const char *text; /* the value of a scalar */
    bool broken; /* the scalar spans lines or contains a tab; `text` has one blank for each */
    bool empty; /* the scalar has no value: "", ~ or null without quotes */
    const char *key; /* in a mapping; it has its own position */
    uint32_t key_line, key_column;
    size_t count; /* of the children of a list or mapping */
    strata_tree_t *first, *next;
};

/* Reads one document. Returns E_STRATEGY with "file:line:column: " for duplicate keys, aliases, tags,
 * directives other than %YAML, and keys that are not words. It also refuses a second document and input
 * above a limit. Returns E_HOST_MEMORY if out of memory. The tree and its texts are allocated from `arena`. */
strata_status_t strata_tree_read(strata_arena_t *arena, const char *file, const char *text, size_t length, strata_tree_t **tree);

/* Returns the value of a key, or NULL. */
const strata_tree_t *strata_tree_get(const strata_tree_t *map, const char *key);

#endif
