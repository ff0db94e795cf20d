/* Every block of a place at one moment: copied with the locks of all its stacks held, reported with none. */
#include <stdlib.h>

#include "allocation/call/blocks.h"
#include "facade/serve/arguments.h"
#include "facade/serve/inside.h"
#include "platform/host/host_memory.h"

typedef struct rows {
    strata_snapshot_row_t *rows;
    size_t count, room; /* count may be larger: the rest found no room */
} rows_t;

static void copy_row(strata_stack_t *stack, strata_layer_t *layer, const strata_record_t *block, void *context) {
    rows_t *rows = context;
    /* The chunk of another cache is shown by that cache's own blocks. */
    if (block->state == STRATA_RECORD_CHUNK) return;
    if (rows->count++ >= rows->room) return;
    const strata_record_t *chunk = layer && layer->type->chunk_of ? layer->type->chunk_of(layer, block) : block;
    bool live = block->state == STRATA_RECORD_LIVE;
    const strata_stack_t *server = block->state == STRATA_RECORD_FREE ? stack : strata_stack_of(block->stack);
    strata_snapshot_row_t *row = &rows->rows[rows->count - 1];
    row->block.ptr = (void *)(uintptr_t)block->ptr;
    row->block.size = (size_t)block->size;
    row->block.ref = live ? strata_ref_make(stack->number, strata_slab_slot(&stack->slab, block), block->generation) : 0;
    row->chunk = chunk ? chunk->ptr : block->ptr;
    row->requested = live ? (size_t)strata_record_requested(block) : 0;
    row->stream = server->stream;
    row->state = (uint32_t)block->state - STRATA_RECORD_FREE;
    row->pool = server->group->pool;
}

/* An upper bound of the blocks that there are now. */
static size_t slots_used(strata_domain_t *domain) {
    size_t used = 0;
    STRATA_DOMAIN_EACH(domain, stack) {
        strata_lock(&stack->lock);
        used += stack->slab.used;
        strata_unlock(&stack->lock);
    }
    return used;
}

/* All rows of one moment. More blocks may have come while room was made for those seen before. */
static strata_status_t copy_rows(strata_domain_t *domain, rows_t *rows) {
    *rows = (rows_t){.room = slots_used(domain)};
    for (;;) {
        rows->rows = strata_host_new(rows->room + 1, sizeof *rows->rows);
        if (!rows->rows) return STRATA_E_HOST_MEMORY;
        rows->count = 0;
        strata_domain_lock_stacks(domain);
        for (uint32_t i = 0; i < domain->stack_count; i++) strata_stack_each_block(domain->stacks[i], copy_row, rows);
        strata_domain_unlock_stacks(domain);
        if (rows->count <= rows->room) return STRATA_OK;
        rows->room = rows->count + rows->count / 8;
        strata_host_delete(rows->rows);
    }
}

/* The rows of a chunk are together and in order, so only the chunks need sorting. If a decorator holds some of a chunk's blocks,
 * the rows of what it made are elsewhere: each piece between them is a run of its own. */
typedef struct run {
    const strata_snapshot_row_t *first;
    size_t count;
} run_t;

static int by_address(const void *a, const void *b) {
    uintptr_t first = (uintptr_t)((const run_t *)a)->first->block.ptr, second = (uintptr_t)((const run_t *)b)->first->block.ptr;
    return first < second ? -1 : first > second;
}

static bool goes_on(const strata_snapshot_row_t *row) {
    return row[0].chunk == row[-1].chunk && (uintptr_t)row[0].block.ptr == (uintptr_t)row[-1].block.ptr + row[-1].block.size;
}

static size_t find_runs(const rows_t *rows, run_t *runs) {
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        bool begins = i == 0 || !goes_on(&rows->rows[i]);
        if (begins && runs) runs[count] = (run_t){.first = &rows->rows[i]};
        count += begins;
        if (runs) runs[count - 1].count++;
    }
    return count;
}

strata_status_t strata_snapshot(strata_t handle, strata_place_t place, strata_snapshot_fn row, void *context) {
    STRATA_REFUSE_NULL(row);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    rows_t rows;
    status = copy_rows(domain, &rows);
    if (status != STRATA_OK) return status;
    size_t count = find_runs(&rows, NULL);
    run_t *runs = strata_host_new(count + 1, sizeof *runs);
    if (runs) {
        (void)find_runs(&rows, runs);
        qsort(runs, count, sizeof *runs, by_address);
        strata_inside_t frame;
        strata_inside_begin(&frame, handle);
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < runs[i].count; k++) row(&runs[i].first[k], context);
        strata_inside_end(&frame);
    }
    strata_host_delete(rows.rows);
    strata_host_delete(runs);
    return runs ? STRATA_OK : STRATA_E_HOST_MEMORY;
}
