/* aligned: serves addresses at multiples of more than the place's alignment.
 *
 * It requests enough from below that the memory contains a suitable multiple, whatever its address. It
 * hands out the piece that begins there, in a record of its own that holds the record below. Requests that
 * the place's own alignment satisfies pass through. */
#include "allocation/domain/layer.h"
#include "platform/arithmetic.h"

typedef struct aligned_options {
    uint64_t alignment;
    uint64_t from;
    bool always;
} aligned_options_t;

static const strata_option_row_t options[] = {
    {"alignment", STRATA_OPTION_SIZE, offsetof(aligned_options_t, alignment), "4096", 64, 1ull << 30, NULL,
     "min alignment, a power of two; a request's own may be larger"},
    {"from", STRATA_OPTION_SIZE, offsetof(aligned_options_t, from), "0", 0, 0, NULL, "smaller requests keep their own alignment"},
    {"always", STRATA_OPTION_BOOL, offsetof(aligned_options_t, always), "false", 0, 0, NULL,
     "add a whole alignment to each request, as Paddle does; false to add only as much as may be missing"},
    {0},
};

/* Returns the alignment that every layer gives in the place. */
static uint64_t given(const strata_layer_t *self) { return strata_place_alignment(strata_place_kind(self->domain->place)); }

/* Sets *asked to the size to request from below, or to 0 if the request passes through. Returns false if it
 * exceeds 64 bits. */
static bool size_below(const strata_layer_t *self, uint64_t size, uint64_t alignment, uint64_t *asked) {
    const aligned_options_t *o = self->options;
    *asked = 0;
    if (o->always) return strata_add(size, alignment, asked);
    if (alignment <= given(self)) return true;
    return strata_round_up(size, alignment, asked) && strata_add(*asked, alignment - given(self), asked);
}

static strata_status_t allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    const aligned_options_t *o = self->options;
    uint64_t alignment = strata_max(request->size >= o->from ? o->alignment : 0, request->alignment), asked;
    if (!size_below(self, request->size, alignment, &asked)) return strata_fail(STRATA_E_INVALID, 0, "the size is too large");
    if (asked == 0) return strata_below_allocate(self, request, record);
    strata_request_t below = *request;
    below.size = asked;
    below.alignment = strata_min(request->alignment, given(self));
    strata_record_t *inner;
    strata_status_t status = strata_below_allocate(self, &below, &inner);
    if (status != STRATA_OK) return status;
    uint64_t shift = (0 - inner->ptr) & (alignment - 1);
    /* A record can hold at most 4 GiB more than its request. */
    uint64_t granted = strata_min(inner->size - shift, request->size + UINT32_MAX);
    strata_record_t *outer = strata_record_wrap(self, request, inner, inner->ptr + shift, granted);
    if (!outer) {
        strata_below_undo(inner, request->call);
        return STRATA_E_LIMIT;
    }
    *record = outer;
    return STRATA_OK;
}

/* A record that passed through has the lower layers in its own route. */
static void free_record(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    strata_below_free(record->route != 0 ? record : strata_record_unwrap(self, record), call);
}

static strata_status_t check(const void *options_given, strata_place_kind_t place, const char **option) {
    const aligned_options_t *o = options_given;
    (void)place;
    if (strata_is_power_of_two(o->alignment)) return STRATA_OK;
    *option = "alignment";
    return strata_fail(STRATA_E_STRATEGY, 0, "%llu is not a power of two", (unsigned long long)o->alignment);
}

/* Supports the alignment of any request, and the layer's own. */
static uint64_t alignment(const void *options_given, strata_place_kind_t place, uint64_t below, uint64_t *wanted) {
    (void)options_given, (void)place, (void)below, (void)wanted;
    return UINT64_MAX;
}

const strata_layer_type_t strata_aligned_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "aligned",
    .doc = "serves addresses with more than the place's alignment",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_NONE,
    .passes = ~(uint32_t)(STRATA_TRAIT_EXACT_SIZE | STRATA_TRAIT_HANDLE_SOURCE),
    .guarded = true,
    .state_size = sizeof(strata_layer_t),
    .options_size = sizeof(aligned_options_t),
    .options = options,
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = allocate,
    .free = free_record,
    .check = check,
    .alignment = alignment,
};
