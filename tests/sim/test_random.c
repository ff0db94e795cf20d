/* Random calls, right and wrong ones: the structures hold after each, and everything goes back. */
#include "platform/host/host_memory.h"
#include "platform/sim/world/sim_internal.h"
#include "tests/sim/sim_fixture.h"

enum { SLOTS = 24, HANDLE_MIB = 2 };

typedef struct player {
    fixture_t f;
    uint64_t state;
    strata_address_t plain[SLOTS], pooled[SLOTS];
    strata_handle_t streams[4], event;
    strata_address_t range;
    strata_physical_t handles[SLOTS];
    bool mapped[SLOTS];
} player_t;

static uint64_t draw(player_t *p, uint64_t below) {
    p->state ^= p->state << 13;
    p->state ^= p->state >> 7;
    p->state ^= p->state << 17;
    return p->state % below;
}

static strata_handle_t any_stream(player_t *p) { return p->streams[draw(p, 4)]; }

static void toggle_plain(player_t *p) {
    strata_address_t *slot = &p->plain[draw(p, SLOTS)];
    if (*slot) {
        EXPECT_OK(strata_device_free(p->f.device, STRATA_MEMORY_DEVICE, *slot));
        *slot = 0;
    } else if (strata_device_malloc(p->f.device, STRATA_MEMORY_DEVICE, 1 + draw(p, 4 * MIB), slot) != STRATA_OK) {
        EXPECT_EQ(strata_last_error()->status, STRATA_E_NO_MEMORY);
        EXPECT_EQ(*slot, 0);
    }
}

static void toggle_pooled(player_t *p) {
    strata_address_t *slot = &p->pooled[draw(p, SLOTS)];
    if (*slot) {
        EXPECT_OK(strata_device_free_async(p->f.device, *slot, any_stream(p)));
        *slot = 0;
    } else if (strata_device_malloc_async(p->f.device, NULL, 1 + draw(p, 6 * MIB), any_stream(p), slot) != STRATA_OK) {
        EXPECT_EQ(strata_last_error()->status, STRATA_E_NO_MEMORY);
    }
}

static void toggle_handle(player_t *p) {
    uint64_t i = draw(p, SLOTS), size = HANDLE_MIB * MIB;
    strata_address_t at = p->range + i * size;
    if (!p->handles[i]) {
        if (strata_device_create(p->f.device, size, false, &p->handles[i]) != STRATA_OK)
            EXPECT_EQ(strata_last_error()->status, STRATA_E_NO_MEMORY);
    } else if (!p->mapped[i]) {
        EXPECT_OK(strata_device_map(p->f.device, at, size, p->handles[i]));
        EXPECT_OK(strata_device_set_access(p->f.device, at, size, NULL, 0));
        p->mapped[i] = true;
    } else {
        EXPECT_OK(strata_device_unmap(p->f.device, at, size));
        p->mapped[i] = false;
        EXPECT_OK(strata_device_release(p->f.device, p->handles[i]));
        p->handles[i] = 0;
    }
}

static void use_streams(player_t *p) {
    strata_device_t *device = p->f.device;
    EXPECT_OK(strata_device_work(device, any_stream(p), draw(p, 1000 * US), NULL, 0));
    EXPECT_OK(strata_device_event_record(device, p->event, any_stream(p)));
    EXPECT_OK(strata_device_stream_wait(device, any_stream(p), p->event));
    if (draw(p, 10) == 0) EXPECT_OK(strata_device_stream_synchronise(device, any_stream(p)));
}

static void call_wrongly(player_t *p) {
    strata_device_t *device = p->f.device;
    uint64_t rubbish = p->state;
    strata_handle_t handle = (strata_handle_t)(uintptr_t)(rubbish | 4);
    EXPECT_NE(strata_device_free(device, STRATA_MEMORY_DEVICE, rubbish), STRATA_OK);
    EXPECT_NE(strata_device_free_async(device, rubbish, NULL), STRATA_OK);
    EXPECT_NE(strata_device_unmap(device, rubbish, MIB), STRATA_OK);
    EXPECT_NE(strata_device_release(device, rubbish), STRATA_OK);
    EXPECT_NE(strata_device_stream_query(device, handle), STRATA_OK);
    EXPECT_NE(strata_device_event_query(device, handle), STRATA_OK);
    EXPECT_NE(strata_device_graph_launch(device, handle, NULL), STRATA_OK);
    EXPECT_NE(strata_device_pool_trim(device, handle, 0), STRATA_OK);
}

static void player_open(player_t *p, uint64_t seed) {
    *p = (player_t){.f = fixture_open((strata_sim_options_t){.capacity = 96 * MIB}), .state = seed};
    for (int i = 1; i < 4; i++) p->streams[i] = stream_new(p->f.device, (strata_stream_flags_t)(i & 1));
    p->event = event_new(p->f.device);
    ASSERT_OK(strata_device_reserve(p->f.device, SLOTS * HANDLE_MIB * MIB, 0, &p->range));
}

static void give_back(player_t *p) {
    for (int i = 0; i < SLOTS; i++) {
        if (p->plain[i]) put(p->f.device, p->plain[i]);
        if (p->pooled[i]) EXPECT_OK(strata_device_free_async(p->f.device, p->pooled[i], NULL));
        if (p->mapped[i]) EXPECT_OK(strata_device_unmap(p->f.device, p->range + (uint64_t)i * HANDLE_MIB * MIB, HANDLE_MIB * MIB));
        if (p->handles[i]) EXPECT_OK(strata_device_release(p->f.device, p->handles[i]));
    }
    EXPECT_OK(strata_device_synchronise(p->f.device));
}

TEST(sim_random, the_structures_hold_after_every_call) {
    for (uint64_t seed = 1; seed <= 8; seed++) {
        player_t p;
        player_open(&p, seed * UINT64_C(0x9e3779b97f4a7c15));
        for (int i = 0; i < 1500 && !strata_test_has_failed(); i++) {
            switch (draw(&p, 5)) {
            case 0: toggle_plain(&p); break;
            case 1: toggle_pooled(&p); break;
            case 2: toggle_handle(&p); break;
            case 3: use_streams(&p); break;
            default: call_wrongly(&p);
            }
            EXPECT_OK(strata_sim_validate(p.f.world));
        }
        EXPECT_EQ(figures_of(p.f.device).peak_used_bytes, 96 * MIB);
        give_back(&p);
        EXPECT_EQ(figures_of(p.f.device).used_bytes, 0);
        fixture_close(&p.f);
    }
}

TEST_WORLD(sim_random, validation_finds_what_is_broken, 0) {
    sim_device_t *device = sim_of(f->device);
    strata_address_t pooled;
    ASSERT_OK(strata_device_malloc_async(f->device, NULL, MIB, NULL, &pooled));
    strata_address_t a = get(f->device, 4 * MIB);
    mapped_t m = map_new(f->device, 4 * MIB);
    uint64_t *const words[] = {&device->used,
                               &device->managed,
                               &device->reserved_addresses,
                               &device->mappings,
                               &device->world->regions.count,
                               &sim_region_at(f->world, a)->size,
                               &sim_region_at(f->world, m.address)->size};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        uint64_t saved = *words[i];
        *words[i] = i == 0 ? saved - 1 : i == 5 ? UINT64_C(1) << 40 : i == 6 ? 2 * MIB : saved + 1;
        EXPECT_STATUS(STRATA_E_CORRUPT, strata_sim_validate(f->world));
        *words[i] = saved;
        EXPECT_OK(strata_sim_validate(f->world));
    }
    put(f->device, a);
}

/* The simulator stands for the driver: what it allocates for itself is not the library's. */
TEST_WORLD(sim_random, the_simulators_own_memory_is_not_the_librarys, 0) {
    uint64_t before = strata_host_allocations();
    strata_host_fail_at(1, 1);
    strata_address_t a = get(f->device, 4 * MIB);
    stream_new(f->device, STRATA_STREAM_BLOCKING);
    map_new(f->device, 2 * MIB);
    strata_host_fail_at(0, 0);
    EXPECT_EQ(strata_host_allocations(), before);
    put(f->device, a);
}

typedef struct item {
    sim_node_t node;
    bool in;
} item_t;

TEST(sim_random, the_tree_answers_as_a_list_would) {
    enum { ITEMS = 64 };
    item_t items[ITEMS];
    sim_tree_t tree = {0};
    player_t p = {.state = 88172645463325252};
    for (uint64_t i = 0; i < ITEMS; i++) items[i] = (item_t){.node = {.key = i / 2 * 10, .tie = i % 2}};
    for (int turn = 0; turn < 5000; turn++) {
        item_t *item = &items[draw(&p, ITEMS)];
        if (item->in) sim_tree_remove(&tree, &item->node);
        else sim_tree_insert(&tree, &item->node);
        item->in = !item->in;
        uint64_t key = draw(&p, 330);
        const item_t *floor = NULL, *ceiling = NULL;
        for (size_t i = 0; i < ITEMS; i++) {
            if (items[i].in && items[i].node.key <= key) floor = &items[i];
            if (items[i].in && items[i].node.key >= key && !ceiling) ceiling = &items[i];
        }
        EXPECT_EQ(sim_tree_floor(&tree, key), (floor ? &floor->node : NULL));
        EXPECT_EQ(sim_tree_ceiling(&tree, key, 0), (ceiling ? &ceiling->node : NULL));
        EXPECT_TRUE(sim_tree_valid(&tree));
    }
}
