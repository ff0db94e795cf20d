#include "allocation/call/figures.h"

#include <string.h>

#include "allocation/domain/layer.h"
#include "platform/arithmetic.h"

static const strata_own_figure_t idle_row = {.name = "idle_bytes", .unit = "bytes", .doc = "idle bytes kept"};
static const strata_own_figure_t pool_row = {
    .name = "pool_idle_bytes",
    .unit = "bytes",
    .doc = "idle bytes that the driver's pool keeps, also those that other libraries freed"};

static bool has_row(const strata_own_figure_t *rows, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0) return true;
    return false;
}

uint32_t strata_own_figure_rows(const strata_layer_type_t *type, strata_own_figure_t rows[STRATA_OWN_FIGURES]) {
    uint32_t count = 0;
    for (const strata_stat_row_t *row = type->stats; row && row->name && count < STRATA_STAT_ROWS; row++)
        rows[count++] = (strata_own_figure_t){.name = row->name, .unit = row->unit, .doc = row->doc};
    uint32_t stats = count;
    if (STRATA_LAYER_HAS(type, idle_bytes) && !has_row(rows, stats, idle_row.name)) rows[count++] = idle_row;
    if (STRATA_LAYER_HAS(type, driver_pool) && !has_row(rows, stats, pool_row.name)) rows[count++] = pool_row;
    return count;
}

/* Returns 0 if there is no pool yet, or if the driver fails. No lock is held, and the last error stays. */
static uint64_t idle_in_pool(strata_layer_t *layer) {
    uint64_t reserved = 0, used = 0;
    strata_handle_t pool = STRATA_LAYER_HAS(layer->type, driver_pool) ? layer->type->driver_pool(layer) : NULL;
    if (!pool) return 0;
    const strata_error_t reason = *strata_last_error();
    strata_status_t status = strata_device_pool_get(layer->domain->device, pool, STRATA_POOL_RESERVED_CURRENT, &reserved);
    if (status == STRATA_OK) status = strata_device_pool_get(layer->domain->device, pool, STRATA_POOL_USED_CURRENT, &used);
    if (status == STRATA_OK) return reserved - strata_min(used, reserved);
    (void)strata_fail_again(&reason);
    return 0;
}

uint32_t strata_own_figures(strata_layer_t *layer, strata_own_figure_t rows[STRATA_OWN_FIGURES]) {
    const strata_layer_type_t *type = layer->type;
    uint32_t count = strata_own_figure_rows(type, rows), at = 0;
    uint64_t pooled = idle_in_pool(layer);
    strata_stack_lock_own(layer->stack);
    strata_layer_notify(layer, &(strata_notice_t){.struct_size = sizeof(strata_notice_t), .kind = STRATA_NOTICE_FIGURES}, NULL);
    /* Layers that are not guarded change their words at any time. */
    for (const strata_stat_row_t *row = type->stats; row && row->name && at < count; row++, at++)
        rows[at].value = atomic_load((_Atomic uint64_t *)(void *)((char *)layer + row->offset));
    for (; at < count; at++) rows[at].value = rows[at].name == pool_row.name ? pooled : type->idle_bytes(layer);
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
