#include "strategy/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "platform/status.h"

strata_status_t strata_fail_origin(const strata_origin_t *origin, const char *format, ...) {
    char text[2048], at[32] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (origin->line) snprintf(at, sizeof at, ":%u:%u", origin->line, origin->column);
    return strata_fail_at(STRATA_E_STRATEGY, origin->line, origin->column, "%.1500s%s%s%s", origin->file ? origin->file : "", at,
                          origin->file ? ": " : "", text);
}

strata_status_t strata_strategy_new(strata_strategy_t **strategy) {
    strata_arena_t *arena = strata_arena_new();
    strata_strategy_t *made = arena ? strata_arena_alloc(arena, 1, sizeof *made) : NULL;
    if (!made) {
        strata_arena_delete(arena);
        return STRATA_E_HOST_MEMORY;
    }
    made->memory = arena;
    made->name = "";
    made->description = "";
    made->devices = "gpu";
    made->device_choice = (strata_device_choice_t){.count = 1, .ordinal = -1};
    *strategy = made;
    return STRATA_OK;
}

void strata_strategy_delete(strata_strategy_t *strategy) {
    if (strategy) strata_arena_delete(strategy->memory);
}

strata_status_t strata_model_layer_init(strata_arena_t *arena, strata_model_layer_t *layer, const strata_layer_type_t *type,
                                        const strata_origin_t *origin) {
    void *options = strata_arena_alloc(arena, 1, type->options_size ? type->options_size : 1);
    strata_origin_t *origins = strata_arena_alloc(arena, strata_option_count(type) + 1, sizeof *origins);
    if (!options || !origins) return STRATA_E_HOST_MEMORY;
    strata_option_defaults(type, options);
    *layer = (strata_model_layer_t){
        .type = type, .name = type->name, .origin = *origin, .options = options, .option_origins = origins};
    return STRATA_OK;
}

strata_status_t strata_model_layer_set(strata_model_layer_t *layer, const strata_option_row_t *row, const char *text,
                                       const strata_origin_t *origin) {
    strata_status_t status = strata_option_set(row, layer->options, text);
    if (status == STRATA_OK) layer->option_origins[row - layer->type->options] = *origin;
    return status;
}
