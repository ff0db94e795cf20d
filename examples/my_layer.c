/* A layer written outside Strata's tree: it counts the bytes of each stream and lets none hold more than `most`.
 *
 *     cc -shared -fPIC my_layer.c $(pkg-config --cflags strata) -o libmy_layer.so
 *     strata conform ./libmy_layer.so
 *
 * A strategy beside the object names it:   load: [./libmy_layer.so]
 *                                          stack: [retry, my_quota: {most: 4GiB}, stream_safe, auto_growth, system]
 */
#include <stddef.h>
#include <strata/layer.h>

/* The options in a strategy file. */
typedef struct options {
    uint64_t most;
} options_t;

static const strata_option_row_t option_rows[] = {
    {"most", STRATA_OPTION_SIZE, offsetof(options_t, most), "unlimited", 1, 0, NULL, "bytes that one stream may hold"},
    {0},
};

/* One instance for each stream, zeroed before create(). It is `guarded` (below): its stack's lock is held in every function. */
typedef struct quota {
    strata_layer_t base; /* always first */
    uint64_t bytes; /* held now, and requested from below */
    uint64_t refused;
} quota_t;

static const strata_stat_row_t figure_rows[] = {
    {"bytes", "bytes", offsetof(quota_t, bytes), "bytes of the stream"},
    {"refused", "count", offsetof(quota_t, refused), "requests above the quota"},
    {0},
};

/* The lock may be open while the layers below work. So the request is counted before, where other threads see it. */
static strata_status_t allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    quota_t *quota = (quota_t *)self;
    const options_t *options = self->options;
    if (request->size > options->most || quota->bytes > options->most - request->size) {
        quota->refused++;
        return strata_fail(STRATA_E_NO_MEMORY, 0, "my_quota: the stream holds %llu bytes and may hold %llu",
                           (unsigned long long)quota->bytes, (unsigned long long)options->most);
    }
    quota->bytes += request->size;
    strata_status_t status = strata_below_allocate(self, request, record);
    quota->bytes -= request->size;
    if (status == STRATA_OK) quota->bytes += (*record)->size; /* the size granted may be larger */
    return status;
}

static void give_back(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    ((quota_t *)self)->bytes -= record->size;
    strata_below_free(record, call);
}

static const strata_layer_type_t my_quota_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "my_quota",
    .doc = "limits the bytes of each stream",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .passes = ~0u, /* the traits of the layer below remain true */
    .guarded = true,
    .state_size = sizeof(quota_t),
    .options_size = sizeof(options_t),
    .options = option_rows,
    .stats = figure_rows,
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = allocate,
    .free = give_back,
};

STRATA_LAYERS(&my_quota_type);
