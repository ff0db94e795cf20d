/* Groups that serve nothing for a while, because their memory goes to the device and comes back (docs/pause.md). Frees, borrows and
 * notes go on. */
#ifndef STRATA_ALLOCATION_PAUSED_H
#define STRATA_ALLOCATION_PAUSED_H

#include "allocation/domain/group.h"

static inline bool strata_group_is_paused(const strata_group_t *group) { return atomic_load(&group->paused); }
/* E_BUSY: it does not serve. */
strata_status_t strata_group_refuse_paused(const strata_group_t *group);
/* Under no lock; one thread at a time for a group. From the return on no request is served that begins then; or they are again. */
void strata_group_set_paused(strata_group_t *group, bool paused);
/* Waits until no call is inside that began before and may still use memory of the group. No lock is held, and the caller is inside no
 * call. */
void strata_group_drain(strata_group_t *group);
/* E_BUSY: a pool of captured graphs of the domain is paused, and nobody knows which graph uses it. */
strata_status_t strata_domain_refuse_launch(strata_domain_t *domain);
/* A stack that is new in the list is as open to hits as its group; under its home's lock. */
void strata_group_inherit(strata_stack_t *stack);

#endif
