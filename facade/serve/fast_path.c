/* The fast path of the calls that programs make millions of times: allocate, free, free by pointer.
 * Everything except a hit takes the slow path (facade/serve/request.c, slow_path.c). */
#include "allocation/stack/direct.h"
#include "facade/registry/lookup.h"
#include "facade/registry/registry.h"
#include "facade/serve/slow_path.h"

/* Not inlined, so that the fast path saves no registers for it. No stack was looked up since the handle was found. */
static __attribute__((noinline)) strata_status_t allocate_missed(strata_stack_handle_t handle, strata_stream_t stream, size_t size,
                                                                 strata_block_t *block) {
    const strata_lookup_t whose = strata_lookup_of(handle, stream);
    bool found = false;
    strata_status_t status = STRATA_OK;
    if (size - 1 < STRATA_LARGEST_REQUEST) status = strata_allocate_missed(handle, stream, size, block, &found);
    return found ? status : strata_allocate_slow(whose.facade, whose.place, stream, size, block);
}

strata_status_t strata_allocate(strata_t facade, strata_place_t place, strata_stream_t stream, size_t size, strata_block_t *block) {
    strata_stack_handle_t handle = strata_lookup(facade, place, stream);
    strata_stack_t *stack = strata_stack_of(strata_stack_handle_number(handle));
    if (__builtin_expect(!stack, 0)) return strata_allocate_slow(facade, place, stream, size, block);
    const strata_direct_t *direct = atomic_load_explicit(&stack->direct, memory_order_relaxed);
    return direct->allocate(handle, stack, stream, size, block, allocate_missed);
}

strata_status_t strata_free(strata_t facade, strata_ref_t ref) {
    strata_stack_t *home = strata_stack_of(strata_ref_home(ref));
    if (__builtin_expect(!home, 0)) return strata_free_slow(facade, ref);
    const strata_direct_t *direct = atomic_load_explicit(&home->direct, memory_order_relaxed);
    return direct->free_of(facade, ref, home, strata_free_slow);
}

/* Returns the directory of device memory if this thread has freed by pointer in the facade before. The
 * slow path records it. */
static inline const strata_directory_t *known_directory(strata_t facade) {
    const strata_pointer_lookup_t *last = &strata_pointer_lookup;
    bool known = last->facade == facade && last->epoch == atomic_load_explicit(&strata_lookup_epoch, memory_order_acquire);
    return __builtin_expect(known, 1) ? last->directory : NULL;
}

strata_status_t strata_free_pointer(strata_t facade, void *ptr) {
    if (__builtin_expect(!ptr, 0)) return strata_free_null(facade);
    uint16_t number;
    uint32_t slot;
    const strata_directory_t *directory = known_directory(facade);
    if (__builtin_expect(!directory || !strata_directory_read(directory, (uint64_t)(uintptr_t)ptr, &number, &slot), 0))
        return strata_free_pointer_slow(facade, ptr);
    strata_stack_t *home = strata_stack_of(number);
    strata_magazines_t *magazines = strata_magazines_of(home);
    if (__builtin_expect(magazines != NULL, 0) && strata_magazine_free_pointer(magazines, home, facade, (uint64_t)(uintptr_t)ptr))
        return STRATA_OK;
    strata_direct_lock(home);
    if (__builtin_expect(home->facade == facade && slot < home->slab.used, 1)) {
        strata_record_t *record = strata_slab_record(&home->slab, slot);
        if (__builtin_expect(record->ptr == (uint64_t)(uintptr_t)ptr && record->state == STRATA_RECORD_LIVE, 1) &&
            __builtin_expect(strata_direct_free_shared(home, record), 1)) {
            strata_unlock(&home->lock);
            return STRATA_OK;
        }
    }
    strata_unlock(&home->lock);
    return strata_free_pointer_slow(facade, ptr);
}
