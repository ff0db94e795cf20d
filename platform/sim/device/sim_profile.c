/* The built-in cost profiles. docs/profiles.md says where each value comes from and how far to trust it. */
#include <string.h>

#include "platform/sim/world/sim_internal.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)
#define US  1000.0
#define COST(fixed_us, mib_us)                                                                                                     \
    { (fixed_us) * US, (mib_us)*US }

/* The differences between the two; everything else is equal. */
#define PROFILE(label, create_us, map_us, access_us, unmap_us)                                                                     \
    {                                                                                                                              \
        .name = label, .total_bytes = 80 * GIB, .context_bytes = 500 * MIB, .foreign_bytes = 0, .granule_bytes = 2 * MIB,          \
        .pack_below_bytes = 1 * MIB, .address_bytes = UINT64_C(128) << 40, .mappings_max = 524288, .pool_chunk_bytes = 32 * MIB,   \
        .free_waits = true, .malloc = COST(88, 0.1), .free = COST(72, 0.22), .managed_malloc = COST(60, 0),                        \
        .host_alloc = COST(415, 155), .host_free = COST(0, 0), .malloc_async = COST(0.2, 0), .free_async = COST(0.2, 0),           \
        .reserve = COST(1, 0), .unreserve = COST(1, 0), .create = COST(create_us, 0.02), .map = COST(map_us, 0),                   \
        .set_access = COST(access_us, 0.08), .unmap = COST(unmap_us, 0), .release = COST(35, 0.22), .event_create = COST(0.4, 0),  \
        .event_destroy = COST(0.12, 0), .event_record = COST(0.25, 0), .event_query = COST(1, 0), .stream_wait = COST(0.25, 0),    \
        .stream_create = COST(5, 0), .stream_destroy = COST(5, 0), .synchronise = COST(1.3, 0), .mem_info = COST(6, 0),            \
        .capture_status = COST(0.15, 0), .launch = COST(1.85, 0), .prefetch = COST(5, 0), .peer = COST(100, 0),                    \
    }

static const strata_sim_profile_t profiles[] = {
    PROFILE("h100", 10, 0.45, 77, 36),
    PROFILE("a100", 195, 1.5, 36, 26),
};
#define PROFILES (sizeof profiles / sizeof *profiles)

const strata_sim_profile_t *strata_sim_profile(const char *name) {
    for (size_t i = 0; name && i < PROFILES; i++)
        if (strcmp(profiles[i].name, name) == 0) return &profiles[i];
    return NULL;
}

const char *strata_sim_profile_name(size_t index) { return index < PROFILES ? profiles[index].name : NULL; }
