/* Out-of-memory planted: a situation of which the cause is known, the request that fails in it, and what the report advises done. */
#ifndef STRATA_TESTS_FACADE_PLANTED_H
#define STRATA_TESTS_FACADE_PLANTED_H

#include <pthread.h>

#include "tests/facade/support/fixture.h"

enum { PLANTED_BLOCKS = 80 };

typedef struct scene {
    rig_t rig;
    strata_block_t blocks[PLANTED_BLOCKS]; /* what the situation holds */
    uint32_t count;
    strata_stream_t streams[2];
    uint64_t pool;
    strata_place_t place; /* of the request; gpu:0 where it is not said */
    strata_stream_t stream;
    strata_allocate_options_t request;
    uint64_t foreign; /* what others hold of the device */
    pthread_t thread;
    void (*held)(struct scene *scene); /* by the thread, to the end; NULL: there is none */
    pthread_barrier_t turn;
} scene_t;

typedef struct planted {
    const char *never; /* what the report must not say, as it is false here; NULL: nothing */
    const char *name;
    strata_cause_t cause;
    const char *strategy; /* a preset, or a text */
    uint64_t capacity; /* of the device */
    size_t asked;
    void (*plant)(scene_t *scene);
    void (*follow)(scene_t *scene); /* does what the report advises; NULL: `set` does */
    const char *set; /* the option that it advises: opened with it, the request is served */
    const char *says; /* what the advice names */
    uint64_t foreign;
} planted_t;

/* Plants it: the request fails, the report names the cause and no other, and the advice is followed: the same request is served. */
void planted_run(const planted_t *planted);
/* Before the tests run: it is one of those that there are. */
void planted_note(const planted_t *planted);

/* A situation, and the test of it. */
#define PLANTED(id, ...) PLANTED_WITHOUT(NULL, id, __VA_ARGS__)
/* Likewise, and something that the report must not say. */
#define PLANTED_WITHOUT(never, id, ...)                                                                                            \
    static const planted_t planted_##id = {never, #id, __VA_ARGS__};                                                               \
    __attribute__((constructor)) static void note_##id(void) { planted_note(&planted_##id); }                                      \
    TEST(facade_causes, id) { planted_run(&planted_##id); }

/* ---- for situations ---- */

static inline strata_block_t *scene_get(scene_t *scene, strata_place_t place, strata_stream_t stream,
                                        const strata_allocate_options_t *options) {
    strata_block_t *block = &scene->blocks[scene->count++];
    EXPECT_OK(strata_allocate_with(scene->rig.s, place, stream, options, block));
    return block;
}

static inline strata_block_t *scene_hold(scene_t *scene, strata_stream_t stream, size_t size) {
    return scene_get(scene, scene->rig.gpu, stream,
                     &(strata_allocate_options_t){.struct_size = sizeof(strata_allocate_options_t), .size = size});
}

static inline void scene_drop(scene_t *scene, strata_block_t *block) {
    if (block->ref) EXPECT_OK(strata_free(scene->rig.s, block->ref));
    *block = (strata_block_t){.ref = 0};
}

/* Another thread holds what `hold` gets, and lives to the end. */
void scene_hold_in_thread(scene_t *scene, void (*hold)(scene_t *scene));
/* Of the default stream's stack: its second layer is told of a capture, or of its end. */
void scene_capture(scene_t *scene, bool begins);

/* Everything that is held, freed. */
static inline void scene_drop_all(scene_t *scene) {
    for (uint32_t i = 0; i < scene->count; i++) scene_drop(scene, &scene->blocks[i]);
}

#endif
