#include "allocation/uses/waiting.h"

#include "allocation/domain/captures.h"
#include "allocation/domain/layer.h"

strata_status_t strata_uses_init(strata_uses_t *uses, strata_stack_t *stack, strata_uses_mode_t mode) {
    *uses = (strata_uses_t){.stack = stack, .mode = mode};
    strata_status_t status = strata_users_init(&uses->users, &stack->domain->events);
    if (status != STRATA_OK) return status;
    status = strata_nodes_init(&uses->nodes, sizeof(strata_use_t), STRATA_USES);
    if (status != STRATA_OK) strata_users_destroy(&uses->users);
    return status;
}

void strata_uses_move(strata_uses_t *to, const strata_uses_t *from) {
    uint32_t captures = to->captures;
    *to = *from;
    to->captures = captures;
    strata_index_init(&to->users.index, &to->users.nodes, offsetof(strata_user_t, link));
}

void strata_uses_drop_event(strata_uses_t *uses, strata_use_t *use) {
    if (use->event) strata_events_release(uses->users.events, use->event);
    use->event = NULL;
}

void strata_uses_destroy(strata_uses_t *uses) {
    for (uint32_t node = 1; node < uses->nodes.used; node++) strata_uses_drop_event(uses, strata_use_at(uses, node));
    strata_users_destroy(&uses->users);
    strata_nodes_destroy(&uses->nodes);
}

/* ---- live blocks ---- */

static void detach_unobservable(void *users, uint32_t node) { strata_users_detach(users, node, STRATA_USER_UNOBSERVABLE); }

uint32_t strata_uses_user(strata_uses_t *uses, strata_stream_t stream) {
    uint32_t known = strata_users_find(&uses->users, stream);
    if (known) return known;
    if (stream == STRATA_STREAM_PER_THREAD) strata_users_reap(&uses->users, detach_unobservable, &uses->users);
    return strata_users_make(&uses->users, stream);
}

/* Returns the link to the user's use, or the link at which to insert it. The list is in the order of the
 * handles. */
static uint32_t *find(const strata_uses_t *uses, uint32_t *link, uint32_t user) {
    uintptr_t handle = (uintptr_t)strata_user_at(&uses->users, user)->stream;
    for (; *link; link = &strata_use_at(uses, *link)->next) {
        uint32_t at = strata_use_at(uses, *link)->user;
        if (at == user || (uintptr_t)strata_user_at(&uses->users, at)->stream > handle) break;
    }
    return link;
}

static bool leads_to(const strata_uses_t *uses, const uint32_t *link, uint32_t user) {
    return *link && strata_use_at(uses, *link)->user == user;
}

/* Returns a node, for which its user has one more hold, or 0 after E_LIMIT. */
static uint32_t acquire_node(strata_uses_t *uses, uint32_t user) {
    uint32_t node = strata_nodes_acquire(&uses->nodes);
    if (node == 0) {
        strata_fail(STRATA_E_LIMIT, 0, "%d borrows in one stack, the maximum", STRATA_USES - 1);
        return 0;
    }
    *strata_use_at(uses, node) = (strata_use_t){.user = user};
    strata_user_at(&uses->users, user)->holds++;
    return node;
}

static void release_node(strata_uses_t *uses, uint32_t node) {
    strata_uses_drop_event(uses, strata_use_at(uses, node));
    strata_nodes_release(&uses->nodes, node);
}

static void drop(strata_uses_t *uses, uint32_t *link) {
    uint32_t node = *link, user = strata_use_at(uses, node)->user;
    *link = strata_use_at(uses, node)->next;
    release_node(uses, node);
    strata_users_release(&uses->users, user);
}

/* Returns the user's use, created if there is none, or 0 after E_LIMIT. */
static uint32_t note_use(strata_uses_t *uses, uint32_t *list, uint32_t user, bool owning) {
    uint32_t *link = find(uses, list, user);
    bool known = leads_to(uses, link, user);
    uint32_t node = known ? *link : acquire_node(uses, user);
    if (node == 0) return 0;
    strata_use_t *use = strata_use_at(uses, node);
    uint64_t capture = strata_uses_capture_of(uses, user);
    use->owning |= owning;
    use->capture = known && use->capture != capture ? 0 : capture;
    if (known) return node;
    use->next = *link;
    *link = node;
    uses->stack->figures.borrows += uses->mode != STRATA_USES_ON_HOST;
    return node;
}

/* Drops the event of an earlier use, which does not cover this one. */
strata_status_t strata_uses_note(strata_uses_t *uses, uint32_t *list, uint32_t user, bool owning) {
    uint32_t node = note_use(uses, list, user, owning);
    if (node) strata_uses_drop_event(uses, strata_use_at(uses, node));
    return node ? STRATA_OK : STRATA_E_LIMIT;
}

void strata_uses_erase(strata_uses_t *uses, uint32_t *list, strata_stream_t stream) {
    uint32_t user = strata_users_find(&uses->users, stream);
    uint32_t *link = user ? find(uses, list, user) : NULL;
    if (link && leads_to(uses, link, user) && !strata_use_at(uses, *link)->owning) drop(uses, link);
}

void strata_uses_drop_all(strata_uses_t *uses, uint32_t *list) {
    while (*list) drop(uses, list);
}

/* Records an event for the use of a live block, and returns the event to its pool if it is not needed. */
static strata_status_t mark_now(strata_uses_t *uses, strata_record_t *record, uint32_t node, strata_handle_t event) {
    strata_use_t *use = strata_use_at(uses, node);
    bool fresh = !use->event && !use->owning;
    if (fresh) use->event = event;
    else strata_events_release(uses->users.events, event);
    if (use->owning) return STRATA_OK;
    strata_status_t status = strata_domain_record_event(domain_of(uses), use->event, user_of(uses, use)->stream);
    if (status != STRATA_OK && fresh) drop(uses, find(uses, &record->borrows, use->user));
    return status;
}

/* Takes the event first: the lock may be released for it, and the block may then be freed. */
strata_status_t strata_uses_note_now(strata_uses_t *uses, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    uint32_t generation = record->generation;
    strata_handle_t event = strata_uses_acquire_event(uses, call);
    if (!event) return strata_last_error()->status;
    bool stale = record->generation != generation;
    uint32_t user = stale ? 0 : strata_uses_user(uses, stream), node = user ? note_use(uses, &record->borrows, user, false) : 0;
    if (node) return mark_now(uses, record, node, event);
    strata_events_release(uses->users.events, event);
    return stale ? strata_fail(STRATA_E_STALE, 0, "the block was freed while its borrow was being recorded") : STRATA_E_LIMIT;
}

/* ---- free ---- */

/* Records an event after all work that was submitted to the user's stream so far. Returns false if that
 * is not possible, or if the stream is gone by now. */
static bool mark(strata_uses_t *uses, uint32_t node, strata_call_t *call) {
    if (uses->mode == STRATA_USES_ON_HOST || !strata_user_is_nameable(user_of(uses, strata_use_at(uses, node)))) return false;
    strata_handle_t event = strata_uses_acquire_event(uses, call);
    const strata_user_t *user = user_of(uses, strata_use_at(uses, node));
    bool marked = event && strata_user_is_nameable(user) &&
                  strata_domain_record_event(domain_of(uses), event, user->stream) == STRATA_OK;
    if (marked) strata_use_at(uses, node)->event = event;
    else if (event) strata_events_release(uses->users.events, event);
    return marked;
}

static bool is_user_captured(strata_uses_t *uses, const strata_use_t *use) {
    strata_capture_status_t capture = STRATA_CAPTURE_NONE;
    const strata_user_t *user = user_of(uses, use);
    uint64_t id;
    if (strata_user_is_nameable(user)) (void)strata_domain_capture_of(domain_of(uses), user->stream, &capture, &id);
    return capture != STRATA_CAPTURE_NONE;
}

/* Returns whether the capture of a user has begun since the free looked for one. Then neither the event nor a wait shows
 * the end of the use. */
static bool is_captured_by_now(strata_uses_t *uses, const strata_use_t *use) {
    if (!strata_captures_any_open()) return false;
    return use->event ? strata_device_event_is_captured(domain_of(uses)->device, use->event) : is_user_captured(uses, use);
}

/* Begins the wait for a use of a freed block, or waits for it on the host. Returns false if its end
 * cannot be observed. The use stays live if its user is captured by now. */
static bool begin_waiting(strata_uses_t *uses, uint32_t node, strata_call_t *call) {
    strata_use_t *use = strata_use_at(uses, node);
    if (uses->mode == STRATA_USES_ON_HOST) atomic_fetch_add(&call->stack->host_waits, 1);
    bool marked = use->event || mark(uses, node, call);
    if (marked && is_captured_by_now(uses, use)) {
        strata_uses_drop_event(uses, use);
        return true;
    }
    bool passed = !marked && strata_users_has_passed(&uses->users, use->user);
    if (marked || (!passed && user_of(uses, use)->state == STRATA_USER_DESTROYED)) {
        strata_uses_enqueue(uses, node);
        return true;
    }
    bool completion_known = passed || strata_uses_wait_for_user(uses, use->user, call);
    if (!completion_known && is_captured_by_now(uses, use)) return true;
    strata_uses_end(uses, node, completion_known ? STRATA_USE_PASSED : STRATA_USE_UNOBSERVABLE);
    strata_use_at(uses, use->head)->unfinished += !completion_known;
    return completion_known;
}

/* Ends a use whose event was recorded before the free and has already passed. */
static bool has_passed(strata_uses_t *uses, uint32_t node) {
    strata_use_t *use = strata_use_at(uses, node);
    if (!use->event || strata_device_event_query(domain_of(uses)->device, use->event) != STRATA_OK) return false;
    strata_uses_end(uses, node, STRATA_USE_PASSED);
    return true;
}

/* Counting the bytes as deferred keeps the stack from being destroyed. */
void strata_uses_hold_for_captures(strata_uses_t *uses, uint32_t head) {
    uses->stack->figures.deferred_bytes += strata_use_at(uses, head)->bytes;
    strata_use_at(uses, head)->next_waiting = uses->kept;
    uses->kept = head;
}

/* The caller owns the record exclusively, so its list is stable while the locks are released. One extra
 * count keeps the block from completing while uses are still live. */
static strata_freed_t begin_all(strata_uses_t *uses, uint32_t head, strata_call_t *call) {
    bool ask = uses->query_at_free, held = false;
    if (strata_use_at(uses, head)->unfinished == 0) strata_use_at(uses, head)->unfinished = 1;
    for (uint32_t node = head; node; node = strata_use_at(uses, node)->next) {
        if (strata_use_at(uses, node)->state != STRATA_USE_LIVE) continue; /* the free began before a capture */
        strata_use_at(uses, node)->head = head;
        ask = ask && has_passed(uses, node);
        if (!ask && !begin_waiting(uses, node, call)) strata_uses_quarantine(uses, head);
        held |= strata_use_at(uses, node)->state == STRATA_USE_LIVE;
    }
    if (strata_use_at(uses, head)->unobservable) return STRATA_FREED_UNOBSERVABLE;
    if (held) {
        strata_uses_hold_for_captures(uses, head);
        return STRATA_FREED_WAITS;
    }
    if (--strata_use_at(uses, head)->unfinished == 0) return STRATA_FREED_DONE;
    strata_uses_count(uses, head);
    return STRATA_FREED_WAITS;
}

static void release_nodes(strata_uses_t *uses, uint32_t head) {
    for (uint32_t node = head, next; node; node = next) {
        next = strata_use_at(uses, node)->next;
        release_node(uses, node);
    }
}

/* Returns whether a user of the block is being captured. The event of such a user would never pass. */
static bool has_captured_user(strata_uses_t *uses, uint32_t head) {
    for (uint32_t node = head; node; node = strata_use_at(uses, node)->next) {
        const strata_use_t *use = strata_use_at(uses, node);
        if (use->state == STRATA_USE_LIVE && !use->event && is_user_captured(uses, use)) return true;
    }
    return false;
}

static strata_freed_t free_now(strata_uses_t *uses, uint32_t head, strata_call_t *call) {
    if (uses->captures > 0) return strata_uses_free_in_capture(uses, head);
    /* A block that an unannounced capture uses is quarantined when its event is queried. */
    if (!strata_captures_any_open() || !has_captured_user(uses, head)) return begin_all(uses, head, call);
    strata_uses_hold_for_captures(uses, head);
    return STRATA_FREED_WAITS;
}

strata_freed_t strata_uses_free(strata_uses_t *uses, strata_record_t *record, strata_call_t *call) {
    uint32_t head = record->borrows;
    if (head == 0) return STRATA_FREED_DONE;
    strata_use_at(uses, head)->record = record;
    strata_use_at(uses, head)->bytes = record->size;
    strata_freed_t freed = free_now(uses, head, call);
    if (freed != STRATA_FREED_DONE) return freed;
    record->borrows = 0;
    release_nodes(uses, head);
    return freed;
}

uint32_t strata_uses_append(strata_uses_t *uses, uint32_t user, uint64_t bytes, strata_call_t *call) {
    uint32_t node = acquire_node(uses, user);
    if (node == 0) return 0;
    strata_use_at(uses, node)->head = node;
    strata_use_at(uses, node)->bytes = bytes;
    if (mark(uses, node, call)) {
        strata_uses_enqueue(uses, node);
        strata_uses_count(uses, node);
        return node;
    }
    strata_users_release(&uses->users, user);
    strata_nodes_release(&uses->nodes, node);
    return 0;
}

bool strata_uses_pop_done(strata_uses_t *uses, uint32_t *done, strata_record_t **record, uint64_t *bytes) {
    uint32_t head = *done;
    if (head == 0) return false;
    *done = strata_use_at(uses, head)->next_waiting;
    *record = strata_use_at(uses, head)->record;
    *bytes = strata_use_at(uses, head)->bytes;
    if (*record) (*record)->borrows = 0;
    release_nodes(uses, head);
    return true;
}

/* ---- captures ---- */

void strata_uses_capture_begin(strata_uses_t *uses) { uses->captures++; }

/* The lock may be released while a block begins to wait, so the remaining blocks are in a local list. */
uint32_t strata_uses_resume_kept(strata_uses_t *uses, strata_call_t *call) {
    strata_done_t done = {0};
    uint32_t left = uses->captures == 0 ? uses->kept : 0;
    if (left) uses->kept = 0;
    while (left) {
        uint32_t head = left;
        left = strata_use_at(uses, head)->next_waiting;
        uses->stack->figures.deferred_bytes -= strata_use_at(uses, head)->bytes;
        if (has_captured_user(uses, head)) strata_uses_hold_for_captures(uses, head);
        else if (begin_all(uses, head, call) == STRATA_FREED_DONE) strata_uses_add_done(uses, &done, head);
    }
    return done.first;
}

uint32_t strata_uses_capture_end(strata_uses_t *uses, strata_call_t *call) {
    uses->captures--;
    if (uses->captures == 0) strata_uses_keep_joining(uses);
    return strata_uses_resume_kept(uses, call);
}
