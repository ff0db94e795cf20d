/* What threads that share a stream have freed, kept for each of them apart. A thread that gives a block back and asks for as much again
 * then takes a lock of its own, and touches no line that another thread writes. (Bonwick and Adams, "Magazines and Vmem", USENIX 2001,
 * call what a processor keeps for itself a magazine.) Memory that was freed on a stream may serve any thread that submits to it, so
 * that a magazine may be shared by threads, too.
 *
 * A stack has magazines from when threads have met at its lock often; until then nothing here costs its calls anything but, by pointer, a
 * look at whether there are some. It
 * loses them when they serve less often than blocks come into them, and gets them back after more meetings.
 *
 * A block of a magazine is live for everybody else: for its cache, in the figures, and in the slab, where its record has a generation
 * that no ref ever has, and STRATA_ATTENTION_CORE. So no direct way finds it. Whoever takes the stack's lock by strata_stack_take()
 * finds no block in a magazine: those that the program has are plain records again, those that it has freed are free. Nothing that a
 * block in a magazine relies on (handle, attention, an open stack) changes otherwise. */
#ifndef STRATA_ALLOCATION_MAGAZINES_H
#define STRATA_ALLOCATION_MAGAZINES_H

#include "allocation/stack/stack.h"

enum { STRATA_MAGAZINES = 16 /* bits of strata_stack_t.keeps */, STRATA_MAGAZINE_BLOCKS = 4 };

/* Guarded by its magazine's lock. */
typedef struct strata_magazine_block {
    uint64_t ptr, size, requested; /* requested 0: none */
    strata_ref_t ref; /* that the program has; of a free one, the next that it gets */
    bool lent; /* the program has it */
} strata_magazine_block_t;

typedef struct strata_magazine {
    alignas(128) strata_lock_t lock; /* after that of the stack */
    uint32_t oldest; /* goes when a block comes into a full one */
    uint64_t served; /* since it was empty */
    uint32_t kept, kept_served; /* since the last look at whether it serves: blocks that came, and requests */
    strata_magazine_block_t blocks[STRATA_MAGAZINE_BLOCKS];
    _Atomic uint64_t idle[STRATA_MEASURES]; /* of the blocks that the program does not have; read without the lock */
} strata_magazine_t;

/* As long as the struct of the stack, since others may look at it after the stack's end. Zero at first. */
struct strata_magazines {
    strata_magazine_t of[STRATA_MAGAZINES];
};

/* So often threads meet at a stack's lock before it has magazines. For tests: with 0 each stack has them from its beginning, and for
 * ever. */
extern _Atomic uint32_t strata_magazines_meetings;

/* The magazines of a stack; NULL: it has none. Without a lock. */
static inline strata_magazines_t *strata_magazines_of(strata_stack_t *stack) {
    return atomic_load_explicit(&stack->magazines, memory_order_acquire);
}

/* A stack that has them is called by a direct way of its own: one of theirs serves, or the way of any cache does. By pointer: no lock is
 * held, and the calling thread has a number. False: go another way. */
bool strata_magazine_free_pointer(strata_magazines_t *all, const strata_stack_t *stack, strata_t facade, uint64_t ptr);

/* The rest under the stack's lock. */

/* A direct free of a stack with magazines, if nothing else forbids one: the block is kept, or taken back. False: go the long way. */
bool strata_magazine_keep(strata_stack_t *stack, strata_record_t *record);
/* The calling thread had to wait for the lock. */
void strata_magazines_met(strata_stack_t *stack);
/* What counts as live in the stack and was freed. Without any lock, and so of about now. */
uint64_t strata_magazines_idle(const strata_stack_t *stack, int measure);
/* From now on the stack has magazines, if its cache allows it: its hits and frees leave nothing to be known there, and quick_free
 * never refuses. */
void strata_magazines_begin(strata_stack_t *stack);
/* They are empty, and nothing comes into them any more. */
void strata_magazines_end(strata_stack_t *stack);

#endif
