/* Handles deferred frees: the queues of the users, and which uses have passed. */
#include "allocation/uses/waiting.h"

#include "allocation/domain/layer.h"
#include "platform/arithmetic.h"

/* ---- events and waits; the locks are released ---- */

strata_handle_t strata_uses_acquire_event(strata_uses_t *uses, strata_call_t *call) {
    strata_events_t *events = uses->users.events;
    strata_handle_t event;
    while ((event = strata_events_acquire(events)) == NULL) {
        strata_unlocked_t opened = strata_call_unlock(call);
        strata_status_t status = strata_events_ensure(events, 4);
        strata_call_lock(call, opened);
        if (status != STRATA_OK) return NULL;
    }
    return event;
}

bool strata_uses_enter_handle(strata_uses_t *uses, uint32_t user) {
    bool nameable = strata_user_is_nameable(strata_user_at(&uses->users, user));
    strata_user_at(&uses->users, user)->busy += nameable;
    return nameable;
}

void strata_uses_exit_handle(strata_uses_t *uses, uint32_t user) {
    strata_user_at(&uses->users, user)->busy--;
    strata_condition_broadcast(&uses->stack->host_waited);
}

bool strata_uses_wait_for_user(strata_uses_t *uses, uint32_t user, strata_call_t *call) {
    strata_stream_t stream = strata_user_at(&uses->users, user)->stream;
    bool named = strata_uses_enter_handle(uses, user);
    strata_unlocked_t opened = strata_call_unlock(call);
    bool done = named ? strata_domain_wait_for(domain_of(uses), stream) : strata_domain_wait_for_all(domain_of(uses));
    strata_call_lock(call, opened);
    if (named) strata_uses_exit_handle(uses, user);
    return done;
}

/* ---- the queues of the users ---- */

static void list_awaited(strata_uses_t *uses, uint32_t node) {
    strata_user_t *user = strata_user_at(&uses->users, node);
    user->next_awaited = 0;
    user->prev_awaited = uses->last_awaited;
    if (uses->last_awaited) strata_user_at(&uses->users, uses->last_awaited)->next_awaited = node;
    else uses->first_awaited = node;
    uses->last_awaited = node;
}

static void unlist_awaited(strata_uses_t *uses, const strata_user_t *user) {
    if (user->prev_awaited) strata_user_at(&uses->users, user->prev_awaited)->next_awaited = user->next_awaited;
    else uses->first_awaited = user->next_awaited;
    if (user->next_awaited) strata_user_at(&uses->users, user->next_awaited)->prev_awaited = user->prev_awaited;
    else uses->last_awaited = user->prev_awaited;
}

void strata_uses_enqueue(strata_uses_t *uses, uint32_t node) {
    strata_use_t *use = strata_use_at(uses, node);
    strata_user_t *user = user_of(uses, use);
    use->state = STRATA_USE_WAITING;
    strata_use_at(uses, use->head)->unfinished++;
    if (uses->mode == STRATA_USES_BY_BLOCK) return;
    if (!user->first) list_awaited(uses, use->user);
    use->next_of_user = 0;
    if (user->first) strata_use_at(uses, user->last)->next_of_user = node;
    else user->first = node;
    user->last = node;
}

/* Removes the first use of a user's queue. */
static void dequeue(strata_uses_t *uses, strata_use_t *use) {
    strata_user_t *user = user_of(uses, use);
    if (uses->mode == STRATA_USES_BY_BLOCK) return;
    if (user->last_polled == user->first) user->last_polled = 0;
    user->first = use->next_of_user;
    if (!user->first) unlist_awaited(uses, user);
}

/* Returns a use to the front of its queue. */
static void requeue(strata_uses_t *uses, uint32_t node) {
    strata_use_t *use = strata_use_at(uses, node);
    strata_user_t *user = user_of(uses, use);
    if (!user->first) list_awaited(uses, use->user);
    if (!user->first) user->last = node;
    use->next_of_user = user->first;
    user->first = node;
}

void strata_uses_add_done(strata_uses_t *uses, strata_done_t *done, uint32_t head) {
    strata_use_at(uses, head)->next_waiting = 0;
    if (done->last) strata_use_at(uses, done->last)->next_waiting = head;
    else done->first = head;
    done->last = head;
}

/* Returns the time when the last of a block's uses is over, or UINT64_MAX if the device cannot predict
 * it. */
static uint64_t ready_at(const strata_uses_t *uses, uint32_t head) {
    uint64_t latest = 0;
    for (uint32_t node = head; node; node = strata_use_at(uses, node)->next) {
        const strata_use_t *use = strata_use_at(uses, node);
        strata_handle_t event = use->event ? use->event : user_of(uses, use)->end_event;
        if (use->state != STRATA_USE_WAITING || !event) continue;
        latest = strata_max(latest, strata_device_event_ready_at(domain_of(uses)->device, event));
    }
    return latest;
}

void strata_uses_count(strata_uses_t *uses, uint32_t head) {
    strata_domain_t *domain = domain_of(uses);
    strata_use_t *use = strata_use_at(uses, head);
    uint64_t ready = domain->deferral ? ready_at(uses, head) : STRATA_NEVER;
    if (ready != STRATA_NEVER)
        domain->deferral->add(domain->deferral, domain->device->clock->now(domain->device->clock), ready, use->bytes);
    use->counted = true;
    use->next_waiting = 0;
    use->prev_waiting = uses->last;
    if (uses->last) strata_use_at(uses, uses->last)->next_waiting = head;
    else uses->first = head;
    uses->last = head;
    uses->pending_bytes += use->bytes;
    uses->stack->figures.deferred_bytes += use->bytes;
    uses->stack->figures.deferred_frees++;
}

void strata_uses_reduce(strata_uses_t *uses, uint32_t head, uint64_t bytes) {
    strata_domain_t *domain = domain_of(uses);
    strata_use_t *use = strata_use_at(uses, head);
    use->bytes -= bytes;
    use->reduced += bytes;
    if (use->unobservable) uses->stack->figures.quarantined_bytes -= bytes;
    if (!use->counted) return;
    uses->pending_bytes -= bytes;
    uses->reduced_bytes += bytes;
    uses->stack->figures.deferred_bytes -= bytes;
    uint64_t ready = domain->deferral ? ready_at(uses, head) : STRATA_NEVER;
    if (ready != STRATA_NEVER)
        domain->deferral->cut(domain->deferral, domain->device->clock->now(domain->device->clock), ready, bytes);
}

static void count_no_more(strata_uses_t *uses, uint32_t head) {
    strata_use_t *use = strata_use_at(uses, head);
    use->counted = false;
    if (use->prev_waiting) strata_use_at(uses, use->prev_waiting)->next_waiting = use->next_waiting;
    else uses->first = use->next_waiting;
    if (use->next_waiting) strata_use_at(uses, use->next_waiting)->prev_waiting = use->prev_waiting;
    else uses->last = use->prev_waiting;
    if (!use->record) uses->reduced_bytes -= use->reduced;
    uses->pending_bytes -= use->bytes;
    uses->stack->figures.deferred_bytes -= use->bytes;
}

void strata_uses_end(strata_uses_t *uses, uint32_t node, strata_use_state_t state) {
    strata_use_t *use = strata_use_at(uses, node);
    strata_uses_drop_event(uses, use);
    use->state = (uint8_t)state;
    strata_users_release(&uses->users, use->user);
}

static void complete(strata_uses_t *uses, uint32_t node, strata_done_t *done) {
    uint32_t head = strata_use_at(uses, node)->head;
    dequeue(uses, strata_use_at(uses, node));
    strata_uses_end(uses, node, STRATA_USE_PASSED);
    if (--strata_use_at(uses, head)->unfinished > 0) return;
    count_no_more(uses, head);
    strata_uses_add_done(uses, done, head);
}

/* The bytes remain counted as quarantined, because the end of a use cannot be observed. */
void strata_uses_quarantine(strata_uses_t *uses, uint32_t head) {
    strata_use_t *use = strata_use_at(uses, head);
    if (use->unobservable) return;
    if (use->counted) count_no_more(uses, head);
    use->unobservable = true;
    uses->stack->figures.quarantined_bytes += use->bytes;
}

/* Handles an event that was recorded in a capture, whose graph may be launched repeatedly. The uses after
 * it continue. */
static void mark_unobservable(strata_uses_t *uses, uint32_t node) {
    dequeue(uses, strata_use_at(uses, node));
    strata_uses_end(uses, node, STRATA_USE_UNOBSERVABLE);
    strata_uses_quarantine(uses, strata_use_at(uses, node)->head);
}

static strata_status_t query_end(strata_uses_t *uses, const strata_use_t *use) {
    if (use->event) return strata_device_event_query(domain_of(uses)->device, use->event);
    return strata_users_query(&uses->users, use->user);
}

/* Returns whether the use has stopped waiting. */
static bool ask(strata_uses_t *uses, uint32_t node, strata_done_t *done) {
    strata_status_t status = query_end(uses, strata_use_at(uses, node));
    if (status == STRATA_OK) complete(uses, node, done);
    else if (status == STRATA_E_CAPTURE) mark_unobservable(uses, node);
    return status == STRATA_OK || status == STRATA_E_CAPTURE;
}

/* ---- one query for many uses ---- */

/* Events of a stream pass in the order in which they were recorded, and its queue has the same order. So
 * all events before a passed one have passed too. An event that was recorded in a capture is the
 * exception, because it has no place in that order. */
static void complete_through(strata_uses_t *uses, uint32_t user, uint32_t last, strata_done_t *done) {
    for (uint32_t node = 0; node != last;) {
        node = strata_user_at(&uses->users, user)->first;
        strata_handle_t event = strata_use_at(uses, node)->event;
        bool captured = event && strata_device_event_is_captured(domain_of(uses)->device, event);
        if (captured) mark_unobservable(uses, node);
        else complete(uses, node, done);
    }
}

/* Returns whether all uses up to *place in the queue have stopped waiting. The first use is at place 1. If the
 * queue is shorter, *place is set to the place of its last use. */
static bool ask_through(strata_uses_t *uses, uint32_t user, uint32_t *place, strata_done_t *done) {
    uint32_t node = strata_user_at(&uses->users, user)->first, at = 1;
    for (uint32_t next; at < *place && (next = strata_use_at(uses, node)->next_of_user) != 0; at++) node = next;
    *place = at;
    if (*place == 1) return ask(uses, node, done);
    if (query_end(uses, strata_use_at(uses, node)) != STRATA_OK) return false;
    complete_through(uses, user, node, done);
    return true;
}

/* Finds how many uses of a stream have passed, with queries at growing and then at shrinking distances.
 * The first distance is the number that the previous search found, so a stream that advances steadily
 * needs few queries. */
static void search(strata_uses_t *uses, uint32_t user, strata_done_t *done) {
    /* `left` counts uses that may have passed */
    uint32_t found = 0, left = UINT32_MAX, place = strata_user_at(&uses->users, user)->stride;
    while (left > 0 && strata_user_at(&uses->users, user)->first) {
        if (place == 0) place = 1;
        bool passed = ask_through(uses, user, &place, done);
        if (passed) found += place;
        if (!passed) left = place - 1;
        else if (left != UINT32_MAX) left -= place;
        place = left == UINT32_MAX ? found : (left + 1) / 2;
    }
    strata_user_at(&uses->users, user)->stride = found;
}

/* Searches instead if the query fails otherwise than with E_NOT_READY. */
static void poll_user_brief(strata_uses_t *uses, uint32_t number, strata_done_t *done) {
    strata_user_t *user = strata_user_at(&uses->users, number);
    strata_status_t status = user->last_polled ? query_end(uses, strata_use_at(uses, user->last_polled)) : STRATA_OK;
    if (status == STRATA_E_NOT_READY) return;
    if (status != STRATA_OK) search(uses, number, done);
    else if (user->last_polled) complete_through(uses, number, user->last_polled, done);
    user = strata_user_at(&uses->users, number);
    user->last_polled = user->first ? user->last : 0;
}

uint32_t strata_uses_poll_brief(strata_uses_t *uses) {
    strata_done_t done = {0};
    for (uint32_t user = uses->captures == 0 ? uses->first_awaited : 0, next; user; user = next) {
        next = strata_user_at(&uses->users, user)->next_awaited;
        poll_user_brief(uses, user, &done);
    }
    return done.first;
}

uint32_t strata_uses_poll(strata_uses_t *uses) {
    strata_done_t done = {0};
    if (uses->captures > 0) return strata_uses_poll_in_capture(uses);
    for (uint32_t head = uses->mode == STRATA_USES_BY_BLOCK ? uses->first : 0, next_waiting; head; head = next_waiting) {
        next_waiting = strata_use_at(uses, head)->next_waiting;
        for (uint32_t node = head, next; node; node = next) {
            next = strata_use_at(uses, node)->next;
            if (strata_use_at(uses, node)->state == STRATA_USE_WAITING && !ask(uses, node, &done)) break;
        }
    }
    for (uint32_t user = uses->first_awaited, next; user; user = next) {
        next = strata_user_at(&uses->users, user)->next_awaited;
        if (uses->mode == STRATA_USES_BY_SEARCH) search(uses, user, &done);
        else
            for (uint32_t node; (node = strata_user_at(&uses->users, user)->first) != 0 && ask(uses, node, &done);) continue;
    }
    return done.first;
}

void strata_uses_add_pending(const strata_uses_t *uses, strata_pending_t *pending) {
    pending->pending_bytes += uses->pending_bytes;
    for (uint32_t head = uses->first; head; head = strata_use_at(uses, head)->next_waiting) {
        uint64_t bytes = strata_use_at(uses, head)->bytes;
        if (bytes == 0) continue;
        uint64_t ready = ready_at(uses, head);
        pending->ready_at = strata_min(pending->ready_at, ready);
        if (pending->deadline && ready != STRATA_NEVER && ready > pending->deadline) pending->late_bytes += bytes;
    }
}

void strata_uses_each_wait(const strata_uses_t *uses, strata_wait_fn wait, void *context) {
    for (uint32_t head = uses->first; head; head = strata_use_at(uses, head)->next_waiting)
        for (uint32_t node = head; node; node = strata_use_at(uses, node)->next) {
            const strata_use_t *use = strata_use_at(uses, node);
            const strata_user_t *user = user_of(uses, use);
            bool waits = use->state == STRATA_USE_WAITING;
            if (waits) wait(user->stream, user->state != STRATA_USER_NAMED, strata_use_at(uses, head)->bytes, context);
        }
}

/* ---- waits on the host ---- */

/* Waits on the host for the first use of a user. The use leaves its queue for that time, so that no other
 * thread can return its event. An event that was recorded in a capture is not waited for, because that
 * would end the capture. Returns false if nothing more can be done for this user. */
static bool wait_for_first(strata_uses_t *uses, uint32_t user, strata_call_t *call, strata_done_t *done) {
    uint32_t node = strata_user_at(&uses->users, user)->first;
    strata_use_t *use = strata_use_at(uses, node);
    if (!use->event && query_end(uses, use) == STRATA_E_CAPTURE) return false;
    dequeue(uses, use);
    uses->on_host++;
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_status_t status = use->event ? strata_device_event_synchronise(domain_of(uses)->device, use->event) : STRATA_E_NOT_READY;
    bool over = status == STRATA_OK || (status != STRATA_E_CAPTURE && strata_domain_wait_for_all(domain_of(uses)));
    strata_call_lock(call, opened);
    uses->on_host--;
    requeue(uses, node);
    if (over) complete(uses, node, done);
    return over;
}

uint32_t strata_uses_wait(strata_uses_t *uses, strata_call_t *call) {
    strata_done_t done = {0};
    for (uint32_t user = 1; user < uses->users.nodes.used; user++)
        while (strata_user_at(&uses->users, user)->first && wait_for_first(uses, user, call, &done)) continue;
    return done.first;
}
