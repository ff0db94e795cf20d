/* The calls that programs make millions of times: allocate, free, free by pointer. Everything that is not a hit goes the long
 * way (facade/serve/request.c, long_way.c). */
#include "allocation/stack/threads.h"
#include "facade/serve/long_way.h"
#include "facade/serve/lookup.h"

static inline void fill_block(strata_stack_t *home, const strata_record_t *record, strata_block_t *block) {
    block->ptr = (void *)(uintptr_t)record->ptr;
    block->size = record->size;
    block->ref = strata_ref_make(home->number, strata_slab_slot(&home->slab, record), record->generation);
}

/* A hit under the stack's lock: every layer above the cache has said that it has nothing to do. */
static inline strata_record_t *hit(strata_stack_t *stack, size_t size) {
    strata_record_t *record = stack->hit(stack->cache, size, 1);
    if (__builtin_expect(!record, 0)) return NULL;
    record->route = stack->route;
    strata_stack_book(stack, record);
    if (__builtin_expect(stack->directory != NULL, 0))
        strata_directory_write(stack->directory, record->ptr, stack->number, strata_slab_slot(&stack->slab, record));
    return record;
}

/* Under the stack's lock. */
static inline bool may_hit(const strata_stack_t *stack, strata_stream_t stream) {
    uint16_t attention = stack->attention_allocate;
    return attention == 0 || (attention == STRATA_ATTENTION_OWNERLESS && !stream);
}

strata_status_t strata_allocate(strata_t facade, strata_place_t place, strata_stream_t stream, size_t size, strata_block_t *block) {
    strata_stack_handle_t handle = strata_lookup(facade, place, stream);
    strata_stack_t *stack = strata_stack_of(strata_stack_handle_number(handle));
    if (__builtin_expect(!stack || size - 1 >= STRATA_LARGEST_REQUEST, 0))
        return strata_allocate_long_way(facade, place, stream, size, block);
    strata_lock(&stack->lock);
    if (__builtin_expect(stack->handle == handle && may_hit(stack, stream) && block, 1)) {
        strata_record_t *record = hit(stack, size);
        if (__builtin_expect(record != NULL, 1)) {
            fill_block(stack, record, block);
            strata_unlock(&stack->lock);
            return STRATA_OK;
        }
    }
    strata_unlock(&stack->lock);
    bool found;
    strata_status_t status = strata_allocate_missed(handle, stream, size, block, &found);
    return found ? status : strata_allocate_long_way(facade, place, stream, size, block);
}

/* Under the lock of `home`: frees a record if no layer above the cache needs to be called. False: go the long way. */
static inline bool free_quickly(strata_stack_t *home, strata_record_t *record) {
    if (__builtin_expect((home->attention_free | record->attention) != 0 || record->route != home->route || !home->quick_free, 0))
        return false;
    strata_stack_unbook(home, record);
    record->generation++;
    if (__builtin_expect(home->quick_free(home->cache, record), 1)) return true;
    record->generation--;
    home->figures.frees--;
    home->figures.requested_bytes += strata_record_requested(record);
    home->figures.allocated_bytes += record->size;
    return false;
}

strata_status_t strata_free(strata_t facade, strata_ref_t ref) {
    strata_stack_t *home = strata_stack_of(strata_ref_home(ref));
    if (__builtin_expect(!home || strata_lookup_forked(), 0)) return strata_free_long_way(facade, ref);
    uint32_t slot = strata_ref_slot(ref);
    (void)strata_threads_self();
    strata_lock(&home->lock);
    if (__builtin_expect(home->facade == facade && slot < home->slab.used, 1)) {
        strata_record_t *record = strata_slab_record(&home->slab, slot);
        if (__builtin_expect(record->generation == strata_ref_generation(ref) && record->state == STRATA_RECORD_LIVE, 1) &&
            __builtin_expect(free_quickly(home, record), 1)) {
            strata_unlock(&home->lock);
            return STRATA_OK;
        }
    }
    strata_unlock(&home->lock);
    return strata_free_long_way(facade, ref);
}

/* The directory of device memory, if this thread has freed by pointer in the facade before; the long way notes it. */
static inline const strata_directory_t *noted_directory(strata_t facade) {
    const strata_pointer_lookup_t *last = &strata_pointer_lookup;
    bool known = last->facade == facade && last->epoch == atomic_load_explicit(&strata_lookup_epoch, memory_order_acquire);
    return __builtin_expect(known, 1) ? last->directory : NULL;
}

strata_status_t strata_free_pointer(strata_t facade, void *ptr) {
    if (__builtin_expect(!ptr, 0)) return strata_free_null(facade);
    uint16_t number;
    uint32_t slot;
    const strata_directory_t *directory = noted_directory(facade);
    if (__builtin_expect(!directory || !strata_directory_read(directory, (uint64_t)(uintptr_t)ptr, &number, &slot), 0))
        return strata_free_pointer_long_way(facade, ptr);
    strata_stack_t *home = strata_stack_of(number);
    strata_lock(&home->lock);
    if (__builtin_expect(home->facade == facade && slot < home->slab.used, 1)) {
        strata_record_t *record = strata_slab_record(&home->slab, slot);
        if (__builtin_expect(record->ptr == (uint64_t)(uintptr_t)ptr && record->state == STRATA_RECORD_LIVE, 1) &&
            __builtin_expect(free_quickly(home, record), 1)) {
            strata_unlock(&home->lock);
            return STRATA_OK;
        }
    }
    strata_unlock(&home->lock);
    return strata_free_pointer_long_way(facade, ptr);
}
