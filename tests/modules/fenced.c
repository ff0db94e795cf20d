/* A decorator with a record of its own, by the public header alone: a fence of 256 bytes in front of each block and after it. The
 * fences are written when the block is served and looked at when it is freed, where the host can see them; the last block freed is
 * kept back until the next free, or until memory is short. */
#include <stdlib.h>
#include <string.h>

#include <strata/layer.h>

enum { FENCE = 256, MARK = 0x5a };

typedef struct fenced {
    strata_layer_t base;
    uint64_t live;
    uint64_t broken; /* fences that somebody wrote */
    strata_record_t *kept; /* NULL: none */
} fenced_t;

static const strata_stat_row_t figure_rows[] = {
    {"live", "count", offsetof(fenced_t, live), "blocks between fences"},
    {"broken", "count", offsetof(fenced_t, broken), "fences that somebody wrote"},
    {0},
};

static void write_fences(fenced_t *self, const strata_record_t *inner, const strata_record_t *record) {
    unsigned char *view = strata_layer_host_view(&self->base, inner->ptr, inner->size);
    if (!view) return;
    uint64_t after = record->ptr - inner->ptr + record->size;
    memset(view, MARK, record->ptr - inner->ptr);
    memset(view + after, MARK, inner->size - after);
}

static bool are_whole(fenced_t *self, const strata_record_t *inner, const strata_record_t *record) {
    const unsigned char *view = strata_layer_host_view(&self->base, inner->ptr, inner->size);
    uint64_t front = record->ptr - inner->ptr, after = front + record->size;
    for (uint64_t at = 0; view && at < inner->size; at++) {
        if (at == front) at = after;
        if (view[at] != MARK) return false;
    }
    return true;
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    fenced_t *self = (fenced_t *)base;
    strata_record_t *inner;
    strata_request_t below = *request;
    below.struct_size = sizeof below;
    below.size = FENCE + (request->size + FENCE - 1) / FENCE * FENCE + FENCE;
    strata_status_t status = strata_below_allocate(base, &below, &inner);
    if (status != STRATA_OK) return status;
    strata_record_t *outer = strata_record_wrap(base, request, inner, inner->ptr + FENCE, request->size);
    if (!outer) {
        strata_below_free(inner, request->call);
        return STRATA_E_LIMIT;
    }
    write_fences(self, inner, outer);
    self->live++;
    outer->next = (uint32_t)(outer->ptr >> 8); /* its own word: checked at free */
    *record = outer;
    return STRATA_OK;
}

static void let_go(fenced_t *self, strata_call_t *call) {
    strata_record_t *kept = self->kept;
    self->kept = NULL; /* first: the lock may open below */
    if (kept) strata_below_free(strata_record_unwrap(&self->base, kept), call);
}

/* Work of the owner that is under way may still write; a borrower's is not ours to judge. */
static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    fenced_t *self = (fenced_t *)base;
    strata_stream_t owner;
    if (record->next != (uint32_t)(record->ptr >> 8)) abort();
    strata_unlocked_t opened = strata_call_unlock(call);
    bool settled = strata_layer_owner(base, &owner) ? strata_layer_wait_for(base, owner)
                                                    : strata_place_kind(strata_layer_place(base)) == STRATA_PLACE_HOST;
    strata_call_lock(call, opened);
    bool judge = settled && !strata_record_borrowed_below(record);
    self->broken += judge && !are_whole(self, strata_record_wrapped(record), record);
    self->live--;
    let_go(self, call);
    if (judge && !self->kept) {
        self->kept = record;
        return;
    }
    strata_below_free(strata_record_unwrap(base, record), call);
}

/* What was kept goes back; then the layers below give what they have. */
static uint64_t release(strata_layer_t *base, strata_call_t *call) {
    uint64_t bytes = ((fenced_t *)base)->kept ? strata_record_wrapped(((fenced_t *)base)->kept)->size : 0;
    let_go((fenced_t *)base, call);
    return bytes;
}

static void notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call) {
    (void)notice;
    let_go((fenced_t *)base, call);
}

static uint64_t idle_bytes(strata_layer_t *base) {
    const fenced_t *self = (fenced_t *)base;
    return self->kept ? strata_record_wrapped(self->kept)->size : 0;
}

static strata_status_t validate(strata_layer_t *base) {
    const fenced_t *self = (fenced_t *)base;
    return self->broken ? strata_fail(STRATA_E_CORRUPT, 0, "fenced: somebody wrote a fence") : STRATA_OK;
}

/* Block addresses are shifted by one fence. */
static uint64_t alignment(const void *options, strata_place_kind_t place, uint64_t below, uint64_t *wanted) {
    (void)options, (void)place, (void)below, (void)wanted;
    return FENCE;
}

static const strata_layer_type_t fenced_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "fenced",
    .doc = "a fence on both sides of each block",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .passes = ~0u & ~(uint32_t)STRATA_TRAIT_EXACT_SIZE,
    .guarded = true,
    .state_size = sizeof(fenced_t),
    .stats = figure_rows,
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = allocate,
    .free = free_record,
    .release = release,
    .notices = 1u << STRATA_NOTICE_STREAM_DESTROYED,
    .notify = notify,
    .idle_bytes = idle_bytes,
    .validate = validate,
    .alignment = alignment,
};

STRATA_LAYERS(&fenced_type);
