/* The direct way: a hit, and the free of what one served, while no layer above the cache has anything to do. Written once here, and
 * made twice: by the core for any cache, which it calls by pointers, and by a cache that wants its own hit compiled into it. */
#ifndef STRATA_ALLOCATION_DIRECT_H
#define STRATA_ALLOCATION_DIRECT_H

#include "allocation/stack/magazines.h"
#include "allocation/stack/stack.h"
#include "allocation/stack/threads.h"

/* Larger requests are refused: no place has them, and sums of them stay far from wrapping. */
#define STRATA_LARGEST_REQUEST (1ull << 48)
#define STRATA_FORCED          __attribute__((always_inline))

typedef strata_record_t *(*strata_hit_fn)(strata_layer_t *cache, size_t size, const strata_stack_t *stack);
typedef bool (*strata_quick_free_fn)(strata_layer_t *cache, strata_record_t *record);

/* Calls by handle. Where the direct way is not open they end in `missed`, which gets the same and goes the long one; `stack` is
 * that of the handle's number, which may have another life by now. */
typedef strata_status_t (*strata_allocate_fn)(strata_stack_handle_t handle, strata_stream_t stream, size_t size,
                                              strata_block_t *block);
typedef strata_status_t (*strata_free_fn)(strata_stack_handle_t handle, strata_ref_t ref);
struct strata_direct {
    strata_status_t (*allocate)(strata_stack_handle_t handle, strata_stream_t stream, size_t size, strata_block_t *block,
                                strata_stack_t *stack, strata_allocate_fn missed);
    strata_status_t (*free)(strata_stack_handle_t handle, strata_ref_t ref, strata_stack_t *stack, strata_free_fn missed);
};
/* Of any cache. */
extern const strata_direct_t strata_direct_any;

/* The lock of a stack, for the direct ways alone. Where threads often meet at it the stack gets magazines. */
static inline STRATA_FORCED void strata_direct_lock(strata_stack_t *stack) {
    if (__builtin_expect(strata_lock_meeting(&stack->lock), 0)) strata_magazines_met(stack);
}

/* All of these under the lock of the stack's home. */

/* Whether a request that names this stream may be served by a hit. */
static inline STRATA_FORCED bool strata_direct_may_hit(const strata_stack_t *stack, strata_stream_t stream) {
    uint16_t attention = stack->attention_allocate;
    return attention == 0 || (attention == STRATA_ATTENTION_OWNERLESS && !stream);
}

/* What the stack's cache has handed out, without the layers above it, is the program's from now on. */
static inline STRATA_FORCED void strata_direct_serve(strata_stack_t *stack, const strata_stack_t *home, strata_record_t *record) {
    record->route = stack->route;
    record->stack = stack->number;
    strata_stack_book(stack, record);
    if (__builtin_expect(stack->directory != NULL, 0))
        strata_directory_write(stack->directory, record->ptr, home->number, strata_slab_slot(&home->slab, record));
}

/* `hit` NULL: that of the stack. */
static inline STRATA_FORCED strata_record_t *strata_direct_hit(strata_stack_t *stack, const strata_stack_t *home, size_t size,
                                                               strata_hit_fn hit) {
    strata_record_t *record = (hit ? hit : stack->hit)(stack->cache, size, stack);
    if (__builtin_expect(!record, 0)) return NULL;
    strata_direct_serve(stack, home, record);
    return record;
}

static inline STRATA_FORCED void strata_direct_fill(const strata_stack_t *home, const strata_record_t *record,
                                                    strata_block_t *block) {
    block->ptr = (void *)(uintptr_t)record->ptr;
    block->size = record->size;
    block->ref = strata_ref_make(home->number, strata_slab_slot(&home->slab, record), record->generation);
}

/* The live record of a ref of a stack; NULL: there is none. */
static inline STRATA_FORCED strata_record_t *strata_direct_find(strata_stack_t *home, strata_ref_t ref) {
    uint32_t slot = strata_ref_slot(ref);
    if (__builtin_expect(slot >= home->slab.used, 0)) return NULL;
    strata_record_t *record = strata_slab_record(&home->slab, slot);
    bool live = record->generation == strata_ref_generation(ref) && record->state == STRATA_RECORD_LIVE;
    return __builtin_expect(live, 1) ? record : NULL;
}

/* `quick_free` may refuse: then nothing has changed. */
static inline STRATA_FORCED bool strata_direct_take_back(strata_stack_t *stack, strata_record_t *record,
                                                         strata_quick_free_fn quick_free) {
    if (!quick_free) quick_free = stack->quick_free;
    strata_stack_unbook(stack, record);
    record->generation++;
    if (__builtin_expect(quick_free(stack->cache, record), 1)) return true;
    record->generation--;
    stack->figures.frees--;
    strata_word_write(&stack->figures.requested_bytes, stack->figures.requested_bytes + strata_record_requested(record));
    strata_word_write(&stack->figures.allocated_bytes, stack->figures.allocated_bytes + record->size);
    return false;
}

/* Frees a record of the stack if no layer above the cache took notice of it (`quick_free` NULL: by the one of the stack). False: go
 * the long way. */
static inline STRATA_FORCED bool strata_direct_free(strata_stack_t *stack, strata_record_t *record,
                                                    strata_quick_free_fn quick_free) {
    if (!quick_free) quick_free = stack->quick_free;
    if (__builtin_expect(!quick_free, 0)) return false;
    bool noticed = (stack->attention_free | record->attention) != 0 || record->route != stack->route;
    if (__builtin_expect(noticed, 0)) return strata_magazine_keep(stack, record);
    return strata_direct_take_back(stack, record, quick_free);
}

/* ---- by handle ---- */

/* Whether the handle names the stack, for this thread. */
static inline STRATA_FORCED bool strata_direct_is_named(const strata_stack_t *stack, strata_stack_handle_t handle) {
    uint64_t only = stack->only_thread;
    return __builtin_expect(stack->handle == handle && (only == 0 || only == strata_threads_plain), 1);
}

static inline STRATA_FORCED strata_status_t strata_direct_allocate_by(strata_stack_handle_t handle, strata_stream_t stream,
                                                                      size_t size, strata_block_t *block, strata_stack_t *stack,
                                                                      strata_allocate_fn missed, strata_hit_fn hit) {
    if (__builtin_expect(size - 1 >= STRATA_LARGEST_REQUEST || !strata_threads_plain, 0))
        return missed(handle, stream, size, block);
    strata_magazines_t *magazines = strata_magazines_of(stack);
    if (__builtin_expect(magazines != NULL, 0) && strata_magazine_allocate(magazines, stack, handle, size, block)) return STRATA_OK;
    strata_stack_t *home = atomic_load_explicit(&stack->home, memory_order_relaxed);
    strata_direct_lock(home);
    if (__builtin_expect(strata_direct_is_named(stack, handle) && strata_direct_may_hit(stack, stream) && block, 1)) {
        strata_record_t *record = strata_direct_hit(stack, home, size, hit);
        if (__builtin_expect(record != NULL, 1)) {
            strata_direct_fill(home, record, block);
            strata_unlock(&home->lock);
            return STRATA_OK;
        }
    }
    strata_unlock(&home->lock);
    return missed(handle, stream, size, block);
}

/* A block that lies in the slab of a shared stack goes the way of any free by ref. */
static inline STRATA_FORCED strata_status_t strata_direct_free_by(strata_stack_handle_t handle, strata_ref_t ref,
                                                                  strata_stack_t *stack, strata_free_fn missed,
                                                                  strata_quick_free_fn quick_free) {
    if (__builtin_expect((handle ^ ref) >> 52 != 0 || !strata_threads_plain, 0)) return missed(handle, ref);
    strata_magazines_t *magazines = strata_magazines_of(stack);
    if (__builtin_expect(magazines != NULL, 0) && stack->handle == handle && strata_magazine_free(magazines, stack, 0, ref))
        return STRATA_OK;
    strata_direct_lock(stack);
    strata_record_t *record = stack->handle == handle ? strata_direct_find(stack, ref) : NULL;
    if (__builtin_expect(record && strata_direct_free(stack, record, quick_free), 1)) {
        strata_unlock(&stack->lock);
        return STRATA_OK;
    }
    strata_unlock(&stack->lock);
    return missed(handle, ref);
}

/* `static STRATA_DIRECT_WAY(name, ...);` defines the `const strata_direct_t name` of a cache whose functions these are: the
 * compiler lays them into the way. */
#define STRATA_DIRECT_WAY(name, hit, quick_free)                                                                                   \
    STRATA_DIRECT_FUNCTIONS(name, hit, quick_free)                                                                                 \
    static const strata_direct_t name = {.allocate = name##_allocate, .free = name##_free}
/* The functions alone, for a way that several types name. */
#define STRATA_DIRECT_FUNCTIONS(name, hit, quick_free)                                                                             \
    strata_status_t name##_allocate(strata_stack_handle_t handle, strata_stream_t stream, size_t size, strata_block_t *block,      \
                                    strata_stack_t *stack, strata_allocate_fn missed) {                                            \
        return strata_direct_allocate_by(handle, stream, size, block, stack, missed, hit);                                         \
    }                                                                                                                              \
    static strata_status_t name##_free(strata_stack_handle_t handle, strata_ref_t ref, strata_stack_t *stack,                      \
                                       strata_free_fn missed) {                                                                    \
        return strata_direct_free_by(handle, ref, stack, missed, quick_free);                                                      \
    }

#endif
