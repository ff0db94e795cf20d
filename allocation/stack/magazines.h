/* Per-thread caches of freed blocks, for threads that share a stream. A thread that frees a block and requests that size again
 * takes a lock of its own. It touches no cache line that another thread writes. (The name is from Bonwick and Adams, "Magazines and
 * Vmem", USENIX 2001, for the cache of one processor.) Memory that was freed on a stream may serve any thread that submits to it,
 * so threads may also share a magazine.
 *
 * A stack gets magazines after enough contention for its lock. Until then they cost its calls nothing, except that a free by
 * pointer checks whether there are any. A stack loses them if they serve less often than blocks enter them. It gets them back
 * after more contention than before.
 *
 * All other code treats a block in a magazine as live: its cache, the metrics, and the slab. In its record are
 * STRATA_ATTENTION_CORE and a generation that no ref ever has, so no other fast path finds it. A call that takes the stack's lock
 * with strata_stack_lock_own() finds no block in a magazine. Those that the program has are plain records again, and the others are
 * free. Nothing that a block in a magazine depends on (handle, attention, an open stack) changes without that. */
#ifndef STRATA_ALLOCATION_MAGAZINES_H
#define STRATA_ALLOCATION_MAGAZINES_H

#include "allocation/stack/stack.h"

enum { STRATA_MAGAZINES = 16 /* bits of strata_magazine_use_t.occupied */, STRATA_MAGAZINE_BLOCKS = 4 };

/* A block in a magazine, free or handed out from it. Guarded by the magazine's lock. */
typedef struct strata_magazine_block {
    uint64_t ptr, size, requested; /* `requested` is 0 if the entry is empty */
    strata_ref_t ref; /* the program's ref; for a free block the next one that it gets */
    bool handed_out; /* the program has it */
} strata_magazine_block_t;

typedef struct strata_magazine {
    alignas(128) strata_lock_t lock; /* taken after the stack's */
    uint32_t oldest; /* counter that selects the block to replace in a full magazine */
    uint64_t served; /* requests served since it was emptied */
    uint32_t stored, served_since; /* blocks that entered and requests served, since the last check that it is useful */
    strata_magazine_block_t blocks[STRATA_MAGAZINE_BLOCKS];
    _Atomic uint64_t idle[STRATA_MEASURES]; /* bytes of its free blocks; also read without the lock */
} strata_magazine_t;

/* Lives as long as the struct of the stack, since a thread may look at it after the stack's end. Initialized to zero. */
struct strata_magazines {
    strata_magazine_t of[STRATA_MAGAZINES];
};

/* The number of contended calls after which a stack gets magazines. Tests set it to 0: then each stack has them from the start, and
 * keeps them. */
extern _Atomic uint32_t strata_magazines_threshold;

/* Returns the magazines of a stack, or NULL. Needs no lock. */
static inline strata_magazines_t *strata_magazines_of(strata_stack_t *stack) {
    return atomic_load_explicit(&stack->magazines, memory_order_acquire);
}

/* Frees by pointer into the thread's magazine. No lock is held, and the calling thread has a number. Returns false if the free must
 * take another path. All other calls reach the magazines through the stack's `direct`. If these cannot serve, the generic fast path
 * does. */
bool strata_magazine_free_pointer(strata_magazines_t *all, const strata_stack_t *stack, strata_t facade, uint64_t ptr);

/* The functions below require the stack's lock, unless a comment gives another rule. */

/* The fast path of a free in a stack with magazines, if nothing else forbids one: keeps the block, or frees it. Returns false if
 * the free must take the slow path. */
bool strata_magazine_push(strata_stack_t *stack, strata_record_t *record);
/* Called when the calling thread had to wait for the lock. */
void strata_magazines_note_contention(strata_stack_t *stack);
/* Returns the freed bytes that still count as live in the stack. Needs no lock, so the result is approximate. */
uint64_t strata_magazines_idle(const strata_stack_t *stack, int measure);
/* Gives the stack magazines if its cache allows them. Such a cache does not depend on seeing every hit and free, and its quick_free
 * never refuses. */
void strata_magazines_begin(strata_stack_t *stack);
/* Takes the magazines away. They must be empty, and no block enters them any more. */
void strata_magazines_end(strata_stack_t *stack);

#endif
