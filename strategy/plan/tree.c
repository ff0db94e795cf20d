/* Looks up parts of a model: nested stacks, the stacks of one device, the options of one branch. */
#include <stdlib.h>
#include <string.h>

#include "allocation/options/option.h"
#include "platform/status.h"
#include "strategy/model.h"

size_t strata_model_layers(const strata_model_stack_t *stack, const strata_model_layer_t **layers, size_t capacity) {
    size_t count = 0;
    for (size_t i = 0; i < stack->count; i++) {
        const strata_model_layer_t *layer = &stack->layers[i];
        if (layers && count < capacity) layers[count] = layer;
        count++;
        for (size_t b = 0; b < layer->branch_count; b++) {
            size_t room = layers && count < capacity ? capacity - count : 0;
            count += strata_model_layers(&layer->branches[b], room ? layers + count : NULL, room);
        }
    }
    return count;
}

strata_model_layer_t *strata_model_layer_of(const strata_model_stack_t *stack, const strata_layer_type_t *type) {
    for (size_t i = 0; i < stack->count; i++)
        if (stack->layers[i].type == type) return &stack->layers[i];
    return NULL;
}

strata_model_layer_t *strata_model_reclaim(const strata_model_stack_t *stack) {
    return strata_model_layer_of(stack, &strata_retry_type);
}

/* ---- devices ---- */

strata_model_device_t *strata_strategy_own(strata_strategy_t *strategy, uint32_t device) {
    for (size_t i = 0; i < strategy->own_count; i++)
        if (strategy->own[i].number == device) return &strategy->own[i];
    if (!strategy->own) strategy->own = strata_arena_alloc(strategy->memory, STRATA_MODEL_DEVICES, sizeof *strategy->own);
    if (!strategy->own) return NULL;
    strata_model_device_t *own = &strategy->own[strategy->own_count++];
    own->number = device;
    return own;
}

const strata_model_stack_t *strata_strategy_stack(const strata_strategy_t *strategy, strata_place_kind_t place, uint32_t device) {
    for (size_t i = 0; i < strategy->own_count; i++) {
        const strata_model_device_t *own = &strategy->own[i];
        if (own->number == device && own->stacks[place].count > 0) return &own->stacks[place];
    }
    return &strategy->stacks[place];
}

/* ---- values of a branch ---- */

uint32_t strata_option_branch(const strata_option_row_t *row) {
    const char *number = strrchr(row->name, '_');
    if (!number || number[1] < '1' || number[1] > '9') return 0;
    char *end;
    unsigned long branch = strtoul(number + 1, &end, 10);
    return *end || branch > STRATA_PLAN_BRANCHES ? 0 : (uint32_t)branch;
}

const strata_option_row_t *strata_branch_option(const strata_layer_type_t *type, const char *name, uint32_t number) {
    size_t length = strlen(name);
    for (const strata_option_row_t *row = type->options; row && row->name; row++)
        if (strata_option_branch(row) == number && strncmp(row->name, name, length) == 0 && row->name[length] == '_' &&
            !strchr(row->name + length + 1, '_'))
            return row;
    return NULL;
}
