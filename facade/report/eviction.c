/* For programs that give up memory on purpose: the memory that freeing a block would make free, and the
 * cheapest blocks to free. */
#include "allocation/call/blocks.h"
#include "facade/registry/facade.h"
#include "facade/report/victims.h"
#include "platform/arguments.h"
#include "platform/arithmetic.h"

/* ---- neighbors ---- */

/* Sums the free blocks from a block's neighbor on to one side. A cache may delay coalescing, so there can be several. */
static uint64_t free_bytes(const strata_stack_t *home, uint32_t slot, bool after) {
    uint64_t bytes = 0;
    const strata_record_t *record = strata_slab_record(&home->slab, slot);
    for (; record->state == STRATA_RECORD_FREE; record = strata_slab_record(&home->slab, after ? record->next : record->prev))
        bytes += record->size;
    return bytes;
}

/* Returns the record that a cache or source served for a block: the block itself, or the one that
 * decorators hold for it. */
static const strata_record_t *piece_of(const strata_record_t *record) {
    for (const strata_record_t *inner; (inner = strata_record_inner(record)) != NULL;) record = inner;
    return record;
}

strata_status_t strata_neighbours(strata_t handle, strata_ref_t ref, strata_neighbours_t *neighbours) {
    STRATA_REFUSE_NULL(neighbours);
    strata_call_t call;
    strata_record_t *record;
    STRATA_REFUSE_RESULT(neighbours);
    strata_status_t status = strata_facade_find(handle, ref, &call, &record);
    if (status != STRATA_OK) return status;
    strata_neighbours_t found = {.block = {.ptr = (void *)(uintptr_t)record->ptr, .size = (size_t)record->size, .ref = ref}};
    const strata_record_t *piece = piece_of(record);
    strata_stack_t *home = strata_stack_of(piece->home);
    bool held = strata_call_holds(&call, home);
    if (!held) strata_stack_lock_own(home);
    /* The sentinel 0 is never free. */
    bool in_chunk = piece->chunk != 0;
    found.free_before = in_chunk ? free_bytes(home, piece->prev, false) : 0;
    found.free_after = in_chunk ? free_bytes(home, piece->next, true) : 0;
    found.run = found.free_before + piece->size + found.free_after;
    if (!held) strata_unlock(&home->lock);
    (void)strata_call_unlock(&call);
    strata_fill_result(neighbours, &found, sizeof found);
    return STRATA_OK;
}

/* ---- victims ---- */

/* Consecutive blocks, live or free: their total bytes, and the cost of freeing the live ones. */
typedef struct window {
    const strata_record_t *first, *last; /* `first` is NULL for none */
    uint64_t bytes, cost;
    size_t live;
} window_t;

typedef struct choice {
    strata_victims_t *wanted;
    window_t now;
    window_t best; /* of this stack and earlier ones */
    bool better; /* the best window is in this stack */
} choice_t;

static void count_in(window_t *window, const strata_record_t *block) {
    bool live = block->state == STRATA_RECORD_LIVE;
    window->bytes += block->size;
    window->cost += live ? block->size : 0;
    window->live += live;
    window->last = block;
}

static void count_out_first(window_t *window, const strata_stack_t *stack) {
    bool live = window->first->state == STRATA_RECORD_LIVE;
    window->bytes -= window->first->size;
    window->cost -= live ? window->first->size : 0;
    window->live -= live;
    window->first = strata_slab_record(&stack->slab, window->first->next);
}

static bool is_cheaper(const window_t *window, const window_t *best) {
    if (!best->first || window->cost != best->cost) return !best->first || window->cost < best->cost;
    return window->live < best->live;
}

/* The first block of a chunk has no predecessor. If chunks have parts (allocation/cache/runs.h), it
 * follows a record of 0 bytes. */
static bool begins_chunk(const strata_stack_t *stack, const strata_record_t *block) {
    return block->prev == 0 || strata_slab_record(&stack->slab, block->prev)->size == 0;
}

/* A walk may skip blocks that it reports elsewhere, such as those in a secondary mapping of auto_growth_vmm. */
static bool follows(const strata_stack_t *stack, const window_t *window, const strata_record_t *block) {
    return !window->last || strata_slab_record(&stack->slab, window->last->next) == block;
}

/* Finds the shortest window that ends with each block and is large enough. A longer window never costs less. */
static void slide(strata_stack_t *stack, strata_layer_t *layer, const strata_record_t *block, void *context) {
    choice_t *choice = context;
    window_t *window = &choice->now;
    bool usable = (block->state == STRATA_RECORD_LIVE || block->state == STRATA_RECORD_FREE) &&
                  choice->wanted->may_serve(stack, layer, block, choice->wanted->context);
    if (!usable || !layer || begins_chunk(stack, block) || !follows(stack, window, block)) *window = (window_t){.first = NULL};
    if (!usable) return;
    if (!window->first) window->first = block;
    count_in(window, block);
    while (window->bytes - window->first->size >= choice->wanted->size) count_out_first(window, stack);
    if (window->bytes < choice->wanted->size || !is_cheaper(window, &choice->best)) return;
    choice->best = *window;
    choice->better = true;
}

static void name_victims(const strata_stack_t *stack, const window_t *window, strata_ref_t *victims, size_t capacity) {
    size_t count = 0;
    for (const strata_record_t *block = window->first; count < strata_min(capacity, window->live);) {
        if (block->state == STRATA_RECORD_LIVE)
            victims[count++] = strata_ref_make(stack->number, strata_slab_slot(&stack->slab, block), block->generation);
        if (block == window->last) return;
        block = strata_slab_record(&stack->slab, block->next);
    }
}

bool strata_victims_find(strata_domain_t *domain, strata_victims_t *victims) {
    choice_t choice = {.wanted = victims};
    STRATA_DOMAIN_EACH(domain, stack) {
        choice.now = (window_t){.first = NULL};
        choice.better = false;
        strata_stack_lock_own(stack);
        strata_stack_each_block(stack, slide, &choice);
        if (choice.better) name_victims(stack, &choice.best, victims->refs, victims->capacity);
        strata_unlock(&stack->lock);
    }
    victims->count = choice.best.live;
    victims->bytes = choice.best.cost;
    return choice.best.first != NULL;
}

static bool is_of_pool(strata_stack_t *stack, strata_layer_t *layer, const strata_record_t *block, const void *context) {
    const uint64_t *pool = context;
    (void)layer, (void)block;
    return stack->group->pool == *pool;
}

strata_status_t strata_best_victims(strata_t handle, strata_place_t place, size_t size, strata_ref_t *victims, size_t capacity,
                                    size_t *count) {
    STRATA_REFUSE_NULL_ARRAY(victims, capacity);
    STRATA_REFUSE_NULL(count);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    uint64_t pool;
    status = strata_facade_pool(facade, place, 0, &pool);
    if (status != STRATA_OK) return status;
    if (size == 0) return strata_fail(STRATA_E_INVALID, 0, "the size of a run must be above 0");
    strata_victims_t found = {.size = size, .refs = victims, .capacity = capacity, .may_serve = is_of_pool, .context = &pool};
    if (!strata_victims_find(domain, &found))
        return strata_fail(STRATA_E_NO_MEMORY, 0,
                           "no chunk of this place could have a run of %zu bytes, even with all blocks freed", size);
    *count = found.count;
    return STRATA_OK;
}
