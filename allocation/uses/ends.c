/* Handles streams that are destroyed while blocks are in use on them. */
#include "allocation/domain/domain.h"
#include "allocation/domain/layer.h"
#include "allocation/uses/uses.h"

static strata_user_t *user_at(const strata_uses_t *uses, uint32_t user) { return strata_user_at(&uses->users, user); }

/* Records one event after all work of the stream, which covers every use of it that has none. If that
 * fails, the host waits. The locks may be released, so another thread may forget the stream concurrently. */
bool strata_uses_mark_end(strata_uses_t *uses, uint32_t node, strata_call_t *call) {
    strata_handle_t event = uses->mode == STRATA_USES_ON_HOST ? NULL : strata_uses_acquire_event(uses, call);
    strata_user_t *user = user_at(uses, node);
    bool marked = event && user->state == STRATA_USER_NAMED &&
                  strata_domain_record_event(uses->stack->domain, event, user->stream) == STRATA_OK;
    if (marked) user->end_event = event;
    else if (event) strata_events_release(uses->users.events, event);
    return marked || user->state != STRATA_USER_NAMED || strata_uses_wait_for_user(uses, node, call);
}

void strata_uses_stream_destroyed(strata_uses_t *uses, strata_stream_t stream, strata_call_t *call) {
    uint32_t node = strata_users_find(&uses->users, stream);
    if (node == 0) return;
    bool used = user_at(uses, node)->holds++ > 0;
    strata_uses_detach(uses, node, !used || strata_uses_mark_end(uses, node, call), call);
}

void strata_uses_detach(strata_uses_t *uses, uint32_t node, bool completion_known, strata_call_t *call) {
    strata_users_detach(&uses->users, node, completion_known ? STRATA_USER_DESTROYED : STRATA_USER_UNOBSERVABLE);
    while (user_at(uses, node)->busy > 0) strata_call_wait(call, uses->stack, &uses->stack->host_waited, UINT64_MAX);
    strata_users_release(&uses->users, node);
}
