#include "allocation/uses/last_users.h"

#include "allocation/domain/captures.h"
#include "allocation/domain/domain.h"

strata_status_t strata_last_users_init(strata_last_users_t *last, strata_domain_t *domain) {
    return strata_users_init(&last->users, &domain->events);
}

void strata_last_users_destroy(strata_last_users_t *last) { strata_users_destroy(&last->users); }

/* An entry must not be reused while a valid mark names it. */
static void release_waited(strata_last_users_t *last) {
    for (uint32_t node; (node = last->first_destroyed) != 0 && strata_user_at(&last->users, node)->count <= last->waited;) {
        last->first_destroyed = strata_user_at(&last->users, node)->list;
        if (last->first_destroyed == 0) last->last_destroyed = 0;
        strata_users_release(&last->users, node);
    }
}

/* The list takes over the entry's own hold. */
static void append(strata_last_users_t *last, uint32_t node) {
    strata_user_t *user = strata_user_at(&last->users, node);
    user->count = last->frees;
    user->list = 0;
    if (last->last_destroyed) strata_user_at(&last->users, last->last_destroyed)->list = node;
    else last->first_destroyed = node;
    last->last_destroyed = node;
}

static void detach_destroyed(void *owner, uint32_t node) {
    strata_last_users_t *last = owner;
    strata_users_detach(&last->users, node, STRATA_USER_DESTROYED);
    append(last, node);
    release_waited(last);
}

/* Returns false if the entry is not in the list. */
static bool unlist(strata_last_users_t *last, uint32_t node) {
    uint32_t before = 0, at = last->first_destroyed;
    while (at && at != node) before = at, at = strata_user_at(&last->users, at)->list;
    if (at == 0) return false;
    uint32_t after = strata_user_at(&last->users, node)->list;
    if (before) strata_user_at(&last->users, before)->list = after;
    else last->first_destroyed = after;
    if (last->last_destroyed == node) last->last_destroyed = before;
    return true;
}

uint32_t strata_last_users_of(strata_last_users_t *last, strata_stream_t stream) {
    uint32_t node = strata_users_find(&last->users, stream);
    if (node) return node;
    if (stream == STRATA_STREAM_PER_THREAD) strata_users_reap(&last->users, detach_destroyed, last);
    node = strata_users_make(&last->users, stream);
    if (node) strata_user_at(&last->users, node)->holds = 1;
    return node;
}

void strata_last_users_mark(strata_last_users_t *last, strata_record_t *block, uint32_t user) {
    /* The mark must not name the entry of a destroyed stream, because another stream may soon get it. */
    bool named = user && strata_user_at(&last->users, user)->state == STRATA_USER_NAMED;
    strata_mark(block, ++last->frees, named ? user : 0);
    if (user && strata_user_at(&last->users, user)->state == STRATA_USER_DESTROYED) {
        /* A block of such a stream was freed just now, so the entry must stay until the host has waited for this free
         * too. */
        if (!unlist(last, user)) strata_user_at(&last->users, user)->holds++;
        append(last, user);
    }
    strata_last_users_release(last, user);
}

/* Records an event after the stream's work while its handle is known to be valid. Returns NULL if that is
 * not possible, or if the stream is being captured. */
static strata_handle_t mark_work(strata_domain_t *domain, const strata_user_t *user) {
    bool nameable = strata_user_is_nameable(user) && strata_domain_refuse_captured(domain, user->stream) == STRATA_OK;
    strata_handle_t event = nameable ? strata_events_acquire(&domain->events) : NULL;
    if (!event || strata_domain_record_event(domain, event, user->stream) == STRATA_OK) return event;
    strata_events_release(&domain->events, event);
    return NULL;
}

static bool wait_for(strata_domain_t *domain, strata_handle_t event, strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    bool done = strata_device_event_synchronise(domain->device, event) == STRATA_OK &&
                strata_events_ensure(&domain->events, 1) == STRATA_OK;
    strata_call_lock(call, opened);
    strata_events_release(&domain->events, event);
    return done;
}

/* A DESTROYED stream has no handle to wait by, only an event, if one could be taken. */
static bool wait_for_destroyed(strata_last_users_t *last, strata_domain_t *domain, strata_call_t *call) {
    bool done = true;
    for (uint32_t node = last->first_destroyed; done && node; node = strata_user_at(&last->users, node)->list) {
        strata_handle_t event = strata_user_at(&last->users, node)->end_event;
        uint64_t count = strata_user_at(&last->users, node)->count;
        strata_unlocked_t opened = strata_call_unlock(call);
        done = event && strata_device_event_synchronise(domain->device, event) == STRATA_OK;
        strata_call_lock(call, opened);
        /* Another thread has waited too, so the entry may have been reused. The entries after it now
         * begin the list. */
        if (count <= last->waited) return done && wait_for_destroyed(last, domain, call);
    }
    return done;
}

/* Waits for each user, because the device of a captured stream must not be waited for. The lock is held,
 * and is released during each wait. */
static bool wait_for_each(strata_last_users_t *last, strata_domain_t *domain, strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    bool done = strata_events_ensure(&domain->events, 1) == STRATA_OK;
    strata_call_lock(call, opened);
    done = done && wait_for_destroyed(last, domain, call);
    for (uint32_t node = 1; done && node < last->users.nodes.used; node++) {
        const strata_user_t *user = strata_user_at(&last->users, node);
        if (user->state != STRATA_USER_NAMED) continue;
        strata_handle_t event = mark_work(domain, user);
        done = event && wait_for(domain, event, call);
    }
    return done;
}

bool strata_last_users_wait(strata_last_users_t *last, strata_domain_t *domain, strata_call_t *call) {
    uint64_t frees = last->frees;
    bool each = strata_domain_may_capture(domain), done;
    if (each) {
        done = wait_for_each(last, domain, call);
    } else {
        strata_unlocked_t opened = strata_call_unlock(call);
        done = strata_domain_wait_for_all(domain);
        strata_call_lock(call, opened);
    }
    if (each && !done) (void)strata_fail(STRATA_E_CAPTURE, 0, "a stream may be in a capture, so its device is not waited for");
    if (!done || frees <= last->waited) return done;
    last->waited = frees;
    release_waited(last);
    return true;
}

void strata_last_users_stream_destroyed(strata_last_users_t *last, strata_domain_t *domain, strata_stream_t stream,
                                        strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    (void)strata_events_ensure(&domain->events, 1);
    strata_call_lock(call, opened);
    uint32_t node = strata_users_find(&last->users, stream);
    if (node) strata_user_at(&last->users, node)->end_event = mark_work(domain, strata_user_at(&last->users, node));
    if (node) detach_destroyed(last, node);
}

strata_status_t strata_last_users_validate(strata_last_users_t *last) {
    uint32_t end = 0, count = 0;
    for (uint32_t node = last->first_destroyed; node; node = strata_user_at(&last->users, node)->list) {
        if (node >= last->users.nodes.used || ++count > last->users.nodes.used)
            return strata_fail(STRATA_E_CORRUPT, 0, "the list of streams that marks may name is broken");
        const strata_user_t *user = strata_user_at(&last->users, node);
        if (user->state != STRATA_USER_DESTROYED || user->count <= last->waited || user->count > last->frees)
            return strata_fail(STRATA_E_CORRUPT, 0, "a stream is kept although no mark names it");
        end = node;
    }
    if (end != last->last_destroyed)
        return strata_fail(STRATA_E_CORRUPT, 0, "the end of the list of streams that marks may name is wrong");
    return strata_users_validate(&last->users);
}
