/* Calls that may not return while another thread stands at the device: what they promise holds from their return on. */
#include <pthread.h>
#include <unistd.h>

#include "allocation/layers/sources/cuda_malloc_async_state.h"
#include "tests/facade/support/fixture.h"

/* How often a call that may return too early is looked for; one that holds its promise never returns meanwhile. */
enum { LOOKS = 200 };

static struct {
    strata_device_operations_t table;
    const strata_device_operations_t *real;
    rig_t *rig;
    strata_stream_t stream;
    pthread_t thread;
    _Atomic bool returned;
    bool began, too_early;
} scene;

/* Begins the other call, and looks whether it returns once it has come so far. */
static void begin_beside(void *(*call)(void *), bool (*has_come_so_far)(void)) {
    if (scene.began) return;
    scene.began = pthread_create(&scene.thread, NULL, call, NULL) == 0;
    while (scene.began && !has_come_so_far() && !atomic_load(&scene.returned)) usleep(50);
    for (int i = 0; i < LOOKS && !atomic_load(&scene.returned); i++) usleep(50);
    scene.too_early = atomic_load(&scene.returned);
}

static void begin(rig_t *rig, strata_stream_t stream) {
    scene.real = rig->devices[0]->operations;
    scene.table = *scene.real;
    scene.rig = rig;
    scene.stream = stream;
    scene.began = scene.too_early = false;
    atomic_store(&scene.returned, false);
    rig->devices[0]->operations = &scene.table;
}

static void end(rig_t *rig) {
    EXPECT_TRUE(scene.began);
    if (scene.began) pthread_join(scene.thread, NULL);
    rig->devices[0]->operations = scene.real;
    EXPECT_FALSE(scene.too_early);
}

/* ---- strata_set_limit() ---- */

static void *lower_the_limit(void *argument) {
    EXPECT_OK(strata_set_limit(scene.rig->s, scene.rig->gpu, MIB));
    atomic_store(&scene.returned, true);
    return argument;
}

static bool is_lowered(void) { return atomic_load(&rig_domain(scene.rig)->quota.limit) == MIB; }

static strata_status_t slow_malloc(strata_device_t *device, strata_memory_t memory, uint64_t size, strata_address_t *address) {
    begin_beside(lower_the_limit, is_lowered);
    return scene.real->malloc(device, memory, size, address);
}

/* What was claimed under the old limit is served or given up before the new one is said to hold. */
TEST_RIG(facade_held_up, a_lower_limit_holds_once_what_is_being_asked_for_is_there, 0, "stack: [system]") {
    begin(rig, NULL);
    scene.table.malloc = slow_malloc;
    (void)rig_allocate(rig, NULL, 8 * MIB);
    end(rig);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 1000));
}

/* ---- strata_stream_forget() ---- */

static void *forget_it(void *argument) {
    EXPECT_OK(strata_stream_forget(scene.rig->s, scene.rig->gpu, scene.stream));
    atomic_store(&scene.returned, true);
    return argument;
}

static bool is_after(void) {
    async_layer_t *self = (async_layer_t *)rig_domain(scene.rig)->ordinary.shared[1];
    strata_lock(&self->base.stack->lock);
    bool named = strata_users_find(&self->uses.users, scene.stream) != 0;
    strata_unlock(&self->base.stack->lock);
    return !named;
}

static strata_status_t slow_free(strata_device_t *device, strata_address_t address, strata_stream_t stream) {
    begin_beside(forget_it, is_after);
    return scene.real->free_async(device, address, stream);
}

/* Behind the forgetting the program destroys the stream: no free may have its handle by then. */
TEST_RIG(facade_held_up, a_stream_is_forgotten_once_no_free_has_its_handle, 0, "stack: [cuda_malloc_async]") {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, stream, MIB);
    begin(rig, stream);
    scene.table.free_async = slow_free;
    EXPECT_OK(strata_free(rig->s, block.ref));
    end(rig);
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, 0);
}
