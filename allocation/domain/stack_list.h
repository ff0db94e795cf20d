/* The list of a domain's stacks, in creation order, and the table that finds a stack by its stream and
 * pool. All functions require the domain's lock, except strata_stack_list_reserve(). A walk takes it for each
 * step (STRATA_DOMAIN_EACH).
 *
 * A place may have thousands of streams, so neither a look-up nor a step of a walk may look at all stacks.
 * `examined` counts the stacks that they looked at; tests check it. */
#ifndef STRATA_ALLOCATION_STACK_LIST_H
#define STRATA_ALLOCATION_STACK_LIST_H

#include "allocation/domain/domain.h"

/* Makes room for one more stack, with no lock held. Stacks may leave the list concurrently, but none may be
 * added. E_HOST_MEMORY. */
strata_status_t strata_stack_list_reserve(strata_domain_t *domain);
void strata_stack_list_add(strata_domain_t *domain, strata_stack_t *stack);
void strata_stack_list_remove(strata_domain_t *domain, strata_stack_t *stack);
/* Changes the pool number of a group. Takes the lock itself. */
void strata_stack_list_renumber(strata_domain_t *domain, strata_group_t *group, uint64_t pool);
/* Makes a stack an orphan: requests of its stream no longer find it, and it stays in the list. */
void strata_stack_list_orphan(strata_domain_t *domain, strata_stack_t *stack);
/* Makes a stack, which may be an orphan, the stack of another stream. Its locks are held too, and no walk and no call
 * uses it, since those may read its stream without the locks. */
void strata_stack_list_rekey(strata_domain_t *domain, strata_stack_t *stack, strata_stream_t stream);

/* Return the stack after `previous`, or the first for NULL. NULL if there is none. */
strata_stack_t *strata_stack_list_next(strata_domain_t *domain, const strata_stack_t *previous);
strata_stack_t *strata_stack_list_next_of_group(strata_domain_t *domain, const strata_group_t *group,
                                                const strata_stack_t *previous);
strata_stack_t *strata_stack_list_next_orphan(strata_domain_t *domain, const strata_stack_t *previous);
/* Visits the stacks of a stream in every pool, in no particular order. Orphans are skipped. */
strata_stack_t *strata_stack_list_next_of_stream(strata_domain_t *domain, strata_stream_t stream, const strata_stack_t *previous);
/* Looks up stacks by number. */
typedef struct strata_stack_set {
    uint64_t bits[STRATA_STACKS / 64];
} strata_stack_set_t;
static inline strata_stack_t *strata_stack_set_next(const strata_stack_set_t *set, uint32_t number) {
    for (; number < STRATA_STACKS; number = (number | 63) + 1) {
        uint64_t left = set->bits[number / 64] >> number % 64;
        if (left) return strata_stack_of((uint16_t)(number + (uint32_t)__builtin_ctzll(left)));
    }
    return NULL;
}
#define STRATA_STACK_SET_EACH(set, stack)                                                                                          \
    for (strata_stack_t *stack = strata_stack_set_next(set, 0); stack; stack = strata_stack_set_next(set, stack->number + 1u))
/* Visits the other stacks with blocks that the stream may have used, shared stacks included. The second
 * function removes the stream from these stacks, so that later visits skip them. */
void strata_stack_list_visit_borrowed(strata_domain_t *domain, strata_stream_t stream, strata_stack_set_t *set);
void strata_stack_list_end_borrowed(strata_domain_t *domain, strata_stream_t stream, const strata_stack_set_t *set);

/* Identifies the requests that a stack serves. */
typedef struct strata_stack_key {
    uint64_t pool;
    strata_stream_t stream; /* NULL for a shared stack */
    uint64_t thread; /* of a per-thread default stream, otherwise 0 */
    uint64_t of_thread; /* the only thread that it serves, or 0 for any */
    bool is_shared;
} strata_stack_key_t;

/* Returns the oldest stack with this key that is not an orphan, or NULL. If `group` is not NULL, only
 * stacks of this group count. */
strata_stack_t *strata_stack_list_find(strata_domain_t *domain, const strata_stack_key_t *key, const strata_group_t *group);

#endif
