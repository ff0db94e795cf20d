/* The uses of live and freed blocks. What happens when streams, threads and captures end: ends.c. */
#include "allocation/uses/uses.h"

#include "allocation/domain/domain.h"
#include "allocation/stack/layer.h"
#include "platform/arithmetic.h"

static strata_domain_t *domain_of(const strata_uses_t *uses) { return uses->stack->domain; }

static strata_user_t *user_of(const strata_uses_t *uses, const strata_use_t *use) {
    return strata_user_at(&uses->users, use->user);
}

strata_status_t strata_uses_init(strata_uses_t *uses, strata_stack_t *stack, strata_uses_mode_t mode) {
    *uses = (strata_uses_t){.stack = stack, .mode = mode};
    strata_status_t status = strata_users_init(&uses->users, &stack->domain->events);
    if (status != STRATA_OK) return status;
    status = strata_nodes_init(&uses->nodes, sizeof(strata_use_t), STRATA_USES);
    if (status != STRATA_OK) strata_users_destroy(&uses->users);
    return status;
}

static void drop_event(strata_uses_t *uses, strata_use_t *use) {
    if (use->event) strata_events_give(uses->users.events, use->event);
    use->event = NULL;
}

void strata_uses_destroy(strata_uses_t *uses) {
    for (uint32_t node = 1; node < uses->nodes.used; node++) drop_event(uses, strata_use_at(uses, node));
    strata_users_destroy(&uses->users);
    strata_nodes_destroy(&uses->nodes);
}

/* ---- of live blocks ---- */

static void leave_lost(void *users, uint32_t node) { strata_users_leave(users, node, STRATA_USER_LOST); }

uint32_t strata_uses_user(strata_uses_t *uses, strata_stream_t stream) {
    uint32_t known = strata_users_find(&uses->users, stream);
    if (known) return known;
    if (stream == STRATA_STREAM_PER_THREAD) strata_users_bury(&uses->users, leave_lost, &uses->users);
    return strata_users_make(&uses->users, stream);
}

/* The link that leads to the user's use, or to where it would stand: the list is in the order of the handles. */
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

/* A node with its event; its user holds it. 0: E_LIMIT. */
static uint32_t take_node(strata_uses_t *uses, uint32_t user, strata_handle_t event) {
    uint32_t node = strata_nodes_take(&uses->nodes);
    if (node == 0) {
        strata_fail(STRATA_E_LIMIT, 0, "%d borrows in one stack, its most", STRATA_USES - 1);
        return 0;
    }
    *strata_use_at(uses, node) = (strata_use_t){.user = user, .event = event};
    strata_user_at(&uses->users, user)->holds++;
    return node;
}

static void give_node(strata_uses_t *uses, uint32_t node) {
    drop_event(uses, strata_use_at(uses, node));
    strata_nodes_give(&uses->nodes, node);
}

static void drop(strata_uses_t *uses, uint32_t *link) {
    uint32_t node = *link, user = strata_use_at(uses, node)->user;
    *link = strata_use_at(uses, node)->next;
    give_node(uses, node);
    strata_users_let_go(&uses->users, user);
}

strata_status_t strata_uses_note(strata_uses_t *uses, uint32_t *list, uint32_t user, bool owning, uint32_t *use) {
    uint32_t *link = find(uses, list, user);
    bool known = leads_to(uses, link, user);
    *use = known ? *link : take_node(uses, user, NULL);
    if (*use == 0) return STRATA_E_LIMIT;
    strata_use_at(uses, *use)->owning |= owning;
    if (known) return STRATA_OK;
    strata_use_at(uses, *use)->next = *link;
    *link = *use;
    uses->stack->figures.borrows += uses->mode != STRATA_USES_ON_HOST;
    return STRATA_OK;
}

void strata_uses_erase(strata_uses_t *uses, uint32_t *list, strata_stream_t stream) {
    uint32_t user = strata_users_find(&uses->users, stream);
    uint32_t *link = user ? find(uses, list, user) : NULL;
    if (link && leads_to(uses, link, user) && !strata_use_at(uses, *link)->owning) drop(uses, link);
}

void strata_uses_drop_all(strata_uses_t *uses, uint32_t *list) {
    while (*list) drop(uses, list);
}

strata_handle_t strata_uses_take_event(strata_uses_t *uses, strata_call_t *call) {
    strata_events_t *events = uses->users.events;
    strata_handle_t event;
    while ((event = strata_events_take(events)) == NULL) {
        strata_opened_t opened = strata_call_unlock(call);
        strata_status_t status = strata_events_ensure(events, 4);
        strata_call_lock(call, opened);
        if (status != STRATA_OK) return NULL;
    }
    return event;
}

/* The event comes first, since the lock may be open for it and the block be freed meanwhile. */
strata_status_t strata_uses_note_now(strata_uses_t *uses, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    uint32_t generation = record->generation, node = 0;
    strata_handle_t event = strata_uses_take_event(uses, call);
    if (!event) return strata_last_error()->status;
    strata_status_t status = STRATA_E_STALE;
    if (record->generation != generation) strata_fail(status, 0, "the block was freed while its borrow was noted");
    else
        status = (node = strata_uses_user(uses, stream)) ? strata_uses_note(uses, &record->borrows, node, false, &node)
                                                         : STRATA_E_LIMIT;
    strata_use_t *use = strata_use_at(uses, node);
    bool fresh = status == STRATA_OK && !use->event;
    if (fresh && !use->owning) {
        use->event = event;
        event = NULL;
    }
    if (event) strata_events_give(uses->users.events, event);
    if (status != STRATA_OK || use->owning) return status;
    status = strata_domain_record_event(domain_of(uses), use->event, stream);
    if (status != STRATA_OK && fresh) drop(uses, find(uses, &record->borrows, use->user));
    return status;
}

/* ---- waiting ---- */

bool strata_uses_enter_handle(strata_uses_t *uses, uint32_t user) {
    bool nameable = strata_user_is_nameable(strata_user_at(&uses->users, user));
    strata_user_at(&uses->users, user)->busy += nameable;
    return nameable;
}

void strata_uses_leave_handle(strata_uses_t *uses, uint32_t user) {
    strata_user_at(&uses->users, user)->busy--;
    strata_condition_broadcast(&uses->stack->host_waited);
}

bool strata_uses_wait_for_user(strata_uses_t *uses, uint32_t user, strata_call_t *call) {
    strata_stream_t stream = strata_user_at(&uses->users, user)->stream;
    bool named = strata_uses_enter_handle(uses, user);
    strata_opened_t opened = strata_call_unlock(call);
    bool done = named ? strata_domain_wait_for(domain_of(uses), stream) : strata_domain_wait_for_all(domain_of(uses));
    strata_call_lock(call, opened);
    if (named) strata_uses_leave_handle(uses, user);
    return done;
}

static void await(strata_uses_t *uses, uint32_t node) {
    strata_user_t *user = strata_user_at(&uses->users, node);
    user->next_awaited = 0;
    user->prev_awaited = uses->last_awaited;
    if (uses->last_awaited) strata_user_at(&uses->users, uses->last_awaited)->next_awaited = node;
    else uses->first_awaited = node;
    uses->last_awaited = node;
}

static void await_no_more(strata_uses_t *uses, const strata_user_t *user) {
    if (user->prev_awaited) strata_user_at(&uses->users, user->prev_awaited)->next_awaited = user->next_awaited;
    else uses->first_awaited = user->next_awaited;
    if (user->next_awaited) strata_user_at(&uses->users, user->next_awaited)->prev_awaited = user->prev_awaited;
    else uses->last_awaited = user->prev_awaited;
}

static void enqueue(strata_uses_t *uses, uint32_t node) {
    strata_use_t *use = strata_use_at(uses, node);
    strata_user_t *user = user_of(uses, use);
    use->state = STRATA_USE_WAITING;
    strata_use_at(uses, use->head)->left++;
    if (uses->mode == STRATA_USES_BY_BLOCK) return;
    if (!user->first) await(uses, use->user);
    use->next_of_user = 0;
    if (user->first) strata_use_at(uses, user->last)->next_of_user = node;
    else user->first = node;
    user->last = node;
}

/* The first use of a user is no longer the first. */
static void dequeue(strata_uses_t *uses, strata_use_t *use) {
    strata_user_t *user = user_of(uses, use);
    if (uses->mode == STRATA_USES_BY_BLOCK) return;
    user->first = use->next_of_user;
    if (!user->first) await_no_more(uses, user);
}

/* At the front again. */
static void requeue(strata_uses_t *uses, uint32_t node) {
    strata_use_t *use = strata_use_at(uses, node);
    strata_user_t *user = user_of(uses, use);
    if (!user->first) await(uses, use->user);
    if (!user->first) user->last = node;
    use->next_of_user = user->first;
    user->first = node;
}

/* What has passed since, of the blocks that are nobody else's by then. */
typedef struct done {
    uint32_t first, last;
} done_t;

static void add_done(strata_uses_t *uses, done_t *done, uint32_t head) {
    strata_use_at(uses, head)->later = 0;
    if (done->last) strata_use_at(uses, done->last)->later = head;
    else done->first = head;
    done->last = head;
}

/* When the last of a block's uses is over; UINT64_MAX: the device does not know. */
static uint64_t ready_at(const strata_uses_t *uses, uint32_t head) {
    uint64_t latest = 0;
    for (uint32_t node = head; node; node = strata_use_at(uses, node)->next) {
        const strata_use_t *use = strata_use_at(uses, node);
        strata_handle_t event = use->event ? use->event : user_of(uses, use)->gone;
        if (use->state != STRATA_USE_WAITING || !event) continue;
        latest = strata_max(latest, strata_device_event_ready_at(domain_of(uses)->device, event));
    }
    return latest;
}

static void count(strata_uses_t *uses, uint32_t head) {
    strata_domain_t *domain = domain_of(uses);
    strata_use_t *use = strata_use_at(uses, head);
    uint64_t ready = domain->deferral ? ready_at(uses, head) : STRATA_NEVER;
    if (ready != STRATA_NEVER)
        domain->deferral->add(domain->deferral, domain->device->clock->now(domain->device->clock), ready, use->bytes);
    use->counted = true;
    use->later = 0;
    use->earlier = uses->last;
    if (uses->last) strata_use_at(uses, uses->last)->later = head;
    else uses->first = head;
    uses->last = head;
    uses->pending_bytes += use->bytes;
    uses->stack->figures.deferred_bytes += use->bytes;
    uses->stack->figures.deferred_frees++;
}

static void count_no_more(strata_uses_t *uses, uint32_t head) {
    strata_use_t *use = strata_use_at(uses, head);
    use->counted = false;
    if (use->earlier) strata_use_at(uses, use->earlier)->later = use->later;
    else uses->first = use->later;
    if (use->later) strata_use_at(uses, use->later)->earlier = use->earlier;
    else uses->last = use->earlier;
    uses->pending_bytes -= use->bytes;
    uses->stack->figures.deferred_bytes -= use->bytes;
}

/* A use ends, whatever tells it. */
static void end_use(strata_uses_t *uses, uint32_t node, strata_use_state_t state) {
    strata_use_t *use = strata_use_at(uses, node);
    drop_event(uses, use);
    use->state = (uint8_t)state;
    strata_users_let_go(&uses->users, use->user);
}

static void pass(strata_uses_t *uses, uint32_t node, done_t *done) {
    uint32_t head = strata_use_at(uses, node)->head;
    dequeue(uses, strata_use_at(uses, node));
    end_use(uses, node, STRATA_USE_PASSED);
    if (--strata_use_at(uses, head)->left > 0) return;
    count_no_more(uses, head);
    add_done(uses, done, head);
}

/* Nothing tells when a use of the block is over: its count stays. */
static void quarantine(strata_uses_t *uses, uint32_t head) {
    strata_use_t *use = strata_use_at(uses, head);
    if (use->lost) return;
    if (use->counted) count_no_more(uses, head);
    use->lost = true;
    uses->stack->figures.quarantined_bytes += use->bytes;
}

/* It was recorded in a capture, whose graph may be launched again and again; the uses after it go on. */
static void lose(strata_uses_t *uses, uint32_t node) {
    dequeue(uses, strata_use_at(uses, node));
    end_use(uses, node, STRATA_USE_LOST);
    quarantine(uses, strata_use_at(uses, node)->head);
}

static strata_status_t how_far(strata_uses_t *uses, const strata_use_t *use) {
    if (use->event) return strata_device_event_query(domain_of(uses)->device, use->event);
    return strata_users_how_far(&uses->users, use->user);
}

/* Whether the use does not wait any more. */
static bool ask(strata_uses_t *uses, uint32_t node, done_t *done) {
    strata_status_t status = how_far(uses, strata_use_at(uses, node));
    if (status == STRATA_OK) pass(uses, node, done);
    else if (status == STRATA_E_CAPTURE) lose(uses, node);
    return status == STRATA_OK || status == STRATA_E_CAPTURE;
}

static void ask_block(strata_uses_t *uses, uint32_t head, done_t *done) {
    for (uint32_t node = head, next; node; node = next) {
        next = strata_use_at(uses, node)->next;
        if (strata_use_at(uses, node)->state == STRATA_USE_WAITING && !ask(uses, node, done)) return;
    }
}

uint32_t strata_uses_poll(strata_uses_t *uses) {
    done_t done = {0};
    if (uses->captures > 0) return 0;
    for (uint32_t head = uses->mode == STRATA_USES_BY_BLOCK ? uses->first : 0, later; head; head = later) {
        later = strata_use_at(uses, head)->later;
        ask_block(uses, head, &done);
    }
    for (uint32_t user = uses->first_awaited, next; user; user = next) {
        next = strata_user_at(&uses->users, user)->next_awaited;
        for (uint32_t node; (node = strata_user_at(&uses->users, user)->first) != 0 && ask(uses, node, &done);) continue;
    }
    return done.first;
}

/* ---- free ---- */

/* The end of the work that the user's stream was given so far is marked. False: it cannot be, or the stream is gone by now. */
static bool mark(strata_uses_t *uses, uint32_t node, strata_call_t *call) {
    if (uses->mode == STRATA_USES_ON_HOST || !strata_user_is_nameable(user_of(uses, strata_use_at(uses, node)))) return false;
    strata_handle_t event = strata_uses_take_event(uses, call);
    const strata_user_t *user = user_of(uses, strata_use_at(uses, node));
    bool marked = event && strata_user_is_nameable(user) &&
                  strata_domain_record_event(domain_of(uses), event, user->stream) == STRATA_OK;
    if (marked) strata_use_at(uses, node)->event = event;
    else if (event) strata_events_give(uses->users.events, event);
    return marked;
}

/* The use of a freed block waits, or has passed by the wait of the host; false: nothing tells when it is over. */
static bool begin_waiting(strata_uses_t *uses, uint32_t node, strata_call_t *call) {
    strata_use_t *use = strata_use_at(uses, node);
    uses->stack->figures.host_waits += uses->mode == STRATA_USES_ON_HOST;
    bool marked = use->event || mark(uses, node, call);
    bool passed = !marked && strata_users_has_passed(&uses->users, use->user);
    if (marked || (!passed && user_of(uses, use)->state == STRATA_USER_GONE)) {
        enqueue(uses, node);
        return true;
    }
    bool told = passed || strata_uses_wait_for_user(uses, use->user, call);
    end_use(uses, node, told ? STRATA_USE_PASSED : STRATA_USE_LOST);
    strata_use_at(uses, use->head)->left += !told;
    return told;
}

/* An event of before the free that has passed already. */
static bool has_passed(strata_uses_t *uses, uint32_t node) {
    strata_use_t *use = strata_use_at(uses, node);
    if (!use->event || strata_device_event_query(domain_of(uses)->device, use->event) != STRATA_OK) return false;
    end_use(uses, node, STRATA_USE_PASSED);
    return true;
}

/* The record is nobody's but ours, so its list stays as it is while the locks are open. One count is held meanwhile: the uses that are
 * there already may pass. */
static strata_freed_t begin_all(strata_uses_t *uses, uint32_t head, strata_call_t *call) {
    bool ask = uses->ask_at_free;
    strata_use_at(uses, head)->left = 1;
    for (uint32_t node = head; node; node = strata_use_at(uses, node)->next) {
        strata_use_at(uses, node)->head = head;
        ask = ask && has_passed(uses, node);
        if (!ask && !begin_waiting(uses, node, call)) quarantine(uses, head);
    }
    if (strata_use_at(uses, head)->lost) return STRATA_FREED_LOST;
    if (--strata_use_at(uses, head)->left == 0) return STRATA_FREED_DONE;
    count(uses, head);
    return STRATA_FREED_WAITS;
}

static void give_all(strata_uses_t *uses, uint32_t head) {
    for (uint32_t node = head, next; node; node = next) {
        next = strata_use_at(uses, node)->next;
        give_node(uses, node);
    }
}

strata_freed_t strata_uses_free(strata_uses_t *uses, strata_record_t *record, strata_call_t *call) {
    uint32_t head = record->borrows;
    if (head == 0) return STRATA_FREED_DONE;
    strata_use_at(uses, head)->record = record;
    strata_use_at(uses, head)->bytes = record->size;
    if (uses->captures > 0) {
        strata_use_at(uses, head)->later = uses->kept;
        uses->kept = head;
        return STRATA_FREED_WAITS;
    }
    strata_freed_t freed = begin_all(uses, head, call);
    if (freed != STRATA_FREED_DONE) return freed;
    record->borrows = 0;
    give_all(uses, head);
    return freed;
}

bool strata_uses_append(strata_uses_t *uses, uint32_t user, uint64_t bytes, strata_call_t *call) {
    uint32_t node = take_node(uses, user, NULL);
    if (node == 0) return false;
    strata_use_at(uses, node)->head = node;
    strata_use_at(uses, node)->bytes = bytes;
    if (mark(uses, node, call)) {
        enqueue(uses, node);
        count(uses, node);
        return true;
    }
    strata_users_let_go(&uses->users, user);
    strata_nodes_give(&uses->nodes, node);
    return false;
}

bool strata_uses_take_done(strata_uses_t *uses, uint32_t *done, strata_record_t **record, uint64_t *bytes) {
    uint32_t head = *done;
    if (head == 0) return false;
    *done = strata_use_at(uses, head)->later;
    *record = strata_use_at(uses, head)->record;
    *bytes = strata_use_at(uses, head)->bytes;
    if (*record) (*record)->borrows = 0;
    give_all(uses, head);
    return true;
}

bool strata_uses_is_counted(const strata_uses_t *uses, const strata_record_t *record) {
    return record->borrows != 0 && strata_use_at(uses, record->borrows)->counted;
}

void strata_uses_tell_pending(const strata_uses_t *uses, strata_pending_t *pending) {
    pending->pending_bytes += uses->pending_bytes;
    for (uint32_t head = uses->first; head; head = strata_use_at(uses, head)->later)
        pending->ready_at = strata_min(pending->ready_at, ready_at(uses, head));
}

void strata_uses_each_wait(const strata_uses_t *uses, strata_wait_fn wait, void *context) {
    for (uint32_t head = uses->first; head; head = strata_use_at(uses, head)->later)
        for (uint32_t node = head; node; node = strata_use_at(uses, node)->next) {
            const strata_use_t *use = strata_use_at(uses, node);
            const strata_user_t *user = user_of(uses, use);
            bool waits = use->state == STRATA_USE_WAITING;
            if (waits) wait(user->stream, user->state != STRATA_USER_NAMED, strata_use_at(uses, head)->bytes, context);
        }
}

/* ---- captures, and the patience of whoever needs the memory ---- */

void strata_uses_capture_begin(strata_uses_t *uses) { uses->captures++; }

uint32_t strata_uses_capture_end(strata_uses_t *uses, strata_call_t *call) {
    done_t done = {0};
    uses->captures--;
    while (uses->captures == 0 && uses->kept) {
        uint32_t head = uses->kept;
        uses->kept = strata_use_at(uses, head)->later;
        if (begin_all(uses, head, call) == STRATA_FREED_DONE) add_done(uses, &done, head);
    }
    return done.first;
}

/* The host waits for the first use of a user. It leaves the queue meanwhile, so that its event is nobody else's. One that was recorded
 * in a capture is not waited for: that would end the capture. False: nothing more can be done for this user. */
static bool wait_for_first(strata_uses_t *uses, uint32_t user, strata_call_t *call, done_t *done) {
    uint32_t node = strata_user_at(&uses->users, user)->first;
    strata_use_t *use = strata_use_at(uses, node);
    if (!use->event && how_far(uses, use) == STRATA_E_CAPTURE) return false;
    dequeue(uses, use);
    strata_opened_t opened = strata_call_unlock(call);
    strata_status_t status = use->event ? strata_device_event_synchronise(domain_of(uses)->device, use->event) : STRATA_E_NOT_READY;
    bool over = status == STRATA_OK || (status != STRATA_E_CAPTURE && strata_domain_wait_for_all(domain_of(uses)));
    strata_call_lock(call, opened);
    requeue(uses, node);
    if (over) pass(uses, node, done);
    return over;
}

uint32_t strata_uses_wait(strata_uses_t *uses, strata_call_t *call) {
    done_t done = {0};
    for (uint32_t user = 1; user < uses->users.nodes.used; user++)
        while (strata_user_at(&uses->users, user)->first && wait_for_first(uses, user, call, &done)) continue;
    return done.first;
}
