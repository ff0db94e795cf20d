#include "tests/facade/support/many_threads.h"

#include <pthread.h>

#include "tests/harness/test.h"

enum { THREADS = 20, WORK = 5000000 /* ns */ };

void turns_each(void *(*body)(void *), turns_t *turns) {
    for (int i = 0; i < THREADS; i++) { in_another_thread(body, turns); }
}

void *turns_use_the_same(void *context) {
    turns_t *turns = context;
    strata_device_t *device = turns->rig->devices[0];
    if (turns->block.ptr) EXPECT_OK(strata_sim_fail(device, STRATA_CALL_synchronise, 1, false, STRATA_E_DEVICE));
    strata_block_t b = rig_allocate(turns->rig, STRATA_STREAM_PER_THREAD, turns->size);
    EXPECT_TRUE(!turns->block.ptr || b.ptr == turns->block.ptr);
    EXPECT_GE(strata_sim_now(turns->rig->world), turns->end);
    rig_work(turns->rig, STRATA_STREAM_PER_THREAD, WORK, b.ref);
    turns->end = strata_sim_device_end(device);
    turns->block = b;
    EXPECT_OK(strata_free(turns->rig->s, b.ref));
    return NULL;
}
