/* fault: refuses chosen requests before they reach the layer below, to test how a program and the layers
 * above handle a failure.
 *
 * Requests are numbered from 1, over all streams of the device. Random failures depend only on the number
 * and the seed, so a run that makes the same requests fails at the same ones. */
#include "allocation/domain/layer.h"
#include "allocation/options/option.h"

enum { SAY_NO_MEMORY, SAY_DEVICE };

typedef struct fault_options {
    uint64_t at;
    uint64_t every;
    uint64_t above;
    uint64_t seed;
    double probability;
    uint32_t says;
    bool onward;
} fault_options_t;

static const strata_option_row_t options[] = {
    {"at", STRATA_OPTION_COUNT, offsetof(fault_options_t, at), "0", 0, 0, NULL, "number of the request that fails; 0 for none"},
    {"onward", STRATA_OPTION_BOOL, offsetof(fault_options_t, onward), "false", 0, 0, NULL, "also fail all requests after `at`"},
    {"every", STRATA_OPTION_COUNT, offsetof(fault_options_t, every), "0", 0, 0, NULL,
     "fail requests whose number is a multiple of this; 0 for none"},
    {"above", STRATA_OPTION_SIZE, offsetof(fault_options_t, above), "unlimited", 0, 0, NULL, "fail larger requests"},
    {"probability", STRATA_OPTION_FRACTION, offsetof(fault_options_t, probability), "0", 0, 1000000, NULL,
     "share of requests that fail at random"},
    {"seed", STRATA_OPTION_COUNT, offsetof(fault_options_t, seed), "1", 0, 0, NULL, "random seed"},
    {"says", STRATA_OPTION_CHOICE, offsetof(fault_options_t, says), "no_memory", 0, 0, "no_memory|device",
     "error of failed requests: `no_memory`: out of memory, which may be retried; `device`: a device fault"},
    {0},
};

static const strata_option_dependency_t dependencies[] = {{"onward", "at", "!0"}, {"seed", "probability", "!0"}, {0}};

static strata_status_t check(const void *filled, strata_place_kind_t place, const char **option) {
    const fault_options_t *o = filled;
    (void)place;
    bool refuses = o->at > 0 || o->every > 0 || o->probability > 0 || o->above != UINT64_MAX;
    if (o->says == SAY_NO_MEMORY || refuses) return strata_option_check_dependencies(options, dependencies, filled, option);
    *option = "says";
    return strata_fail(STRATA_E_STRATEGY, 0, "no request is set to fail; write one, as in at: 1, or remove this option");
}

typedef struct fault_layer {
    strata_layer_t base;
    _Atomic uint64_t requests;
    _Atomic uint64_t failed;
} fault_layer_t;

static const strata_stat_row_t stats[] = {
    {"requests", "count", offsetof(fault_layer_t, requests), "requests received"},
    {"failed", "count", offsetof(fault_layer_t, failed), "requests failed on purpose"},
    {0},
};

/* The finalizer of splitmix64: maps any number to a well-mixed 64-bit word. */
static uint64_t scramble(uint64_t word) {
    word += 0x9e3779b97f4a7c15u;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

static bool fails(const fault_options_t *o, uint64_t number, uint64_t size) {
    if (o->at != 0 && (number == o->at || (o->onward && number > o->at))) return true;
    if (o->every != 0 && number % o->every == 0) return true;
    double drawn = (double)(scramble(scramble(o->seed) ^ number) >> 11) / (double)(1ull << 53); /* in [0, 1) */
    return size > o->above || drawn < o->probability;
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    fault_layer_t *self = (fault_layer_t *)base;
    const fault_options_t *o = base->options;
    uint64_t number = atomic_fetch_add(&self->requests, 1) + 1;
    if (!fails(o, number, request->size)) return strata_below_allocate(base, request, record);
    atomic_fetch_add(&self->failed, 1);
    return strata_fail(o->says == SAY_DEVICE ? STRATA_E_DEVICE : STRATA_E_NO_MEMORY, 0,
                       "fault: request %llu, of %llu bytes, fails by configuration", (unsigned long long)number,
                       (unsigned long long)request->size);
}

const strata_layer_type_t strata_fault_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "fault",
    .doc = "fails chosen requests: by number, by size, or at random",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_DEVICE,
    .passes = ~0u,
    .state_size = sizeof(fault_layer_t),
    .options_size = sizeof(fault_options_t),
    .options = options,
    .stats = stats,
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = allocate,
    .free = strata_layer_free_below,
    .check = check,
};
