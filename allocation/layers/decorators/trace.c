/* trace: writes requests, frees and borrows as a trace, in the format that `strata compare` and `strata
 * replay` read.
 *
 * An event has 72 bytes, plus 8 for each frame of a call stack. Events are in a ring of the stack, so they
 * need no host memory and no lock besides the stack's own. A lifetime is recorded completely or not at all:
 * an alloc enters the ring only while the frees of all recorded blocks still have room. Recorded blocks
 * carry the layer's attention bit, so frees of other blocks skip the layer. */
#include <string.h>

#include "allocation/domain/group.h"
#include "allocation/domain/layer.h"
#include "allocation/layers/decorators/trace_oom.h"
#include "allocation/options/option.h"
#include "allocation/stack/threads.h"
#include "platform/host/call_stack.h"
#include "trace/recorder.h"

enum { FULL_WRITE, FULL_DROP };
enum { STANDS_STILL = 1000000 /* ns */ };

typedef struct trace_options {
    uint64_t events, frames;
    uint32_t when_full;
    bool work;
    char path[STRATA_OPTION_TEXT_BYTES], on_oom[STRATA_OPTION_TEXT_BYTES];
} trace_options_t;

static const strata_option_row_t options[] = {
    {"path", STRATA_OPTION_TEXT, offsetof(trace_options_t, path), "none", 0, 0, NULL,
     "one file per process, complete when its last stack ends; %p for the process ID; .gz to compress; `none` to record "
     "nothing"},
    {"events", STRATA_OPTION_COUNT, offsetof(trace_options_t, events), "65536", 64, 16777216, NULL,
     "events that a stack buffers, 72 bytes each plus 8 per frame (`frames`)"},
    {"when_full", STRATA_OPTION_CHOICE, offsetof(trace_options_t, when_full), "write", 0, 0, "write|drop",
     "`write`: a request that finds the ring half full writes the file first; `drop`: no request waits, and lifetimes "
     "without room are counted and dropped"},
    {"on_oom", STRATA_OPTION_TEXT, offsetof(trace_options_t, on_oom), "none", 0, 0, NULL,
     "file for the trace up to the first out-of-memory failure with a full report. Beside it, as .pickle for .csv: a "
     "snapshot of the place's blocks for PyTorch's memory_viz. %p and .gz as in path; `none` for neither"},
    {"frames", STRATA_OPTION_COUNT, offsetof(trace_options_t, frames), "0", 0, STRATA_CALL_STACK_MAX, NULL,
     "call-stack frames to record per allocation, from the innermost outside Strata; 0 for none"},
    {"work", STRATA_OPTION_BOOL, offsetof(trace_options_t, work), "true", 0, 0, NULL,
     "record kernels that the program reports (strata_stream_work, strata_note_work), which a replay uses as GPU work; false "
     "to model the GPU by its lag"},
    {0},
};

static const strata_option_dependency_t dependencies[] = {{"events", "path", "!none"}, {"when_full", "path", "!none"},
                                                          {"on_oom", "path", "!none"}, {"frames", "path", "!none"},
                                                          {"work", "path", "!none"},   {0}};

static strata_status_t check(const void *filled, strata_place_kind_t place, const char **option) {
    const trace_options_t *o = filled;
    (void)place;
    strata_status_t status = strata_option_check_dependencies(options, dependencies, filled, option);
    if (status != STRATA_OK || strcmp(o->on_oom, "none") == 0 || strcmp(o->on_oom, o->path) != 0) return status;
    *option = "on_oom";
    return strata_fail(STRATA_E_STRATEGY, 0,
                       "on_oom and path name the same file, so one would overwrite the other; write another name");
}

typedef struct trace_layer {
    strata_layer_t base;
    strata_recorder_ring_t ring;
    bool recording;
    uint64_t pool_name; /* 1 + the number that is its pool's name, or 0 if its pool has another name or there is no pool */
    uint64_t lives; /* recorded blocks that are not freed; their frees have reserved room */
    uint64_t recorded, dropped, failures;
} trace_layer_t;

static const strata_stat_row_t stats[] = {
    {"recorded", "count", offsetof(trace_layer_t, recorded), "events added to the ring"},
    {"dropped", "count", offsetof(trace_layer_t, dropped), "lifetimes and other events dropped for lack of room"},
    {"failures", "count", offsetof(trace_layer_t, failures), "failed writes of the file"},
    {0},
};

static const trace_options_t *options_of(const trace_layer_t *self) { return self->base.options; }

/* Events of one thread on several stacks keep their order even if the clock does not advance: each event is
 * a nanosecond later. The address of a destroyed clock may be reused by another. */
static uint64_t now(const trace_layer_t *self) {
    static _Thread_local struct {
        const strata_clock_t *clock;
        uint64_t time;
    } last;
    strata_clock_t *clock = self->base.domain->device->clock;
    uint64_t time = clock->now(clock);
    if (clock == last.clock && time <= last.time && last.time - time < STANDS_STILL) time = last.time + 1;
    last.clock = clock;
    last.time = time;
    return time;
}

/* ---- events; the lock is held ---- */

static uint64_t key_of(strata_stream_t stream) {
    if (stream == STRATA_STREAM_LEGACY) return 0;
    return stream == STRATA_STREAM_PER_THREAD ? strata_threads_own << 32 | 2 : (uint64_t)(uintptr_t)stream;
}

static uint64_t name_of(const strata_record_t *record) {
    const strata_stack_t *home = strata_stack_of(record->home);
    return strata_ref_make(record->home, strata_slab_slot(&home->slab, record), 0);
}

/* Replaces line ends, which would end the row. */
static void copy_tag(char *to, size_t capacity, const char *tag) {
    size_t length = 0;
    for (; tag && tag[length] && length + 1 < capacity; length++)
        to[length] = tag[length] == '\n' || tag[length] == '\r' ? ' ' : tag[length];
    to[length] = '\0';
}

/* Returns the number of the pool in the trace. If the pool's name is a number it is that one, so that a
 * replay finds the same pool. */
static uint64_t pool_of(const trace_layer_t *self) {
    uint64_t pool = atomic_load_explicit(&self->base.stack->group->pool, memory_order_relaxed);
    if (pool == 0 || pool == STRATA_GRAPH_POOL_ENDED) return 0;
    return self->pool_name ? self->pool_name : pool + 1;
}

static void record_event(trace_layer_t *self, const strata_record_t *record, strata_trace_op_t op, strata_stream_t stream,
                         const strata_request_t *request) {
    strata_recorder_event_t event = {.time_ns = now(self),
                                     .block = name_of(record),
                                     .stream = key_of(stream),
                                     .size = op == STRATA_TRACE_alloc ? strata_record_requested(record) : 0,
                                     .pool = op == STRATA_TRACE_alloc ? pool_of(self) : 0,
                                     .thread = (uint32_t)strata_threads_own,
                                     .op = (uint8_t)op};
    uint64_t alignment = request ? request->alignment : 0;
    if (alignment > strata_place_alignment(strata_place_kind(self->base.domain->place)))
        event.align = (uint8_t)__builtin_ctzll(alignment);
    copy_tag(event.tag, sizeof event.tag, request ? request->tag : NULL);
    uint64_t frames[STRATA_CALL_STACK_MAX];
    if (request && self->ring.frames) event.frames = (uint8_t)strata_call_stack_capture(frames, self->ring.frames);
    strata_recorder_append(&self->ring, &event, frames);
    self->recorded++;
}

/* Requires room for the block's own row and for its free. */
static void note_alloc(trace_layer_t *self, strata_record_t *record, const strata_request_t *request) {
    if (strata_recorder_room(&self->ring) < self->lives + 2) {
        self->dropped++;
        return;
    }
    self->lives++;
    record->attention |= self->base.attention;
    /* Without an owner stream every user is reported as a borrower, the request's own stream too. */
    record_event(self, record, STRATA_TRACE_alloc, request->call->stack->ownerless ? NULL : request->stream, request);
}

static bool is_noted(const trace_layer_t *self, const strata_record_t *record) {
    return self->recording && self->lives > 0 && (!self->base.attention || (record->attention & self->base.attention));
}

/* The locks of the call are released while the file is written. */
static void write_out(trace_layer_t *self, strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    bool written = strata_recorder_write(&self->ring, now(self)) == STRATA_OK;
    strata_call_lock(call, opened);
    self->failures += !written;
}

static bool is_half_full(const trace_layer_t *self) {
    uint64_t kept = self->lives < self->ring.capacity ? self->lives : self->ring.capacity;
    return strata_recorder_room(&self->ring) - kept < (self->ring.capacity - kept) / 2;
}

/* ---- operations ---- */

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    trace_layer_t *self = (trace_layer_t *)base;
    if (self->recording && options_of(self)->when_full == FULL_WRITE && is_half_full(self)) write_out(self, request->call);
    strata_status_t status = strata_below_allocate(base, request, record);
    if (status == STRATA_OK && self->recording) note_alloc(self, *record, request);
    return status;
}

static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    trace_layer_t *self = (trace_layer_t *)base;
    if (is_noted(self, record)) {
        record->attention &= (uint16_t)~base->attention;
        if (strata_recorder_room(&self->ring) > 0) record_event(self, record, STRATA_TRACE_free, NULL, NULL);
        self->lives--;
    }
    strata_below_free(record, call);
}

/* Records a call of the program, whether a layer below handles it or the core does. */
static strata_status_t record_borrow(strata_layer_t *base, strata_record_t *record, strata_trace_op_t op, strata_stream_t stream,
                                     strata_call_t *call, strata_status_t status) {
    if (status != STRATA_OK && status != STRATA_E_UNSUPPORTED) return status;
    bool entered = strata_call_enter(call, base);
    trace_layer_t *self = (trace_layer_t *)base;
    bool by_owner = call->purpose == STRATA_FOR_FIRST_USE && !call->stack->ownerless;
    if (!by_owner && is_noted(self, record)) {
        if (strata_recorder_room(&self->ring) < self->lives + 1) self->dropped++;
        else record_event(self, record, op, stream, NULL);
    }
    strata_call_exit(call, base, entered);
    return status;
}

static strata_status_t record_stream(strata_layer_t *base, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    strata_status_t status = strata_below_record_stream(base, record, stream, call);
    return record_borrow(base, record, STRATA_TRACE_borrow, stream, call, status);
}

static strata_status_t erase_stream(strata_layer_t *base, strata_record_t *record, strata_stream_t stream, strata_call_t *call) {
    strata_status_t status = strata_below_erase_stream(base, record, stream, call);
    return record_borrow(base, record, STRATA_TRACE_unborrow, stream, call, status);
}

static uint64_t release(strata_layer_t *base, strata_call_t *call) {
    trace_layer_t *self = (trace_layer_t *)base;
    if (self->recording) write_out(self, call);
    return 0;
}

/* Records an event of the program, not of a block. */
static bool record_mark(trace_layer_t *self, const strata_recorder_event_t *event) {
    if (strata_recorder_room(&self->ring) < self->lives + 1) {
        self->dropped++;
        return false;
    }
    strata_recorder_append(&self->ring, event, NULL);
    self->recorded++;
    return true;
}

/* The locks of the call are released in between. */
static void dump_ring(trace_layer_t *self, strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    bool left = strata_trace_dump(&self->ring, self->base.domain, options_of(self)->on_oom, now(self)) == STRATA_OK;
    strata_call_lock(call, opened);
    self->failures += !left;
}

static void notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call) {
    trace_layer_t *self = (trace_layer_t *)base;
    bool waits = notice->kind == STRATA_NOTICE_WAIT, works = notice->kind == STRATA_NOTICE_WORK;
    strata_recorder_event_t event = {
        .time_ns = now(self), .stream = key_of(notice->stream), .thread = (uint32_t)strata_threads_own};
    if (!self->recording || (works && !options_of(self)->work)) return;
    switch (notice->kind) {
    case STRATA_NOTICE_OUT_OF_MEMORY:
        if (strcmp(options_of(self)->on_oom, "none") == 0) return;
        notice->handled = true;
        dump_ring(self, call);
        return;
    case STRATA_NOTICE_STEP:
        (void)record_mark(self, &(strata_recorder_event_t){.time_ns = event.time_ns, .op = STRATA_TRACE_step});
        return;
    case STRATA_NOTICE_WORK: event.op = STRATA_TRACE_work; break;
    case STRATA_NOTICE_WAIT: event.op = STRATA_TRACE_wait; break;
    case STRATA_NOTICE_SYNC: event.op = STRATA_TRACE_sync; break;
    case STRATA_NOTICE_RELEASE: event.op = STRATA_TRACE_release; break;
    default: return;
    }
    if (works && notice->record && !is_noted(self, notice->record)) return;
    event.block = waits ? key_of(notice->other) : notice->record ? name_of(notice->record) : notice->all;
    event.size = notice->duration_ns;
    event.pool = notice->kernel;
    notice->handled |= record_mark(self, &event);
}

/* ---- life ---- */

static uint64_t number_in(const char *name) {
    uint64_t number = 0;
    if (!*name || strlen(name) > 18) return 0;
    for (; *name; name++) {
        if (*name < '0' || *name > '9') return 0;
        number = number * 10 + (uint64_t)(*name - '0');
    }
    return number + 1;
}

static strata_status_t create(strata_layer_t *base) {
    trace_layer_t *self = (trace_layer_t *)base;
    const trace_options_t *o = options_of(self);
    if (strcmp(o->path, "none") == 0) return STRATA_OK;
    if (o->frames) strata_call_stack_ready();
    strata_status_t status = strata_recorder_attach(&self->ring, o->path, o->events, (uint32_t)o->frames, base->domain->place,
                                                    now(self));
    if (status != STRATA_OK) return status;
    self->recording = true;
    self->pool_name = number_in(base->stack->group->name);
    strata_stack_lock_own(base->stack);
    strata_layer_enable_allocate(base, true);
    strata_unlock(&base->stack->lock);
    return STRATA_OK;
}

static void destroy(strata_layer_t *base) {
    trace_layer_t *self = (trace_layer_t *)base;
    if (self->recording && strata_recorder_detach(&self->ring, now(self)) != STRATA_OK) strata_domain_note_unreported(base->domain);
}

static strata_status_t validate(strata_layer_t *base) {
    const trace_layer_t *self = (const trace_layer_t *)base;
    if (self->recording && self->lives > strata_recorder_room(&self->ring))
        return strata_fail(STRATA_E_CORRUPT, 0, "trace: there may be no room for the free of a recorded block");
    return STRATA_OK;
}

const strata_layer_type_t strata_trace_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "trace",
    .doc = "records allocations, frees, borrows, pools, steps, waits and kernels of the running program as a trace",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .passes = ~0u,
    .guarded = true,
    .idle = true,
    .state_size = sizeof(trace_layer_t),
    .options_size = sizeof(trace_options_t),
    .options = options,
    .stats = stats,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
    .check = check,
    .release = release,
    .notices = 1u << STRATA_NOTICE_STEP | 1u << STRATA_NOTICE_WORK | 1u << STRATA_NOTICE_WAIT | 1u << STRATA_NOTICE_SYNC |
               1u << STRATA_NOTICE_RELEASE | 1u << STRATA_NOTICE_OUT_OF_MEMORY,
    .notify = notify,
    .record_stream = record_stream,
    .erase_stream = erase_stream,
    .validate = validate,
};
