/* What programs of threads at once have found, with the one call held up that made the difference. */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "tests/facade/support/fixture.h"
#include "tests/harness/test.h"

enum { ROUNDS = 20, HELD_US = 2000 };

static const strata_device_operations_t *real;
static sem_t inside;

/* Whoever frees is inside the device while the other thread goes on. */
static strata_status_t slow_free_async(strata_device_t *device, strata_address_t address, strata_handle_t stream) {
    sem_post(&inside);
    usleep(HELD_US);
    return real->free_async(device, address, stream);
}

typedef struct freeing {
    strata_t s;
    strata_ref_t ref;
} freeing_t;

static void *free_it(void *context) {
    const freeing_t *freeing = context;
    EXPECT_OK(strata_free(freeing->s, freeing->ref));
    return NULL;
}

static void forget_while_it_is_freed(rig_t *rig) {
    strata_stream_t stream = rig_stream(rig);
    freeing_t freeing = {rig->s, rig_allocate(rig, stream, 4096).ref};
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, free_it, &freeing), 0);
    sem_wait(&inside);
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    EXPECT_OK(strata_stream_destroy(rig->s, rig->gpu, stream));
    pthread_join(thread, NULL);
    EXPECT_OK(strata_validate(rig->s));
}

/* Whoever comes last ends what is known of the stream, and nobody twice. */
TEST(torture_races, a_stream_is_forgotten_while_its_last_block_is_freed) {
    RIG(rig, "cuda_malloc_async", 0);
    real = rig.devices[0]->operations;
    strata_device_operations_t slow = *real;
    slow.free_async = slow_free_async;
    rig.devices[0]->operations = &slow;
    ASSERT_EQ(sem_init(&inside, 0, 0), 0);
    for (int i = 0; i < ROUNDS && !strata_test_has_failed(); i++) forget_while_it_is_freed(&rig);
    rig.devices[0]->operations = real;
    sem_destroy(&inside);
}
