/* Blocks that were sent to other processes.
 *
 * Each entry holds the read end of a pipe. Every message of the block carries the write end, and a process
 * that imports the block keeps a copy. So the kernel counts the users: the pipe hangs up once every copy is
 * closed, also when a process dies.
 *
 *     the program has the block      `record` NULL   a look that finds the pipe hung up removes the entry
 *     freed while others use it      `record` set    in limbo: its memory is not reused before the pipe hangs up
 *
 * A look checks all entries: when memory is short (strata_domain_poll()), at the free of a block that was
 * sent, and at an export. */
#ifndef STRATA_ALLOCATION_USES_SENT_H
#define STRATA_ALLOCATION_USES_SENT_H

#include "allocation/tables/nodes.h"
#include "platform/lock.h"
#include "strata/layer.h"

enum { STRATA_SENT_BLOCKS = 1 << 20 }; /* the limit at one time, in one place; a process has fewer descriptors */

typedef struct strata_domain strata_domain_t;
typedef struct strata_stack strata_stack_t;

typedef struct strata_sent {
    strata_lock_t lock; /* rank EVENTS; also taken under a stack's lock */
    strata_nodes_t nodes; /* guarded by the lock; created for the first block */
    _Atomic uint32_t count; /* entries */
    _Atomic uint32_t limbo; /* of them in limbo */
} strata_sent_t;

/* The entry of a live block. */
typedef struct strata_sent_mark {
    uint32_t number; /* 0 if there is none */
    strata_ref_t ref;
} strata_sent_mark_t;

void strata_sent_init(strata_domain_t *domain);
/* Does not free blocks in limbo: their memory belonged to stacks that have ended. */
void strata_sent_destroy(strata_domain_t *domain);

/* Sets *lease to one more write end, which the caller owns. No lock is held. Fails with E_STALE, E_LIMIT,
 * E_HOST_MEMORY, or E_DEVICE if no descriptor is left; then nothing has changed. */
strata_status_t strata_sent_lease(strata_domain_t *domain, strata_ref_t ref, int *lease);
/* In these two functions the call holds the lock of the stack that served the block. */
strata_sent_mark_t strata_sent_mark(const strata_call_t *call, const strata_record_t *record);
/* Puts a freed block with that mark into limbo and returns true if other processes use it. Otherwise the
 * next look removes its entry. `known` is passed to strata_record_return(). */
bool strata_sent_defer(const strata_call_t *call, strata_sent_mark_t mark, strata_record_t *record, bool known);
/* Removes the entries of pipes that have hung up, and frees their blocks in limbo. Returns the bytes of
 * those. No lock is held. */
uint64_t strata_sent_poll(strata_domain_t *domain);
static inline bool strata_sent_has_limbo(strata_sent_t *sent) { return atomic_load(&sent->limbo) > 0; }

/* Add the metrics of a place, of a stack, or of a pool. */
void strata_sent_count(strata_domain_t *domain, strata_statistics_t *sum);
void strata_sent_count_stack(const strata_stack_t *stack, strata_statistics_t *sum);
void strata_sent_count_pool(strata_domain_t *domain, uint64_t pool, strata_statistics_t *sum);

#endif
