/* Blocks that other processes were sent.
 *
 * An entry is a pipe of which this process has the reading end. Every message of the block carries the writing end, and whoever imports the
 * block keeps a copy of it. So the kernel counts the users: the pipe hangs up once no process has a copy, be it that all have ended their
 * imports or that they have died.
 *
 *     the program has the block      `record` NULL   the entry goes as soon as a look finds it hung up
 *     freed while others use it      `record` set    in limbo: nobody may have its memory before the pipe hangs up
 *
 * A look asks all entries at once: when memory is short (strata_domain_poll()), at the free of a block that was sent, and at an export. */
#ifndef STRATA_ALLOCATION_USES_SENT_H
#define STRATA_ALLOCATION_USES_SENT_H

#include "allocation/tables/nodes.h"
#include "platform/lock.h"
#include "strata/layer.h"

enum { STRATA_SENT_BLOCKS = 1 << 20 }; /* at once, in one place; a process has fewer descriptors */

typedef struct strata_domain strata_domain_t;
typedef struct strata_stack strata_stack_t;

typedef struct strata_sent {
    strata_lock_t lock; /* rank EVENTS; taken under a stack's too */
    strata_nodes_t nodes; /* guarded by the lock; made for the first block */
    _Atomic uint32_t count; /* entries */
    _Atomic uint32_t limbo; /* of them in limbo */
} strata_sent_t;

/* The entry of a live block. */
typedef struct strata_sent_mark {
    uint32_t number; /* 0: none */
    strata_ref_t ref;
} strata_sent_mark_t;

void strata_sent_init(strata_domain_t *domain);
/* The memory of what is in limbo is the stacks', which have ended. */
void strata_sent_destroy(strata_domain_t *domain);

/* The live block is sent once more: *lease receives another writing end, which is the caller's. No lock is held. E_STALE; E_LIMIT,
 * E_HOST_MEMORY; E_DEVICE: no descriptor is left. On failure nothing has changed. */
strata_status_t strata_sent_lease(strata_domain_t *domain, strata_ref_t ref, int *lease);
/* The call holds the lock of the stack that served the block, in these two. */
strata_sent_mark_t strata_sent_mark(const strata_call_t *call, const strata_record_t *record);
/* A block with that mark was freed. True: other processes use it, so it is in limbo now. `known`: for strata_record_return(). False: the
 * entry goes with the next look. */
bool strata_sent_keep(const strata_call_t *call, strata_sent_mark_t mark, strata_record_t *record, bool known);
/* Entries that have hung up go, and what was in limbo goes back; returns its bytes. No lock is held. */
uint64_t strata_sent_look(strata_domain_t *domain);
static inline bool strata_sent_has_limbo(strata_sent_t *sent) { return atomic_load(&sent->limbo) > 0; }

/* Adds the figures of a place, of a stack, or of a pool. */
void strata_sent_count(strata_domain_t *domain, strata_statistics_t *sum);
void strata_sent_count_stack(const strata_stack_t *stack, strata_statistics_t *sum);
void strata_sent_count_pool(strata_domain_t *domain, uint64_t pool, strata_statistics_t *sum);

#endif
