/* The fast path: a hit and its free, while no layer above the cache has work to do.
 *
 * It exists in two forms. The generic one (direct.c) calls any cache through pointers. The inlined one contains the quick hit and
 * the quick free of one cache. It calls nothing: any unusual case ends in the generic one, with or without the lock. So it saves no
 * registers, which would be a third of its cost. */
#ifndef STRATA_ALLOCATION_DIRECT_H
#define STRATA_ALLOCATION_DIRECT_H

#include "allocation/stack/magazines.h"
#include "allocation/stack/stack.h"
#include "allocation/stack/threads.h"

/* Larger requests are refused. No place has that much memory, and sums of smaller sizes do not overflow. */
#define STRATA_LARGEST_REQUEST (1ull << 48)
#define STRATA_FORCED          __attribute__((always_inline))

/* Calls by handle, and frees by ref in a facade. If the fast path is closed they end in `missed`, the slow path, with the same
 * arguments. `stack` is that of the handle's or ref's number, which may have another life by now. A call by handle requires a
 * thread that has a number and may have hits in the stack's facade. Its caller checks that by strata_threads_plain or
 * strata_lookup(). */
typedef strata_status_t (*strata_allocate_fn)(strata_stack_handle_t handle, strata_stream_t stream, size_t size,
                                              strata_block_t *block);
typedef strata_status_t (*strata_free_fn)(uint64_t whose, strata_ref_t ref);
struct strata_direct {
    /* The order of the parameters lets a caller pass its own arguments on in the registers that they are in. */
    strata_status_t (*allocate)(strata_stack_handle_t handle, strata_stack_t *stack, strata_stream_t stream, size_t size,
                                strata_block_t *block, strata_allocate_fn missed);
    strata_status_t (*free)(strata_stack_handle_t handle, strata_ref_t ref, strata_stack_t *stack, strata_free_fn missed);
    /* A free by ref in a facade, which `missed` gets too. `home` is the stack of the ref's number. */
    strata_status_t (*free_of)(strata_t facade, strata_ref_t ref, strata_stack_t *home, strata_free_fn missed);
    /* Returns true if magazines may keep blocks of this cache (allocation/stack/magazines.h). If it is NULL, they never may. */
    bool (*magazines)(const strata_layer_t *cache);
};
/* The generic fast path. */
extern const strata_direct_t strata_direct_any;
/* Returns the inlined fast path of the stack's own cache, or the generic one if that cache has none. */
const strata_direct_t *strata_direct_own(const strata_stack_t *stack);

/* The ends of an inlined fast path. The lock of the stack, or of `home`, is held, and these release it. */
strata_status_t strata_direct_free_held(strata_stack_handle_t handle, strata_ref_t ref, strata_stack_t *stack,
                                        strata_free_fn missed);
strata_status_t strata_direct_free_of_held(strata_t facade, strata_ref_t ref, strata_stack_t *home, strata_free_fn missed);
/* Ends a request whose record raised live bytes above their bound, after an update of the peaks. */
strata_status_t strata_direct_end_at_peak(strata_stack_t *stack, strata_record_t *record, strata_block_t *block);
/* Releases the lock, which may be contended or observed. Returns OK. */
strata_status_t strata_direct_end(strata_stack_t *stack);
/* Releases the lock and calls `missed`, because no hit may serve. */
strata_status_t strata_direct_end_closed(strata_stack_handle_t handle, strata_stack_t *stack, strata_stream_t stream, size_t size,
                                         strata_block_t *block, strata_allocate_fn missed);

/* Takes the lock of a stack, for the fast paths only. After enough contention the stack gets magazines. */
static inline STRATA_FORCED void strata_direct_lock(strata_stack_t *stack) {
    if (__builtin_expect(strata_lock_contended(&stack->lock), 0)) strata_magazines_note_contention(stack);
}

/* The functions below require the lock of the stack's home. */

/* Returns whether the handle names the stack, for this thread. Only then are other fields of the stack meaningful. */
static inline STRATA_FORCED bool strata_direct_is_named(const strata_stack_t *stack, strata_stack_handle_t handle) {
    if (__builtin_expect(stack->handle != handle, 0)) return false;
    uint64_t only = stack->only_thread;
    return __builtin_expect(only == 0 || only == strata_threads_own, 1);
}

/* Returns whether a hit may serve a request with this stream. */
static inline STRATA_FORCED bool strata_direct_may_hit(const strata_stack_t *stack, strata_stream_t stream) {
    uint16_t attention = stack->attention_allocate;
    return attention == 0 || (attention == STRATA_ATTENTION_OWNERLESS && !stream);
}

/* Marks a record that the stack's cache handed out without the layers above it. The program owns it from here on. */
static inline STRATA_FORCED void strata_direct_mark(const strata_stack_t *stack, strata_record_t *record) {
    record->route = stack->route;
    record->stack = stack->number;
}

static inline STRATA_FORCED void strata_direct_note_pointer(const strata_stack_t *stack, const strata_stack_t *home,
                                                            const strata_record_t *record) {
    if (__builtin_expect(stack->directory != NULL, 0))
        strata_directory_write(stack->directory, record->ptr, home->number, strata_slab_slot(&home->slab, record));
}

static inline void strata_direct_serve(strata_stack_t *stack, const strata_stack_t *home, strata_record_t *record) {
    strata_direct_mark(stack, record);
    strata_stack_book(stack, record);
    strata_direct_note_pointer(stack, home, record);
}

/* `size` is that of the record. */
static inline STRATA_FORCED void strata_direct_fill(const strata_stack_t *home, const strata_record_t *record, uint64_t size,
                                                    strata_block_t *block) {
    block->ptr = (void *)(uintptr_t)record->ptr;
    block->size = size;
    block->ref = strata_slab_ref(&home->slab, record);
}

/* Returns the live record of a ref of a stack, or NULL. */
static inline STRATA_FORCED strata_record_t *strata_direct_find(strata_stack_t *home, strata_ref_t ref) {
    uint32_t slot = strata_ref_slot(ref);
    if (__builtin_expect(slot >= home->slab.used, 0)) return NULL;
    strata_record_t *record = strata_slab_record(&home->slab, slot);
    bool live = record->generation == strata_ref_generation(ref) && record->state == STRATA_RECORD_LIVE;
    return __builtin_expect(live, 1) ? record : NULL;
}

/* Returns whether no layer above the cache tracks this record or must be called at frees. */
static inline STRATA_FORCED bool strata_direct_is_plain(const strata_stack_t *stack, const strata_record_t *record) {
    return __builtin_expect((stack->attention_free | record->attention) == 0 && record->route == stack->route, 1);
}

typedef strata_record_t *(*strata_hit_fn)(strata_layer_t *cache, size_t size, const strata_stack_t *stack);

/* Serves a request by handle, for which the fast path is open, if there is a hit. The lock of `home` is held, and this releases it.
 * `hit` is that of the stack's cache. If it is NULL, the stack's pointer is used. */
static inline STRATA_FORCED strata_status_t strata_direct_allocate_open(strata_stack_handle_t handle, strata_stack_t *stack,
                                                                        strata_stack_t *home, strata_stream_t stream, size_t size,
                                                                        strata_block_t *block, strata_allocate_fn missed,
                                                                        strata_hit_fn hit) {
    strata_record_t *record = (hit ? hit : stack->hit)(stack->cache, size, stack);
    if (__builtin_expect(!record, 0)) {
        strata_unlock(&home->lock);
        return missed(handle, stream, size, block);
    }
    strata_direct_serve(stack, home, record);
    strata_direct_fill(home, record, record->size, block);
    strata_unlock(&home->lock);
    return STRATA_OK;
}

/* Returns whether the fast path is open. If the number has another life by now, the handle does not name it. */
static inline STRATA_FORCED bool strata_direct_is_open(const strata_stack_t *stack, strata_stack_handle_t handle,
                                                       strata_stream_t stream, const strata_block_t *block) {
    return strata_direct_is_named(stack, handle) && strata_direct_may_hit(stack, stream) && block;
}

/* Frees a record of the stack if no layer above the cache tracks it. Returns false if the free must take the slow path. */
bool strata_direct_free(strata_stack_t *stack, strata_record_t *record);
/* Like strata_direct_free(), for any record in the slab of `home`. In a shared slab another stack may have served it. */
bool strata_direct_free_shared(strata_stack_t *home, strata_record_t *record);
/* Frees a plain record. Returns false if the cache refuses, and then nothing has changed. */
bool strata_direct_free_plain(strata_stack_t *stack, strata_record_t *record);

/* ---- the inlined fast path ---- */

/* Serves a request, or returns NULL and changes nothing. `stack` is that of the cache. It need not set the fields of the record
 * that strata_direct_mark() sets. */
typedef strata_record_t *(*strata_quick_hit_fn)(strata_layer_t *cache, size_t size, strata_stack_t *stack);
/* Takes the record back, or returns false and changes nothing. The generation of the record is already raised. */
typedef bool (*strata_quick_free_fn)(strata_layer_t *cache, strata_record_t *record, strata_stack_t *stack);

typedef strata_status_t (*strata_held_fn)(strata_stack_handle_t handle, strata_stack_t *stack, strata_stream_t stream, size_t size,
                                          strata_block_t *block, strata_allocate_fn missed);

/* Requires that the stack is its own home, since hits find their records in its slab. On a miss `held` continues with the lock. */
static inline STRATA_FORCED strata_status_t strata_direct_allocate_by(strata_stack_handle_t handle, strata_stack_t *stack,
                                                                      strata_stream_t stream, size_t size, strata_block_t *block,
                                                                      strata_allocate_fn missed, strata_quick_hit_fn quick,
                                                                      strata_held_fn held) {
    if (__builtin_expect(size - 1 >= STRATA_LARGEST_REQUEST, 0)) return missed(handle, stream, size, block);
    if (__builtin_expect(!strata_lock_try_fast(&stack->lock), 0))
        return strata_direct_any.allocate(handle, stack, stream, size, block, missed);
    if (__builtin_expect(!strata_direct_is_open(stack, handle, stream, block), 0))
        return strata_direct_end_closed(handle, stack, stream, size, block, missed);
    strata_record_t *record = quick(stack->cache, size, stack);
    if (__builtin_expect(!record, 0)) return held(handle, stack, stream, size, block, missed);
    strata_direct_mark(stack, record);
    uint64_t granted = record->size;
    if (__builtin_expect(strata_stack_count(stack, granted, size), 0)) return strata_direct_end_at_peak(stack, record, block);
    strata_direct_note_pointer(stack, stack, record);
    strata_direct_fill(stack, record, granted, block);
    return __builtin_expect(strata_unlock_try_fast(&stack->lock), 1) ? STRATA_OK : strata_direct_end(stack);
}

/* The generic fast path of a free, once the lock is held. */
typedef strata_status_t (*strata_free_held_fn)(uint64_t whose, strata_ref_t ref, strata_stack_t *stack, strata_free_fn missed);
/* Continues a free that the quick free has refused. The generation is already raised. */
typedef strata_status_t (*strata_free_rest_fn)(uint64_t whose, strata_ref_t ref, strata_stack_t *stack, strata_free_fn missed,
                                               strata_record_t *record);

/* The lock of the stack is held, and this releases it. */
static inline STRATA_FORCED strata_status_t strata_direct_free_in(uint64_t whose, strata_ref_t ref, strata_stack_t *stack,
                                                                  strata_free_fn missed, strata_quick_free_fn quick,
                                                                  strata_free_rest_fn rest, strata_free_held_fn any) {
    strata_record_t *record = strata_direct_find(stack, ref);
    if (__builtin_expect(!record || !strata_direct_is_plain(stack, record), 0)) return any(whose, ref, stack, missed);
    uint64_t size = record->size, requested = size - record->slack;
    record->generation++;
    if (__builtin_expect(!quick(stack->cache, record, stack), 0)) return rest(whose, ref, stack, missed, record);
    strata_stack_uncount(stack, size, requested);
    return __builtin_expect(strata_unlock_try_fast(&stack->lock), 1) ? STRATA_OK : strata_direct_end(stack);
}

typedef bool (*strata_free_plain_fn)(strata_layer_t *cache, strata_record_t *record);

/* `take_back` is the quick_free of the cache's type. */
static inline STRATA_FORCED strata_status_t strata_direct_free_rest(uint64_t whose, strata_ref_t ref, strata_stack_t *stack,
                                                                    strata_free_fn missed, strata_record_t *record,
                                                                    strata_free_plain_fn take_back) {
    uint64_t size = record->size, requested = size - record->slack;
    bool freed = take_back(stack->cache, record);
    if (__builtin_expect(freed, 1)) strata_stack_uncount(stack, size, requested);
    else record->generation--;
    strata_unlock(&stack->lock);
    return __builtin_expect(freed, 1) ? STRATA_OK : missed(whose, ref);
}

/* A block in the slab of a shared stack is freed like any block by its ref. */
static inline STRATA_FORCED strata_status_t strata_direct_free_by(strata_stack_handle_t handle, strata_ref_t ref,
                                                                  strata_stack_t *stack, strata_free_fn missed,
                                                                  strata_quick_free_fn quick, strata_free_rest_fn rest) {
    if (__builtin_expect((handle ^ ref) >> 52 != 0, 0)) return missed(handle, ref);
    if (__builtin_expect(!strata_lock_try_fast(&stack->lock), 0)) return strata_direct_any.free(handle, ref, stack, missed);
    if (__builtin_expect(stack->handle != handle, 0)) return strata_direct_free_held(handle, ref, stack, missed);
    return strata_direct_free_in(handle, ref, stack, missed, quick, rest, strata_direct_free_held);
}

/* `own` is this fast path. The number may have another life by now, in the same facade and over another cache. */
static inline STRATA_FORCED strata_status_t strata_direct_free_of(strata_t facade, strata_ref_t ref, strata_stack_t *home,
                                                                  strata_free_fn missed, const strata_direct_t *own,
                                                                  strata_quick_free_fn quick, strata_free_rest_fn rest) {
    /* A thread is registered by its first call, in a child of fork() never. */
    if (__builtin_expect(!strata_threads_own, 0)) return missed(facade, ref);
    if (__builtin_expect(!strata_lock_try_fast(&home->lock), 0)) return strata_direct_any.free_of(facade, ref, home, missed);
    bool same = home->facade == facade && atomic_load_explicit(&home->direct, memory_order_relaxed) == own;
    if (__builtin_expect(!same, 0)) return strata_direct_free_of_held(facade, ref, home, missed);
    return strata_direct_free_in(facade, ref, home, missed, quick, rest, strata_direct_free_of_held);
}

/* `STRATA_DIRECT_PATH(name, ...)` defines `const strata_direct_t name`, the fast path of a cache with these functions, which the
 * compiler inlines. The quick ones must call nothing. If they refuse, `hit` and `take_back` run next, under the same lock. */
#define STRATA_DIRECT_PATH(name, quick_hit, quick_free, hit, take_back, may_magazines)                                             \
    static __attribute__((noinline))                                                                                               \
    strata_status_t name##_held(strata_stack_handle_t handle, strata_stack_t *stack, strata_stream_t stream, size_t size,          \
                                strata_block_t *block, strata_allocate_fn missed) {                                                \
        return strata_direct_allocate_open(handle, stack, stack, stream, size, block, missed, hit);                                \
    }                                                                                                                              \
    static strata_status_t name##_allocate(strata_stack_handle_t handle, strata_stack_t *stack, strata_stream_t stream,            \
                                           size_t size, strata_block_t *block, strata_allocate_fn missed) {                        \
        return strata_direct_allocate_by(handle, stack, stream, size, block, missed, quick_hit, name##_held);                      \
    }                                                                                                                              \
    static __attribute__((noinline)) strata_status_t name##_rest(uint64_t whose, strata_ref_t ref, strata_stack_t *stack,          \
                                                                 strata_free_fn missed, strata_record_t *record) {                 \
        return strata_direct_free_rest(whose, ref, stack, missed, record, take_back);                                              \
    }                                                                                                                              \
    static strata_status_t name##_free(strata_stack_handle_t handle, strata_ref_t ref, strata_stack_t *stack,                      \
                                       strata_free_fn missed) {                                                                    \
        return strata_direct_free_by(handle, ref, stack, missed, quick_free, name##_rest);                                         \
    }                                                                                                                              \
    static strata_status_t name##_free_of(strata_t facade, strata_ref_t ref, strata_stack_t *home, strata_free_fn missed) {        \
        return strata_direct_free_of(facade, ref, home, missed, &name, quick_free, name##_rest);                                   \
    }                                                                                                                              \
    const strata_direct_t name = {                                                                                                 \
        .allocate = name##_allocate, .free = name##_free, .free_of = name##_free_of, .magazines = may_magazines}

#endif
