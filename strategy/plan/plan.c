/* Makes the plan of one place's stack: checks its order, depth, memory, options and alignment, and numbers its layers. */
#include <stdio.h>
#include <string.h>

#include "allocation/domain/layer.h"
#include "allocation/options/option.h"
#include "platform/place.h"
#include "strategy/plan/legal.h"

/* Writes the names of the layers that give the needed traits, for the message. */
static void list_providers(uint32_t needed, char *text, size_t capacity) {
    size_t length = 0;
    *text = '\0';
    const strata_layer_type_t *type;
    for (size_t i = 0; (type = strata_layer_at(i)); i++) {
        if ((type->gives & needed) != needed || type->role == STRATA_SOURCE || length >= capacity) continue;
        int written = snprintf(text + length, capacity - length, "%s%s", length ? " or " : "", type->name);
        length += written > 0 ? (size_t)written : 0;
    }
}

static strata_status_t fail_needs(const strata_model_layer_t *upper, const strata_model_layer_t *lower, uint32_t given) {
    uint32_t missing = upper->type->needs & ~given;
    char names[256], who[256];
    strata_traits_text(missing, ", ", names, sizeof names);
    list_providers(missing, who, sizeof who);
    return strata_fail_origin(&upper->origin, "\"%s\" needs %s below it, which \"%s\" does not give; put %s between them",
                              upper->name, names, lower->name, *who ? who : "a layer that gives it");
}

/* `upper` is somewhere above `lower`. The message names both, at the origin of the upper. */
static strata_status_t fail_clash(strata_clash_t clash, const strata_model_layer_t *upper, const strata_model_layer_t *lower) {
    const char *a = upper->name, *b = lower->name;
    switch (clash) {
    case STRATA_CLASH_WAITS:
        return strata_fail_origin(&upper->origin,
                                  "\"%s\" holds a lock and is above \"%s\", which may wait; put \"%s\" above \"%s\"", a, b, b, a);
    case STRATA_CLASH_SHARED_LOCK:
        return strata_fail_origin(&upper->origin,
                                  "\"%s\" is shared by all streams and is above the cache \"%s\": every hit would "
                                  "take its lock; put \"%s\" below \"%s\"",
                                  a, b, a, b);
    case STRATA_CLASH_NARROW:
        return strata_fail_origin(
            &upper->origin,
            "\"%s\" is shared by all streams%s and is above \"%s\", which every %s has its own instance of; put \"%s\" above "
            "\"%s\"",
            a, upper->type->scope == STRATA_SCOPE_THREAD ? " of a thread" : "", b,
            lower->type->scope == STRATA_SCOPE_THREAD ? "thread" : "stream", b, a);
    case STRATA_CLASH_UNSEEN:
        return strata_fail_origin(&upper->origin,
                                  "\"%s\" is a cache above \"%s\": its blocks would change owners unseen; put "
                                  "\"%s\" above \"%s\"",
                                  a, b, b, a);
    case STRATA_CLASH_BELOW_SOURCE:
        return strata_fail_origin(&upper->origin,
                                  "\"%s\" is a source, but \"%s\" is below it; end the stack with "
                                  "\"%s\", or remove it",
                                  a, b, a);
    default: return STRATA_OK;
    }
}

/* A stack as a tree of layers, numbered as in the plan. */
typedef struct building {
    const strata_model_layer_t *layers[STRATA_PLAN_NODES + 1];
    uint32_t above[STRATA_PLAN_NODES + 1]; /* 0 for the top */
    uint32_t last[STRATA_PLAN_NODES + 1]; /* the highest number below it */
    uint32_t given[STRATA_PLAN_NODES + 1]; /* traits above it */
    uint64_t serves[STRATA_PLAN_NODES + 1]; /* the largest alignment */
    bool adds[STRATA_PLAN_NODES + 1]; /* a stream_safe above it (strata_adds_stream_safe()) */
    uint32_t count;
    strata_place_kind_t place;
} building_t;

/* Numbers a stack below layer `above`; there is room for it. `handled`: as of strata_adds_stream_safe(). */
static void number_layers(building_t *built, const strata_model_stack_t *stack, uint32_t above, bool handled) {
    for (size_t i = 0; i < stack->count; i++) {
        const strata_model_layer_t *layer = &stack->layers[i];
        uint32_t n = ++built->count;
        built->layers[n] = layer;
        built->above[n] = above;
        built->adds[n] = strata_adds_stream_safe(layer, &handled);
        for (size_t b = 0; b < layer->branch_count; b++) number_layers(built, &layer->branches[b], n, handled);
        above = n;
    }
}

static void set_subtree_ends(building_t *built) {
    for (uint32_t n = built->count; n > 0; n--) {
        if (built->last[n] < n) built->last[n] = n;
        uint32_t above = built->above[n];
        if (built->last[above] < built->last[n]) built->last[above] = built->last[n];
    }
}

/* ---- order ---- */

static strata_status_t fail_end(const strata_model_layer_t *last) {
    return strata_fail_origin(&last->origin,
                              "\"%s\" has nothing below it to get memory from; end the stack with a source, as in "
                              "\"- system\"",
                              last->name);
}

/* A stack must end with a source or with a router that has branches, and these may be nowhere else. */
static strata_status_t check_ends(const strata_model_stack_t *stack) {
    for (size_t i = 0; i < stack->count; i++) {
        const strata_model_layer_t *layer = &stack->layers[i], *next = i + 1 < stack->count ? layer + 1 : NULL;
        if (next && layer->type->role == STRATA_SOURCE) return fail_clash(STRATA_CLASH_BELOW_SOURCE, layer, next);
        if (next && layer->branch_count > 0)
            return strata_fail_origin(
                &next->origin, "\"%s\" is a router with its own stacks, but \"%s\" follows it; put it into one of those stacks",
                layer->name, next->name);
        if (!next && layer->type->role != STRATA_SOURCE && layer->branch_count == 0) return fail_end(layer);
        for (size_t b = 0; b < layer->branch_count; b++) {
            strata_status_t status = check_ends(&layer->branches[b]);
            if (status) return status;
        }
    }
    return STRATA_OK;
}

/* Fails at the first layer below that conflicts with layer `n`. */
static strata_status_t check_below(const building_t *built, uint32_t n) {
    const strata_model_layer_t *upper = built->layers[n];
    strata_scope_t scope = strata_scope_of(upper->type, upper->options);
    for (uint32_t m = n + 1; m <= built->last[n]; m++) {
        const strata_model_layer_t *lower = built->layers[m];
        bool neighbours = built->above[m] == n;
        strata_clash_t clash = neighbours ? strata_clash_of_neighbours(upper->type, scope, lower->type, built->given[m])
                                          : strata_clash_of_pair(upper->type, scope, lower->type);
        if (clash == STRATA_CLASH_NEEDS) return fail_needs(upper, lower, built->given[m]);
        if (clash != STRATA_CLASH_NONE) return fail_clash(clash, upper, lower);
    }
    return STRATA_OK;
}

/* A router may pass on only the traits that all of its branches give. */
static uint32_t given_below(const building_t *built, uint32_t n) {
    uint32_t given = built->last[n] > n ? ~0u : 0;
    for (uint32_t m = n + 1; m <= built->last[n]; m++)
        if (built->above[m] == n) given &= built->given[m];
    return given;
}

/* The layer `idle` applies to the whole stack, and some layer must keep memory idle. */
static strata_status_t check_idle(const building_t *built, uint32_t n) {
    const strata_model_layer_t *layer = built->layers[n];
    bool keeps = false;
    if (layer->type != &strata_idle_type) return STRATA_OK;
    for (uint32_t m = built->above[n]; m; m = built->above[m])
        if (built->layers[m]->type->role == STRATA_ROUTER)
            return strata_fail_origin(&layer->origin,
                                      "\"%s\" applies to a whole stack, not to a branch of \"%s\"; write it beside the whole "
                                      "stack",
                                      layer->name, built->layers[m]->name);
    for (uint32_t m = 1; m <= built->count; m++)
        keeps = keeps || built->layers[m]->type->idle_bytes || built->layers[m]->type->trim;
    if (keeps) return STRATA_OK;
    return strata_fail_origin(&layer->origin,
                              "no layer down to \"%s\" keeps idle memory, so \"%s\" has nothing to give back; remove it",
                              built->layers[built->count]->name, layer->name);
}

/* `retry` and `idle` may occur once in each stack. */
static strata_status_t check_once(const building_t *built, uint32_t n) {
    const strata_model_layer_t *layer = built->layers[n];
    if (layer->type != &strata_retry_type && layer->type != &strata_idle_type) return STRATA_OK;
    for (uint32_t m = built->above[n]; m && built->layers[m]->type->role != STRATA_ROUTER; m = built->above[m])
        if (built->layers[m]->type == layer->type)
            return strata_fail_origin(&layer->origin, "\"%s\" repeats \"%s\" above it in the same stack; remove one", layer->name,
                                      built->layers[m]->name);
    return STRATA_OK;
}

static strata_status_t check_order(building_t *built) {
    for (uint32_t n = built->count; n > 0; n--) {
        strata_status_t status = check_below(built, n);
        if (status == STRATA_OK) status = check_once(built, n);
        if (status == STRATA_OK) status = check_idle(built, n);
        if (status) return status;
        built->given[n] = strata_traits_above(built->layers[n]->type, given_below(built, n));
    }
    return STRATA_OK;
}

/* A route has at most STRATA_ROUTE_LAYERS, from the top, or from below a cache, to the next cache or source. */
static strata_status_t check_depth(const building_t *built) {
    size_t deep[STRATA_PLAN_NODES + 1] = {0};
    for (uint32_t n = 1; n <= built->count; n++) {
        const strata_model_layer_t *layer = built->layers[n];
        uint32_t above = built->above[n];
        bool begins = above == 0 || built->layers[above]->type->role == STRATA_CACHE;
        deep[n] = begins ? 1 : deep[above] + 1;
        if (deep[n] <= STRATA_ROUTE_LAYERS) continue;
        return strata_fail_origin(&layer->origin,
                                  "\"%s\" is layer %zu from the top or the last cache, and the maximum is %d; remove a layer",
                                  layer->name, deep[n], STRATA_ROUTE_LAYERS);
    }
    return STRATA_OK;
}

/* ---- memory ---- */

static bool allows_other_memory(const building_t *built, uint32_t n) {
    for (uint32_t above = built->above[n]; above; above = built->above[above])
        if (built->layers[above]->type->gives & STRATA_TRAIT_ANY_MEMORY) return true;
    return false;
}

/* A source with an option for the kind of memory must have the place's kind, or "place". The gpu's may
 * also be managed. If a layer above allows another kind, it may be any that the place's users can access. */
static strata_status_t check_memory(const building_t *built, uint32_t n) {
    const strata_model_layer_t *source = built->layers[n];
    const strata_option_row_t *row = source->type->role == STRATA_SOURCE ? strata_option_find(source->type, "memory") : NULL;
    if (!row || row->kind != STRATA_OPTION_CHOICE) return STRATA_OK;
    char memory[32];
    strata_option_print(row, source->options, memory, sizeof memory);
    const char *wanted = strata_place_memory(built->place);
    if (strcmp(memory, wanted) == 0 || strcmp(memory, "place") == 0) return STRATA_OK;
    bool differs = allows_other_memory(built, n), managed = built->place == STRATA_PLACE_GPU && strcmp(memory, "managed") == 0;
    if (managed || (differs && strata_place_reaches(built->place, memory))) return STRATA_OK;
    const strata_origin_t *set_by = &source->option_origins[row - source->type->options];
    return strata_fail_origin(set_by->source == STRATA_FROM_DEFAULT ? &source->origin : set_by,
                              "\"%s\" with memory: %s cannot serve the place %s%s; write memory: %s, or leave it out", source->name,
                              memory, strata_place_name(built->place), differs ? ", where its users cannot access it" : "", wanted);
}

/* ---- options ---- */

/* A value that equals the default does not count, even if it is written differently. */
static bool is_default_value(const strata_model_layer_t *layer, const strata_option_row_t *row) {
    char value[STRATA_OPTION_TEXT_BYTES];
    strata_option_print(row, layer->options, value, sizeof value);
    return strcmp(value, row->default_text) == 0;
}

/* All branches of a router except the last must have their value. The last one takes the rest. */
static strata_status_t check_branches(const strata_model_layer_t *layer) {
    for (const strata_option_row_t *row = layer->type->options; row && row->name; row++) {
        uint32_t branch = strata_option_branch(row);
        const strata_origin_t *set_by = &layer->option_origins[row - layer->type->options];
        bool given = set_by->source != STRATA_FROM_DEFAULT, wanted = branch < layer->branch_count;
        bool nothing = given && wanted && is_default_value(layer, row);
        if (layer->type->role != STRATA_ROUTER || branch == 0 || layer->branch_count == 0 || (given == wanted && !nothing))
            continue;
        int letters = (int)(strrchr(row->name, '_') - row->name);
        if (nothing)
            return strata_fail_origin(set_by, "%.*s: %s: no request would match; write a size above 0, as in %.*s: 64KiB", letters,
                                      row->name, row->default_text, letters, row->name);
        if (wanted)
            return strata_fail_origin(&layer->branches[branch - 1].origin,
                                      "stack %u of \"%s\" has no %.*s, and only the last stack may omit it; write %.*s: 64KiB",
                                      branch, layer->name, letters, row->name, letters, row->name);
        return strata_fail_origin(set_by, "\"%s\" has %zu stacks, and the last takes all other requests; remove %.*s of stack %u",
                                  layer->name, layer->branch_count, letters, row->name, branch);
    }
    return STRATA_OK;
}

/* Lets a layer check its own options. */
static strata_status_t check_options(const strata_model_layer_t *layer, strata_place_kind_t place) {
    const strata_layer_type_t *type = layer->type;
    const char *option = NULL;
    if (!STRATA_LAYER_HAS(type, check)) return STRATA_OK;
    strata_status_t status = type->check(layer->options, place, &option);
    if (status == STRATA_OK) return STRATA_OK;
    const strata_option_row_t *row = option ? strata_option_find(type, option) : NULL;
    const strata_origin_t *set_by = row ? &layer->option_origins[row - type->options] : NULL;
    return strata_fail_origin(set_by && set_by->source != STRATA_FROM_DEFAULT ? set_by : &layer->origin, "%s%s%s: %s", layer->name,
                              option ? "." : "", option ? option : "", strata_last_error()->text);
}

/* Returns whether there is one source below. Chunks of two branches are never used as one. */
static bool has_one_source(const building_t *built, uint32_t n) {
    for (uint32_t m = n + 1; m <= built->last[n]; m++)
        if (built->layers[m]->type->role == STRATA_ROUTER) return false;
    return true;
}

/* Returns a layer below that requires each block to be in one handle, or NULL. */
static const strata_model_layer_t *registrable_below(const building_t *built, uint32_t n) {
    for (uint32_t m = n + 1; m <= built->last[n]; m++) {
        const strata_model_layer_t *layer = built->layers[m];
        const strata_option_row_t *row = strata_option_find(layer->type, "registrable");
        if (row && row->kind == STRATA_OPTION_BOOL && *((const bool *)layer->options + row->offset)) return layer;
    }
    return NULL;
}

/* `coalesce_regions` requires chunks that may be used as one. */
static strata_status_t check_coalescing(const building_t *built, uint32_t n) {
    const strata_model_layer_t *layer = built->layers[n];
    const strata_option_row_t *row = strata_option_find(layer->type, "coalesce_regions");
    if (!row || row->kind != STRATA_OPTION_BOOL || !*((const bool *)layer->options + row->offset)) return STRATA_OK;
    bool acts = has_one_source(built, n) && given_below(built, n) & STRATA_TRAIT_CONTIGUOUS;
    const strata_model_layer_t *whole = acts ? registrable_below(built, n) : NULL;
    if (acts && !whole) return STRATA_OK;
    const strata_origin_t *set_by = &layer->option_origins[row - layer->type->options];
    if (set_by->source == STRATA_FROM_DEFAULT) set_by = &layer->origin;
    if (whole)
        return strata_fail_origin(
            set_by,
            "%s.coalesce_regions: blocks would cross handles, but %s.registrable keeps each block in one; write "
            "coalesce_regions: false or registrable: false",
            layer->name, whole->name);
    return strata_fail_origin(
        set_by,
        "%s.coalesce_regions: it has no effect over layers without contiguous chunks (contiguous); end the stack with - vmm "
        "and no router, or write coalesce_regions: false",
        layer->name);
}

/* ---- alignment ---- */

/* Returns the alignment that every layer directly below serves, and the layer that serves the least in *least. For a source it is
 * the alignment of the place, and *least is 0. */
static uint64_t alignment_below(const building_t *built, uint32_t n, uint32_t *least) {
    uint64_t below = UINT64_MAX;
    *least = 0;
    for (uint32_t m = n + 1; m <= built->last[n]; m++) {
        if (built->above[m] != n || (*least && built->serves[m] >= below)) continue;
        below = built->serves[m];
        *least = m;
    }
    return *least ? below : strata_place_alignment(built->place);
}

static strata_status_t fail_alignment(const strata_model_layer_t *upper, const strata_model_layer_t *lower, uint64_t wanted,
                                      uint64_t below) {
    const strata_option_row_t *row = strata_option_find(upper->type, "alignment");
    const strata_origin_t *set_by = row ? &upper->option_origins[row - upper->type->options] : &upper->origin;
    char wants[32], gives[32];
    strata_print_size(wanted, wants, sizeof wants);
    strata_print_size(below, gives, sizeof gives);
    return strata_fail_origin(set_by->source == STRATA_FROM_DEFAULT ? &upper->origin : set_by,
                              "%s%s: \"%s\" needs memory aligned to %s, but \"%s\" below it aligns to %s; put aligned between "
                              "them",
                              upper->name, row ? ".alignment" : "", upper->name, wants, lower->name, gives);
}

/* Runs from the sources up, because each layer's alignment depends on the layers below it. */
static strata_status_t check_alignment(building_t *built) {
    for (uint32_t n = built->count; n > 0; n--) {
        const strata_model_layer_t *layer = built->layers[n];
        const strata_layer_type_t *type = layer->type;
        uint64_t place = strata_place_alignment(built->place), wanted = place;
        uint32_t least;
        uint64_t below = alignment_below(built, n, &least);
        bool cuts = type->role == STRATA_SOURCE || type->role == STRATA_CACHE;
        built->serves[n] = STRATA_LAYER_HAS(type, alignment) ? type->alignment(layer->options, built->place, below, &wanted)
                           : cuts                            ? strata_place_alignment(STRATA_PLACE_GPU)
                                                             : below;
        if (least && below < wanted) return fail_alignment(layer, built->layers[least], wanted, below);
    }
    return STRATA_OK;
}

static strata_status_t check_layers(building_t *built) {
    strata_status_t status = STRATA_OK;
    for (uint32_t n = 1; n <= built->count && status == STRATA_OK; n++) status = check_memory(built, n);
    for (uint32_t n = 1; n <= built->count && status == STRATA_OK; n++) {
        status = check_branches(built->layers[n]);
        if (status == STRATA_OK) status = check_options(built->layers[n], built->place);
        if (status == STRATA_OK) status = check_coalescing(built, n);
    }
    return status ? status : check_alignment(built);
}

/* ---- the plan ---- */

static strata_status_t fail_too_many(const strata_model_stack_t *stack, strata_place_kind_t place, size_t count) {
    const strata_model_layer_t *layers[STRATA_PLAN_NODES + 1];
    (void)strata_model_layers(stack, layers, STRATA_PLAN_NODES + 1);
    return strata_fail_origin(&layers[STRATA_PLAN_NODES]->origin,
                              "the stack of the place %s has %zu layers, and the maximum is %d; remove layers",
                              strata_place_name(place), count, STRATA_PLAN_NODES);
}

/* Below node `above` (0: at the top). Returns its number. */
static uint32_t add_node(strata_plan_t *plan, uint32_t above, const strata_plan_node_t *node) {
    strata_plan_node_t *upper = above ? &plan->nodes[above] : NULL;
    plan->nodes[++plan->count] = *node;
    if (upper) upper->below[upper->below_count++] = (uint8_t)plan->count;
    return plan->count;
}

/* An added stream_safe is shared as widely as the layer below it, so that a hit still takes a single lock. */
static void fill_plan(const building_t *built, strata_plan_t *plan) {
    uint32_t numbers[STRATA_PLAN_NODES + 1] = {0};
    *plan = (strata_plan_t){.place = built->place, .alignment = built->serves[1]};
    for (uint32_t n = 1; n <= built->count; n++) {
        const strata_model_layer_t *layer = built->layers[n];
        uint32_t above = numbers[built->above[n]];
        strata_plan_node_t node = {.type = layer->type,
                                   .options = layer->options,
                                   .name = layer->name,
                                   .number = (uint8_t)n,
                                   .scope = strata_scope_of(layer->type, layer->options)};
        strata_plan_node_t added = {.type = &strata_stream_safe_type,
                                    .options = &strata_stream_safe_on_host,
                                    .name = strata_stream_safe_type.name,
                                    .scope = node.scope};
        if (built->adds[n]) above = add_node(plan, above, &added);
        numbers[n] = add_node(plan, above, &node);
        if (layer->type == &strata_idle_type) plan->idle = layer->options;
        plan->threaded = plan->threaded || layer->type->scope == STRATA_SCOPE_THREAD;
    }
}

/* The reader bounds branches, but a model may also be made without it, so they are checked again. */
static strata_status_t check_counts(const strata_model_stack_t *stack) {
    const strata_model_layer_t *layers[STRATA_PLAN_NODES];
    size_t count = strata_model_layers(stack, layers, STRATA_PLAN_NODES);
    for (size_t i = 0; i < count; i++) {
        const strata_model_layer_t *layer = layers[i];
        if (layer->branch_count > STRATA_PLAN_BRANCHES)
            return strata_fail_origin(&layer->branches[STRATA_PLAN_BRANCHES].origin,
                                      "\"%s\" has %zu stacks below it, and the maximum is %d; remove some", layer->name,
                                      layer->branch_count, STRATA_PLAN_BRANCHES);
        for (size_t b = 0; b < layer->branch_count; b++)
            if (layer->branches[b].count == 0)
                return strata_fail_origin(&layer->branches[b].origin,
                                          "stack %zu of \"%s\" has no layers; write at least "
                                          "[system]",
                                          b + 1, layer->name);
    }
    return STRATA_OK;
}

strata_status_t strata_stack_plan(const strata_model_stack_t *stack, strata_place_kind_t place, strata_plan_t *plan) {
    if (stack->count == 0)
        return strata_fail_origin(&stack->origin, "the stack of the place %s has no layers; write at least \"- system\"",
                                  strata_place_name(place));
    size_t count = strata_model_layers(stack, NULL, 0);
    if (count > STRATA_PLAN_NODES) return fail_too_many(stack, place, count);
    building_t built = {.place = place};
    strata_status_t status = check_counts(stack);
    if (status == STRATA_OK) status = check_ends(stack);
    if (status) return status;
    number_layers(&built, stack, 0, false);
    set_subtree_ends(&built);
    status = check_order(&built);
    if (status == STRATA_OK) status = check_depth(&built);
    if (status == STRATA_OK) status = check_layers(&built);
    if (status == STRATA_OK) fill_plan(&built, plan);
    return status;
}

strata_status_t strata_strategy_plan(const strata_strategy_t *strategy, strata_place_kind_t place, strata_plan_t *plan) {
    return strata_stack_plan(&strategy->stacks[place], place, plan);
}
