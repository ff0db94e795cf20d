/* Groups that are paused: they serve no requests while their memory is returned to the device and restored
 * (docs/sharing.md). Frees, borrows and notes still work. */
#ifndef STRATA_ALLOCATION_PAUSED_H
#define STRATA_ALLOCATION_PAUSED_H

#include "allocation/domain/group.h"

static inline bool strata_group_is_paused(const strata_group_t *group) { return atomic_load(&group->paused); }
/* Returns E_BUSY if the group is paused. */
strata_status_t strata_group_refuse_paused(const strata_group_t *group);
/* Pauses or resumes a group. After a pause returns, no new request is served. No lock is held; one thread
 * at a time for a group. */
void strata_group_set_paused(strata_group_t *group, bool paused);
/* Waits until all calls that began earlier and may still use memory of the group have ended. No lock is
 * held, and the caller is inside no call. */
void strata_group_drain(strata_group_t *group);
/* Returns E_BUSY if a graph pool of the domain is paused, because the graph that uses it is unknown. */
strata_status_t strata_domain_refuse_launch(strata_domain_t *domain);
/* Gives a new stack in the list the same path for hits as its group. Its home's lock is held. */
void strata_group_inherit(strata_stack_t *stack);

#endif
