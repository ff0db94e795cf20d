/* Serves from magazines, and decides which blocks enter them and which stacks have them. */
#include "allocation/stack/magazines.h"

#include <string.h>

#include "allocation/stack/direct.h"
#include "allocation/stack/threads.h"
#include "platform/arithmetic.h"

_Atomic uint32_t strata_magazines_threshold = 64;
/* Each time that they served too little, the required contention grows by this factor, up to the max. */
enum { THRESHOLD_FACTOR = 4, THRESHOLD_MAX = 1 << 24 };
enum { CHECK_INTERVAL = 64 /* blocks that enter a magazine between two checks of its use */ };
/* Refs that a block may have in a magazine before a free must use its record again. */
enum { GENERATIONS = 1 << 16 };
/* Larger blocks are not kept, because their use costs much more than a lock. */
static const uint64_t LARGEST = 2ull << 20;

static uint32_t own_number(void) { return (uint32_t)(strata_threads_own % STRATA_MAGAZINES); }
static strata_magazine_t *own(strata_magazines_t *all) { return &all->of[own_number()]; }

/* ---- the three calls: as short as the inlined fast path (allocation/stack/direct.h), for the same reason ---- */

/* Requires the lock of a magazine that has a block of the stack, since the stack is then open. */
static bool is_of(const strata_stack_t *stack, strata_t facade) { return stack->facade == facade; }

static void count_idle(strata_magazine_t *magazine, const strata_magazine_block_t *block, int times) {
    for (int measure = 0; measure < STRATA_MEASURES; measure++) {
        uint64_t idle = atomic_load_explicit(&magazine->idle[measure], memory_order_relaxed);
        idle += (uint64_t)times * (measure == STRATA_REQUESTED ? block->requested : block->size);
        atomic_store_explicit(&magazine->idle[measure], idle, memory_order_relaxed);
    }
}

static strata_magazine_block_t *idle_of(strata_magazine_t *magazine, size_t size) {
    for (strata_magazine_block_t *block = magazine->blocks; block < magazine->blocks + STRATA_MAGAZINE_BLOCKS; block++)
        if (block->requested == size && !block->handed_out) return block;
    return NULL;
}

/* Puts a block back under a ref that was never handed out. */
static void reenable(strata_magazine_t *magazine, strata_magazine_block_t *block) {
    count_idle(magazine, block, 1);
    block->handed_out = false;
    block->ref++;
}

static bool may_reenable(const strata_magazine_block_t *block) { return strata_ref_generation(block->ref) % GENERATIONS != 0; }

bool strata_magazine_free_pointer(strata_magazines_t *all, const strata_stack_t *stack, strata_t facade, uint64_t ptr) {
    strata_magazine_t *magazine = own(all);
    bool found = false;
    strata_lock(&magazine->lock);
    for (uint32_t i = 0; i < STRATA_MAGAZINE_BLOCKS && !found; i++) {
        strata_magazine_block_t *block = &magazine->blocks[i];
        found = block->ptr == ptr && block->handed_out && may_reenable(block) && is_of(stack, facade);
        if (found) reenable(magazine, block);
    }
    strata_unlock(&magazine->lock);
    return found;
}

static __attribute__((noinline)) strata_status_t end(strata_magazine_t *magazine) {
    strata_unlock(&magazine->lock);
    return STRATA_OK;
}

static __attribute__((noinline)) strata_status_t allocate_elsewhere(strata_stack_handle_t handle, strata_stack_t *stack,
                                                                    strata_stream_t stream, size_t size, strata_block_t *block,
                                                                    strata_allocate_fn missed) {
    strata_unlock(&own(stack->magazine_use.storage)->lock);
    return strata_direct_any.allocate(handle, stack, stream, size, block, missed);
}

/* The lock of the calling thread's magazine is held, and this releases it. */
static inline STRATA_FORCED strata_status_t serve(strata_stack_handle_t handle, strata_stack_t *stack, strata_stream_t stream,
                                                  size_t size, strata_block_t *block, strata_allocate_fn missed) {
    strata_magazine_t *magazine = own(stack->magazine_use.storage);
    strata_magazine_block_t *found = idle_of(magazine, size);
    bool named = atomic_load_explicit(&stack->handle, memory_order_relaxed) == handle;
    if (__builtin_expect(!found || !named, 0)) return allocate_elsewhere(handle, stack, stream, size, block, missed);
    *block = (strata_block_t){.ptr = (void *)(uintptr_t)found->ptr, .size = found->size, .ref = found->ref};
    found->handed_out = true;
    count_idle(magazine, found, -1);
    magazine->served++;
    magazine->served_since++;
    return __builtin_expect(strata_unlock_try_fast(&magazine->lock), 1) ? STRATA_OK : end(magazine);
}

static __attribute__((noinline)) strata_status_t wait_and_serve(strata_stack_handle_t handle, strata_stack_t *stack,
                                                                strata_stream_t stream, size_t size, strata_block_t *block,
                                                                strata_allocate_fn missed) {
    strata_lock(&own(stack->magazine_use.storage)->lock);
    return serve(handle, stack, stream, size, block, missed);
}

static strata_status_t allocate(strata_stack_handle_t handle, strata_stack_t *stack, strata_stream_t stream, size_t size,
                                strata_block_t *block, strata_allocate_fn missed) {
    if (__builtin_expect(size - 1 >= STRATA_LARGEST_REQUEST || !block, 0)) return missed(handle, stream, size, block);
    return __builtin_expect(strata_lock_try_fast(&own(stack->magazine_use.storage)->lock), 1)
               ? serve(handle, stack, stream, size, block, missed)
               : wait_and_serve(handle, stack, stream, size, block, missed);
}

/* Requires that lock. Returns NULL if the magazine has not handed out the block, or if its record must be updated first. */
static inline STRATA_FORCED strata_magazine_block_t *find_handed_out(strata_magazine_t *magazine, strata_ref_t ref) {
    for (strata_magazine_block_t *block = magazine->blocks; block < magazine->blocks + STRATA_MAGAZINE_BLOCKS; block++)
        if (block->ref == ref && block->handed_out) return may_reenable(block) ? block : NULL;
    return NULL;
}

/* `whose` is a handle if `by_handle` is set, and otherwise a facade. */
static inline STRATA_FORCED bool free_to_magazine(uint64_t whose, strata_ref_t ref, strata_stack_t *stack, bool by_handle) {
    strata_magazine_t *magazine = own(stack->magazine_use.storage);
    strata_magazine_block_t *block = find_handed_out(magazine, ref);
    bool named = by_handle ? atomic_load_explicit(&stack->handle, memory_order_relaxed) == whose : block && is_of(stack, whose);
    if (__builtin_expect(!block || !named, 0)) return false;
    reenable(magazine, block);
    return true;
}

static __attribute__((noinline)) strata_status_t free_elsewhere(uint64_t whose, strata_ref_t ref, strata_stack_t *stack,
                                                                strata_free_fn missed) {
    strata_unlock(&own(stack->magazine_use.storage)->lock);
    return strata_direct_any.free(whose, ref, stack, missed);
}

static __attribute__((noinline)) strata_status_t free_of_elsewhere(uint64_t whose, strata_ref_t ref, strata_stack_t *stack,
                                                                   strata_free_fn missed) {
    strata_unlock(&own(stack->magazine_use.storage)->lock);
    return strata_direct_any.free_of(whose, ref, stack, missed);
}

static inline STRATA_FORCED strata_status_t free_in(uint64_t whose, strata_ref_t ref, strata_stack_t *stack, strata_free_fn missed,
                                                    bool by_handle) {
    strata_magazine_t *magazine = own(stack->magazine_use.storage);
    if (__builtin_expect(!strata_lock_try_fast(&magazine->lock), 0)) strata_lock(&magazine->lock);
    if (__builtin_expect(!free_to_magazine(whose, ref, stack, by_handle), 0))
        return by_handle ? free_elsewhere(whose, ref, stack, missed) : free_of_elsewhere(whose, ref, stack, missed);
    return __builtin_expect(strata_unlock_try_fast(&magazine->lock), 1) ? STRATA_OK : end(magazine);
}

static strata_status_t free_by(strata_stack_handle_t handle, strata_ref_t ref, strata_stack_t *stack, strata_free_fn missed) {
    if (__builtin_expect((handle ^ ref) >> 52 != 0, 0)) return missed(handle, ref);
    return free_in(handle, ref, stack, missed, true);
}

static strata_status_t free_of(strata_t facade, strata_ref_t ref, strata_stack_t *home, strata_free_fn missed) {
    if (__builtin_expect(!strata_threads_own, 0)) return missed(facade, ref);
    return free_in(facade, ref, home, missed, false);
}

/* The fast path of a stack while it has magazines. */
static const strata_direct_t magazine_path = {.allocate = allocate, .free = free_by, .free_of = free_of};

/* Replaces the fast path `from` by `to`. A stack with another one keeps it, because no call may take these there. */
static void switch_path(strata_stack_t *stack, const strata_direct_t *from, const strata_direct_t *to) {
    (void)atomic_compare_exchange_strong(&stack->direct, &from, to);
}

/* ---- in and out ---- */

/* A block that the program has becomes a plain record again. A free one returns to the cache, which never refuses. */
static void evict(strata_stack_t *stack, const strata_magazine_block_t *block) {
    if (!block->requested) return;
    strata_record_t *record = strata_slab_record(&stack->slab, strata_ref_slot(block->ref));
    record->attention &= (uint16_t)~STRATA_ATTENTION_CORE;
    record->generation = strata_ref_generation(block->ref);
    if (block->handed_out) return;
    strata_stack_unbook(stack, record);
    (void)stack->quick_free(stack->cache, record);
}

/* Returns the first empty entry, or the next one in turn. */
static strata_magazine_block_t *room(strata_magazine_t *magazine) {
    for (uint32_t i = 0; i < STRATA_MAGAZINE_BLOCKS; i++)
        if (!magazine->blocks[i].requested) return &magazine->blocks[i];
    return &magazine->blocks[magazine->oldest++ % STRATA_MAGAZINE_BLOCKS];
}

/* Returns whether a magazine may keep the block. The stack must have a handle that any thread may use, and no layer above the cache
 * that requests must call. Otherwise its threads would not find the block again. */
static bool may_store(const strata_stack_t *stack, const strata_record_t *record) {
    bool open = atomic_load_explicit(&stack->handle, memory_order_relaxed) != 0 && !stack->forgotten.orphan &&
                stack->only_thread == 0;
    return open && strata_threads_own && stack->attention_allocate == 0 && record->size <= LARGEST &&
           record->generation < STRATA_GENERATION_LAST - 2 * GENERATIONS;
}

/* Puts a block into the magazine. Returns the one that it replaces. */
static strata_magazine_block_t exchange(strata_magazine_t *magazine, const strata_magazine_block_t *fresh, bool *serves) {
    strata_lock(&magazine->lock);
    strata_magazine_block_t *place = room(magazine), gone = *place;
    *place = *fresh;
    if (!gone.handed_out) count_idle(magazine, &gone, -1);
    count_idle(magazine, fresh, 1);
    *serves = ++magazine->stored < CHECK_INTERVAL || magazine->served_since >= CHECK_INTERVAL;
    if (magazine->stored >= CHECK_INTERVAL) magazine->stored = magazine->served_since = 0;
    strata_unlock(&magazine->lock);
    return gone;
}

/* Takes the magazines away until threads have contended more often than the last time. */
static void suspend(strata_stack_t *stack) {
    strata_stack_flush_magazines(stack);
    atomic_store_explicit(&stack->magazines, NULL, memory_order_release);
    switch_path(stack, &magazine_path, strata_direct_own(stack));
    stack->attention_free &= (uint16_t)~STRATA_ATTENTION_MAGAZINES;
    strata_magazine_use_t *use = &stack->magazine_use;
    use->contended = 0;
    use->extra_contended = (uint32_t)strata_min((use->extra_contended + strata_magazines_threshold) * (uint64_t)THRESHOLD_FACTOR,
                                                THRESHOLD_MAX);
}

static void store(strata_stack_t *stack, strata_record_t *record) {
    strata_magazine_block_t fresh = {.ptr = record->ptr, .size = record->size, .requested = strata_record_requested(record)};
    fresh.ref = strata_ref_make(stack->number, strata_slab_slot(&stack->slab, record), record->generation + 2);
    record->generation++;
    record->attention |= STRATA_ATTENTION_CORE;
    stack->magazine_use.occupied |= (uint16_t)(1u << own_number());
    bool serves;
    strata_magazine_block_t gone = exchange(own(stack->magazine_use.storage), &fresh, &serves);
    evict(stack, &gone);
    if (!serves && strata_magazines_threshold > 0) suspend(stack);
}

bool strata_magazine_push(strata_stack_t *stack, strata_record_t *record) {
    bool only = stack->attention_free == STRATA_ATTENTION_MAGAZINES && record->attention == 0 && record->route == stack->route;
    if (!only) return false;
    if (!may_store(stack, record)) return strata_direct_free_plain(stack, record);
    store(stack, record);
    return true;
}

static void empty(strata_stack_t *stack, strata_magazine_t *magazine) {
    strata_magazine_block_t blocks[STRATA_MAGAZINE_BLOCKS];
    strata_lock(&magazine->lock);
    uint64_t served = magazine->served;
    memcpy(blocks, magazine->blocks, sizeof blocks);
    memset(magazine->blocks, 0, sizeof magazine->blocks);
    magazine->served = 0;
    for (int measure = 0; measure < STRATA_MEASURES; measure++)
        atomic_store_explicit(&magazine->idle[measure], 0, memory_order_relaxed);
    strata_unlock(&magazine->lock);
    stack->figures.allocations += served;
    stack->figures.frees += served;
    stack->figures.cache_hits += served;
    for (uint32_t i = 0; i < STRATA_MAGAZINE_BLOCKS; i++) evict(stack, &blocks[i]);
}

void strata_stack_flush_magazines(strata_stack_t *stack) {
    strata_magazine_use_t *use = &stack->magazine_use;
    uint32_t occupied = use->occupied;
    use->occupied = 0;
    for (; occupied; occupied &= occupied - 1) empty(stack, &use->storage->of[__builtin_ctz(occupied)]);
}

uint64_t strata_magazines_idle(const strata_stack_t *stack, int measure) {
    strata_magazines_t *all = atomic_load_explicit(&stack->magazines, memory_order_acquire);
    uint64_t idle = 0;
    for (uint32_t i = 0; all && i < STRATA_MAGAZINES; i++)
        idle += atomic_load_explicit(&all->of[i].idle[measure], memory_order_relaxed);
    return idle;
}

/* ---- life ---- */

/* Each lock is held while its observer changes. A thread with a stale handle may hold it just to find the magazine empty, and its
 * acquire and release must call the same observer. */
static void set_observer(strata_magazines_t *all, strata_lock_observer_t *observer) {
    for (uint32_t i = 0; i < STRATA_MAGAZINES; i++) {
        strata_lock_t *lock = &all->of[i].lock;
        strata_lock_acquire(lock);
        if (lock->rank != STRATA_RANK_MAGAZINE) lock->rank = STRATA_RANK_MAGAZINE;
        strata_lock_observe(lock, observer);
        lock->observed = 0;
        all->of[i].oldest = all->of[i].stored = all->of[i].served_since = 0;
        strata_lock_release(lock);
    }
}

void strata_magazines_begin(strata_stack_t *stack) {
    const strata_layer_t *cache = stack->cache;
    const strata_direct_t *own = strata_direct_own(stack);
    if (!stack->quick_free || stack->ownerless || !own->magazines || !own->magazines(cache)) return;
    set_observer(stack->magazine_use.storage, stack->lock.observer);
    stack->attention_free |= STRATA_ATTENTION_MAGAZINES;
    atomic_store_explicit(&stack->magazines, stack->magazine_use.storage, memory_order_release);
    switch_path(stack, own, &magazine_path);
}

void strata_magazines_note_contention(strata_stack_t *stack) {
    strata_magazine_use_t *use = &stack->magazine_use;
    /* A thread with a stale handle may contend for the lock of a stack whose layers are being destroyed. */
    if (!stack->open || strata_magazines_of(stack) || ++use->contended < strata_magazines_threshold + use->extra_contended) return;
    use->contended = 0;
    strata_magazines_begin(stack);
}

void strata_magazines_end(strata_stack_t *stack) {
    strata_magazine_use_t *use = &stack->magazine_use;
    bool had = strata_magazines_of(stack) || use->extra_contended > 0;
    atomic_store_explicit(&stack->magazines, NULL, memory_order_release);
    use->contended = use->extra_contended = 0;
    if (had) set_observer(use->storage, NULL);
}
