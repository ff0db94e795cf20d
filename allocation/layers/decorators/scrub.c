/* scrub: zeroes memory that passes to another owner, on the new owner's stream. An owner is a pool and a
 * tag.
 *
 * Each stack records, by address, the last owner of the memory in its cache. Bytes recorded for the
 * requesting owner are served unchanged. All others are zeroed: those of another owner, and those without a
 * record. New memory from below has none, since the device may hand out memory that another stack returned.
 * When the cache below has grown all records are dropped, since an address may have had another use in
 * between. They are also dropped when a block is served at a second address of its memory, such as a view of auto_growth_vmm.
 * So such a block is always zeroed. Without a cache of the stack's own directly below, every request is zeroed. */
#include <string.h>

#include "allocation/domain/layer.h"
#include "allocation/mechanism/ranges.h"

enum { RANGES = 1 << 20 };

typedef struct scrub_options {
    bool always;
} scrub_options_t;

static const strata_option_row_t options[] = {
    {"always", STRATA_OPTION_BOOL, offsetof(scrub_options_t, always), "false", 0, 0, NULL,
     "zero every request, including the owner's own memory"},
    {0},
};

typedef struct scrub_layer {
    strata_layer_t base;
    strata_ranges_t owners;
    uint64_t growths; /* of the stack's cache, when the records began */
    bool tracks_owners; /* the stack's own cache is below */
    uint16_t mark; /* attention bit of that cache */
    uint64_t zeroed, zeroed_bytes, kept_bytes;
} scrub_layer_t;

static const strata_stat_row_t stats[] = {
    {"zeroed", "count", offsetof(scrub_layer_t, zeroed), "requests zeroed"},
    {"zeroed_bytes", "bytes", offsetof(scrub_layer_t, zeroed_bytes), "bytes zeroed"},
    {"kept_bytes", "bytes", offsetof(scrub_layer_t, kept_bytes), "bytes served unchanged to their last owner"},
    {0},
};

/* The owner as one word: FNV-1a of the pool and the tag. */
static uint64_t owner_of(const strata_request_t *request) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (int byte = 0; byte < 8; byte++) hash = (hash ^ (request->pool >> (8 * byte) & 0xff)) * 0x100000001b3u;
    for (const char *at = request->tag; at && *at; at++) hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
    return hash;
}

/* Returns true if the memory of the block has a second address. The cache marks such a block, so that its own free runs. */
static bool is_remapped(const scrub_layer_t *self, const strata_record_t *record) {
    for (const strata_record_t *inner; (inner = strata_record_inner(record)) != NULL;) record = inner;
    return record->attention & self->mark;
}

static bool is_own(scrub_layer_t *self, const strata_record_t *record, uint64_t owner) {
    const strata_statistics_t *f = &self->base.stack->figures;
    if (self->growths != f->growths || is_remapped(self, record)) strata_ranges_clear(&self->owners);
    self->growths = f->growths;
    if (!self->tracks_owners || ((const scrub_options_t *)self->base.options)->always) return false;
    return strata_ranges_have(&self->owners, record->ptr, record->ptr + record->size, owner);
}

/* No lock is held. Memory without an owner stream has no user while it is served. */
static strata_status_t zero(scrub_layer_t *self, const strata_record_t *record, strata_stream_t stream) {
    strata_device_t *device = self->base.domain->device;
    void *view = self->base.stack->ownerless ? strata_device_host_view(device, record->ptr, record->size) : NULL;
    if (!view) return strata_domain_fill(self->base.domain, record->ptr, 0, record->size, stream);
    memset(view, 0, record->size);
    return STRATA_OK;
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    scrub_layer_t *self = (scrub_layer_t *)base;
    strata_record_t *served;
    uint64_t owner = owner_of(request);
    strata_status_t status = strata_below_allocate(base, request, &served);
    if (status != STRATA_OK) return status;
    bool own = is_own(self, served, owner);
    /* Recorded before the lock is released, so that a concurrent growth drops this record with the others. */
    if (self->tracks_owners) strata_ranges_set(&self->owners, served->ptr, served->ptr + served->size, owner);
    if (!own) {
        strata_unlocked_t opened = strata_call_unlock(request->call);
        status = zero(self, served, request->stream);
        strata_call_lock(request->call, opened);
    }
    if (status != STRATA_OK) {
        /* Neither the owner of these bytes nor their contents are known. */
        strata_ranges_clear(&self->owners);
        strata_below_undo(served, request->call);
        return status;
    }
    self->zeroed += !own;
    self->zeroed_bytes += own ? 0 : served->size;
    self->kept_bytes += own ? served->size : 0;
    *record = served;
    return STRATA_OK;
}

static void free_record(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self;
    strata_below_free(record, call);
}

static strata_status_t create(strata_layer_t *base) {
    scrub_layer_t *self = (scrub_layer_t *)base;
    /* Only the stack's own cache. Decorators in between keep addresses; any other layer may move memory between stacks. */
    const strata_layer_t *layer = base->below[0];
    while (layer->type->role == STRATA_DECORATOR) layer = layer->below[0];
    const strata_layer_t *cache = layer->type->role == STRATA_CACHE && layer->stack == base->stack ? layer : NULL;
    self->tracks_owners = cache != NULL;
    self->mark = cache && cache->number <= STRATA_ATTENTION_LAYERS ? (uint16_t)(1u << (cache->number - 1)) : 0;
    return strata_ranges_init(&self->owners, RANGES);
}

static void destroy(strata_layer_t *base) { strata_ranges_destroy(&((scrub_layer_t *)base)->owners); }

static strata_status_t validate(strata_layer_t *base) { return strata_ranges_validate(&((scrub_layer_t *)base)->owners); }

const strata_layer_type_t strata_scrub_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "scrub",
    .doc = "zeroes memory that passes to another owner (pool or tag), on the new owner's stream",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .gives = STRATA_TRAIT_TELLS_OWNERS,
    .passes = ~0u,
    .guarded = true,
    .state_size = sizeof(scrub_layer_t),
    .options_size = sizeof(scrub_options_t),
    .options = options,
    .stats = stats,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
    .validate = validate,
};
