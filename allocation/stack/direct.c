/* The generic fast path, which calls the hit and the quick free of any cache through pointers. */
#include "allocation/stack/direct.h"

/* ---- requests ---- */

static strata_status_t allocate(strata_stack_handle_t handle, strata_stack_t *stack, strata_stream_t stream, size_t size,
                                strata_block_t *block, strata_allocate_fn missed) {
    if (__builtin_expect(size - 1 >= STRATA_LARGEST_REQUEST, 0)) return missed(handle, stream, size, block);
    strata_stack_t *home = strata_stack_home(stack);
    strata_direct_lock(home);
    if (__builtin_expect(strata_direct_is_open(stack, handle, stream, block), 1))
        return strata_direct_allocate_open(handle, stack, home, stream, size, block, missed, NULL);
    return strata_direct_end_closed(handle, home, stream, size, block, missed);
}

strata_status_t strata_direct_end_closed(strata_stack_handle_t handle, strata_stack_t *stack, strata_stream_t stream, size_t size,
                                         strata_block_t *block, strata_allocate_fn missed) {
    strata_unlock(&stack->lock);
    return missed(handle, stream, size, block);
}

strata_status_t strata_direct_end_at_peak(strata_stack_t *stack, strata_record_t *record, strata_block_t *block) {
    strata_stack_note_peaks(stack);
    strata_direct_note_pointer(stack, stack, record);
    strata_direct_fill(stack, record, record->size, block);
    return strata_direct_end(stack);
}

strata_status_t strata_direct_end(strata_stack_t *stack) {
    strata_unlock(&stack->lock);
    return STRATA_OK;
}

/* ---- frees ---- */

bool strata_direct_free_plain(strata_stack_t *stack, strata_record_t *record) {
    uint64_t size = record->size, requested = strata_record_requested(record);
    record->generation++;
    if (__builtin_expect(!stack->quick_free(stack->cache, record), 0)) {
        record->generation--;
        return false;
    }
    strata_stack_uncount(stack, size, requested);
    return true;
}

bool strata_direct_free(strata_stack_t *stack, strata_record_t *record) {
    if (__builtin_expect(!stack->quick_free, 0)) return false;
    return strata_direct_is_plain(stack, record) ? strata_direct_free_plain(stack, record) : strata_magazine_push(stack, record);
}

bool strata_direct_free_shared(strata_stack_t *home, strata_record_t *record) {
    if (__builtin_expect(strata_direct_free(home, record), 1)) return true;
    return home->is_shared && strata_direct_free(strata_stack_of(record->stack), record);
}

strata_status_t strata_direct_free_held(strata_stack_handle_t handle, strata_ref_t ref, strata_stack_t *stack,
                                        strata_free_fn missed) {
    strata_record_t *record = stack->handle == handle ? strata_direct_find(stack, ref) : NULL;
    bool freed = record && strata_direct_free(stack, record);
    strata_unlock(&stack->lock);
    return freed ? STRATA_OK : missed(handle, ref);
}

static strata_status_t free_by_ref(strata_stack_handle_t handle, strata_ref_t ref, strata_stack_t *stack, strata_free_fn missed) {
    if (__builtin_expect((handle ^ ref) >> 52 != 0, 0)) return missed(handle, ref);
    strata_direct_lock(stack);
    return strata_direct_free_held(handle, ref, stack, missed);
}

strata_status_t strata_direct_free_of_held(strata_t facade, strata_ref_t ref, strata_stack_t *home, strata_free_fn missed) {
    strata_record_t *record = home->facade == facade ? strata_direct_find(home, ref) : NULL;
    bool freed = record && strata_direct_free_shared(home, record);
    strata_unlock(&home->lock);
    return freed ? STRATA_OK : missed(facade, ref);
}

static strata_status_t free_of(strata_t facade, strata_ref_t ref, strata_stack_t *home, strata_free_fn missed) {
    if (__builtin_expect(!strata_threads_own, 0)) return missed(facade, ref);
    strata_direct_lock(home);
    return strata_direct_free_of_held(facade, ref, home, missed);
}

const strata_direct_t strata_direct_any = {.allocate = allocate, .free = free_by_ref, .free_of = free_of};

const strata_direct_t *strata_direct_own(const strata_stack_t *stack) {
    const strata_layer_t *cache = stack->cache;
    bool has = cache && cache->stack == stack && STRATA_LAYER_HAS(cache->type, direct);
    return has ? cache->type->direct : &strata_direct_any;
}
