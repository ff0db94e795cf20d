/* stream_safe: defers the free of a block that other streams borrowed until their work is done.
 *
 * record_stream covers all work submitted to the borrower before the free (docs/contracts.md §4), because
 * the event is taken at the free. With `event: use` it is taken at record_stream, as in Paddle. Work
 * submitted between the two is then not covered.
 *
 * Deferred frees keep their order. Each allocate polls them, with one query per stream (`poll: stream`)
 * or per block as in Paddle (`poll: block`). With `poll: seldom` hits do not poll while little is
 * pending. A miss polls, and so does every twelfth free, with one query for many frees.
 *
 * In places without an owner stream every user is a borrower, first the stream named at allocate. In a
 * capture frees are kept to its end or, with `reuse_in_capture`, until the owner has joined the
 * borrowers.
 *
 * If no layer of a branch handles borrows, the builder adds this one above the cache or the source, with
 * `on_host`. The free of a borrowed block then waits on the host and takes no event. Such a layer has no
 * tables before the first borrow. */
#include "allocation/domain/layer.h"
#include "allocation/stack/threads.h"
#include "allocation/uses/uses.h"

enum { EVENT_FREE, EVENT_USE };
enum { POLL_STREAM, POLL_BLOCK, POLL_SELDOM };

/* For `poll: seldom`: GLANCE_FREES is the number of frees between two glances. The next request polls as
 * well if the pending bytes reach LITTLE plus 1/SHARE of the live bytes. Without this bound
 * streams-sharded-training reserved 1.5 % more at its peak. With 32 frees streams-serving reserved 0.1 %
 * more. */
enum { GLANCE_FREES = 12, SHARE = 128 };
#define LITTLE (4ull << 20)

typedef struct strata_stream_safe_options {
    uint32_t event;
    uint32_t poll;
    bool reuse_in_capture;
    bool on_host; /* set by the builder alone */
} stream_safe_options_t;

const stream_safe_options_t strata_stream_safe_on_host = {.on_host = true};

static const strata_option_row_t options[] = {
    {"event", STRATA_OPTION_CHOICE, offsetof(stream_safe_options_t, event), "free", 0, 0, "free|use",
     "when a borrower's event is recorded: `free`: at the free, which covers all work before it; `use`: at record_stream, as "
     "Paddle does, which does not cover later work"},
    {"poll", STRATA_OPTION_CHOICE, offsetof(stream_safe_options_t, poll), "stream", 0, 0, "stream|block|seldom",
     "how pending frees are polled: `stream`: at each allocate, one query per stream; `block`: one per block, as Paddle does; "
     "`seldom`: when no free block serves a request, at every 12th free, or when many bytes are pending; one query covers all "
     "before it"},
    {"reuse_in_capture", STRATA_OPTION_BOOL, offsetof(stream_safe_options_t, reuse_in_capture), "false", 0, 0, NULL,
     "release a block borrowed and freed in a capture once its stream has joined the borrowers, before the capture ends"},
    {0},
};

typedef struct stream_safe {
    strata_layer_t base;
    strata_uses_t uses;
    uint32_t unseen; /* `poll: seldom`: deferred frees since the last glance or poll */
    bool due; /* `poll: seldom`: the next request polls */
} stream_safe_t;

static const stream_safe_options_t *options_of(const stream_safe_t *self) { return self->base.options; }

/* ---- borrows ---- */

/* Returns whether it is the stack's own stream, which needs no borrow. */
static bool is_owner(const strata_stack_t *server, strata_stream_t stream) {
    uint64_t thread = stream == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0;
    return !server->ownerless && !server->forgotten.orphan && stream == server->stream && thread == server->thread;
}

static strata_status_t note(stream_safe_t *self, strata_record_t *record, strata_stream_t stream, bool owning) {
    uint32_t user = strata_uses_user(&self->uses, stream);
    return user ? strata_uses_note(&self->uses, &record->borrows, user, owning) : STRATA_E_LIMIT;
}

static bool is_captured(const stream_safe_t *self, strata_stream_t stream) {
    strata_capture_status_t capture = STRATA_CAPTURE_NONE;
    uint64_t id;
    if (self->uses.captures > 0 || !strata_domain_may_capture(self->base.domain)) return self->uses.captures > 0;
    (void)strata_domain_capture_of(self->base.domain, stream, &capture, &id);
    return capture != STRATA_CAPTURE_NONE;
}

/* Returns whether the tables of an `on_host` layer are not made yet. */
static bool is_empty(const stream_safe_t *self) { return self->uses.stack == NULL; }

/* Host memory is allocated with the locks open, so another thread may make the tables first. */
static strata_status_t make_uses(stream_safe_t *self, strata_call_t *call) {
    strata_uses_t uses;
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_status_t status = strata_uses_init(&uses, self->base.stack, STRATA_USES_ON_HOST);
    strata_call_lock(call, opened);
    if (status != STRATA_OK) return status;
    if (is_empty(self)) {
        strata_uses_move(&self->uses, &uses);
        return STRATA_OK;
    }
    opened = strata_call_unlock(call);
    strata_uses_destroy(&uses);
    strata_call_lock(call, opened);
    return STRATA_OK;
}

/* The stack's own stream counts too, because the cache below does not record owners of blocks. */
static strata_status_t note_on_host(stream_safe_t *self, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    uint32_t generation = record->generation;
    strata_status_t status = is_empty(self) ? make_uses(self, call) : STRATA_OK;
    if (status == STRATA_OK && record->generation != generation)
        status = strata_fail(STRATA_E_STALE, 0, "the block was freed while its borrow was noted");
    if (status == STRATA_OK) status = note(self, record, stream, call->purpose == STRATA_FOR_FIRST_USE);
    if (status != STRATA_OK) return status;
    record->attention |= self->base.attention;
    return STRATA_E_UNSUPPORTED;
}

static strata_status_t record_stream(strata_layer_t *base, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    stream_safe_t *self = (stream_safe_t *)base;
    if (options_of(self)->on_host) return note_on_host(self, record, stream, call);
    if (is_owner(call->stack, stream)) return STRATA_OK;
    /* An event of a capture would never pass. There the event is taken after the capture, as after a
     * free. */
    bool now = options_of(self)->event == EVENT_USE && call->purpose != STRATA_FOR_FIRST_USE &&
               !strata_domain_is_ambiguous_stream(base->domain, stream) && !is_captured(self, stream);
    strata_status_t status = now ? strata_uses_note_now(&self->uses, record, stream, call)
                                 : note(self, record, stream, call->purpose == STRATA_FOR_FIRST_USE);
    if (status == STRATA_OK) record->attention |= base->attention;
    return status;
}

static strata_status_t erase_stream(strata_layer_t *base, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    stream_safe_t *self = (stream_safe_t *)base;
    (void)call;
    if (record->borrows) strata_uses_erase(&self->uses, &record->borrows, stream);
    /* With `on_host` the free takes the slow path even if the borrow was taken back. */
    if (record->borrows == 0 && !options_of(self)->on_host) record->attention &= (uint16_t)~base->attention;
    return STRATA_OK;
}

/* ---- free ---- */

static void free_below(stream_safe_t *self, strata_record_t *record, strata_call_t *call) {
    record->attention &= (uint16_t)~self->base.attention;
    strata_below_free(record, call);
}

/* Returns whether each request must poll. With `on_host` only a poll of the stack finishes frees that a capture
 * deferred. */
static bool must_poll(const stream_safe_t *self) {
    const strata_uses_t *uses = &self->uses;
    if (options_of(self)->on_host) return false;
    return uses->mode == STRATA_USES_BY_SEARCH ? uses->kept || uses->joining : strata_uses_may_have_done(uses);
}

/* For `poll: seldom`: returns whether the pending bytes are enough for the next request to poll. */
static bool is_much(const stream_safe_t *self) {
    return self->uses.pending_bytes >= LITTLE + self->base.stack->figures.allocated_bytes / SHARE;
}

/* Sets whether requests that a hit could serve must call this layer. */
static void update_allocate_calls(stream_safe_t *self) { strata_layer_enable_allocate(&self->base, must_poll(self) || self->due); }

/* The lock may be released while a block is freed below, so the remaining blocks are in a local list. */
static uint64_t finish(stream_safe_t *self, uint32_t done, strata_call_t *call) {
    strata_record_t *record;
    uint64_t bytes, freed = 0;
    for (; strata_uses_pop_done(&self->uses, &done, &record, &bytes); freed += bytes) free_below(self, record, call);
    return freed;
}

static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    stream_safe_t *self = (stream_safe_t *)base;
    strata_freed_t freed = strata_uses_free(&self->uses, record, call);
    if (freed == STRATA_FREED_DONE) free_below(self, record, call);
    if (freed != STRATA_FREED_WAITS) return;
    /* With `on_host` only a capture defers a free. A stack that shares this layer may end before the capture. */
    if (options_of(self)->on_host) record->stack = base->stack->number;
    if (self->uses.mode == STRATA_USES_BY_SEARCH) {
        if (++self->unseen >= GLANCE_FREES) {
            self->unseen = 0;
            (void)finish(self, strata_uses_poll_brief(&self->uses), call);
        }
        self->due = is_much(self);
    }
    update_allocate_calls(self);
}

/* ---- poll ---- */

static uint64_t poll_uses(stream_safe_t *self, strata_call_t *call) {
    uint64_t freed = 0;
    self->unseen = 0;
    if (self->uses.kept) freed += finish(self, strata_uses_resume_kept(&self->uses, call), call);
    if (strata_uses_may_have_done(&self->uses)) freed += finish(self, strata_uses_poll(&self->uses), call);
    self->due = self->uses.mode == STRATA_USES_BY_SEARCH && is_much(self);
    update_allocate_calls(self);
    return freed;
}

static void poll(strata_layer_t *base, strata_call_t *call, strata_pending_t *pending) {
    stream_safe_t *self = (stream_safe_t *)base;
    pending->freed_bytes += poll_uses(self, call);
    strata_uses_add_pending(&self->uses, pending);
}

static void waits(strata_layer_t *base, strata_wait_fn wait, void *context) {
    strata_uses_each_wait(&((stream_safe_t *)base)->uses, wait, context);
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    stream_safe_t *self = (stream_safe_t *)base;
    /* While little is pending, a hit does not call this layer. If less is pending than the request needs,
     * a poll would not help. */
    bool helps = self->uses.first && self->uses.pending_bytes >= request->size;
    if (must_poll(self) || self->due || helps) (void)poll_uses(self, request->call);
    return strata_below_allocate(base, request, record);
}

/* ---- captures: frees of borrowed blocks are kept until the captures end ---- */

static void notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call) {
    stream_safe_t *self = (stream_safe_t *)base;
    switch (notice->kind) {
    case STRATA_NOTICE_STREAM_DESTROYED:
        if (!is_empty(self)) strata_uses_stream_destroyed(&self->uses, notice->stream, call);
        break;
    case STRATA_NOTICE_CAPTURE_BEGIN: strata_uses_capture_begin(&self->uses); break;
    case STRATA_NOTICE_CAPTURE_END:
        (void)finish(self, strata_uses_capture_end(&self->uses, call), call);
        update_allocate_calls(self);
        break;
    default: break;
    }
}

/* ---- life ---- */

static strata_status_t check(const void *filled, strata_place_kind_t place, const char **option) {
    const stream_safe_options_t *o = filled;
    *option = "poll";
    if (o->poll == POLL_SELDOM && o->event == EVENT_USE)
        return strata_fail(STRATA_E_STRATEGY, 0,
                           "an event recorded at record_stream does not cover earlier frees; write `poll: stream`");
    *option = "reuse_in_capture";
    return strata_uses_check_reuse(o->reuse_in_capture, place);
}

static strata_status_t create(strata_layer_t *base) {
    stream_safe_t *self = (stream_safe_t *)base;
    static const strata_uses_mode_t modes[] = {
        [POLL_STREAM] = STRATA_USES_BY_STREAM, [POLL_BLOCK] = STRATA_USES_BY_BLOCK, [POLL_SELDOM] = STRATA_USES_BY_SEARCH};
    const stream_safe_options_t *o = options_of(self);
    if (o->on_host) return STRATA_OK;
    strata_status_t status = strata_uses_init(&self->uses, base->stack, modes[o->poll]);
    self->uses.query_at_free = o->event == EVENT_USE;
    self->uses.reuse = o->reuse_in_capture;
    return status;
}

static void destroy(strata_layer_t *base) { strata_uses_destroy(&((stream_safe_t *)base)->uses); }

static strata_status_t validate(strata_layer_t *base) {
    stream_safe_t *self = (stream_safe_t *)base;
    bool told = base->attention == 0 || (base->stack->attention_allocate & base->attention) != 0;
    if (must_poll(self) && !told)
        return strata_fail(STRATA_E_CORRUPT, 0, "stream_safe: frees are pending, but the stack's flag is not set");
    return is_empty(self) ? STRATA_OK : strata_uses_validate(&self->uses, "stream_safe");
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
    .notices = 1u << STRATA_NOTICE_STREAM_DESTROYED | 1u << STRATA_NOTICE_CAPTURE_BEGIN | 1u << STRATA_NOTICE_CAPTURE_END,
    .notify = notify,
    .validate = validate,
    .check = check,
};
