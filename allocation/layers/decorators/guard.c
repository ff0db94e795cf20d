/* guard: finds writes before a block, after it, and after its free, and reports leaks.
 *
 *   memory from below  | red zone |      block      | red zone |
 *                        0xfd       the user's, or    0xfd
 *                                   0xdb (poison) after its free
 *
 * A block is a record of its own, between two red zones. A free checks the zones, poisons the block on its
 * owner's stream, and puts it into a quarantine. A write after the free is found when the block leaves the
 * quarantine, and until then the address is not reused. A block that another stream borrowed is neither
 * poisoned nor kept. Bytes that the host cannot read are checked in a
 * copy (guard_bytes.h). On a simulated device without contents, zones are neither written nor checked;
 * `unseen` and the last report count these blocks. Poison and quarantine still work.
 *
 * A free cannot fail. A finding is counted, reported on standard error, and returned by validate() as
 * E_CORRUPT. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocation/domain/layer.h"
#include "allocation/layers/decorators/guard_account.h"
#include "allocation/layers/decorators/guard_bytes.h"
#include "allocation/report/log.h"
#include "platform/arithmetic.h"
#include "platform/text/printable.h"

enum { ZONE = 0xfd, POISON = 0xdb, BLOCKS = 1 << 20 };
enum { UNUSED, LIVE, KEPT };

typedef struct guard_options {
    uint64_t red_zone;
    uint64_t quarantine;
    bool poison;
    bool synchronise;
    bool report;
} guard_options_t;

static const strata_option_row_t options[] = {
    {"red_zone", STRATA_OPTION_SIZE, offsetof(guard_options_t, red_zone), "256", 0, 1ull << 30, NULL,
     "guard bytes after each block, and as many before it, rounded up to the alignment; 0 for none"},
    {"quarantine", STRATA_OPTION_COUNT, offsetof(guard_options_t, quarantine), "16", 0, 65536, NULL,
     "freed blocks that a stack keeps, except those that another stream used; the oldest are released first, and all are "
     "released when memory is short"},
    {"poison", STRATA_OPTION_BOOL, offsetof(guard_options_t, poison), "true", 0, 0, NULL,
     "set every byte to 0xdb at free, in the order of the owner's stream"},
    {"synchronise", STRATA_OPTION_BOOL, offsetof(guard_options_t, synchronise), "true", 0, 0, NULL,
     "wait for the owner's stream before checking; without the wait, writes still in progress are missed"},
    {"report", STRATA_OPTION_BOOL, offsetof(guard_options_t, report), "true", 0, 0, NULL,
     "report findings on standard error, and leaks when the place ends: once for all its streams, largest tags first"},
    {0},
};

/* A block that is live or kept. Its number is the `next` of its record. */
typedef struct guarded {
    strata_record_t *record;
    uint64_t number; /* of the allocation, in its stack */
    uint32_t next; /* if kept: the block freed after it */
    uint8_t state;
    bool poisoned;
    bool bare; /* its zones could not be written */
    char tag[42]; /* the tag of the request, or its operator, truncated */
} guarded_t;

typedef struct guard_layer {
    strata_layer_t base;
    strata_nodes_t blocks;
    guard_account_t *account;
    uint32_t first, last; /* kept blocks, in order of freeing */
    uint64_t kept, kept_bytes;
    uint64_t served, live;
    uint64_t zones_written, written_after_free, unseen;
    char finding[320]; /* the first finding */
    strata_condition_t
        owner_released; /* signals a decrease of using_owner: calls that use the owner's handle while the lock is released */
    uint32_t using_owner;
    bool owner_destroyed;
    _Atomic uint64_t staging; /* of guard_bytes_t */
} guard_layer_t;

static const strata_stat_row_t stats[] = {
    {"live", "count", offsetof(guard_layer_t, live), "live blocks"},
    {"kept", "count", offsetof(guard_layer_t, kept), "freed blocks in quarantine"},
    {"kept_bytes", "bytes", offsetof(guard_layer_t, kept_bytes), "bytes of these blocks in the layer below"},
    {"zones_written", "count", offsetof(guard_layer_t, zones_written), "blocks with an overwritten red zone"},
    {"written_after_free", "count", offsetof(guard_layer_t, written_after_free), "blocks written in quarantine"},
    {"unseen", "count", offsetof(guard_layer_t, unseen), "freed blocks that the host could not examine"},
    {0},
};

static guarded_t *block_at(guard_layer_t *self, uint32_t node) { return strata_node(&self->blocks, node); }

static const guard_options_t *options_of(const guard_layer_t *self) { return self->base.options; }

/* ---- bytes; no lock is held ---- */

static bool is_ownerless(const guard_layer_t *self) { return self->base.stack->ownerless; }

/* Returns whether the stack's name for the owner's stream is still valid in this thread. */
static bool has_owner(const guard_layer_t *self) {
    strata_stream_t stream;
    return !self->owner_destroyed && strata_layer_owner(&self->base, &stream);
}

/* Like has_owner(), and keeps the name valid until release_owner(). The lock is held. */
static bool acquire_owner(guard_layer_t *self) {
    bool named = has_owner(self);
    self->using_owner += named;
    return named;
}

static void release_owner(guard_layer_t *self, bool named) {
    self->using_owner -= named;
    if (self->owner_destroyed) strata_condition_broadcast(&self->owner_released);
}

static strata_status_t set_bytes(guard_layer_t *self, uint64_t address, uint8_t byte, uint64_t size, strata_stream_t stream) {
    strata_device_t *device = self->base.domain->device;
    if (size == 0) return STRATA_OK;
    void *view = is_ownerless(self) ? strata_device_host_view(device, address, size) : NULL;
    if (!view) return strata_domain_fill(self->base.domain, address, byte, size, stream);
    memset(view, byte, size);
    return STRATA_OK;
}

/* Calls strata_guard_first_other(). `named` is the result of acquire_owner(). */
static bool find_other(guard_layer_t *self, uint64_t address, uint8_t byte, uint64_t size, bool named, uint64_t *at) {
    const guard_bytes_t bytes = {
        .domain = self->base.domain, .stream = self->base.stack->stream, .named = named, .staging = &self->staging};
    return strata_guard_first_other(&bytes, address, byte, size, at);
}

/* Waits for the owner's work, as far as possible. Memory without an owner is unused at its free. */
static bool wait_for_owner(guard_layer_t *self, bool named) {
    strata_domain_t *domain = self->base.domain;
    if (!options_of(self)->synchronise || is_ownerless(self)) return true;
    return named ? strata_domain_wait_for(domain, self->base.stack->stream) : strata_domain_wait_for_all(domain);
}

/* A finding about one block. */
typedef struct finding {
    const char *where; /* NULL if there is no finding */
    uint64_t offset; /* of the first byte written, from the start of the block */
    bool before;
    bool unseen;
} finding_t;

static finding_t look_at_zones(guard_layer_t *self, const strata_record_t *record, const strata_record_t *inner, bool named) {
    uint64_t front = record->ptr - inner->ptr, after = front + record->size, back = inner->size - after, low, high;
    bool seen = find_other(self, inner->ptr, ZONE, front, named, &low) &&
                find_other(self, inner->ptr + after, ZONE, back, named, &high);
    if (!seen) return (finding_t){.unseen = true};
    if (high < back) return (finding_t){.where = "after it", .offset = record->size + high};
    if (low < front) return (finding_t){.where = "before it", .offset = front - low, .before = true};
    return (finding_t){0};
}

/* If the host cannot read the block there is no finding; the free has counted it as unseen. */
static finding_t look_at_poison(guard_layer_t *self, const strata_record_t *record, bool named) {
    uint64_t at;
    if (!wait_for_owner(self, named) || !find_other(self, record->ptr, POISON, record->size, named, &at)) return (finding_t){0};
    return at < record->size ? (finding_t){.where = "in it after its free", .offset = at} : (finding_t){0};
}

/* ---- findings; the lock is held, and released for the report ---- */

static void count(guard_layer_t *self, const guarded_t *block, finding_t found, uint64_t *counter, strata_call_t *call) {
    self->unseen += found.unseen;
    if (!found.where) return;
    ++*counter;
    char text[sizeof self->finding];
    snprintf(text, sizeof text,
             "guard: a block of %" PRIu64 " bytes at %#" PRIx64 " (allocation %" PRIu64 "%s%s) was written %s, "
             "first at offset %s%" PRIu64,
             strata_record_requested(block->record), block->record->ptr, block->number, *block->tag ? ", of " : "", block->tag,
             found.where, found.before ? "-" : "", found.offset);
    if (!*self->finding) memcpy(self->finding, text, sizeof text);
    if (!options_of(self)->report) return;
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_log_report(STRATA_LOG_ERROR, text);
    strata_call_lock(call, opened);
}

/* ---- free ---- */

/* Frees a block that is on no list to the layer below. Returns the bytes that it held. */
static uint64_t free_below(guard_layer_t *self, uint32_t node, strata_call_t *call) {
    guarded_t *block = block_at(self, node);
    if (block->poisoned) {
        bool named = acquire_owner(self);
        strata_unlocked_t opened = strata_call_unlock(call);
        finding_t found = look_at_poison(self, block->record, named);
        strata_call_lock(call, opened);
        release_owner(self, named);
        count(self, block, found, &self->written_after_free, call);
    }
    strata_record_t *inner = strata_record_unwrap(&self->base, block->record);
    uint64_t bytes = inner->size;
    block->state = UNUSED;
    strata_nodes_release(&self->blocks, node);
    strata_below_free(inner, call);
    return bytes;
}

static uint32_t take_oldest(guard_layer_t *self) {
    uint32_t node = self->first;
    self->first = block_at(self, node)->next;
    if (!self->first) self->last = 0;
    self->kept--;
    self->kept_bytes -= strata_record_wrapped(block_at(self, node)->record)->size;
    return node;
}

static void quarantine_block(guard_layer_t *self, uint32_t node) {
    guarded_t *block = block_at(self, node);
    block->state = KEPT;
    block->next = 0;
    if (self->last) block_at(self, self->last)->next = node;
    else self->first = node;
    self->last = node;
    self->kept++;
    self->kept_bytes += strata_record_wrapped(block->record)->size;
}

static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    guard_layer_t *self = (guard_layer_t *)base;
    const guard_options_t *o = options_of(self);
    uint32_t node = record->next;
    guarded_t *block = block_at(self, node);
    const strata_record_t *inner = strata_record_wrapped(record);
    /* Other streams may still use a borrowed block, so its bytes must not be poisoned. */
    bool borrowed = strata_record_borrowed_below(record), named = acquire_owner(self);
    strata_unlocked_t opened = strata_call_unlock(call);
    bool seen = wait_for_owner(self, named) && !block->bare;
    finding_t found = seen ? look_at_zones(self, record, inner, named) : (finding_t){.unseen = true};
    /* A free block of a graph pool may be used by its graph at the next launch. */
    bool may_poison = o->poison && !borrowed && !base->stack->group->graph && (is_ownerless(self) || named);
    bool poisoned = may_poison && set_bytes(self, record->ptr, POISON, record->size, base->stack->stream) == STRATA_OK;
    strata_call_lock(call, opened);
    release_owner(self, named);
    block->poisoned = poisoned;
    self->live--;
    count(self, block, found, &self->zones_written, call);
    /* A borrowed block is not poisoned, so a quarantine would find nothing. If the layer below marked its borrowers later,
     * a capture that no pool announced might have begun. Such a mark never passes, and the block would be lost.
     * There is no wait for a stream that is gone, because its stack is destroyed with its last block. */
    if (o->quarantine == 0 || borrowed || self->owner_destroyed || base->stack->forgotten.orphan) {
        (void)free_below(self, node, call);
        return;
    }
    quarantine_block(self, node);
    while (self->kept > o->quarantine) (void)free_below(self, take_oldest(self), call);
}

/* ---- allocate ---- */

static strata_status_t wrap_block(guard_layer_t *self, const strata_request_t *request, strata_record_t *inner, uint64_t front,
                                  bool bare, strata_record_t **record) {
    uint32_t node = strata_nodes_acquire(&self->blocks);
    if (node == 0) return strata_fail(STRATA_E_LIMIT, 0, "guard: %d blocks in one stack, the maximum", BLOCKS);
    strata_record_t *outer = strata_record_wrap(&self->base, request, inner, inner->ptr + front, request->size);
    if (!outer) {
        strata_nodes_release(&self->blocks, node);
        return STRATA_E_LIMIT;
    }
    outer->next = node;
    guarded_t *block = block_at(self, node);
    *block = (guarded_t){.record = outer, .number = ++self->served, .state = LIVE, .bare = bare};
    /* The request may come from a layer that was built with fewer fields. */
    bool names = request->struct_size >= offsetof(strata_request_t, operator_name) + sizeof request->operator_name;
    const char *operator_name = names && request->operator_name ? request->operator_name : "";
    snprintf(block->tag, sizeof block->tag, "%s", request->tag ? request->tag : operator_name);
    strata_make_printable(block->tag, false);
    self->live++;
    *record = outer;
    return STRATA_OK;
}

/* Writes the zones only if they can be read later. After E_CAPTURE they are unchanged, and are not examined. */
static strata_status_t write_zones(guard_layer_t *self, const strata_record_t *inner, uint64_t front, uint64_t size,
                                   strata_stream_t stream) {
    if (!strata_guard_sees(self->base.domain->device, inner->ptr, inner->size)) return STRATA_OK;
    strata_status_t status = set_bytes(self, inner->ptr, ZONE, front, stream);
    if (status != STRATA_OK) return status;
    return set_bytes(self, inner->ptr + front + size, ZONE, inner->size - front - size, stream);
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    guard_layer_t *self = (guard_layer_t *)base;
    uint64_t zone = options_of(self)->red_zone, front;
    uint64_t unit = strata_max(request->alignment, strata_place_kind(base->domain->place) == STRATA_PLACE_HOST ? 64 : 256);
    strata_request_t below = *request;
    strata_record_t *inner;
    if (!strata_round_up(zone, unit, &front) || !strata_add(request->size, front + zone, &below.size))
        return strata_fail(STRATA_E_INVALID, 0, "the size is too large");
    strata_status_t status = strata_below_allocate(base, &below, &inner);
    if (status != STRATA_OK) return status;
    strata_unlocked_t opened = strata_call_unlock(request->call);
    status = write_zones(self, inner, front, request->size, request->stream);
    strata_call_lock(request->call, opened);
    bool bare = status == STRATA_E_CAPTURE;
    if (status == STRATA_OK || bare) status = wrap_block(self, request, inner, front, bare, record);
    if (status != STRATA_OK) strata_below_undo(inner, request->call);
    return status;
}

/* ---- emptying the quarantine ---- */

/* Returns whether a kept block's memory returns directly to a source and was not a cache's chunk. A cache
 * itself counts the chunks that it returns. */
static bool goes_to_source(const strata_record_t *record) {
    const strata_record_t *bottom = strata_record_wrapped(record);
    for (const strata_record_t *inner = bottom; (inner = strata_record_inner(inner)) != NULL;) bottom = inner;
    return record->state != STRATA_RECORD_CHUNK && bottom->chunk == 0;
}

static void poll(strata_layer_t *base, strata_call_t *call, strata_pending_t *pending) {
    guard_layer_t *self = (guard_layer_t *)base;
    while (self->first) pending->freed_bytes += free_below(self, take_oldest(self), call);
}

static uint64_t release(strata_layer_t *base, strata_call_t *call) {
    guard_layer_t *self = (guard_layer_t *)base;
    uint64_t released = 0;
    while (self->first) {
        bool counts = goes_to_source(block_at(self, self->first)->record);
        uint64_t bytes = free_below(self, take_oldest(self), call);
        released += counts ? bytes : 0;
    }
    return released;
}

static void notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call) {
    guard_layer_t *self = (guard_layer_t *)base;
    if (notice->stream != base->stack->stream) return;
    while (self->first) (void)free_below(self, take_oldest(self), call);
    self->owner_destroyed = true;
    while (self->using_owner > 0) strata_call_wait(call, base->stack, &self->owner_released, UINT64_MAX);
}

static uint64_t idle_bytes(strata_layer_t *base) { return ((guard_layer_t *)base)->kept_bytes; }

/* ---- life ---- */

static strata_status_t create(strata_layer_t *base) {
    guard_layer_t *self = (guard_layer_t *)base;
    self->account = strata_guard_account_acquire(base->domain);
    if (!self->account) return STRATA_E_HOST_MEMORY;
    strata_status_t status = strata_nodes_init(&self->blocks, sizeof(guarded_t), BLOCKS);
    if (status == STRATA_OK) strata_condition_init(&self->owner_released);
    else strata_guard_account_release(self->account);
    return status;
}

/* Returns true for a block that is live at the end. A block that was freed before the device failed is not
 * a leak. */
static bool is_leaked(const guarded_t *block) { return block->state == LIVE && block->record->state != STRATA_RECORD_DEFERRED; }

/* Marks the block so that a guard further down, for which it is in use, does not report it again. The stack
 * that served it may have ended, so the makers are read from its home. */
static void pass_by_below(const guarded_t *block) {
    for (strata_record_t *inner = strata_record_wrapped(block->record);; inner = strata_record_wrapped(inner)) {
        const strata_layer_t *maker = strata_stack_of(inner->home)->layers[strata_record_maker_number(inner)];
        if (!maker || maker->type->role != STRATA_DECORATOR) return;
        inner->state = STRATA_RECORD_DEFERRED;
    }
}

/* Layers are destroyed from the top, after a wait for the device. Live blocks are leaks, and kept blocks
 * are examined once more. The layers below free the memory. */
static void destroy(strata_layer_t *base) {
    guard_layer_t *self = (guard_layer_t *)base;
    strata_call_t call = {.stack = base->stack};
    bool report = options_of(self)->report;
    for (uint32_t node = 1; node < self->blocks.used; node++) {
        const guarded_t *block = block_at(self, node);
        if (block->state == UNUSED) continue;
        if (report && is_leaked(block))
            strata_guard_account_add_leak(self->account, &(guard_leak_t){.bytes = strata_record_requested(block->record),
                                                                         .address = block->record->ptr,
                                                                         .number = block->number,
                                                                         .tag = block->tag});
        if (report || !is_leaked(block)) pass_by_below(block);
        if (block->state == KEPT && block->poisoned)
            count(self, block, look_at_poison(self, block->record, has_owner(self)), &self->written_after_free, &call);
    }
    strata_guard_end_staging(base->domain->device, &self->staging);
    if (report) strata_guard_account_add_unseen(self->account, self->unseen);
    strata_guard_account_release(self->account);
    strata_nodes_destroy(&self->blocks);
    strata_condition_destroy(&self->owner_released);
}

static strata_status_t validate(strata_layer_t *base) {
    guard_layer_t *self = (guard_layer_t *)base;
    uint64_t length = 0, live = 0, kept = 0, rows = self->blocks.used - 1 - self->blocks.unused;
    for (uint32_t node = self->first; node && length <= self->kept; node = block_at(self, node)->next) {
        if (block_at(self, node)->state != KEPT)
            return strata_fail(STRATA_E_CORRUPT, 0, "guard: a kept block is not marked as kept");
        length++;
    }
    for (uint32_t node = 1; node < self->blocks.used; node++) {
        live += block_at(self, node)->state == LIVE;
        kept += block_at(self, node)->state == KEPT;
    }
    if (length != self->kept) return strata_fail(STRATA_E_CORRUPT, 0, "guard: the list of kept blocks is not as long as counted");
    if (live < self->live) return strata_fail(STRATA_E_CORRUPT, 0, "guard: fewer blocks are live than counted");
    if (live + kept != rows) return strata_fail(STRATA_E_CORRUPT, 0, "guard: a row of the table has no owner");
    if (*self->finding) return strata_fail(STRATA_E_CORRUPT, 0, "%s", self->finding);
    return strata_nodes_validate(&self->blocks);
}

const strata_layer_type_t strata_guard_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "guard",
    .doc = "detects writes outside a block or after its free (red zones, poison, quarantine), and reports leaks",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .passes = ~(uint32_t)(STRATA_TRAIT_EXACT_SIZE | STRATA_TRAIT_HANDLE_SOURCE),
    .guarded = true,
    .state_size = sizeof(guard_layer_t),
    .options_size = sizeof(guard_options_t),
    .options = options,
    .stats = stats,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
    .release = release,
    .poll = poll,
    .notices = 1u << STRATA_NOTICE_STREAM_DESTROYED,
    .notify = notify,
    .idle_bytes = idle_bytes,
    .validate = validate,
};
