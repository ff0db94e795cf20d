/* STRATA_OPEN_CHECK_STREAM_IDS: handles that the driver gave again to other streams, and that no place forgot in between. */
#include "platform/host/host_memory.h"
#include "tests/facade/support/fixture.h"

typedef struct scene {
    rig_t rig;
    strata_strategy_t *strategy;
    strata_place_t place;
    strata_block_t block; /* of the place, for NULL */
} scene_t;

static void begin(scene_t *scene, strata_place_t place) {
    scene->strategy = rig_strategy("strata", NULL, 0);
    scene->place = place;
    rig_open_on(&scene->rig, scene->strategy, &(strata_sim_options_t){.devices = 2}, STRATA_OPEN_CHECK_STREAM_IDS);
    EXPECT_OK(strata_allocate(scene->rig.s, place, NULL, 1000, &scene->block));
}

static void end(scene_t *scene) {
    rig_close_by_force(&scene->rig);
    strata_strategy_delete(scene->strategy);
}

/* The same handle for another stream. */
static void recycle(scene_t *scene, strata_place_t device, strata_stream_t stream) {
    strata_stream_t again = NULL;
    EXPECT_OK(strata_stream_destroy(scene->rig.s, device, stream));
    EXPECT_OK(strata_stream_create(scene->rig.s, device, 0, &again));
    EXPECT_EQ(again, stream);
}

static bool is_ownerless(strata_place_t place) {
    return strata_place_kind(place) == STRATA_PLACE_PINNED || strata_place_kind(place) == STRATA_PLACE_HOST;
}

/* ---- every call ---- */

/* Those that name a stream; the first four tell the place of it. */
enum { NAME, ALLOCATE, BORROW, FREE_ON, ERASE, WORK, CALLS, CALLS_THAT_TELL = ERASE };

static bool is_served(int call, strata_place_t place) {
    return !(call == NAME && is_ownerless(place)) && !(call == WORK && place == strata_host());
}

static strata_status_t call_by(scene_t *scene, int call, strata_stream_t stream) {
    strata_t s = scene->rig.s;
    strata_ref_t ref = scene->block.ref;
    strata_block_t block;
    switch (call) {
    case NAME: return strata_stream_name(s, scene->place, stream, "copies");
    case ALLOCATE: return strata_allocate(s, scene->place, stream, 10, &block);
    case BORROW: return strata_record_stream(s, ref, stream);
    case FREE_ON: return strata_free_on(s, ref, stream);
    case ERASE: return strata_erase_stream(s, ref, stream);
    default: return strata_stream_work(s, scene->place, stream, 9, &ref, 1);
    }
}

static void expect_every_call_is_told(strata_place_t place, int first) {
    OPENED(scene_t, scene, end, begin(&scene, place));
    strata_stream_t stream = rig_stream(&scene.rig);
    EXPECT_OK(strata_retain(scene.rig.s, scene.block.ref));
    EXPECT_OK(call_by(&scene, first, stream));
    if (first != FREE_ON) EXPECT_OK(strata_release_ref(scene.rig.s, scene.block.ref));
    recycle(&scene, scene.rig.gpu, stream);
    for (int call = 0; call < CALLS; call++) {
        if (!is_served(call, place)) continue;
        strata_status_t status = call_by(&scene, call, stream);
        if (status != STRATA_E_UNKNOWN_STREAM) FAIL_TEST("call %d after %d answered %s", call, first, strata_status_name(status));
        EXPECT_CONTAINS(strata_last_error()->text, "was destroyed without strata_stream_forget()");
    }
    /* Nothing has happened, and after forget the handle is the new stream's. */
    EXPECT_OK(strata_stream_forget(scene.rig.s, place, stream));
    for (int call = 0; call < CALLS; call++)
        if (call != FREE_ON && is_served(call, place)) EXPECT_OK(call_by(&scene, call, stream));
    EXPECT_OK(call_by(&scene, FREE_ON, stream));
}

TEST(facade_stream_ids, a_recycled_handle_is_told_by_every_call_whatever_told_the_place_of_it) {
    const strata_place_t places[] = {strata_gpu(0), strata_managed(0), strata_pinned(), strata_host()};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (int first = 0; first < CALLS_THAT_TELL; first++)
            if (is_served(first, places[i])) expect_every_call_is_told(places[i], first);
}

/* ---- whose stream ---- */

TEST(facade_stream_ids, a_borrower_of_another_device_is_told) {
    const strata_place_t places[] = {strata_managed(0), strata_pinned()};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        strata_stream_t stream = NULL;
        OPENED(scene_t, scene, end, begin(&scene, places[i]));
        EXPECT_OK(strata_stream_create(scene.rig.s, strata_gpu(1), 0, &stream));
        EXPECT_OK(call_by(&scene, BORROW, stream));
        recycle(&scene, strata_gpu(1), stream);
        EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, call_by(&scene, BORROW, stream));
        EXPECT_OK(strata_stream_destroy(scene.rig.s, strata_gpu(1), stream));
        EXPECT_SAYS(STRATA_E_UNKNOWN_STREAM, call_by(&scene, BORROW, stream), "no longer exists");
    }
}

TEST(facade_stream_ids, each_place_is_told_and_forgets_for_itself) {
    strata_block_t pinned = {0};
    OPENED(scene_t, scene, end, begin(&scene, strata_gpu(0)));
    strata_stream_t stream = rig_stream(&scene.rig);
    EXPECT_OK(call_by(&scene, BORROW, stream));
    EXPECT_OK(strata_allocate(scene.rig.s, strata_pinned(), stream, 1000, &pinned));
    EXPECT_OK(strata_stream_forget(scene.rig.s, strata_gpu(0), stream));
    recycle(&scene, strata_gpu(0), stream);
    EXPECT_OK(call_by(&scene, BORROW, stream));
    EXPECT_SAYS(STRATA_E_UNKNOWN_STREAM, strata_record_stream(scene.rig.s, pinned.ref, stream), "of pinned was destroyed");
    EXPECT_OK(strata_record_stream(scene.rig.s, pinned.ref, STRATA_STREAM_LEGACY));
}

/* ---- what is not found ---- */

/* Such calls are those of a device that fails: they go on as without the flag. */
TEST_WITH(facade_stream_ids, a_driver_that_does_not_tell_is_no_reason_to_refuse, scene_t, scene, end, begin(scene, strata_gpu(0))) {
    strata_stream_t stream = rig_stream(&scene->rig);
    ASSERT_OK(strata_sim_fail(scene->rig.devices[0], STRATA_CALL_stream_id, 1, true, STRATA_E_DEVICE));
    for (int call = 0; call < CALLS; call++)
        if (call != FREE_ON) EXPECT_OK(call_by(scene, call, stream));
    EXPECT_OK(call_by(scene, FREE_ON, stream));
    strata_sim_clear_faults(scene->rig.devices[0]);
}

/* More than the table has: it does not grow, and the last ones are in it. */
TEST(facade_stream_ids, of_many_streams_that_are_never_forgotten_the_last_are_told) {
    enum { STREAMS = 1500, LAST = 1000 };
    static strata_stream_t streams[STREAMS];
    OPENED(scene_t, scene, end, begin(&scene, strata_gpu(0)));
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = rig_stream(&scene.rig);
        EXPECT_OK(call_by(&scene, BORROW, streams[i]));
        EXPECT_OK(call_by(&scene, ERASE, streams[i]));
    }
    uint64_t allocations = strata_host_allocations();
    for (int i = 0; i < STREAMS; i++) recycle(&scene, strata_gpu(0), streams[i]);
    EXPECT_OK(call_by(&scene, ERASE, streams[0]));
    for (int i = STREAMS - LAST; i < STREAMS; i++) EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, call_by(&scene, ERASE, streams[i]));
    EXPECT_EQ(strata_host_allocations(), allocations);
}
