/* The built-in cost profiles. docs/profiles.md documents the source of each value and how reliable it is. */
#include <string.h>

#include "platform/sim/world/sim_internal.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)
#define US  1000.0
#define COST(fixed_us, mib_us)                                                                                                     \
    { (fixed_us) * US, (mib_us)*US }

/* The profiles, as differences from the H100. */
#define PROFILE(label, gib, create_us, map_us, access_us, unmap_us, derived)                                                       \
    {                                                                                                                              \
        .name = label, .modelled = derived, .total_bytes = (gib)*GIB, .context_bytes = 500 * MIB, .foreign_bytes = 0,              \
        .granule_bytes = 2 * MIB, .pack_below_bytes = 1 * MIB, .address_bytes = UINT64_C(128) << 40, .mappings_max = 524288,       \
        .pool_chunk_bytes = 32 * MIB, .free_waits = true, .virtual_memory = true, .malloc = COST(37.1, 0.0725),                    \
        .free = COST(33.5, 0.372), .managed_malloc = COST(10.6, 0), .managed_free = COST(11.8, 0), .host_alloc = COST(416, 339),   \
        .host_free = COST(194, 110), .malloc_async = COST(0.47, 0), .free_async = COST(0.69, 0), .pool_grow = COST(18.7, 0.983),   \
        .pool_shrink = COST(1.8, 1.32), .reserve = COST(0.92, 0.0028), .unreserve = COST(0.7, 0.0039),                             \
        .create = COST(create_us, 0.039), .map = COST(map_us, 0.004), .set_access = COST(access_us, 0.068),                        \
        .unmap = COST(unmap_us, 0.027), .release = COST(10.3, 0.376), .event_create = COST(0.33, 0),                               \
        .event_destroy = COST(0.32, 0), .event_record = COST(0.43, 0), .event_query = COST(0.33, 0), .stream_wait = COST(0.34, 0), \
        .stream_create = COST(2.2, 0), .stream_destroy = COST(1.5, 0), .synchronise = COST(0.58, 0), .mem_info = COST(5.5, 0),     \
        .capture_status = COST(0.17, 0), .launch = COST(3.6, 0), .prefetch = COST(5, 0), .peer = COST(100, 0),                     \
    }

/* create, map, set_access and unmap, in microseconds */
#define HOPPER          8.6, 6, 23.2, 21.6
#define AMPERE          195, 1.5, 36, 26
#define PROFILE_OF(...) PROFILE(__VA_ARGS__)

static const strata_sim_profile_t profiles[] = {
    PROFILE_OF("h100", 80, HOPPER, false),
    PROFILE_OF("a100", 80, AMPERE, false),
    /* The costs below are not measured. A call is mostly host work of the driver, so Ampere cards use
     * the costs of the A100, and later cards those of the H100. */
    PROFILE_OF("l4", 24, HOPPER, true),
    PROFILE_OF("a10", 24, AMPERE, true),
    PROFILE_OF("rtx4090", 24, HOPPER, true),
    PROFILE_OF("h200", 141, HOPPER, true),
    PROFILE_OF("b200", 180, HOPPER, true),
};
#define PROFILES (sizeof profiles / sizeof *profiles)

const strata_sim_profile_t *strata_sim_profile(const char *name) {
    for (size_t i = 0; name && i < PROFILES; i++)
        if (strcmp(profiles[i].name, name) == 0) return &profiles[i];
    return NULL;
}

const char *strata_sim_profile_name(size_t index) { return index < PROFILES ? profiles[index].name : NULL; }
