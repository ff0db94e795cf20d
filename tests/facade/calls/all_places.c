/* Every place at once, two devices that differ in one process, and the presets that are made for one place. */
#include "tests/facade/support/fixture.h"

#define TWO_DEVICES                                                                                                                \
    "strategy: everywhere\nextends: managed_prefetch\ndevices:\n  use: sim:h100x2\n  gpu:1:\n"                                     \
    "    stack: [retry, stream_safe, auto_growth: {chunk_size: 256MiB}, system]\n"                                                 \
    "places:\n  pinned: [stream_safe, buffered, system: {cap: 4GiB, node: near}]\n"                                                \
    "  host: [auto_growth: {chunk_size: 32MiB, alignment: 64}, system: {huge_pages: true}]\n"

enum { PLACES = 6 };

static void list_places(strata_place_t places[PLACES]) {
    const strata_place_t all[PLACES] = {strata_gpu(0),     strata_gpu(1),   strata_managed(0),
                                        strata_managed(1), strata_pinned(), strata_host()};
    memcpy(places, all, sizeof all);
}

static void note_chunk(const strata_snapshot_row_t *row, void *context) { *(uint64_t *)context = row->chunk; }

/* Where the last chunk of a place begins. */
static uint64_t chunk_of(rig_t *rig, strata_place_t place) {
    uint64_t chunk = 0;
    EXPECT_OK(strata_snapshot(rig->s, place, note_chunk, &chunk));
    return chunk;
}

TEST(facade_all_places, each_is_served_by_its_own_stack) {
    static const char *const paths[PLACES] = {"retry > stream_safe > auto_growth_vmm | vmm",
                                              "retry > stream_safe > auto_growth | system",
                                              "retry > stream_safe > auto_growth | system",
                                              "retry > stream_safe > auto_growth | system",
                                              "stream_safe > buffered | system",
                                              "auto_growth | system"};
    static const uint64_t reserved[PLACES] = {4 * MIB, 256 * MIB, 20 * MIB, 20 * MIB, 3 * MIB, 32 * MIB};
    strata_place_t places[PLACES];
    strata_block_t blocks[PLACES];
    list_places(places);
    RIG_BY(rig, rig_open(&rig, TWO_DEVICES, NULL, 0, 0, 2));
    for (int i = 0; i < PLACES; i++) {
        ASSERT_OK(strata_allocate(rig.s, places[i], NULL, 3 * MIB, &blocks[i]));
        expect_route(&rig, blocks[i], paths[i]);
        EXPECT_EQ(rig_figures_in(&rig, places[i]).reserved_bytes, reserved[i]);
        EXPECT_EQ(rig_figures_in(&rig, places[i]).live_allocations, 1);
    }
    EXPECT_EQ(strata_sim_host_node(rig.devices[0], (uintptr_t)blocks[4].ptr), 0);
    EXPECT_EQ(chunk_of(&rig, strata_host()) % (2 * MIB), 0);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_prefetch), 1); /* of managed:0; managed:1 is the other device's */
    EXPECT_EQ(rig.devices[1]->calls[STRATA_CALL_prefetch], 1);
    /* By pointer, in whatever place. */
    for (int i = 0; i < PLACES; i++) EXPECT_OK(strata_free_pointer(rig.s, blocks[i].ptr));
}

/* A program that mixes the places at random: no place takes from another, everything goes back. */
TEST(facade_all_places, a_program_uses_all_at_once) {
    enum { LIVE = 48 };
    strata_place_t places[PLACES];
    strata_block_t live[LIVE] = {{0}};
    uint64_t random = 5, requested[PLACES] = {0}, sizes[LIVE] = {0};
    uint32_t place_of[LIVE] = {0};
    list_places(places);
    RIG_BY(rig, rig_open(&rig, TWO_DEVICES, NULL, 0, 0, 2));
    strata_stream_t stream = rig_stream(&rig);
    for (int step = 0; step < 3000 && !strata_test_has_failed(); step++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        uint32_t at = (uint32_t)(random >> 33) % LIVE, place = (uint32_t)(random >> 41) % PLACES;
        if (live[at].ref) {
            EXPECT_OK(strata_free(rig.s, live[at].ref));
            requested[place_of[at]] -= sizes[at];
            live[at].ref = 0;
            continue;
        }
        sizes[at] = 1 + (random >> 20) % (1 << 20);
        place_of[at] = place;
        bool foreign = place == 1 || place == 3; /* the stream is the first device's */
        live[at] = rig_allocate_in(&rig, places[place], foreign ? NULL : stream, sizes[at]);
        requested[place] += sizes[at];
    }
    for (int i = 0; i < PLACES; i++) EXPECT_EQ(rig_figures_in(&rig, places[i]).requested_bytes, requested[i]);
}

/* Each is the default but for one place. */
TEST(facade_all_places, presets_for_a_place) {
    RIG(prefetching, "managed_prefetch", 0);
    (void)rig_allocate_in(&prefetching, strata_managed(0), NULL, MIB);
    EXPECT_EQ(rig_calls(&prefetching, STRATA_CALL_prefetch), 1);
    EXPECT_EQ(rig_calls(&prefetching, STRATA_CALL_advise), 2);
    RIG(near, "pinned_near", 0);
    (void)rig_allocate_in(&near, strata_pinned(), NULL, MIB);
    EXPECT_EQ(strata_sim_host_node(near.devices[0], chunk_of(&near, strata_pinned())), 0);
    EXPECT_EQ(rig_figures_in(&near, strata_pinned()).reserved_bytes, 8 * MIB);
    RIG(huge, "host_huge", 0);
    (void)rig_allocate_in(&huge, strata_host(), NULL, MIB);
    EXPECT_EQ(chunk_of(&huge, strata_host()) % (2 * MIB), 0);
    EXPECT_EQ(rig_figures_in(&huge, strata_host()).reserved_bytes, 32 * MIB);
}
