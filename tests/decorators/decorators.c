#include "tests/decorators/decorators.h"
#include "allocation/domain/layer.h"

#include <stdio.h>

void decorated_open(rig_t *rig, const char *stack, const char *host, const strata_sim_options_t *options) {
    char text[1024];
    const char *plain = host ? host : "[system]";
    int length = snprintf(text, sizeof text,
                          "version: 1\nstrategy: decorated\ndevices: sim\nstack: %s\nplaces:\n  managed: [system]\n"
                          "  pinned: %s\n  host: %s\n",
                          stack, plain, plain);
    ASSERT_TRUE(length > 0 && (size_t)length < sizeof text);
    strata_strategy_t *strategy = rig_strategy(text, NULL, 0);
    ASSERT_TRUE(strategy);
    rig_open_on(rig, strategy, options, 0);
    rig->borrowed_strategy = false;
}

static strata_layer_t *layer_of(strata_stack_t *stack, const char *name) {
    for (uint32_t n = 1; n <= stack->group->plan->count; n++)
        if (strcmp(stack->layers[n]->type->name, name) == 0) return stack->layers[n];
    FAIL_TEST("no layer %s in the stack", name);
    return NULL;
}

uint64_t decorated_figure(strata_stack_t *stack, const char *name, const char *row_name) {
    strata_layer_t *layer = layer_of(stack, name);
    uint64_t value = UINT64_MAX;
    if (!layer) return value;
    strata_lock(&layer->stack->lock);
    strata_layer_notify(layer, &(strata_notice_t){.struct_size = sizeof(strata_notice_t), .kind = STRATA_NOTICE_FIGURES}, NULL);
    const strata_stat_row_t *row = layer->type->stats;
    while (row && row->name && strcmp(row->name, row_name) != 0) row++;
    if (row && row->name) memcpy(&value, (const char *)layer + row->offset, sizeof value);
    else FAIL_TEST("%s has no figure %s", name, row_name);
    strata_unlock(&layer->stack->lock);
    return value;
}

void decorated_expect_corrupt(rig_t *rig, const char *name, const char *row_name, uint64_t value, const char *what) {
    strata_layer_t *layer = layer_of(rig_stack(rig, NULL), name);
    const strata_stat_row_t *row = layer ? layer->type->stats : NULL;
    while (row && row->name && strcmp(row->name, row_name) != 0) row++;
    if (!row || !row->name) {
        FAIL_TEST("%s has no figure %s", name, row_name);
        return;
    }
    uint64_t *word = (uint64_t *)(void *)((char *)layer + row->offset), before = *word;
    *word = value;
    EXPECT_SAYS(STRATA_E_CORRUPT, strata_validate(rig->s), what);
    *word = before;
    EXPECT_OK(strata_validate(rig->s));
}
