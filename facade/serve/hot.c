/* The calls that programs make millions of times: allocate, free, free by pointer. Everything that is not a hit goes the long
 * way (facade/serve/request.c, long_way.c). */
#include "allocation/stack/direct.h"
#include "facade/serve/long_way.h"
#include "facade/serve/lookup.h"

strata_status_t strata_allocate(strata_t facade, strata_place_t place, strata_stream_t stream, size_t size, strata_block_t *block) {
    strata_stack_handle_t handle = strata_lookup(facade, place, stream);
    strata_stack_t *stack = strata_stack_of(strata_stack_handle_number(handle));
    if (__builtin_expect(!stack || size - 1 >= STRATA_LARGEST_REQUEST, 0))
        return strata_allocate_long_way(facade, place, stream, size, block);
    strata_magazines_t *magazines = strata_magazines_of(stack);
    if (__builtin_expect(magazines != NULL, 0) && strata_magazine_allocate(magazines, stack, handle, size, block)) return STRATA_OK;
    strata_stack_t *home = atomic_load_explicit(&stack->home, memory_order_relaxed);
    strata_direct_lock(home);
    if (__builtin_expect(stack->handle == handle && strata_direct_may_hit(stack, stream) && block, 1)) {
        strata_record_t *record = strata_direct_hit(stack, home, size, NULL);
        if (__builtin_expect(record != NULL, 1)) {
            strata_direct_fill(home, record, block);
            strata_unlock(&home->lock);
            return STRATA_OK;
        }
    }
    strata_unlock(&home->lock);
    bool found;
    strata_status_t status = strata_allocate_missed(handle, stream, size, block, &found);
    return found ? status : strata_allocate_long_way(facade, place, stream, size, block);
}

/* What lies in the slab of a shared stack was served by one of those that share it. */
static __attribute__((noinline)) bool free_shared(const strata_stack_t *home, strata_record_t *record) {
    return home->is_shared && strata_direct_free(strata_stack_of(record->stack), record, NULL);
}

/* Under the lock of `home`. False: go the long way. */
static inline bool free_directly(strata_stack_t *home, strata_record_t *record) {
    return __builtin_expect(strata_direct_free(home, record, NULL), 1) || free_shared(home, record);
}

strata_status_t strata_free(strata_t facade, strata_ref_t ref) {
    strata_stack_t *home = strata_stack_of(strata_ref_home(ref));
    /* A thread's first call counts it in; in a child of fork() no thread is. */
    if (__builtin_expect(!home || !strata_threads_own, 0)) return strata_free_long_way(facade, ref);
    strata_magazines_t *magazines = strata_magazines_of(home);
    if (__builtin_expect(magazines != NULL, 0) && strata_magazine_free(magazines, home, facade, ref)) return STRATA_OK;
    strata_direct_lock(home);
    strata_record_t *record = __builtin_expect(home->facade == facade, 1) ? strata_direct_find(home, ref) : NULL;
    if (__builtin_expect(record && free_directly(home, record), 1)) {
        strata_unlock(&home->lock);
        return STRATA_OK;
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
    strata_magazines_t *magazines = strata_magazines_of(home);
    if (__builtin_expect(magazines != NULL, 0) && strata_magazine_free_pointer(magazines, home, facade, (uint64_t)(uintptr_t)ptr))
        return STRATA_OK;
    strata_direct_lock(home);
    if (__builtin_expect(home->facade == facade && slot < home->slab.used, 1)) {
        strata_record_t *record = strata_slab_record(&home->slab, slot);
        if (__builtin_expect(record->ptr == (uint64_t)(uintptr_t)ptr && record->state == STRATA_RECORD_LIVE, 1) &&
            __builtin_expect(free_directly(home, record), 1)) {
            strata_unlock(&home->lock);
            return STRATA_OK;
        }
    }
    strata_unlock(&home->lock);
    return strata_free_pointer_long_way(facade, ptr);
}
