#include "allocation/call/figures.h"

#include <string.h>

#include "allocation/domain/layer.h"

uint32_t strata_own_figure_rows(const strata_layer_type_t *type, strata_own_figure_t rows[STRATA_OWN_FIGURES]) {
    uint32_t count = 0;
    for (const strata_stat_row_t *row = type->stats; row && row->name && count < STRATA_OWN_FIGURES - 1; row++)
        rows[count++] = (strata_own_figure_t){.name = row->name, .unit = row->unit, .doc = row->doc};
    bool counts_idle = STRATA_LAYER_HAS(type, idle_bytes);
    for (uint32_t i = 0; i < count && counts_idle; i++) counts_idle = strcmp(rows[i].name, "idle_bytes") != 0;
    if (counts_idle) rows[count++] = (strata_own_figure_t){.name = "idle_bytes", .unit = "bytes", .doc = "idle bytes kept"};
    return count;
}

uint32_t strata_own_figures(strata_layer_t *layer, strata_own_figure_t rows[STRATA_OWN_FIGURES]) {
    const strata_layer_type_t *type = layer->type;
    uint32_t count = strata_own_figure_rows(type, rows), at = 0;
    strata_stack_lock_own(layer->stack);
    strata_layer_notify(layer, &(strata_notice_t){.struct_size = sizeof(strata_notice_t), .kind = STRATA_NOTICE_FIGURES}, NULL);
    /* Layers that are not guarded change their words at any time. */
    for (const strata_stat_row_t *row = type->stats; row && row->name && at < count; row++, at++)
        rows[at].value = atomic_load((_Atomic uint64_t *)(void *)((char *)layer + row->offset));
    if (at < count) rows[at].value = type->idle_bytes(layer);
    strata_unlock(&layer->stack->lock);
    return count;
}

uint32_t strata_group_own_figures(strata_group_t *group, uint32_t number, strata_own_figure_t rows[STRATA_OWN_FIGURES]) {
    uint32_t count = strata_own_figure_rows(group->plan->nodes[number].type, rows);
    if (count == 0) return 0;
    STRATA_DOMAIN_EACH_OF(group->domain, group, stack) {
        STRATA_EACH_OWN_LAYER(stack, layer) {
            strata_own_figure_t own[STRATA_OWN_FIGURES];
            if (layer->number != number || strata_own_figures(layer, own) != count) continue;
            for (uint32_t i = 0; i < count; i++) rows[i].value += own[i].value;
        }
    }
    return count;
}

/* ---- peaks ---- */

void strata_domain_reset_peaks(strata_domain_t *domain) {
    /* Ended stacks hold nothing now. */
    strata_lock(&domain->lock);
    for (strata_group_t *group = &domain->ordinary; group; group = group->next)
        group->ended.peak_requested_bytes = group->ended.peak_allocated_bytes = group->ended.peak_reserved_bytes = 0;
    strata_unlock(&domain->lock);
    STRATA_DOMAIN_EACH(domain, stack) {
        strata_stack_lock(stack);
        strata_peaks_begin_stack(&domain->peaks, stack);
        stack->figures.peak_reserved_bytes = stack->figures.reserved_bytes;
        stack->uncached.peak_bytes = stack->uncached.bytes;
        strata_notice_t notice = {.struct_size = sizeof notice, .kind = STRATA_NOTICE_PEAKS};
        STRATA_EACH_OWN_LAYER(stack, layer) strata_layer_notify(layer, &notice, NULL);
        strata_stack_unlock(stack);
    }
    strata_peaks_begin(&domain->peaks);
    atomic_store(&domain->peak_reserved_bytes, 0);
    strata_domain_note_peak(domain);
}
