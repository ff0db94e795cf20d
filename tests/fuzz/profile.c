/* The numbers of a device profile: a world is refused, or it counts its memory right. */
#include <string.h>

#include "platform/sim/sim.h"
#include "tests/fuzz/fuzz.h"

enum { BLOCKS = 8 };

/* The 7 whole numbers and the bool, then 16 bits for each price. */
static void fill(strata_sim_profile_t *profile, const uint8_t *bytes, size_t count) {
    uint64_t *numbers[] = {&profile->total_bytes,   &profile->context_bytes,    &profile->foreign_bytes,
                           &profile->granule_bytes, &profile->pack_below_bytes, &profile->address_bytes,
                           &profile->mappings_max,  &profile->pool_chunk_bytes};
    strata_sim_cost_t *costs[] = {&profile->malloc,       &profile->free,         &profile->host_alloc,
                                  &profile->malloc_async, &profile->event_record, &profile->synchronise};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && count >= 9; i++, bytes += 9, count -= 9) {
        if (bytes[0] & 1) continue; /* as it was */
        memcpy(numbers[i], bytes + 1, 8);
        if (bytes[0] & 2) *numbers[i] = UINT64_C(1) << (*numbers[i] & 63);
    }
    for (size_t i = 0; i < sizeof costs / sizeof *costs && count >= 4; i++, bytes += 4, count -= 4) {
        costs[i]->fixed_ns = (double)(bytes[0] | bytes[1] << 8) * 1000;
        costs[i]->per_mib_ns = (double)(bytes[2] | bytes[3] << 8) * 1000;
    }
    profile->free_waits = count > 0 && (*bytes & 1);
}

static uint64_t used(strata_device_t *device) {
    strata_sim_figures_t figures;
    strata_sim_figures(device, &figures);
    return figures.used_bytes;
}

static void use(strata_device_t *device, const uint8_t *bytes, size_t count) {
    strata_address_t blocks[BLOCKS];
    bool from_pool[BLOCKS];
    size_t live = 0;
    for (size_t i = 0; i < BLOCKS && i < count; i++) {
        uint64_t size = UINT64_C(1) << (bytes[i] % 40);
        from_pool[live] = bytes[i] >= 128;
        strata_status_t status = from_pool[live] ? strata_device_malloc_async(device, NULL, size, NULL, &blocks[live])
                                                 : strata_device_malloc(device, STRATA_MEMORY_DEVICE, size, &blocks[live]);
        if (status == STRATA_OK) FUZZ_EXPECT(blocks[live++] % 256 == 0);
        else FUZZ_EXPECT(status == STRATA_E_NO_MEMORY || status == STRATA_E_HOST_MEMORY || status == STRATA_E_DEVICE);
    }
    while (live > 0) {
        live--;
        if (from_pool[live]) FUZZ_EXPECT_OK(strata_device_free_async(device, blocks[live], NULL));
        else FUZZ_EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, blocks[live]));
    }
    FUZZ_EXPECT_OK(strata_device_synchronise(device));
}

void fuzz_profile(const uint8_t *bytes, size_t count) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    fill(&profile, bytes, count);
    strata_sim_t *world = NULL;
    strata_device_t *device = NULL;
    strata_status_t status = strata_sim_new(&(strata_sim_options_t){.profile = &profile}, &world);
    if (status != STRATA_OK) {
        FUZZ_EXPECT(status == STRATA_E_INVALID);
        return;
    }
    if (strata_sim_open(world, 0, &device) == STRATA_OK) {
        use(device, bytes, count);
        FUZZ_EXPECT(used(device) <= profile.total_bytes);
        FUZZ_EXPECT_OK(strata_sim_validate(world));
        strata_device_close(device);
    }
    strata_sim_drop(world);
}
