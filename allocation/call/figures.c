#include "allocation/call/figures.h"

#include <string.h>

#include "allocation/domain/layer.h"

static bool has_row(const strata_own_figure_t *rows, uint32_t count, const char *name) {
    bool found = false;
    for (uint32_t i = 0; i < count && !found; i++) found = strcmp(rows[i].name, name) == 0;
    return found;
}

uint32_t strata_own_figure_rows(const strata_layer_type_t *type, strata_own_figure_t rows[STRATA_OWN_FIGURES]) {
    uint32_t count = 0;
    for (const strata_stat_row_t *row = type->stats; row && row->name && count < STRATA_OWN_FIGURES - 1; row++)
        rows[count++] = (strata_own_figure_t){.name = row->name, .unit = row->unit, .doc = row->doc};
    if (STRATA_LAYER_HAS(type, idle_bytes) && !has_row(rows, count, "idle_bytes"))
        rows[count++] = (strata_own_figure_t){.name = "idle_bytes", .unit = "bytes", .doc = "idle bytes kept"};
    return count;
}

/* Layers that are not guarded change their words at any time. */
static uint64_t word_of(strata_layer_t *layer, uint32_t offset) {
    return atomic_load((_Atomic uint64_t *)(void *)((char *)layer + offset));
}

uint32_t strata_own_figures(strata_layer_t *layer, strata_own_figure_t rows[STRATA_OWN_FIGURES]) {
    const strata_layer_type_t *type = layer->type;
    uint32_t count = strata_own_figure_rows(type, rows), at = 0;
    strata_stack_take(layer->stack);
    strata_layer_notify(layer, &(strata_notice_t){.struct_size = sizeof(strata_notice_t), .kind = STRATA_NOTICE_FIGURES}, NULL);
    for (const strata_stat_row_t *row = type->stats; row && row->name && at < count; row++, at++)
        rows[at].value = word_of(layer, row->offset);
    if (at < count) rows[at].value = type->idle_bytes(layer);
    strata_unlock(&layer->stack->lock);
    return count;
}

static void add(strata_layer_t *layer, strata_own_figure_t *sums, uint32_t count) {
    strata_own_figure_t rows[STRATA_OWN_FIGURES];
    if (strata_own_figures(layer, rows) != count) return;
    for (uint32_t i = 0; i < count; i++) sums[i].value += rows[i].value;
}

uint32_t strata_group_own_figures(strata_group_t *group, uint32_t number, strata_own_figure_t rows[STRATA_OWN_FIGURES]) {
    uint32_t count = strata_own_figure_rows(group->plan->nodes[number].type, rows);
    if (count == 0) return 0;
    STRATA_DOMAIN_EACH_OF(group->domain, group, stack) {
        STRATA_EACH_OWN_LAYER(stack, layer)
            if (layer->number == number) add(layer, rows, count);
    }
    return count;
}

/* ---- peaks ---- */

static void reset_stack(strata_stack_t *stack) {
    strata_stack_lock(stack);
    strata_statistics_t *f = &stack->figures;
    strata_peaks_begin_stack(&stack->domain->peaks, stack);
    f->peak_reserved_bytes = f->reserved_bytes;
    stack->uncached.peak_bytes = stack->uncached.bytes;
    strata_notice_t notice = {.struct_size = sizeof notice, .kind = STRATA_NOTICE_PEAKS};
    STRATA_EACH_OWN_LAYER(stack, layer) strata_layer_notify(layer, &notice, NULL);
    strata_stack_unlock(stack);
}

/* Ended stacks hold nothing now. */
static void reset_ended(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    for (strata_group_t *group = &domain->ordinary; group; group = group->next)
        group->ended.peak_requested_bytes = group->ended.peak_allocated_bytes = group->ended.peak_reserved_bytes = 0;
    strata_unlock(&domain->lock);
}

void strata_domain_reset_peaks(strata_domain_t *domain) {
    reset_ended(domain);
    STRATA_DOMAIN_EACH(domain, stack) reset_stack(stack);
    strata_peaks_begin(&domain->peaks);
    atomic_store(&domain->peak_reserved_bytes, 0);
    strata_domain_note_peak(domain);
}
