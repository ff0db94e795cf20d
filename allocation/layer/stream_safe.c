/* stream_safe: a block that other streams borrowed goes down to the layer below only when their work is done.
 *
 * record_stream covers all work submitted to the borrower before the free (CONTRACTS §4): the event is taken at free. `event:
 * use` takes it at record_stream instead, as Paddle does: work submitted between the two is then not covered. Deferred frees
 * keep their order; they are polled at each allocate, one query a stream (`poll: stream`), or one a block, as the peer
 * (`poll: block`). In places without an owner stream every user is a borrower, the one named at allocate the first.
 */
#include "allocation/stack/layer.h"
#include "allocation/stack/threads.h"

enum { EVENT_FREE, EVENT_USE };
enum { POLL_STREAM, POLL_BLOCK };
enum { NODES = 1 << 20, STREAMS_TOLD_APART = 16 };

typedef struct stream_safe_options {
    uint32_t event;
    uint32_t poll;
} stream_safe_options_t;

static const strata_option_row_t options[] = {
    {"event", STRATA_OPTION_CHOICE, offsetof(stream_safe_options_t, event), "free", 0, 0, "free|use",
     "when a borrower's event is taken: `free`: at the free, so that all work before it is covered; `use`: at record_stream, as "
     "Paddle, which does not cover work submitted later"},
    {"poll", STRATA_OPTION_CHOICE, offsetof(stream_safe_options_t, poll), "stream", 0, 0, "stream|block",
     "how pending frees are polled: `stream`: one query per stream; `block`: one per block, as Paddle"},
    {0},
};

/* The stream of a borrow whose stream was destroyed: the driver may give its handle to another one. */
#define GONE ((strata_stream_t)UINTPTR_MAX)

/* BUSY: a free waits for the stream on the host, and has the handle. OVER: the host has waited for the work. SEEN: a mark of
 * validate's alone. */
enum { UNUSED, WAITING, BUSY, OVER, SEEN = 4 };

/* A borrow of a live block, or of a deferred one; the event is NULL until it is taken. */
typedef struct borrow {
    strata_stream_t stream;
    uint64_t thread; /* whose, of the per-thread default stream; else 0 */
    strata_handle_t event;
    uint32_t next;
    uint8_t state;
    bool owner; /* by the block's owner, which its stack has not: ends at free alone */
} borrow_t;

/* A freed block that waits; its borrows hang on its record. */
typedef struct deferred {
    strata_record_t *record;
    uint32_t next;
    uint32_t unused;
} deferred_t;

typedef struct stream_safe {
    strata_layer_t base;
    strata_nodes_t borrows;
    strata_nodes_t deferrals;
    uint32_t first, last; /* deferred frees in order */
    uint64_t pending_bytes;
} stream_safe_t;

static borrow_t *borrow_at(stream_safe_t *self, uint32_t node) { return strata_node(&self->borrows, node); }

static deferred_t *deferred_at(stream_safe_t *self, uint32_t node) { return strata_node(&self->deferrals, node); }

static bool at_use(const stream_safe_t *self) { return ((const stream_safe_options_t *)self->base.options)->event == EVENT_USE; }

static void drop_event(stream_safe_t *self, borrow_t *borrow) {
    if (borrow->event) strata_events_give(&self->base.domain->events, borrow->event);
    borrow->event = NULL;
}

/* Takes the borrow that `link` leads to off its list. */
static void drop_borrow(stream_safe_t *self, uint32_t *link) {
    uint32_t node = *link;
    borrow_t *borrow = borrow_at(self, node);
    drop_event(self, borrow);
    *link = borrow->next;
    borrow->state = UNUSED;
    strata_nodes_give(&self->borrows, node);
}

/* An event from the pool; the locks are open while the pool makes more. NULL: the device refuses. */
static strata_handle_t take_event(stream_safe_t *self, strata_call_t *call) {
    strata_events_t *events = &self->base.domain->events;
    strata_handle_t event;
    while ((event = strata_events_take(events)) == NULL) {
        strata_opened_t opened = strata_call_unlock(call);
        strata_status_t status = strata_events_ensure(events, 4);
        strata_call_lock(call, opened);
        if (status != STRATA_OK) return NULL;
    }
    return event;
}

static uint64_t thread_of(strata_stream_t stream) { return stream == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0; }

/* Gives the borrow by `stream` an event. The lock may be open for that, and the borrow be another one's, or over, behind it:
 * then it stays as it is. */
static strata_status_t provide_event(stream_safe_t *self, uint32_t node, strata_stream_t stream, strata_call_t *call) {
    strata_handle_t event = take_event(self, call);
    if (!event) return strata_last_error()->status;
    borrow_t *borrow = borrow_at(self, node);
    if (borrow->state == WAITING && borrow->stream == stream && !borrow->event) borrow->event = event;
    else strata_events_give(&self->base.domain->events, event);
    return STRATA_OK;
}

/* Taking the event and recording it is one step under the lock, and so is what the caller appends behind it. */
static strata_status_t record_event(stream_safe_t *self, uint32_t node, strata_call_t *call) {
    strata_stream_t stream = borrow_at(self, node)->stream;
    if (stream == GONE || borrow_at(self, node)->thread != thread_of(stream))
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "a destroyed stream, or another thread's default stream, has no name here");
    if (!borrow_at(self, node)->event) {
        strata_status_t status = provide_event(self, node, stream, call);
        if (status != STRATA_OK) return status;
    }
    const borrow_t *borrow = borrow_at(self, node);
    if (borrow->state != WAITING || borrow->stream != stream)
        return borrow->state != WAITING || borrow->event
                   ? STRATA_OK
                   : strata_fail(STRATA_E_DEVICE, 0, "the stream was destroyed before its work could be marked");
    return strata_domain_record_event(self->base.domain, borrow->event, stream);
}

/* ---- borrows ---- */

static bool is_by(const borrow_t *borrow, strata_stream_t stream) {
    return borrow->stream == stream && borrow->thread == thread_of(stream);
}

/* The link that leads to the borrow by `stream`, or to where it would stand: the list is in order of the handles, those that
 * are gone passed over. */
static uint32_t *find_borrow(stream_safe_t *self, strata_record_t *record, strata_stream_t stream) {
    uint32_t *link = &record->borrows;
    while (*link && (borrow_at(self, *link)->stream == GONE || (uintptr_t)borrow_at(self, *link)->stream < (uintptr_t)stream))
        link = &borrow_at(self, *link)->next;
    while (*link && borrow_at(self, *link)->stream == stream && !is_by(borrow_at(self, *link), stream))
        link = &borrow_at(self, *link)->next;
    return link;
}

/* The borrow by `stream`, made if need be; 0: no node is left. */
static uint32_t make_borrow(stream_safe_t *self, strata_record_t *record, strata_stream_t stream, bool *fresh) {
    uint32_t *link = find_borrow(self, record, stream);
    uint32_t node = *link;
    *fresh = node == 0 || !is_by(borrow_at(self, node), stream);
    if (!*fresh) return node;
    node = strata_nodes_take(&self->borrows);
    if (node == 0) return 0;
    *borrow_at(self, node) = (borrow_t){.stream = stream, .thread = thread_of(stream), .next = *link, .state = WAITING};
    *link = node;
    record->attention |= self->base.attention;
    self->base.stack->figures.borrows++;
    return node;
}

/* `event: use`: the event comes first, since the lock may be open for it and the block be freed meanwhile. */
static strata_status_t event_for_use(stream_safe_t *self, const strata_record_t *record, strata_call_t *call,
                                     strata_handle_t *event) {
    uint32_t generation = record->generation;
    *event = take_event(self, call);
    if (!*event) return strata_last_error()->status;
    if (record->generation == generation) return STRATA_OK;
    strata_events_give(&self->base.domain->events, *event);
    return strata_fail(STRATA_E_STALE, 0, "the block was freed while its borrow was noted");
}

static strata_status_t record_stream(strata_layer_t *base, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    stream_safe_t *self = (stream_safe_t *)base;
    const strata_stack_t *server = call->stack;
    bool is_owner = stream == server->stream && server->thread == thread_of(stream);
    if (!server->ownerless && !server->orphan && is_owner) return STRATA_OK;
    bool now = at_use(self) && !call->owning && !strata_domain_means_many(base->domain, stream), fresh;
    strata_handle_t event = NULL;
    strata_status_t status = now ? event_for_use(self, record, call, &event) : STRATA_OK;
    if (status != STRATA_OK) return status;
    uint32_t node = make_borrow(self, record, stream, &fresh);
    if (node == 0) {
        if (event) strata_events_give(&self->base.domain->events, event);
        return strata_fail(STRATA_E_LIMIT, 0, "%d borrows in one stack, its most", NODES);
    }
    borrow_t *borrow = borrow_at(self, node);
    borrow->owner = borrow->owner || call->owning;
    if (event && (borrow->owner || borrow->event)) strata_events_give(&self->base.domain->events, event);
    else if (event) borrow->event = event;
    if (!now || borrow->owner) return STRATA_OK;
    status = strata_domain_record_event(base->domain, borrow->event, stream);
    if (status != STRATA_OK && fresh) drop_borrow(self, find_borrow(self, record, stream));
    return status;
}

static strata_status_t erase_stream(strata_layer_t *base, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    stream_safe_t *self = (stream_safe_t *)base;
    (void)call;
    uint32_t *link = find_borrow(self, record, stream);
    if (*link && is_by(borrow_at(self, *link), stream) && !borrow_at(self, *link)->owner) drop_borrow(self, link);
    if (record->borrows == 0) record->attention &= (uint16_t)~base->attention;
    return STRATA_OK;
}

/* A borrow by a stream that ends gets no event: the host waits for it, or for all. */
static bool wait_for_the_end(stream_safe_t *self, uint32_t node, strata_stream_t stream, strata_call_t *call) {
    drop_event(self, borrow_at(self, node));
    strata_opened_t opened = strata_call_unlock(call);
    bool over = strata_domain_wait_for(self->base.domain, stream);
    strata_call_lock(call, opened);
    return over;
}

/* A stream will be destroyed: no event can be taken on it later, so every live borrow by it takes its event now, and frees that
 * wait for it are let finish. From then on no borrow goes by its handle. */
static void stream_gone(strata_layer_t *base, strata_stream_t stream, strata_call_t *call) {
    stream_safe_t *self = (stream_safe_t *)base;
    for (uint32_t node = 1; node < self->borrows.used; node++) {
        borrow_t *borrow = borrow_at(self, node);
        while (borrow->state == BUSY && borrow->stream == stream)
            strata_call_wait(call, base->stack, &base->stack->host_waited, UINT64_MAX);
        if (borrow->state != WAITING || borrow->stream != stream) continue;
        bool marked = borrow->event || record_event(self, node, call) == STRATA_OK;
        bool over = !marked && wait_for_the_end(self, node, stream, call);
        if (borrow->state != WAITING || borrow->stream != stream) continue;
        borrow->stream = GONE;
        if (over) borrow->state = OVER;
    }
}

/* ---- free ---- */

/* OK: the borrow's work is done. */
static strata_status_t how_far(stream_safe_t *self, const borrow_t *borrow) {
    return borrow->state == OVER ? STRATA_OK : strata_device_event_query(self->base.domain->device, borrow->event);
}

/* Drops the borrows whose work is done, in order, up to the first that is not; true: none is left. */
static bool finish_in_order(stream_safe_t *self, strata_record_t *record) {
    while (record->borrows && how_far(self, borrow_at(self, record->borrows)) == STRATA_OK) drop_borrow(self, &record->borrows);
    return record->borrows == 0;
}

/* No event could be recorded: the host waits for the stream instead. False: not even that; the block must never be reused. */
static bool wait_instead(stream_safe_t *self, uint32_t *link, strata_call_t *call) {
    strata_domain_t *domain = self->base.domain;
    borrow_t *borrow = borrow_at(self, *link);
    strata_stream_t stream = borrow->stream;
    bool nameable = stream != GONE && borrow->thread == thread_of(stream);
    drop_event(self, borrow);
    if (nameable) borrow->state = BUSY;
    strata_opened_t opened = strata_call_unlock(call);
    bool over = nameable ? strata_domain_wait_for(domain, stream) : strata_domain_wait_for_all(domain);
    strata_call_lock(call, opened);
    if (nameable) {
        borrow->state = WAITING;
        strata_condition_broadcast(&self->base.stack->host_waited);
    }
    if (over) drop_borrow(self, link);
    return over;
}

/* Takes every borrow's event; with `event: use` they have been taken. The record is nobody's but ours, so the lock may be open
 * in between. */
static bool take_events(stream_safe_t *self, strata_record_t *record, strata_call_t *call) {
    uint32_t *link = &record->borrows;
    while (*link) {
        const borrow_t *borrow = borrow_at(self, *link);
        if (borrow->state == OVER) drop_borrow(self, link);
        else if (borrow->event || record_event(self, *link, call) == STRATA_OK) link = &borrow_at(self, *link)->next;
        else if (!wait_instead(self, link, call)) return false;
    }
    return true;
}

/* Makes room for a deferral; without any the free waits for its borrowers on the host. */
static uint32_t room_to_defer(stream_safe_t *self, strata_record_t *record, strata_call_t *call) {
    uint32_t node = strata_nodes_take(&self->deferrals);
    while (node == 0 && record->borrows)
        if (!wait_instead(self, &record->borrows, call)) break;
    return node;
}

/* When the last of a deferred block's borrowers is done; UINT64_MAX: the device does not know. */
static uint64_t ready_at(stream_safe_t *self, const strata_record_t *record) {
    uint64_t latest = 0;
    for (uint32_t node = record->borrows; node; node = borrow_at(self, node)->next) {
        if (borrow_at(self, node)->state == OVER) continue;
        uint64_t at = strata_device_event_ready_at(self->base.domain->device, borrow_at(self, node)->event);
        if (at > latest) latest = at;
    }
    return latest;
}

static void meter(stream_safe_t *self, const strata_record_t *record) {
    strata_domain_t *domain = self->base.domain;
    uint64_t now = domain->device->clock->now(domain->device->clock), ready = ready_at(self, record);
    if (ready != UINT64_MAX) strata_meter_add(&domain->deferred, now, ready, record->size);
}

static void defer(stream_safe_t *self, strata_record_t *record, uint32_t node) {
    *deferred_at(self, node) = (deferred_t){.record = record};
    if (self->last) deferred_at(self, self->last)->next = node;
    else self->first = node;
    self->last = node;
    self->pending_bytes += record->size;
    self->base.stack->figures.deferred_bytes += record->size;
    self->base.stack->figures.deferred_frees++;
    strata_layer_wants_allocate(&self->base, true);
    meter(self, record);
}

static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    stream_safe_t *self = (stream_safe_t *)base;
    if (record->borrows && !take_events(self, record, call)) {
        /* Nothing tells when its borrowers are done: quarantined, given back when the stack ends. */
        base->stack->figures.quarantined_bytes += record->size;
        return;
    }
    bool done = record->borrows == 0 || (at_use(self) && finish_in_order(self, record));
    uint32_t node = done ? 0 : room_to_defer(self, record, call);
    if (node) {
        defer(self, record, node);
    } else if (record->borrows == 0) {
        record->attention &= (uint16_t)~base->attention;
        strata_below_free(record, call);
    } else {
        base->stack->figures.quarantined_bytes += record->size;
    }
}

/* ---- poll ---- */

/* Streams found busy in one poll: an event behind a busy one on the same stream is busy too. One that was recorded in a capture says
 * nothing of those behind it: it never passes, since the graph may be launched again and again. */
typedef struct busy {
    strata_stream_t streams[STREAMS_TOLD_APART];
    uint32_t count;
} busy_t;

static bool is_busy(const busy_t *busy, strata_stream_t stream) {
    for (uint32_t i = 0; i < busy->count; i++)
        if (busy->streams[i] == stream) return true;
    return false;
}

/* Drops the borrows whose work is done, asking each stream once. */
static bool finish_by_stream(stream_safe_t *self, strata_record_t *record, busy_t *busy) {
    for (uint32_t *link = &record->borrows; *link;) {
        const borrow_t *borrow = borrow_at(self, *link);
        if (!is_busy(busy, borrow->stream)) {
            strata_status_t status = how_far(self, borrow);
            if (status == STRATA_OK) {
                drop_borrow(self, link);
                continue;
            }
            bool tells = status != STRATA_E_CAPTURE && borrow->stream != GONE;
            if (tells && busy->count < STREAMS_TOLD_APART) busy->streams[busy->count++] = borrow->stream;
        }
        link = &borrow_at(self, *link)->next;
    }
    return record->borrows == 0;
}

/* Takes the finished ones off the list, in order, into a list of their own. */
static uint32_t collect_finished(stream_safe_t *self) {
    bool by_block = ((const stream_safe_options_t *)self->base.options)->poll == POLL_BLOCK;
    busy_t busy = {.count = 0};
    uint32_t done = 0, done_last = 0, previous = 0;
    for (uint32_t node = self->first; node;) {
        strata_record_t *record = deferred_at(self, node)->record;
        uint32_t next = deferred_at(self, node)->next;
        if (!(by_block ? finish_in_order(self, record) : finish_by_stream(self, record, &busy))) {
            previous = node;
            node = next;
            continue;
        }
        if (previous) deferred_at(self, previous)->next = next;
        else self->first = next;
        if (self->last == node) self->last = previous;
        deferred_at(self, node)->next = 0;
        if (done_last) deferred_at(self, done_last)->next = node;
        else done = node;
        done_last = node;
        self->pending_bytes -= record->size;
        node = next;
    }
    return done;
}

static uint64_t finish(stream_safe_t *self, strata_call_t *call) {
    uint64_t freed = 0;
    for (uint32_t node = collect_finished(self); node;) {
        strata_record_t *record = deferred_at(self, node)->record;
        uint32_t next = deferred_at(self, node)->next;
        strata_nodes_give(&self->deferrals, node);
        freed += record->size;
        self->base.stack->figures.deferred_bytes -= record->size;
        record->attention &= (uint16_t)~self->base.attention;
        /* The lock may be open in there; what is still to be freed is on our own list. */
        strata_below_free(record, call);
        node = next;
    }
    if (self->first == 0) strata_layer_wants_allocate(&self->base, false);
    return freed;
}

static void poll(strata_layer_t *base, strata_call_t *call, strata_pending_t *pending) {
    stream_safe_t *self = (stream_safe_t *)base;
    if (self->first) pending->freed_bytes += finish(self, call);
    pending->pending_bytes += self->pending_bytes;
    for (uint32_t node = self->first; node; node = deferred_at(self, node)->next) {
        uint64_t at = ready_at(self, deferred_at(self, node)->record);
        if (at < pending->ready_at) pending->ready_at = at;
    }
}

static void waits(strata_layer_t *base, strata_wait_fn wait, void *context) {
    stream_safe_t *self = (stream_safe_t *)base;
    for (uint32_t node = self->first; node; node = deferred_at(self, node)->next) {
        const strata_record_t *record = deferred_at(self, node)->record;
        for (uint32_t link = record->borrows; link; link = borrow_at(self, link)->next) {
            const borrow_t *borrow = borrow_at(self, link);
            if (borrow->state == WAITING) wait(borrow->stream, borrow->stream == GONE, record->size, context);
        }
    }
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    stream_safe_t *self = (stream_safe_t *)base;
    if (self->first) (void)finish(self, request->call);
    return strata_below_allocate(base, request, record);
}

/* ---- life ---- */

static strata_status_t create(strata_layer_t *base) {
    stream_safe_t *self = (stream_safe_t *)base;
    strata_status_t status = strata_nodes_init(&self->borrows, sizeof(borrow_t), NODES);
    if (status != STRATA_OK) return status;
    status = strata_nodes_init(&self->deferrals, sizeof(deferred_t), NODES);
    if (status != STRATA_OK) strata_nodes_destroy(&self->borrows);
    return status;
}

/* The device has been waited for: what is pending goes down, events go home. */
static void destroy(strata_layer_t *base) {
    stream_safe_t *self = (stream_safe_t *)base;
    for (uint32_t node = 1; node < self->borrows.used; node++)
        if (borrow_at(self, node)->state != UNUSED) drop_event(self, borrow_at(self, node));
    strata_nodes_destroy(&self->borrows);
    strata_nodes_destroy(&self->deferrals);
}

static strata_status_t corrupt(const char *what) { return strata_fail(STRATA_E_CORRUPT, 0, "stream_safe: %s", what); }

/* What a deferred block waits for: borrows of its own that have their events. Marks them. */
static strata_status_t validate_borrows(stream_safe_t *self, const strata_record_t *record) {
    for (uint32_t node = record->borrows; node; node = borrow_at(self, node)->next) {
        if (node >= self->borrows.used) return corrupt("a block waits for a borrow that there never was");
        borrow_t *borrow = borrow_at(self, node);
        if (borrow->state & SEEN) return corrupt("two blocks wait for one borrow");
        if (borrow->state != OVER && (borrow->state != WAITING || !borrow->event)) return corrupt("a block waits for nobody");
        borrow->state |= SEEN;
    }
    return STRATA_OK;
}

static strata_status_t validate_deferred(stream_safe_t *self) {
    uint64_t bytes = 0;
    uint32_t count = 0, last = 0;
    for (uint32_t node = self->first; node; node = deferred_at(self, node)->next) {
        const strata_record_t *record = deferred_at(self, node)->record;
        if (++count > NODES) return corrupt("the list of deferred frees is a circle");
        if (record->state != STRATA_RECORD_DEFERRED || record->borrows == 0)
            return corrupt("a deferred block is live or waits for nobody");
        strata_status_t status = validate_borrows(self, record);
        if (status != STRATA_OK) return status;
        bytes += record->size;
        last = node;
    }
    if (last != self->last) return corrupt("the end of the list is wrong");
    if (bytes != self->pending_bytes || bytes > self->base.stack->figures.deferred_bytes)
        return corrupt("the sum of deferred bytes is wrong");
    return STRATA_OK;
}

static strata_status_t validate(strata_layer_t *base) {
    stream_safe_t *self = (stream_safe_t *)base;
    strata_status_t status = validate_deferred(self);
    for (uint32_t node = 1; node < self->borrows.used; node++)
        borrow_at(self, node)->state = (uint8_t)(borrow_at(self, node)->state & ~SEEN);
    if (status != STRATA_OK) return status;
    bool told = base->attention == 0 || (base->stack->attention_allocate & base->attention) != 0;
    if (self->first && !told) return corrupt("pending frees, and the stack does not know");
    status = strata_nodes_validate(&self->borrows);
    return status == STRATA_OK ? strata_nodes_validate(&self->deferrals) : status;
}

const strata_layer_type_t strata_stream_safe_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "stream_safe",
    .doc = "defers the free of a borrowed block until the borrowers' work is done",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .gives = STRATA_TRAIT_CROSS_STREAM_SAFE,
    .passes = ~0u,
    .guarded = true,
    .idle = true,
    .state_size = sizeof(stream_safe_t),
    .options_size = sizeof(stream_safe_options_t),
    .options = options,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
    .poll = poll,
    .waits = waits,
    .record_stream = record_stream,
    .erase_stream = erase_stream,
    .stream_gone = stream_gone,
    .validate = validate,
};
