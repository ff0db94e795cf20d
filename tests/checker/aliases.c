/* Physical memory that is mapped at several addresses: the same bytes find one another. */
#include "tests/checker/watched.h"

#define A(w) ((w)->streams[0])
#define B(w) ((w)->streams[1])

typedef struct twice {
    strata_address_t address[2]; /* where there is room for the handle */
    strata_physical_t handle;
} twice_t;

#define SIZE (4 * MIB)

static void map_at(watched_t *w, const twice_t *t, int i) {
    EXPECT_OK(strata_device_map(w->device, t->address[i], SIZE, t->handle));
    EXPECT_OK(strata_device_set_access(w->device, t->address[i], SIZE, NULL, 0));
}

static void unmap_at(watched_t *w, const twice_t *t, int i) { EXPECT_OK(strata_device_unmap(w->device, t->address[i], SIZE)); }

/* A handle that is mapped at the first of two places. */
static twice_t twice_new(watched_t *w) {
    twice_t t = {{0}, 0};
    for (int i = 0; i < 2; i++) EXPECT_OK(strata_device_reserve(w->device, SIZE, 0, &t.address[i]));
    EXPECT_OK(strata_device_create(w->device, SIZE, false, &t.handle));
    map_at(w, &t, 0);
    return t;
}

static void serve_at(watched_t *w, uint64_t name, strata_address_t address, uint64_t size, strata_handle_t stream) {
    strata_checker_allocated(
        w->checker,
        &(strata_checker_block_t){.name = name, .device = w->device, .stream = stream, .address = address, .size = size});
}

static void use(watched_t *w, strata_address_t address, strata_handle_t stream, bool write) {
    strata_access_t access = {address, MIB, write};
    EXPECT_OK(strata_device_work(w->device, stream, 100 * US, &access, 1));
}

/* A block at the first place is used on A and freed; then the handle is mapped at the second, too, and its bytes there are served
 * to B. */
static twice_t move_to(watched_t *w, uint64_t offset, strata_handle_t next, bool ordered) {
    twice_t t = twice_new(w);
    serve_at(w, 1, t.address[0], MIB, A(w));
    use(w, t.address[0], A(w), true);
    strata_checker_freed(w->checker, 1);
    map_at(w, &t, 1);
    if (ordered) order(w, next, A(w));
    serve_at(w, 2, t.address[1] + offset, MIB, next);
    use(w, t.address[1] + offset, next, true);
    return t;
}

#define WATCHED(w)                                                                                                                 \
    watched_t w CLOSED_BY(watched_close);                                                                                          \
    watched_open(&w, STRATA_CHECKER_ALL)

TEST(aliases, who_gets_the_bytes_elsewhere_comes_after_who_had_them) {
    WATCHED(w);
    (void)move_to(&w, 0, B(&w), false);
    EXPECT_HAZARDS(&w, NEW_OWNER, 1);
}

/* The order of one stream, an event, other bytes of the handle. */
TEST(aliases, an_order_will_do_and_other_bytes_need_none) {
    WATCHED(w);
    (void)move_to(&w, 0, A(&w), false);
    (void)move_to(&w, 0, B(&w), true);
    (void)move_to(&w, 2 * MIB, B(&w), false);
    EXPECT_EQ(strata_checker_hazards(w.checker), 0);
}

/* Unmapped here, after a wait that another stream knows nothing of, and mapped there. */
TEST(aliases, what_a_mapping_left_is_remembered) {
    for (int waits = 0; waits < 2; waits++) {
        WATCHED(w);
        strata_handle_t event = event_new(w.device);
        twice_t t = twice_new(&w);
        serve_at(&w, 1, t.address[0], MIB, A(&w));
        use(&w, t.address[0], A(&w), true);
        strata_checker_freed(w.checker, 1);
        if (waits) EXPECT_OK(strata_device_stream_synchronise(w.device, A(&w)));
        else strata_sim_advance_to(w.sim.world, strata_sim_now(w.sim.world) + 10000 * US);
        unmap_at(&w, &t, 0);
        EXPECT_EQ(strata_checker_hazards_of(w.checker, STRATA_HAZARD_UNDER_WORK), !waits);
        map_at(&w, &t, 1);
        serve_at(&w, 2, t.address[1], MIB, B(&w));
        use(&w, t.address[1], B(&w), true);
        EXPECT_EQ(strata_checker_hazards_of(w.checker, STRATA_HAZARD_NEW_OWNER), !waits);
        EXPECT_OK(strata_device_event_destroy(w.device, event));
    }
}

/* From place to place, though nobody used it at the second. */
TEST(aliases, the_past_goes_from_place_to_place) {
    WATCHED(w);
    twice_t t = twice_new(&w);
    strata_address_t third = 0;
    serve_at(&w, 1, t.address[0], MIB, A(&w));
    use(&w, t.address[0], A(&w), true);
    strata_checker_freed(w.checker, 1);
    map_at(&w, &t, 1);
    EXPECT_OK(strata_device_reserve(w.device, SIZE, 0, &third));
    t.address[0] = third;
    map_at(&w, &t, 0);
    serve_at(&w, 2, third, MIB, B(&w));
    use(&w, third, B(&w), true);
    EXPECT_HAZARDS(&w, NEW_OWNER, 1);
}

TEST(aliases, two_live_blocks_never_have_the_same_bytes) {
    WATCHED(w);
    twice_t t = twice_new(&w);
    serve_at(&w, 1, t.address[0], MIB, A(&w));
    map_at(&w, &t, 1);
    serve_at(&w, 2, t.address[1] + 2 * MIB, MIB, A(&w));
    EXPECT_EQ(strata_checker_hazards(w.checker), 0);
    serve_at(&w, 3, t.address[1] + MIB / 2, MIB, A(&w));
    EXPECT_HAZARDS(&w, OVERLAP, 1);
}

/* Somebody outside has the memory mapped, and no block of it: as who imports it. */
TEST(aliases, two_accesses_by_two_addresses_need_an_order) {
    for (int writes = 0; writes < 2; writes++) {
        WATCHED(w);
        twice_t t = twice_new(&w);
        map_at(&w, &t, 1);
        serve_at(&w, 1, t.address[0], 2 * MIB, A(&w));
        use(&w, t.address[1], B(&w), false);
        use(&w, t.address[0] + MIB / 2, A(&w), writes);
        EXPECT_HAZARDS(&w, RACE, (uint64_t)writes);
        order(&w, A(&w), B(&w));
        use(&w, t.address[0], A(&w), true);
        EXPECT_HAZARDS(&w, RACE, (uint64_t)writes);
        use(&w, t.address[1] + 2 * MIB, B(&w), true);
        EXPECT_HAZARDS(&w, RACE, (uint64_t)writes);
    }
}
