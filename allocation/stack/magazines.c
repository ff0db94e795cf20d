/* Who comes into a magazine, and what becomes of it. */
#include "allocation/stack/magazines.h"

#include <string.h>

#include "allocation/stack/direct.h"
#include "allocation/stack/layer.h"
#include "allocation/stack/threads.h"
#include "platform/arithmetic.h"

_Atomic uint32_t strata_magazines_meetings = 64;
/* So many times as many after each time that they served little. */
enum { MEETINGS_TIMES = 4, MEETINGS_MOST = 1 << 24 };
enum { LOOK_AFTER = 64 /* blocks that came into a magazine */ };
/* Refs that a block may have in a magazine before its record is looked at again. */
enum { GENERATIONS = 1 << 16 };
/* Larger blocks are worth a lock. */
static const uint64_t LARGEST = 2ull << 20;

static uint32_t own_number(void) { return (uint32_t)(strata_threads_own % STRATA_MAGAZINES); }
static strata_magazine_t *own(strata_magazines_t *all) { return &all->of[own_number()]; }

/* ---- the three calls ---- */

/* Only under the lock of a magazine that has a block of the stack: then the stack lives. */
static bool is_of(const strata_stack_t *stack, strata_t facade) { return stack->facade == facade; }

static uint64_t of_block(const strata_magazine_block_t *block, int measure) {
    return measure == STRATA_REQUESTED ? block->requested : block->size;
}

static void count_idle(strata_magazine_t *magazine, const strata_magazine_block_t *block, int times) {
    for (int measure = 0; measure < STRATA_MEASURES; measure++) {
        uint64_t idle = atomic_load_explicit(&magazine->idle[measure], memory_order_relaxed);
        idle += (uint64_t)times * of_block(block, measure);
        atomic_store_explicit(&magazine->idle[measure], idle, memory_order_relaxed);
    }
}

static strata_magazine_block_t *idle_of(strata_magazine_t *magazine, size_t size) {
    for (strata_magazine_block_t *block = magazine->blocks; block < magazine->blocks + STRATA_MAGAZINE_BLOCKS; block++)
        if (block->requested == size && !block->lent) return block;
    return NULL;
}

bool strata_magazine_allocate(strata_magazines_t *all, strata_stack_t *stack, strata_stack_handle_t handle, size_t size,
                              strata_block_t *block) {
    strata_magazine_t *magazine = own(all);
    strata_lock(&magazine->lock);
    strata_magazine_block_t *found = idle_of(magazine, size);
    if (found && block && atomic_load_explicit(&stack->handle, memory_order_relaxed) == handle) {
        *block = (strata_block_t){.ptr = (void *)(uintptr_t)found->ptr, .size = found->size, .ref = found->ref};
        found->lent = true;
        count_idle(magazine, found, -1);
        magazine->served++;
        magazine->kept_served++;
    } else {
        found = NULL;
    }
    strata_unlock(&magazine->lock);
    return found != NULL;
}

/* Comes back under a ref that nobody has. */
static void come_back(strata_magazine_t *magazine, strata_magazine_block_t *block) {
    count_idle(magazine, block, 1);
    block->lent = false;
    block->ref++;
}

static bool may_come_back(const strata_magazine_block_t *block) { return strata_ref_generation(block->ref) % GENERATIONS != 0; }

bool strata_magazine_free(strata_magazines_t *all, const strata_stack_t *stack, strata_t facade, strata_ref_t ref) {
    strata_magazine_t *magazine = own(all);
    bool found = false;
    strata_lock(&magazine->lock);
    for (uint32_t i = 0; i < STRATA_MAGAZINE_BLOCKS && !found; i++) {
        strata_magazine_block_t *block = &magazine->blocks[i];
        found = block->ref == ref && block->lent && may_come_back(block) && (!facade || is_of(stack, facade));
        if (found) come_back(magazine, block);
    }
    strata_unlock(&magazine->lock);
    return found;
}

bool strata_magazine_free_pointer(strata_magazines_t *all, const strata_stack_t *stack, strata_t facade, uint64_t ptr) {
    strata_magazine_t *magazine = own(all);
    bool found = false;
    strata_lock(&magazine->lock);
    for (uint32_t i = 0; i < STRATA_MAGAZINE_BLOCKS && !found; i++) {
        strata_magazine_block_t *block = &magazine->blocks[i];
        found = block->ptr == ptr && block->lent && may_come_back(block) && is_of(stack, facade);
        if (found) come_back(magazine, block);
    }
    strata_unlock(&magazine->lock);
    return found;
}

/* ---- in and out ---- */

static strata_record_t *record_of(strata_stack_t *stack, const strata_magazine_block_t *block) {
    return strata_slab_record(&stack->slab, strata_ref_slot(block->ref));
}

/* What the program has is a plain record again, and what it has freed goes back to the cache, which never refuses. */
static void leave(strata_stack_t *stack, const strata_magazine_block_t *block) {
    if (!block->requested) return;
    strata_record_t *record = record_of(stack, block);
    record->attention &= (uint16_t)~STRATA_ATTENTION_CORE;
    record->generation = strata_ref_generation(block->ref);
    if (block->lent) return;
    strata_stack_unbook(stack, record);
    (void)stack->quick_free(stack->cache, record);
}

/* The first empty one, or the next in turn. */
static strata_magazine_block_t *room(strata_magazine_t *magazine) {
    for (uint32_t i = 0; i < STRATA_MAGAZINE_BLOCKS; i++)
        if (!magazine->blocks[i].requested) return &magazine->blocks[i];
    return &magazine->blocks[magazine->oldest++ % STRATA_MAGAZINE_BLOCKS];
}

/* Only what the stack's own threads find there again: it has a name, all of them may use it, and no layer above the cache wants to
 * hear of a request. */
static bool keeps(const strata_stack_t *stack, const strata_record_t *record) {
    bool open = atomic_load_explicit(&stack->handle, memory_order_relaxed) != 0 && !stack->orphan && stack->only_thread == 0;
    return open && strata_threads_own && stack->attention_allocate == 0 && record->size <= LARGEST &&
           record->generation < STRATA_GENERATION_LAST - 2 * GENERATIONS;
}

/* One that comes; the one that goes for it. */
static strata_magazine_block_t put(strata_magazine_t *magazine, const strata_magazine_block_t *fresh, bool *serves) {
    strata_lock(&magazine->lock);
    strata_magazine_block_t *place = room(magazine), gone = *place;
    *place = *fresh;
    if (!gone.lent) count_idle(magazine, &gone, -1);
    count_idle(magazine, fresh, 1);
    *serves = ++magazine->kept < LOOK_AFTER || magazine->kept_served >= LOOK_AFTER;
    if (magazine->kept >= LOOK_AFTER) magazine->kept = magazine->kept_served = 0;
    strata_unlock(&magazine->lock);
    return gone;
}

/* Until threads have met more often than last time. */
static void rest(strata_stack_t *stack) {
    strata_stack_settle(stack);
    atomic_store_explicit(&stack->magazines, NULL, memory_order_release);
    stack->attention_free &= (uint16_t)~STRATA_ATTENTION_MAGAZINES;
    stack->meetings = 0;
    stack->meetings_more = (uint32_t)strata_min((stack->meetings_more + strata_magazines_meetings) * (uint64_t)MEETINGS_TIMES,
                                                MEETINGS_MOST);
}

static void keep(strata_stack_t *stack, strata_record_t *record) {
    strata_magazine_block_t fresh = {.ptr = record->ptr, .size = record->size, .requested = strata_record_requested(record)};
    fresh.ref = strata_ref_make(stack->number, strata_slab_slot(&stack->slab, record), record->generation + 2);
    record->generation++;
    record->attention |= STRATA_ATTENTION_CORE;
    stack->keeps |= (uint16_t)(1u << own_number());
    bool serves;
    strata_magazine_block_t gone = put(own(stack->ready_magazines), &fresh, &serves);
    leave(stack, &gone);
    if (!serves && strata_magazines_meetings > 0) rest(stack);
}

bool strata_magazine_keep(strata_stack_t *stack, strata_record_t *record) {
    bool only = stack->attention_free == STRATA_ATTENTION_MAGAZINES && record->attention == 0 && record->route == stack->route;
    if (!only) return false;
    if (!keeps(stack, record)) return strata_direct_take_back(stack, record);
    keep(stack, record);
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
    for (uint32_t i = 0; i < STRATA_MAGAZINE_BLOCKS; i++) leave(stack, &blocks[i]);
}

void strata_stack_settle(strata_stack_t *stack) {
    uint32_t keep = stack->keeps;
    stack->keeps = 0;
    for (; keep; keep &= keep - 1) empty(stack, &stack->ready_magazines->of[__builtin_ctz(keep)]);
}

uint64_t strata_magazines_idle(const strata_stack_t *stack, int measure) {
    strata_magazines_t *all = atomic_load_explicit(&stack->magazines, memory_order_acquire);
    uint64_t idle = 0;
    for (uint32_t i = 0; all && i < STRATA_MAGAZINES; i++)
        idle += atomic_load_explicit(&all->of[i].idle[measure], memory_order_relaxed);
    return idle;
}

/* ---- life ---- */

/* Who holds one of the locks, if only to see that there is nothing, may hear of its release from one device and not from the other. */
static void listen(strata_magazines_t *all, strata_lock_observer_t *observer) {
    for (uint32_t i = 0; i < STRATA_MAGAZINES; i++) {
        strata_lock_t *lock = &all->of[i].lock;
        strata_lock_acquire(lock);
        if (lock->rank != STRATA_RANK_MAGAZINE) lock->rank = STRATA_RANK_MAGAZINE;
        strata_lock_observe(lock, observer);
        lock->observed = 0;
        all->of[i].oldest = all->of[i].kept = all->of[i].kept_served = 0;
        strata_lock_release(lock);
    }
}

void strata_magazines_begin(strata_stack_t *stack) {
    const strata_layer_t *cache = stack->cache;
    bool alone = cache && cache->stack == stack && stack->quick_free && !stack->ownerless;
    if (!alone || !STRATA_LAYER_HAS(cache->type, magazines) || !cache->type->magazines(cache)) return;
    listen(stack->ready_magazines, stack->lock.observer);
    stack->attention_free |= STRATA_ATTENTION_MAGAZINES;
    atomic_store_explicit(&stack->magazines, stack->ready_magazines, memory_order_release);
}

void strata_magazines_met(strata_stack_t *stack) {
    if (strata_magazines_of(stack) || ++stack->meetings < strata_magazines_meetings + stack->meetings_more) return;
    stack->meetings = 0;
    strata_magazines_begin(stack);
}

void strata_magazines_end(strata_stack_t *stack) {
    bool had = strata_magazines_of(stack) || stack->meetings_more > 0;
    atomic_store_explicit(&stack->magazines, NULL, memory_order_release);
    stack->meetings = stack->meetings_more = 0;
    if (had) listen(stack->ready_magazines, NULL);
}
