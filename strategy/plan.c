/* The builder's first half: one place's stack, checked and numbered. */
#include <stdio.h>
#include <string.h>

#include "allocation/option.h"
#include "strategy/legal.h"

/* The layers that there are and that give what is needed, for the message. */
static void givers(uint32_t needed, char *text, size_t capacity) {
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
    givers(missing, who, sizeof who);
    return strata_fail_origin(&upper->origin, "\"%s\" needs %s below it, which \"%s\" does not give; put %s between them",
                              upper->name, names, lower->name, *who ? who : "a layer that gives it");
}

/* `upper` stands somewhere above `lower`; both are named, the place is the upper's. */
static strata_status_t fail_clash(strata_clash_t clash, const strata_model_layer_t *upper, const strata_model_layer_t *lower) {
    const char *a = upper->name, *b = lower->name;
    switch (clash) {
    case STRATA_CLASH_WAITS:
        return strata_fail_origin(
            &upper->origin, "\"%s\" holds a lock and stands above \"%s\", which may wait; put \"%s\" above \"%s\"", a, b, b, a);
    case STRATA_CLASH_SHARED_LOCK:
        return strata_fail_origin(&upper->origin,
                                  "\"%s\" is shared by all streams and stands above the cache \"%s\": every hit would "
                                  "take its lock; put \"%s\" below \"%s\"",
                                  a, b, a, b);
    case STRATA_CLASH_NARROW:
        return strata_fail_origin(&upper->origin,
                                  "\"%s\" is shared by all streams and stands above \"%s\", of which every %s has its "
                                  "own; put \"%s\" above \"%s\"",
                                  a, b, lower->type->scope == STRATA_SCOPE_THREAD ? "thread" : "stream", b, a);
    case STRATA_CLASH_BELOW_SOURCE:
        return strata_fail_origin(&upper->origin,
                                  "\"%s\" is a source: nothing can stand below it, and \"%s\" does; end the stack with "
                                  "\"%s\", or take it out",
                                  a, b, a);
    default: return STRATA_OK;
    }
}

/* The first layer below that clashes with layer `i`. */
static strata_status_t check_below(const strata_model_stack_t *stack, size_t i, uint32_t given) {
    const strata_model_layer_t *upper = &stack->layers[i];
    strata_clash_t clash = strata_clash_of_neighbours(upper->type, stack->layers[i + 1].type, given);
    if (clash == STRATA_CLASH_NEEDS) return fail_needs(upper, &stack->layers[i + 1], given);
    for (size_t j = i + 1; j < stack->count; j++) {
        if (clash != STRATA_CLASH_NONE) return fail_clash(clash, upper, &stack->layers[j]);
        if (j + 1 < stack->count) clash = strata_clash_of_pair(upper->type, stack->layers[j + 1].type);
    }
    return STRATA_OK;
}

static strata_status_t check_order(const strata_model_stack_t *stack) {
    const strata_model_layer_t *last = &stack->layers[stack->count - 1];
    for (size_t i = 0; i + 1 < stack->count; i++)
        if (stack->layers[i].type->role == STRATA_SOURCE)
            return fail_clash(STRATA_CLASH_BELOW_SOURCE, &stack->layers[i], &stack->layers[i + 1]);
    if (last->type->role != STRATA_SOURCE)
        return strata_fail_origin(&last->origin,
                                  "\"%s\" has nothing below it to get memory from; end the stack with a source, as in "
                                  "\"- system\"",
                                  last->name);
    uint32_t given = strata_traits_above(last->type, 0);
    for (size_t i = stack->count - 1; i-- > 0;) {
        strata_status_t status = check_below(stack, i, given);
        if (status) return status;
        given = strata_traits_above(stack->layers[i].type, given);
    }
    return STRATA_OK;
}

/* A decorator stack holds few layers: from the top, or from below a cache, to the next cache or source. */
static strata_status_t check_depth(const strata_model_stack_t *stack) {
    size_t deep = 0;
    for (size_t i = 0; i < stack->count; i++) {
        const strata_model_layer_t *layer = &stack->layers[i];
        if (++deep > STRATA_PATH_LAYERS)
            return strata_fail_origin(&layer->origin,
                                      "\"%s\" is layer %zu since the top or the last cache, and %d are the most; take "
                                      "a layer out",
                                      layer->name, deep, STRATA_PATH_LAYERS);
        if (layer->type->role == STRATA_CACHE) deep = 0;
    }
    return STRATA_OK;
}

/* A source that can be told its kind of memory must be told the place's, or "place". */
static strata_status_t check_memory(const strata_model_stack_t *stack, strata_place_kind_t place) {
    const strata_model_layer_t *source = &stack->layers[stack->count - 1];
    const strata_option_row_t *row = strata_option_find(source->type, "memory");
    if (!row || row->kind != STRATA_OPTION_CHOICE) return STRATA_OK;
    char memory[32];
    strata_option_print(row, source->options, memory, sizeof memory);
    const char *wanted = strata_place_memory(place);
    if (strcmp(memory, wanted) == 0 || strcmp(memory, "place") == 0) return STRATA_OK;
    const strata_origin_t *said = &source->option_origins[row - source->type->options];
    return strata_fail_origin(said->source == STRATA_FROM_DEFAULT ? &source->origin : said,
                              "\"%s\" with memory: %s cannot serve the place %s; write memory: %s, or leave it out",
                              source->name, memory, strata_place_name(place), wanted);
}

/* What a layer itself says of its options. */
static strata_status_t check_options(const strata_model_layer_t *layer, strata_place_kind_t place) {
    const strata_layer_type_t *type = layer->type;
    const char *option = NULL;
    /* An older layer does not have it. */
    if (type->struct_size < offsetof(strata_layer_type_t, check) + sizeof type->check || !type->check) return STRATA_OK;
    strata_status_t status = type->check(layer->options, place, &option);
    if (status == STRATA_OK) return STRATA_OK;
    const strata_option_row_t *row = option ? strata_option_find(type, option) : NULL;
    const strata_origin_t *said = row ? &layer->option_origins[row - type->options] : NULL;
    return strata_fail_origin(said && said->source != STRATA_FROM_DEFAULT ? said : &layer->origin, "%s%s%s: %s", layer->name,
                              option ? "." : "", option ? option : "", strata_last_error()->text);
}

strata_status_t strata_strategy_plan(const strata_strategy_t *strategy, strata_place_kind_t place, strata_plan_t *plan) {
    const strata_model_stack_t *stack = &strategy->stacks[place];
    if (stack->count == 0)
        return strata_fail_origin(&stack->origin, "the stack of the place %s has no layers; write at least \"- system\"",
                                  strata_place_name(place));
    if (stack->count > STRATA_PLAN_NODES)
        return strata_fail_origin(&stack->layers[STRATA_PLAN_NODES].origin,
                                  "the stack of the place %s has %zu layers, and %d are the "
                                  "most; take layers out",
                                  strata_place_name(place), stack->count, STRATA_PLAN_NODES);
    strata_status_t status = check_order(stack);
    if (status == STRATA_OK) status = check_depth(stack);
    if (status == STRATA_OK) status = check_memory(stack, place);
    for (size_t i = 0; i < stack->count && status == STRATA_OK; i++) status = check_options(&stack->layers[i], place);
    if (status) return status;
    *plan = (strata_plan_t){.place = place, .count = (uint32_t)stack->count};
    for (uint32_t i = 0; i < plan->count; i++) {
        const strata_model_layer_t *layer = &stack->layers[i];
        strata_plan_node_t *node = &plan->nodes[i + 1];
        *node = (strata_plan_node_t){.type = layer->type, .options = layer->options, .name = layer->name};
        if (i + 1 < plan->count) node->below[node->below_count++] = (uint8_t)(i + 2);
    }
    return STRATA_OK;
}
