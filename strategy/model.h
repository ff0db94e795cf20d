/* The strategy model: what a strategy says, each value with its origin. Config reads YAML into it; the builder turns it into
 * plans. */
#ifndef STRATA_STRATEGY_MODEL_H
#define STRATA_STRATEGY_MODEL_H

#include "allocation/stack/plan.h"
#include "strategy/arena.h"
#include "strategy/devices.h"

enum {
    STRATA_STACK_LAYERS = STRATA_PLAN_NODES, /* in one stack of a file */
    STRATA_NAME_LETTERS = 64, /* of `strategy:` and `name:` */
    STRATA_MODEL_DEVICES = 16, /* of one strategy, and those with stacks of their own */
    STRATA_MODEL_NAMED = 32 /* pools, and patterns of streams */
};

/* The origins of a value; later ones override earlier ones. */
typedef enum strata_source_of_value {
    STRATA_FROM_DEFAULT, /* the layer's own default */
    STRATA_FROM_PRESET,
    STRATA_FROM_FILE,
    STRATA_FROM_ENVIRONMENT,
    STRATA_FROM_COMMAND /* the command's --set and --device, or `set` and `devices` of the API */
} strata_source_of_value_t;

/* `line` 0: the file has no lines ("STRATA_SET"), or the value is a default. `file` is the path, "preset NAME", "STRATA_SET",
 * "--set"; owned by the strategy. */
typedef struct strata_origin {
    strata_source_of_value_t source;
    const char *file;
    uint32_t line, column;
} strata_origin_t;

/* The layers that may also be written beside a stack, and stand at most once in it. */
extern const strata_layer_type_t strata_retry_type;
extern const strata_layer_type_t strata_idle_type;

typedef struct strata_model_layer strata_model_layer_t;

/* A stack, outermost layer first. */
typedef struct strata_model_stack {
    strata_model_layer_t *layers;
    size_t count;
    strata_origin_t origin;
} strata_model_stack_t;

struct strata_model_layer {
    const strata_layer_type_t *type;
    const char *name; /* `name:` in the file, else the type's */
    strata_origin_t origin;
    void *options; /* the type's struct, filled */
    strata_origin_t *option_origins; /* one per row */
    strata_model_stack_t *branches; /* of a router, which ends its stack. 0: what follows in the stack is its one branch */
    size_t branch_count;
};

/* Stacks of a single device; a place without layers is as for all devices. */
typedef struct strata_model_device {
    uint32_t number;
    strata_model_stack_t stacks[STRATA_PLACE_KINDS];
} strata_model_device_t;

/* The kinds of names that may have stacks of their own. */
typedef enum strata_named_kind {
    STRATA_NAMED_POOL, /* a named pool; a place without layers has the place's own, in instances of the pool's */
    STRATA_NAMED_STREAM, /* streams by a pattern of their names; a place without layers is as for all streams */
    STRATA_NAMED_GRAPH, /* at most one, called "graph": the pools of captured graphs; a place without layers has the place's own */
    STRATA_NAMED_PLAIN, /* at most one, called "without_virtual_memory": what serves the gpu place of a device that has none */
    STRATA_NAMED_KINDS
} strata_named_kind_t;

typedef struct strata_model_named {
    const char *name; /* the pool's, or the pattern */
    const char *path; /* how paths to it begin: "pools.weights", "streams.copy*", "graph" */
    strata_origin_t origin;
    strata_model_stack_t stacks[STRATA_PLACE_KINDS];
    bool keep; /* a pool's idle chunks stay when others want memory */
    strata_origin_t keep_origin;
    unsigned broken; /* bits of places whose stacks could not be read; 0 in a strategy that was loaded */
} strata_model_named_t;

typedef struct strata_model_names {
    strata_model_named_t *list; /* pools in the order of the text, patterns in the order in which they are tried */
    size_t count;
} strata_model_names_t;

typedef struct strata_strategy {
    const char *name; /* `strategy:`, else the preset's or the file's name */
    const char *description;
    const char *devices; /* "gpu", "sim:a100", ...; never NULL. A file's path is as seen from the working directory */
    strata_device_choice_t device_choice; /* the same, read; the profile of a file lies in `memory` */
    bool short_report; /* `report: short`: out-of-memory is reported in one line */
    const char *peer; /* the peer that it reproduces, and as of when; NULL: none */
    strata_origin_t origin;
    strata_origin_t devices_origin;
    strata_model_stack_t stacks[STRATA_PLACE_KINDS]; /* by place kind; all present once completed */
    strata_model_device_t *own; /* STRATA_MODEL_DEVICES of them once there is one */
    size_t own_count;
    strata_model_names_t named[STRATA_NAMED_KINDS];
    strata_arena_t *memory; /* what the strategy owns, freed with it; the strategy lies in it too */
} strata_strategy_t;

/* The registry: every layer of strategy/layers.def and every registered one, by index (NULL after the last) or by name (NULL:
 * unknown). Any thread. */
const strata_layer_type_t *strata_layer_at(size_t index);
const strata_layer_type_t *strata_layer_find(const char *name);
/* strata_register_layer() for several: all of them, or none. With `again`, those that were registered before from the same address
 * are skipped. */
strata_status_t strata_layers_register(const strata_layer_type_t *const *types, size_t count, bool again);

/* An empty strategy for `devices: gpu`. E_HOST_MEMORY. */
strata_status_t strata_strategy_new(strata_strategy_t **strategy);
/* Fills `layer` with the type's defaults; what it needs comes from `arena`. E_HOST_MEMORY. */
strata_status_t strata_model_layer_init(strata_arena_t *arena, strata_model_layer_t *layer, const strata_layer_type_t *type,
                                        const strata_origin_t *origin);
/* Sets one option from text, with its origin. E_STRATEGY, without the place. */
strata_status_t strata_model_layer_set(strata_model_layer_t *layer, const strata_option_row_t *row, const char *text,
                                       const strata_origin_t *origin);
/* strata_fail_at() with "file:line:column: " (as far as known) before the text. */
strata_status_t strata_fail_origin(const strata_origin_t *origin, const char *format, ...) STRATA_PRINTF(2, 3);

/* The layers of a stack as a plan numbers them, with those of a router's branches after the router: the first `capacity` into
 * `layers` (NULL: none). Returns their number. */
size_t strata_model_layers(const strata_model_stack_t *stack, const strata_model_layer_t **layers, size_t capacity);
/* `out_of_memory:` beside a stack: under this name the layer `retry` stands in its list. */
#define STRATA_RECLAIM_KEY "out_of_memory"
/* `idle:` beside a stack: the layer of that name in its list. */
#define STRATA_IDLE_KEY "idle"
/* What the stack says of out-of-memory, by either name: not what its branches say. NULL: nothing. */
strata_model_layer_t *strata_model_reclaim(const strata_model_stack_t *stack);
/* The first layer of a type in the list of a stack; NULL: none. */
strata_model_layer_t *strata_model_layer_of(const strata_model_stack_t *stack, const strata_layer_type_t *type);
/* The stack that serves a place of a device: its own, or that of all devices. */
const strata_model_stack_t *strata_strategy_stack(const strata_strategy_t *strategy, strata_place_kind_t place, uint32_t device);
/* The stacks of a single device, made at the first call; the number is below STRATA_MODEL_DEVICES. NULL: E_HOST_MEMORY. */
strata_model_device_t *strata_strategy_own(strata_strategy_t *strategy, uint32_t device);

/* "pools", "streams", "graph", "without_virtual_memory": their keys in a file. */
const char *strata_named_key(strata_named_kind_t kind);
/* Whether there is at most one, which has the name of its key. */
static inline bool strata_named_is_single(strata_named_kind_t kind) { return kind >= STRATA_NAMED_GRAPH; }
/* Letters, digits, - and _, a letter first, or digits alone; in a pattern also : and /, and * for any letters. At most
 * STRATA_NAME_LETTERS. */
bool strata_named_is_name(strata_named_kind_t kind, const char *name);
/* NULL: there is none of that name. */
strata_model_named_t *strata_strategy_named(const strata_strategy_t *strategy, strata_named_kind_t kind, const char *name);
/* The first pattern that matches the name of a stream; NULL: none. */
const strata_model_named_t *strata_strategy_pattern(const strata_strategy_t *strategy, const char *stream);
/* Sets a pool's `keep` from text: `keep: true` of its file, "pools.weights.keep=true". E_STRATEGY, without the place. */
strata_status_t strata_named_set_keep(strata_model_named_t *pool, const char *text, const strata_origin_t *origin);
/* E_STRATEGY, without the place: the pools of captured graphs have no such option. */
strata_status_t strata_graph_refuse_keep(void);
/* E_STRATEGY, with the origin of `keep`, if a pool is to keep its chunks but no layer of it keeps any. */
strata_status_t strata_named_check_keep(const strata_strategy_t *strategy, const strata_model_named_t *pool);
/* E_STRATEGY, with its origin, for an option that acts only in pools and stands where no pool is served. */
strata_status_t strata_strategy_check_pool_options(const strata_strategy_t *strategy);
/* Whether `pattern`, in which * stands for any letters, matches the whole name. */
bool strata_pattern_fits(const char *pattern, const char *name);

/* A value of a router's branch is an option of the router with the branch's number at the end: "up_to_1". Returns the number of
 * such an option; 0: it belongs to no branch. */
uint32_t strata_option_branch(const strata_option_row_t *row);
/* The option of branch `number` (from 1) whose name in the file is `name`; NULL: none. */
const strata_option_row_t *strata_branch_option(const strata_layer_type_t *type, const char *name, uint32_t number);

/* Sets one value by path: "auto_growth.chunk_size", "stack.small.chunk_size", "pinned.auto_growth.chunk_size",
 * "gpu:1.auto_growth.chunk_size", "pools.weights.auto_growth.chunk_size", "streams.copy*.managed.retry.timeout",
 * "graph.auto_growth.chunk_size" (a path without a place means the stack of the gpu place). E_STRATEGY names the nearest right word, or the two layers that the path matches. */
strata_status_t strata_strategy_set(strata_strategy_t *strategy, const char *path, const char *value,
                                    const strata_origin_t *origin);
/* Whether a strategy has the path at all. */
bool strata_strategy_has(const strata_strategy_t *strategy, const char *path);

/* Checks one place's stack (needs and gives of each pair, waits above locks, a source at the bottom and nowhere else, depth) and
 * makes the plan. E_STRATEGY at the upper of the two layers that conflict, naming both. */
strata_status_t strata_strategy_plan(const strata_strategy_t *strategy, strata_place_kind_t place, strata_plan_t *plan);
strata_status_t strata_stack_plan(const strata_model_stack_t *stack, strata_place_kind_t place, strata_plan_t *plan);

void strata_strategy_delete(strata_strategy_t *strategy);

#endif
