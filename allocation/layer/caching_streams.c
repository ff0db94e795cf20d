/* The streams of caching: who owns, who borrows, and what freed blocks wait for.
 *
 * At the free of a borrowed block one event is taken for each borrower; a use is such an event, in the order of its stream. A
 * block goes back when its last use has passed. Uses are polled at every request, one query for each stream that has any. */
#include "allocation/layer/caching.h"

enum { BORROWS = 1 << 20, USES = STRATA_EVENTS };

/* Of a live block. */
typedef struct borrow {
    uint32_t stream;
    uint32_t next;
    uint64_t owning;
} borrow_t;

/* Of a freed block; bin_prev of the block counts them. */
typedef struct use {
    strata_handle_t event; /* NULL: the stream is gone, and its own event stands for the use */
    uint32_t slot;
    uint32_t next;
} use_t;

static borrow_t *borrow_at(const caching_t *self, uint32_t node) { return strata_node(&self->borrows, node); }

static use_t *use_at(const caching_t *self, uint32_t node) { return strata_node(&self->uses, node); }

static strata_device_t *device_of(const caching_t *self) { return self->base.domain->device; }

static strata_events_t *events_of(const caching_t *self) { return &self->base.domain->events; }

strata_status_t strata_caching_streams_init(caching_t *self) {
    strata_status_t status = strata_users_init(&self->streams, events_of(self));
    if (status == STRATA_OK) status = strata_nodes_init(&self->borrows, sizeof(borrow_t), BORROWS);
    if (status == STRATA_OK) status = strata_nodes_init(&self->uses, sizeof(use_t), USES);
    return status;
}

/* The device has been waited for. */
void strata_caching_streams_destroy(caching_t *self) {
    for (uint32_t node = 1; node < self->streams.nodes.used; node++) {
        const strata_user_t *stream = caching_stream_at(self, node);
        if (stream->state == STRATA_USER_UNUSED) continue;
        for (uint32_t use = stream->first; use; use = use_at(self, use)->next)
            if (use_at(self, use)->event) strata_events_give(events_of(self), use_at(self, use)->event);
    }
    strata_users_destroy(&self->streams);
    strata_nodes_destroy(&self->borrows);
    strata_nodes_destroy(&self->uses);
}

/* ---- streams ---- */

uint32_t strata_caching_stream(caching_t *self, strata_stream_t handle) {
    uint32_t known = strata_users_find(&self->streams, handle);
    if (known) return known;
    if (handle == STRATA_STREAM_PER_THREAD) strata_caching_give_up_threads(self);
    uint32_t node = strata_users_make(&self->streams, handle);
    if (node) {
        strata_user_t *stream = caching_stream_at(self, node);
        stream->gone = NULL;
        stream->first = stream->last = 0;
        stream->count = 0;
        stream->holds += caching_ignores_streams(self);
    }
    return node;
}

void strata_caching_stream_let_go(caching_t *self, uint32_t node) { strata_users_let_go(&self->streams, node); }

bool strata_caching_stream_has_passed(caching_t *self, uint32_t node) { return strata_users_has_passed(&self->streams, node); }

/* ---- borrows ---- */

/* Until its free a block's borrows hang on a word of the cache's own: `borrows` is that of a layer above that knows borrows too. */
static uint32_t *find_borrow(const caching_t *self, strata_record_t *block, uint32_t stream) {
    uint32_t *link = caching_ignores_streams(self) ? &block->borrows : &block->bin_next;
    while (*link && borrow_at(self, *link)->stream != stream) link = &borrow_at(self, *link)->next;
    return link;
}

static void drop_borrow(caching_t *self, uint32_t *link) {
    uint32_t node = *link, stream = borrow_at(self, node)->stream;
    *link = borrow_at(self, node)->next;
    strata_nodes_give(&self->borrows, node);
    strata_caching_stream_let_go(self, stream);
}

strata_status_t strata_caching_note_borrow(caching_t *self, strata_record_t *block, uint32_t stream, bool owning) {
    uint32_t *link = find_borrow(self, block, stream);
    if (*link) {
        borrow_at(self, *link)->owning |= owning;
        return STRATA_OK;
    }
    uint32_t node = strata_nodes_take(&self->borrows);
    if (node == 0) return strata_fail(STRATA_E_LIMIT, 0, "caching notes %d borrows at a time, its most", BORROWS - 1);
    *borrow_at(self, node) = (borrow_t){.stream = stream, .owning = owning};
    *link = node;
    caching_stream_at(self, stream)->holds++;
    self->base.stack->figures.borrows++;
    return STRATA_OK;
}

bool strata_caching_is_borrowed(const strata_layer_t *base, const strata_record_t *block) {
    return !caching_ignores_streams((const caching_t *)base) && block->bin_next != 0;
}

/* The stream that a block needs no event of; 0: none. */
static uint32_t owner_of(const caching_t *self, const strata_record_t *block) {
    return caching_bank_at(self, caching_bank_of(self, block))->stream;
}

strata_status_t strata_caching_record_stream(strata_layer_t *base, strata_record_t *block, strata_stream_t stream,
                                             strata_call_t *call) {
    caching_t *self = (caching_t *)base;
    if (caching_ignores_streams(self)) return strata_fail(STRATA_E_UNSUPPORTED, 0, "caching ignores streams here, and so borrows");
    bool entered = strata_call_enter(call, base);
    uint32_t node = strata_caching_stream(self, stream);
    strata_status_t status = node ? STRATA_OK : STRATA_E_LIMIT;
    if (node && node != owner_of(self, block))
        status = strata_caching_note_borrow(self, block, node, call->purpose == STRATA_FOR_FIRST_USE);
    strata_call_leave(call, base, entered);
    return status;
}

strata_status_t strata_caching_erase_stream(strata_layer_t *base, strata_record_t *block, strata_stream_t stream,
                                            strata_call_t *call) {
    caching_t *self = (caching_t *)base;
    /* It keeps none. */
    if (caching_ignores_streams(self)) return STRATA_OK;
    bool entered = strata_call_enter(call, base);
    uint32_t node = strata_users_find(&self->streams, stream);
    uint32_t *link = node ? find_borrow(self, block, node) : NULL;
    if (link && *link && !borrow_at(self, *link)->owning) drop_borrow(self, link);
    strata_call_leave(call, base, entered);
    return STRATA_OK;
}

/* ---- without streams ---- */

static bool wait_for_all(caching_t *self, strata_call_t *call) {
    strata_opened_t opened = strata_call_unlock(call);
    bool done = strata_domain_wait_for_all(self->base.domain);
    strata_call_lock(call, opened);
    return done;
}

void strata_caching_begin_use(caching_t *self, strata_record_t *block, strata_stream_t stream) {
    block->bin_next = strata_caching_stream(self, stream);
    if (block->bin_next) caching_stream_at(self, block->bin_next)->holds++;
}

/* A destroyed stream's node may soon be another's: the mark names none. */
uint32_t strata_caching_end_use(caching_t *self, const strata_record_t *block) {
    uint32_t node = block->bin_next;
    if (node == 0) return 0;
    bool named = caching_stream_at(self, node)->state == STRATA_USER_NAMED;
    strata_caching_stream_let_go(self, node);
    return named ? node : 0;
}

bool strata_caching_is_marked(caching_t *self, const strata_record_t *block, strata_stream_t stream) {
    if (strata_mark_count(block) <= self->waited) return false;
    return strata_mark_stream(block) == 0 || strata_mark_stream(block) != strata_caching_stream(self, stream);
}

bool strata_caching_wait_for_users(caching_t *self, strata_call_t *call) {
    uint64_t frees = self->frees;
    if (!wait_for_all(self, call)) return false;
    if (frees <= self->waited) return true;
    for (uint32_t node = 1; node < self->streams.nodes.used; node++) {
        const strata_user_t *stream = caching_stream_at(self, node);
        bool waits = stream->state == STRATA_USER_GONE && stream->count > self->waited;
        if (waits && stream->count <= frees) strata_caching_stream_let_go(self, node);
    }
    self->waited = frees;
    return true;
}

/* ---- uses ---- */

/* An event from the pool; the locks are open while the pool makes more. NULL: the device refuses. */
static strata_handle_t take_event(caching_t *self, strata_call_t *call) {
    strata_handle_t event;
    while ((event = strata_events_take(events_of(self))) == NULL) {
        strata_opened_t opened = strata_call_unlock(call);
        strata_status_t status = strata_events_ensure(events_of(self), 4);
        strata_call_lock(call, opened);
        if (status != STRATA_OK) return NULL;
    }
    return event;
}

/* The end of a destroyed stream's work, or of a stream's work so far. False: it cannot be marked. */
static bool append_use(caching_t *self, strata_record_t *block, uint32_t node, strata_handle_t event) {
    strata_user_t *stream = caching_stream_at(self, node);
    uint32_t use = strata_nodes_take(&self->uses);
    bool marked = use != 0 && (!event || strata_domain_record_event(self->base.domain, event, stream->stream) == STRATA_OK);
    if (!marked) {
        if (use) strata_nodes_give(&self->uses, use);
        return false;
    }
    *use_at(self, use) = (use_t){.event = event, .slot = strata_slab_slot(caching_slab(self), block)};
    if (stream->last) use_at(self, stream->last)->next = use;
    else stream->first = use;
    stream->last = use;
    stream->holds++;
    self->use_count++;
    block->bin_prev++;
    return true;
}

/* One borrower's use of a freed block; false: nothing tells when it is over. */
static bool make_use(caching_t *self, strata_record_t *block, uint32_t node, strata_call_t *call) {
    if (strata_user_is_nameable(caching_stream_at(self, node))) {
        strata_handle_t event = take_event(self, call);
        /* The lock may have been open, and the stream be gone since. */
        if (event && strata_user_is_nameable(caching_stream_at(self, node)) && append_use(self, block, node, event)) return true;
        if (event) strata_events_give(events_of(self), event);
    }
    if (strata_caching_stream_has_passed(self, node)) return true;
    if (caching_stream_at(self, node)->state == STRATA_USER_GONE && append_use(self, block, node, NULL)) return true;
    return wait_for_all(self, call);
}

static uint64_t ready_at(const caching_t *self, const strata_user_t *stream, const use_t *use) {
    strata_handle_t event = use->event ? use->event : stream->gone;
    return event ? strata_device_event_ready_at(device_of(self), event) : 0;
}

/* When the last of a block's uses is over: each is the last of its stream. */
static uint64_t block_ready_at(const caching_t *self, uint32_t slot) {
    uint64_t latest = 0;
    for (uint32_t node = 1; node < self->streams.nodes.used; node++) {
        const strata_user_t *stream = caching_stream_at(self, node);
        if (stream->state == STRATA_USER_UNUSED || !stream->last || use_at(self, stream->last)->slot != slot) continue;
        uint64_t at = ready_at(self, stream, use_at(self, stream->last));
        if (at > latest) latest = at;
    }
    return latest;
}

static void defer(caching_t *self, strata_record_t *block) {
    strata_domain_t *domain = self->base.domain;
    block->bin_next = CACHING_PENDING;
    self->pending_bytes += block->size;
    self->base.stack->figures.deferred_bytes += block->size;
    self->base.stack->figures.deferred_frees++;
    uint64_t ready = domain->deferral ? block_ready_at(self, strata_slab_slot(caching_slab(self), block)) : STRATA_NEVER;
    if (ready != STRATA_NEVER)
        domain->deferral->add(domain->deferral, domain->device->clock->now(domain->device->clock), ready, block->size);
}

/* Inside a capture no event is taken: the block is kept for its end. */
static void keep(caching_t *self, strata_record_t *block) {
    block->bin_next = self->kept;
    self->kept = strata_slab_slot(caching_slab(self), block);
}

/* Nothing tells when a user of the block is done: it is never reused, and goes back with its segment when the shared stack ends. */
static void quarantine(caching_t *self, strata_record_t *block) {
    strata_statistics_t *figures = &self->base.stack->figures;
    if (block->bin_next == CACHING_GIVEN_UP) return;
    if (block->bin_next == CACHING_PENDING) {
        self->pending_bytes -= block->size;
        figures->deferred_bytes -= block->size;
    }
    block->bin_next = CACHING_GIVEN_UP;
    figures->quarantined_bytes += block->size;
}

/* One count is held while the uses are made, since those that are there already may pass meanwhile. */
bool strata_caching_free_borrowed(caching_t *self, strata_record_t *block, strata_call_t *call) {
    if (self->captures > 0) {
        keep(self, block);
        return false;
    }
    bool known = true;
    block->bin_prev = 1;
    self->counts_held++;
    while (block->borrows) {
        uint32_t node = block->borrows;
        known = make_use(self, block, borrow_at(self, node)->stream, call) && known;
        drop_borrow(self, &block->borrows);
    }
    self->counts_held--;
    if (!known) {
        quarantine(self, block);
        self->lost_blocks++;
        return false;
    }
    if (--block->bin_prev == 0) return true;
    if (block->bin_next != CACHING_GIVEN_UP) defer(self, block);
    return false;
}

/* ---- what has passed ---- */

/* The first use of a stream is over; the bytes that go back. */
static uint64_t end_use(caching_t *self, uint32_t node) {
    strata_user_t *stream = caching_stream_at(self, node);
    uint32_t use = stream->first;
    strata_record_t *block = caching_block(self, use_at(self, use)->slot);
    uint64_t size = block->size;
    if (use_at(self, use)->event) strata_events_give(events_of(self), use_at(self, use)->event);
    stream->first = use_at(self, use)->next;
    if (stream->first == 0) stream->last = 0;
    strata_nodes_give(&self->uses, use);
    self->use_count--;
    strata_caching_stream_let_go(self, node);
    if (--block->bin_prev > 0) return 0;
    self->pending_bytes -= size;
    self->base.stack->figures.deferred_bytes -= size;
    strata_caching_put_back(self, block);
    return size;
}

/* The first use of a stream was recorded in a capture: it is never over, since the graph may be launched again and again. Its count
 * stays with its block, which is quarantined; the uses behind it go on. */
static void lose_use(caching_t *self, uint32_t node) {
    strata_user_t *stream = caching_stream_at(self, node);
    uint32_t use = stream->first;
    strata_record_t *block = caching_block(self, use_at(self, use)->slot);
    strata_events_give(events_of(self), use_at(self, use)->event);
    stream->first = use_at(self, use)->next;
    if (stream->first == 0) stream->last = 0;
    strata_nodes_give(&self->uses, use);
    self->use_count--;
    self->lost_blocks++;
    strata_caching_stream_let_go(self, node);
    quarantine(self, block);
}

static strata_status_t how_far(caching_t *self, uint32_t node) {
    const strata_user_t *stream = caching_stream_at(self, node);
    strata_handle_t event = use_at(self, stream->first)->event;
    if (!event) return strata_caching_stream_has_passed(self, node) ? STRATA_OK : STRATA_E_NOT_READY;
    return strata_device_event_query(device_of(self), event);
}

static bool has_uses(const caching_t *self, uint32_t node) {
    const strata_user_t *stream = caching_stream_at(self, node);
    return stream->state != STRATA_USER_UNUSED && stream->first != 0;
}

static uint64_t poll_stream(caching_t *self, uint32_t node) {
    uint64_t freed = 0;
    while (has_uses(self, node)) {
        strata_status_t status = how_far(self, node);
        if (status == STRATA_OK) freed += end_use(self, node);
        else if (status == STRATA_E_CAPTURE) lose_use(self, node);
        else break;
    }
    return freed;
}

uint64_t strata_caching_poll_uses(caching_t *self) {
    uint64_t freed = 0;
    if (self->use_count == 0 || self->captures > 0) return 0;
    for (uint32_t node = 1; node < self->streams.nodes.used; node++) freed += poll_stream(self, node);
    return freed;
}

static bool is_captured(const caching_t *self, strata_handle_t event) {
    return event && strata_device_event_query(device_of(self), event) == STRATA_E_CAPTURE;
}

/* The host waits for the first use of a stream. It leaves the list meanwhile, so that its event is nobody else's; where the
 * device fails, all of it is waited for, and if that fails too the use stays. So does one that was recorded in a capture, which any
 * wait would end. False: nothing more can be done for this stream. */
static bool wait_for_first(caching_t *self, uint32_t node, strata_call_t *call) {
    strata_user_t *stream = caching_stream_at(self, node);
    uint32_t use = stream->first;
    strata_handle_t event = use_at(self, use)->event;
    if (!event) return !is_captured(self, stream->gone) && wait_for_all(self, call) && strata_caching_stream_has_passed(self, node);
    stream->first = use_at(self, use)->next;
    if (stream->first == 0) stream->last = 0;
    self->uses_awaited++;
    strata_opened_t opened = strata_call_unlock(call);
    strata_status_t status = strata_device_event_synchronise(device_of(self), event);
    bool done = status == STRATA_OK || (status != STRATA_E_CAPTURE && strata_domain_wait_for_all(self->base.domain));
    strata_call_lock(call, opened);
    self->uses_awaited--;
    use_at(self, use)->next = stream->first;
    stream->first = use;
    if (stream->last == 0) stream->last = use;
    return done;
}

void strata_caching_wait_for_uses(caching_t *self, strata_call_t *call) {
    self->waits_for_all++;
    for (uint32_t node = 1; node < self->streams.nodes.used; node++) {
        while (has_uses(self, node)) {
            if (!wait_for_first(self, node, call)) break;
            if (has_uses(self, node)) (void)end_use(self, node);
        }
    }
}

void strata_caching_poll(strata_layer_t *base, strata_call_t *call, strata_pending_t *pending) {
    caching_t *self = (caching_t *)base;
    (void)call;
    pending->freed_bytes += strata_caching_poll_uses(self);
    pending->pending_bytes += self->pending_bytes;
    for (uint32_t node = 1; node < self->streams.nodes.used && self->use_count > 0; node++) {
        const strata_user_t *stream = caching_stream_at(self, node);
        uint64_t at = has_uses(self, node) ? ready_at(self, stream, use_at(self, stream->first)) : UINT64_MAX;
        if (at < pending->ready_at) pending->ready_at = at;
    }
}

void strata_caching_waits(strata_layer_t *base, strata_wait_fn wait, void *context) {
    caching_t *self = (caching_t *)base;
    for (uint32_t node = 1; node < self->streams.nodes.used; node++) {
        if (!has_uses(self, node)) continue;
        const strata_user_t *stream = caching_stream_at(self, node);
        bool gone = stream->state != STRATA_USER_NAMED;
        for (uint32_t use = stream->first; use; use = use_at(self, use)->next)
            wait(stream->stream, gone, caching_block(self, use_at(self, use)->slot)->size, context);
    }
}

/* ---- streams that end, captures ---- */

/* From now on no use goes by the stream's handle; what its banks have is anybody's once its work is done. */
static void leave_behind(caching_t *self, uint32_t node, strata_user_state_t state, strata_handle_t event) {
    strata_user_t *stream = caching_stream_at(self, node);
    stream->gone = event;
    strata_users_leave(&self->streams, node, state);
    for (uint32_t bank = caching_first_bank(self), next; bank; bank = next) {
        next = caching_next_bank(self, bank);
        if (caching_bank_at(self, bank)->stream != node) continue;
        self->gone_banks++;
        strata_caching_bank_settle(self, bank);
    }
}

/* Nobody may take the node as long as marks name it: those that were written so far, until the host has waited for them. */
static void forget_marks(caching_t *self, uint32_t node) {
    strata_user_t *stream = caching_stream_at(self, node);
    strata_users_leave(&self->streams, node, STRATA_USER_GONE);
    stream->count = self->frees;
    if (stream->count <= self->waited) strata_caching_stream_let_go(self, node);
}

/* All work of the stream gets one event, which stands for every use by it that is still to come. */
void strata_caching_stream_gone(strata_layer_t *base, strata_stream_t handle, strata_call_t *call) {
    caching_t *self = (caching_t *)base;
    uint32_t node = strata_users_find(&self->streams, handle);
    if (node == 0) return;
    if (caching_ignores_streams(self)) {
        forget_marks(self, node);
        return;
    }
    caching_stream_at(self, node)->holds++;
    strata_handle_t event = take_event(self, call);
    bool marked = event && strata_domain_record_event(self->base.domain, event, handle) == STRATA_OK;
    if (event && !marked) strata_events_give(events_of(self), event);
    bool done = marked || wait_for_all(self, call);
    /* The lock was open: another thread that forgets it may have been here. */
    if (caching_stream_at(self, node)->state == STRATA_USER_NAMED)
        leave_behind(self, node, done ? STRATA_USER_GONE : STRATA_USER_LOST, marked ? event : NULL);
    else if (marked) strata_events_give(events_of(self), event);
    strata_caching_stream_let_go(self, node);
}

static void give_up(void *owner, uint32_t node) {
    caching_t *self = owner;
    if (caching_ignores_streams(self)) forget_marks(self, node);
    else leave_behind(self, node, STRATA_USER_LOST, NULL);
}

/* Not while a thread waits for what was given up before: its wait may not have seen the work of these. */
void strata_caching_give_up_threads(caching_t *self) {
    if (!self->burying) strata_users_bury(&self->streams, give_up, self);
}

bool strata_caching_bury_threads(caching_t *self, strata_call_t *call) {
    bool done = false;
    if (self->burying || caching_ignores_streams(self)) return false;
    strata_caching_give_up_threads(self);
    /* Those too for whom an earlier wait has failed. */
    if (strata_users_next_lost_thread(&self->streams, 0) == 0) return false;
    self->burying = true;
    done = wait_for_all(self, call);
    for (uint32_t node = 0; done && (node = strata_users_next_lost_thread(&self->streams, node)) != 0;)
        caching_stream_at(self, node)->state = STRATA_USER_GONE;
    self->burying = false;
    return done;
}

void strata_caching_capture_begin(strata_layer_t *base, uint64_t pool, strata_call_t *call) {
    (void)pool;
    (void)call;
    ((caching_t *)base)->captures++;
}

void strata_caching_capture_end(strata_layer_t *base, uint64_t pool, strata_call_t *call) {
    caching_t *self = (caching_t *)base;
    (void)pool;
    self->captures--;
    while (self->captures == 0 && self->kept) {
        strata_record_t *block = caching_block(self, self->kept);
        self->kept = block->bin_next;
        block->bin_next = 0;
        if (strata_caching_free_borrowed(self, block, call)) strata_caching_put_back(self, block);
    }
}

/* ---- check ---- */

static strata_status_t corrupt(const char *what) { return strata_fail(STRATA_E_CORRUPT, 0, "caching: %s", what); }

static strata_status_t validate_uses(const caching_t *self, uint32_t node, uint32_t *count) {
    const strata_user_t *stream = caching_stream_at(self, node);
    uint32_t last = 0;
    for (uint32_t use = stream->first; use; use = use_at(self, use)->next) {
        if (use >= self->uses.used || ++*count > self->use_count) return corrupt("a stream has more uses than there are");
        uint32_t slot = use_at(self, use)->slot;
        if (slot == 0 || slot >= caching_slab(self)->used || caching_block(self, slot)->state != STRATA_RECORD_DEFERRED)
            return corrupt("a use is of a block that was not freed");
        if (!use_at(self, use)->event && stream->state == STRATA_USER_NAMED) return corrupt("a use has no event");
        last = use;
    }
    return last == stream->last ? STRATA_OK : corrupt("the end of a stream's uses is wrong");
}

strata_status_t strata_caching_validate_streams(caching_t *self) {
    uint32_t count = 0;
    strata_status_t status = STRATA_OK;
    for (uint32_t node = 1; node < self->streams.nodes.used && status == STRATA_OK; node++)
        if (caching_stream_at(self, node)->state != STRATA_USER_UNUSED) status = validate_uses(self, node, &count);
    if (status == STRATA_OK && count + self->uses_awaited != self->use_count) status = corrupt("the number of uses is wrong");
    if (status == STRATA_OK) status = strata_users_validate(&self->streams);
    if (status == STRATA_OK) status = strata_nodes_validate(&self->borrows);
    return status == STRATA_OK ? strata_nodes_validate(&self->uses) : status;
}
