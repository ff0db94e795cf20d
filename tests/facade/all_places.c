/* Every place at once, two devices that differ in one process, and the presets that are made for one place. */
#include "tests/facade/fixture.h"

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

static strata_statistics_t figures_of(rig_t *rig, strata_place_t place) {
    strata_statistics_t f = {.struct_size = sizeof f};
    EXPECT_OK(strata_statistics_all(rig->s, place, &f));
    return f;
}

static void note_chunk(const strata_snapshot_row_t *row, void *context) { *(uint64_t *)context = row->chunk; }

/* Where the last chunk of a place begins. */
static uint64_t chunk_of(rig_t *rig, strata_place_t place) {
    uint64_t chunk = 0;
    EXPECT_OK(strata_snapshot(rig->s, place, note_chunk, &chunk));
    return chunk;
}

TEST(facade_all_places, each_is_served_by_its_own_stack) {
    static const char *const paths[PLACES] = {"retry > stream_safe > auto_growth | system",
                                              "retry > stream_safe > auto_growth | system",
                                              "retry > stream_safe > auto_growth | system",
                                              "retry > stream_safe > auto_growth | system",
                                              "stream_safe > buffered | system",
                                              "auto_growth | system"};
    static const uint64_t reserved[PLACES] = {20 * MIB, 256 * MIB, 20 * MIB, 20 * MIB, 3 * MIB, 32 * MIB};
    strata_place_t places[PLACES];
    strata_block_t blocks[PLACES];
    list_places(places);
    RIG_BY(rig, rig_open(&rig, TWO_DEVICES, NULL, 0, 0, 2));
    for (int i = 0; i < PLACES; i++) {
        char path[128];
        ASSERT_OK(strata_allocate(rig.s, places[i], NULL, 3 * MIB, &blocks[i]));
        EXPECT_OK(strata_allocation_route(rig.s, blocks[i].ref, path, sizeof path));
        EXPECT_STREQ(path, paths[i]);
        EXPECT_EQ(figures_of(&rig, places[i]).reserved_bytes, reserved[i]);
        EXPECT_EQ(figures_of(&rig, places[i]).live_allocations, 1);
    }
    EXPECT_EQ(strata_sim_host_node(rig.devices[0], (uintptr_t)blocks[4].ptr), 0);
    EXPECT_EQ(chunk_of(&rig, strata_host()) % (2 * MIB), 0);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_prefetch), 1); /* of managed:0; managed:1 is the other device's */
    EXPECT_EQ(rig.devices[1]->calls[STRATA_CALL_prefetch], 1);
    /* By pointer, in whatever place. */
    for (int i = 0; i < PLACES; i++) EXPECT_OK(strata_free_pointer(rig.s, blocks[i].ptr));
    EXPECT_OK(strata_validate(rig.s));
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
        ASSERT_OK(strata_allocate(rig.s, places[place], foreign ? NULL : stream, sizes[at], &live[at]));
        requested[place] += sizes[at];
    }
    for (int i = 0; i < PLACES; i++) EXPECT_EQ(figures_of(&rig, places[i]).requested_bytes, requested[i]);
    EXPECT_OK(strata_validate(rig.s));
    for (int i = 0; i < LIVE; i++)
        if (live[i].ref) EXPECT_OK(strata_free(rig.s, live[i].ref));
}

/* Each is the default but for one place. */
TEST(facade_all_places, presets_for_a_place) {
    rig_t rig;
    strata_block_t b;
    rig_open(&rig, "managed_prefetch", NULL, 0, 0, 1);
    EXPECT_OK(strata_allocate(rig.s, strata_managed(0), NULL, MIB, &b));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_prefetch), 1);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_advise), 2);
    EXPECT_OK(strata_free(rig.s, b.ref));
    rig_close(&rig);
    rig_open(&rig, "pinned_near", NULL, 0, 0, 1);
    EXPECT_OK(strata_allocate(rig.s, strata_pinned(), NULL, MIB, &b));
    EXPECT_EQ(strata_sim_host_node(rig.devices[0], chunk_of(&rig, strata_pinned())), 0);
    EXPECT_EQ(figures_of(&rig, strata_pinned()).reserved_bytes, 8 * MIB);
    EXPECT_OK(strata_free(rig.s, b.ref));
    rig_close(&rig);
    rig_open(&rig, "host_huge", NULL, 0, 0, 1);
    EXPECT_OK(strata_allocate(rig.s, strata_host(), NULL, MIB, &b));
    EXPECT_EQ(chunk_of(&rig, strata_host()) % (2 * MIB), 0);
    EXPECT_EQ(figures_of(&rig, strata_host()).reserved_bytes, 32 * MIB);
    EXPECT_OK(strata_free(rig.s, b.ref));
    rig_close(&rig);
}
