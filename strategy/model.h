/* The strategy model: the contents of a strategy, each value with its origin.
 *
 *     YAML --config--> model (stacks of layers with options) --strategy/plan--> plans --allocation--> stacks
 *
 * A model has one stack for each place, and more for single devices, pools, streams and graphs. */
#ifndef STRATA_STRATEGY_MODEL_H
#define STRATA_STRATEGY_MODEL_H

#include "allocation/stack/plan.h"
#include "strategy/arena.h"
#include "strategy/devices.h"

enum {
    STRATA_STACK_LAYERS = STRATA_PLAN_NODES, /* max in one stack of a file */
    STRATA_NAME_LETTERS = 64, /* max length of `strategy:` and `name:` */
    STRATA_MODEL_DEVICES = 16, /* max of one strategy, and of devices with their own stacks */
    STRATA_MODEL_NAMED = 32 /* max pools, and max patterns of streams */
};

/* The origins of a value; later ones override earlier ones. */
typedef enum strata_source_of_value {
    STRATA_FROM_DEFAULT, /* the layer's own default */
    STRATA_FROM_PRESET,
    STRATA_FROM_FILE,
    STRATA_FROM_ENVIRONMENT,
    STRATA_FROM_COMMAND /* the command's --set and --device, or `set` and `devices` of the API */
} strata_source_of_value_t;

/* A position. `line` is 0 if the file has no lines ("STRATA_SET") or the value is a default. `file` is
 * the path, "preset NAME", "STRATA_SET" or "--set", and is owned by the strategy. */
typedef struct strata_origin {
    strata_source_of_value_t source;
    const char *file;
    uint32_t line, column;
} strata_origin_t;

/* The layers that may also be written beside a stack. A stack has at most one of each. */
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
    const char *name; /* `name:` in the file, or else the type's name */
    strata_origin_t origin;
    void *options; /* the type's struct, filled */
    strata_origin_t *option_origins; /* one per row */
    /* of a router, which ends its stack; if the count is 0, the rest of the stack is its only branch */
    strata_model_stack_t *branches;
    size_t branch_count;
};

/* Stacks of a single device. A place without layers has the stack of all devices. */
typedef struct strata_model_device {
    uint32_t number;
    strata_model_stack_t stacks[STRATA_PLACE_KINDS];
} strata_model_device_t;

/* The kinds of names that may have their own stacks. */
typedef enum strata_named_kind {
    STRATA_NAMED_POOL, /* a named pool; a place without layers uses the place's layers, in instances of the pool */
    STRATA_NAMED_STREAM, /* streams by a pattern of their names; a place without layers uses the stack of all streams */
    /* at most one, called "graph": the pools of captured graphs; a place without layers uses the place's layers */
    STRATA_NAMED_GRAPH,
    STRATA_NAMED_PLAIN, /* at most one, called "without_virtual_memory": the gpu's stack on a device without virtual memory */
    STRATA_NAMED_KINDS
} strata_named_kind_t;

typedef struct strata_model_named {
    const char *name; /* of the pool, or the pattern */
    const char *path; /* prefix of its paths: "pools.weights", "streams.copy*", "graph" */
    strata_origin_t origin;
    strata_model_stack_t stacks[STRATA_PLACE_KINDS];
    bool keep; /* a pool's idle chunks stay when other requests need memory */
    strata_origin_t keep_origin;
    unsigned broken; /* bits of places with unreadable stacks; 0 in a loaded strategy */
} strata_model_named_t;

typedef struct strata_model_names {
    strata_model_named_t *list; /* pools in the order of the text, patterns in the order of matching */
    size_t count;
} strata_model_names_t;

typedef struct strata_strategy {
    const char *name; /* `strategy:`, or else the preset's or the file's name */
    const char *description;
    const char *devices; /* "gpu", "sim:a100", ...; never NULL. A file's path is relative to the working directory */
    strata_device_choice_t device_choice; /* `devices`, parsed; the profile of a file is in `memory` */
    bool short_report; /* `report: short`; out-of-memory is reported in one line */
    const char *peer; /* the peer that it reproduces, and its date; may be NULL */
    strata_origin_t origin;
    strata_origin_t devices_origin;
    strata_model_stack_t stacks[STRATA_PLACE_KINDS]; /* by place kind; all are present once completed */
    strata_model_device_t *own; /* array of STRATA_MODEL_DEVICES once there is one */
    size_t own_count;
    strata_model_names_t named[STRATA_NAMED_KINDS];
    strata_arena_t *memory; /* owns all memory of the strategy, including the strategy itself; freed with it */
} strata_strategy_t;

/* The registry: every layer of strategy/layers.def and every registered one. Returns a layer by index
 * (NULL after the last) or by name (NULL if unknown). Any thread may call them. */
const strata_layer_type_t *strata_layer_at(size_t index);
const strata_layer_type_t *strata_layer_find(const char *name);
/* Works like strata_register_layer() for several layers: registers all of them, or none. With `again`,
 * skips those that were registered before from the same address. */
strata_status_t strata_layers_register(const strata_layer_type_t *const *types, size_t count, bool again);

/* Makes an empty strategy for `devices: gpu`. Returns E_HOST_MEMORY if out of memory. */
strata_status_t strata_strategy_new(strata_strategy_t **strategy);
/* Fills `layer` with the type's defaults, allocated from `arena`. Returns E_HOST_MEMORY if out of memory. */
strata_status_t strata_model_layer_init(strata_arena_t *arena, strata_model_layer_t *layer, const strata_layer_type_t *type,
                                        const strata_origin_t *origin);
/* Sets one option from text, with its origin. Returns E_STRATEGY without a position. */
strata_status_t strata_model_layer_set(strata_model_layer_t *layer, const strata_option_row_t *row, const char *text,
                                       const strata_origin_t *origin);
/* Works like strata_fail_at(), with "file:line:column: " (as far as available) before the text. */
strata_status_t strata_fail_origin(const strata_origin_t *origin, const char *format, ...) STRATA_PRINTF(2, 3);

/* Lists the layers of a stack in the order of a plan, with those of a router's branches after the router.
 * Stores the first `capacity` in `layers`, which may be NULL. Returns their number. */
size_t strata_model_layers(const strata_model_stack_t *stack, const strata_model_layer_t **layers, size_t capacity);
/* `out_of_memory:` beside a stack is the layer `retry` in its list, under this name. */
#define STRATA_RECLAIM_KEY "out_of_memory"
/* `idle:` beside a stack is the layer of that name in its list. */
#define STRATA_IDLE_KEY "idle"
/* Returns the stack's out-of-memory layer under either name, but not those of its branches. Returns NULL
 * if there is none. */
strata_model_layer_t *strata_model_reclaim(const strata_model_stack_t *stack);
/* Returns the first layer of a type in the list of a stack, or NULL. */
strata_model_layer_t *strata_model_layer_of(const strata_model_stack_t *stack, const strata_layer_type_t *type);
/* Returns the stack that serves a place of a device: its own, or that of all devices. */
const strata_model_stack_t *strata_strategy_stack(const strata_strategy_t *strategy, strata_place_kind_t place, uint32_t device);
/* Returns the stacks of a single device, created at the first call. The number must be below
 * STRATA_MODEL_DEVICES. Returns NULL with E_HOST_MEMORY. */
strata_model_device_t *strata_strategy_own(strata_strategy_t *strategy, uint32_t device);

/* Returns the key in a file: "pools", "streams", "graph" or "without_virtual_memory". */
const char *strata_named_key(strata_named_kind_t kind);
/* Returns true if there is at most one, with the name of its key. */
static inline bool strata_named_is_single(strata_named_kind_t kind) { return kind >= STRATA_NAMED_GRAPH; }
/* Returns true for a valid name: letters, digits, - and _, starting with a letter, or only digits. A pattern may
 * also have : and /, and * for any characters. The max length is STRATA_NAME_LETTERS. */
bool strata_named_is_name(strata_named_kind_t kind, const char *name);
/* Returns the entry of that name, or NULL. */
strata_model_named_t *strata_strategy_named(const strata_strategy_t *strategy, strata_named_kind_t kind, const char *name);
/* Returns the first pattern that matches the name of a stream, or NULL. */
const strata_model_named_t *strata_strategy_pattern(const strata_strategy_t *strategy, const char *stream);
/* Sets a pool's `keep` from text: `keep: true` of its file, or "pools.weights.keep=true". Returns
 * E_STRATEGY without a position. */
strata_status_t strata_named_set_keep(strata_model_named_t *pool, const char *text, const strata_origin_t *origin);
/* Returns E_STRATEGY without a position, because the pools of captured graphs have no such option. */
strata_status_t strata_graph_refuse_keep(void);
/* Returns E_STRATEGY with the origin of `keep` if a pool must keep its chunks but none of its layers keeps any. */
strata_status_t strata_named_check_keep(const strata_strategy_t *strategy, const strata_model_named_t *pool);
/* Returns E_STRATEGY with its origin for an option that only acts in pools, in a stack that serves no pool. */
strata_status_t strata_strategy_check_pool_options(const strata_strategy_t *strategy);
/* Returns true if `pattern`, in which * matches any letters, matches the whole name. */
bool strata_pattern_matches(const char *pattern, const char *name);

/* A value of a router's branch is an option of the router with the branch's number at the end: "up_to_1".
 * Returns the number of such an option, or 0 if it belongs to no branch. */
uint32_t strata_option_branch(const strata_option_row_t *row);
/* Returns the option of branch `number` (from 1) by its `name` in the file, or NULL. */
const strata_option_row_t *strata_branch_option(const strata_layer_type_t *type, const char *name, uint32_t number);

/* Sets one value by path: "auto_growth.chunk_size", "stack.small.chunk_size",
 * "pinned.auto_growth.chunk_size", "gpu:1.auto_growth.chunk_size",
 * "pools.weights.auto_growth.chunk_size", "streams.copy*.managed.retry.timeout",
 * "graph.auto_growth.chunk_size". A path without a place means the gpu's stack. Returns E_STRATEGY; the
 * error names the nearest correct word, or the two layers that match. */
strata_status_t strata_strategy_set(strata_strategy_t *strategy, const char *path, const char *value,
                                    const strata_origin_t *origin);
/* Returns true if the strategy has the path. */
bool strata_strategy_has(const strata_strategy_t *strategy, const char *path);

/* Check one place's stack and make its plan. They check the needs and gives of each pair, waits above
 * locks, one source at the bottom and none elsewhere, and the depth. Return E_STRATEGY at the upper of
 * two conflicting layers, naming both. */
strata_status_t strata_strategy_plan(const strata_strategy_t *strategy, strata_place_kind_t place, strata_plan_t *plan);
strata_status_t strata_stack_plan(const strata_model_stack_t *stack, strata_place_kind_t place, strata_plan_t *plan);

void strata_strategy_delete(strata_strategy_t *strategy);

#endif
