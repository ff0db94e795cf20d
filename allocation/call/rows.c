#include "allocation/call/rows.h"

#include <stdlib.h>

#include "platform/host/host_memory.h"

static void copy_row(strata_stack_t *stack, strata_layer_t *layer, const strata_record_t *block, void *context) {
    strata_rows_t *rows = context;
    /* The blocks of another cache represent its chunk. */
    if (block->state == STRATA_RECORD_CHUNK) return;
    if (rows->count++ >= rows->room) return;
    const strata_record_t *chunk = layer && layer->type->chunk_of ? layer->type->chunk_of(layer, block) : block;
    bool live = block->state == STRATA_RECORD_LIVE;
    const strata_stack_t *serving_stack = block->state == STRATA_RECORD_FREE ? stack : strata_stack_of(block->stack);
    strata_snapshot_row_t *row = &rows->rows[rows->count - 1];
    row->block.ptr = (void *)(uintptr_t)block->ptr;
    row->block.size = (size_t)block->size;
    row->block.ref = live ? strata_ref_make(stack->number, strata_slab_slot(&stack->slab, block), block->generation) : 0;
    row->chunk = chunk ? chunk->ptr : block->ptr;
    row->requested = live ? (size_t)strata_record_requested(block) : 0;
    row->stream = serving_stack->stream;
    row->state = (uint32_t)block->state - STRATA_RECORD_FREE;
    row->pool = serving_stack->group->pool;
}

/* Copies all rows of one moment. The first room is an upper bound of the present number of blocks. Blocks may be
 * added while room is made for those counted before, so it may need more room. */
static strata_status_t copy_rows(strata_domain_t *domain, strata_rows_t *rows) {
    *rows = (strata_rows_t){.room = 0};
    STRATA_DOMAIN_EACH(domain, stack) {
        strata_stack_lock_own(stack);
        rows->room += stack->slab.used;
        strata_unlock(&stack->lock);
    }
    for (;;) {
        rows->rows = strata_host_new(rows->room + 1, sizeof *rows->rows);
        if (!rows->rows) return STRATA_E_HOST_MEMORY;
        rows->count = 0;
        strata_domain_lock_stacks(domain);
        for (strata_stack_t *stack = domain->first_stack; stack; stack = stack->links.next)
            strata_stack_each_block(stack, copy_row, rows);
        strata_domain_unlock_stacks(domain);
        if (rows->count <= rows->room) return STRATA_OK;
        rows->room = rows->count + rows->count / 8;
        strata_host_delete(rows->rows);
    }
}

/* The rows of a chunk are adjacent and in order, so only runs need sorting. If a decorator wraps some of
 * a chunk's blocks, the rows of its own records are elsewhere. Each piece of the chunk between them is a
 * separate run. */
static int by_address(const void *a, const void *b) {
    uintptr_t first = (uintptr_t)((const strata_rows_run_t *)a)->first->block.ptr,
              second = (uintptr_t)((const strata_rows_run_t *)b)->first->block.ptr;
    return first < second ? -1 : first > second;
}

static size_t find_runs(const strata_rows_t *rows, strata_rows_run_t *runs) {
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const strata_snapshot_row_t *row = &rows->rows[i];
        bool begins = i == 0 || row[0].chunk != row[-1].chunk ||
                      (uintptr_t)row[0].block.ptr != (uintptr_t)row[-1].block.ptr + row[-1].block.size;
        if (begins && runs) runs[count] = (strata_rows_run_t){.first = row};
        count += begins;
        if (runs) runs[count - 1].count++;
    }
    return count;
}

void strata_rows_delete(strata_rows_t *rows) {
    strata_host_delete(rows->rows);
    strata_host_delete(rows->runs);
    *rows = (strata_rows_t){.count = 0};
}

strata_status_t strata_rows_take(strata_domain_t *domain, strata_rows_t *rows) {
    strata_status_t status = copy_rows(domain, rows);
    if (status != STRATA_OK) return status;
    rows->run_count = find_runs(rows, NULL);
    rows->runs = strata_host_new(rows->run_count + 1, sizeof *rows->runs);
    if (!rows->runs) {
        strata_rows_delete(rows);
        return STRATA_E_HOST_MEMORY;
    }
    (void)find_runs(rows, rows->runs);
    qsort(rows->runs, rows->run_count, sizeof *rows->runs, by_address);
    return STRATA_OK;
}
