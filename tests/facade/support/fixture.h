/* The rig of the conformance checks, for tests. */
#ifndef STRATA_TESTS_FACADE_FIXTURE_H
#define STRATA_TESTS_FACADE_FIXTURE_H

#include <pthread.h>

#include "lab/conform/rig/rig.h"
#include "tests/harness/test.h"

/* A rig of one simulated device of so many bytes (0: the profile's), which closes where its scope ends: what rig_allocate() gave
 * is freed then, and nothing else may be live. */
#define RIG(rig, strategy, capacity) RIG_BY(rig, rig_open(&rig, strategy, NULL, 0, capacity, 1))
/* Works like RIG, and is opened as the test says. */
#define RIG_BY(rig, open) OPENED(rig_t, rig, rig_finish, open)
/* Works like RIG with the layers of a stack alone: RIG_STACK(rig, "stream_safe, auto_growth, system", 0) */
#define RIG_STACK(rig, layers, capacity) RIG_BY(rig, rig_open_stack(&rig, layers, capacity))
/* The layers of the preset `strata`, where each request asks what has passed: what comes back is served next. */
#define ASKING "retry: {timeout: 100ms, wait_first: true, patience: true}, stream_safe, auto_growth_vmm, vmm"
/* For what is said of each of an array. */
#define COUNT(array) (sizeof(array) / sizeof *(array))

static inline void rig_open_stack(rig_t *rig, const char *layers, uint64_t capacity) {
    char text[512];
    snprintf(text, sizeof text, "stack: [%s]\n", layers);
    rig_open(rig, text, NULL, 0, capacity, 1);
}

/* With everything that can be said of the devices and of the facade. */
static inline void rig_open_with(rig_t *rig, const char *preset_or_text, const strata_sim_options_t *options, uint32_t flags) {
    rig_open_on(rig, rig_strategy(preset_or_text, NULL, 0), options, flags);
    rig->borrowed_strategy = false;
}

/* On a device that has none. */
static inline void rig_open_without_virtual_memory(rig_t *rig, const char *preset_or_text) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.virtual_memory = false;
    rig_open_with(rig, preset_or_text, &(strata_sim_options_t){.profile = &profile}, 0);
}

/* A stream borrows a block and works on it for so many ns. */
static inline void rig_borrow(rig_t *rig, strata_ref_t block, strata_stream_t stream, uint64_t duration_ns) {
    EXPECT_OK(strata_record_stream(rig->s, block, stream));
    rig_work(rig, stream, duration_ns, block);
}

/* A block of `owner` that is freed while `user` works on it for so many ns. */
static inline strata_block_t rig_free_deferred(rig_t *rig, strata_stream_t owner, strata_stream_t user, size_t size, uint64_t ns) {
    strata_block_t block = rig_allocate(rig, owner, size);
    rig_borrow(rig, block.ref, user, ns);
    EXPECT_OK(strata_free(rig->s, block.ref));
    return block;
}

static inline strata_block_t rig_allocate_with(rig_t *rig, strata_stream_t stream, const strata_allocate_options_t *options) {
    strata_block_t block = {0};
    EXPECT_OK(strata_allocate_with(rig->s, rig->gpu, stream, options, &block));
    rig_register(rig, block.ref);
    return block;
}

static inline strata_block_t rig_allocate_tagged(rig_t *rig, strata_stream_t stream, size_t size, const char *tag) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .tag = tag};
    return rig_allocate_with(rig, stream, &options);
}

static inline strata_block_t rig_allocate_in(rig_t *rig, strata_place_t place, strata_stream_t stream, size_t size) {
    strata_block_t block = {0};
    EXPECT_OK(strata_allocate(rig->s, place, stream, size, &block));
    rig_register(rig, block.ref);
    return block;
}

/* The stream ends as far as the library knows, or for the driver too. */
static inline void rig_forget(rig_t *rig, strata_stream_t stream) { EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream)); }

static inline void rig_end_stream(rig_t *rig, strata_stream_t stream) {
    rig_forget(rig, stream);
    EXPECT_OK(strata_stream_destroy(rig->s, rig->gpu, stream));
}

/* What a request is answered; one that fails writes nothing. */
static inline strata_status_t rig_try(rig_t *rig, strata_stream_t stream, size_t size) {
    strata_block_t block = {.ref = 7};
    strata_status_t status = strata_allocate(rig->s, rig->gpu, stream, size, &block);
    if (status == STRATA_OK) rig_register(rig, block.ref);
    else EXPECT_EQ(block.ref, 7);
    return status;
}

/* Bytes that went back to the device. */
static inline uint64_t rig_release(rig_t *rig) {
    uint64_t released = 0;
    EXPECT_OK(strata_release(rig->s, rig->gpu, &released));
    return released;
}

static inline uint64_t rig_trim(rig_t *rig, uint64_t keep) {
    uint64_t released = 0;
    EXPECT_OK(strata_trim(rig->s, rig->gpu, keep, &released));
    return released;
}

/* Nothing is kept that a release does not give back, and nothing of streams that are gone. */
static inline void rig_expect_empty(rig_t *rig) {
    (void)rig_release(rig);
    EXPECT_EQ(rig_domain(rig)->orphans, 0);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
}

/* When the work is over that the stream has now. */
static inline uint64_t rig_stream_end(rig_t *rig, strata_stream_t stream) { return strata_sim_stream_end(rig->devices[0], stream); }

static inline strata_statistics_t rig_figures_in(rig_t *rig, strata_place_t place) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(rig->s, place, &figures));
    return figures;
}

/* Bytes that caches keep idle. */
static inline uint64_t rig_cached(rig_t *rig) {
    strata_mem_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_mem_info(rig->s, rig->gpu, &info));
    return info.cached;
}

static inline void expect_route(rig_t *rig, strata_block_t block, const char *wanted) {
    char text[256];
    EXPECT_OK(strata_allocation_route(rig->s, block.ref, text, sizeof text));
    EXPECT_STREQ(text, wanted);
}

static inline void expect_owner(rig_t *rig, strata_block_t block, strata_stream_t wanted) {
    strata_stream_t owner = (void *)77;
    EXPECT_OK(strata_stream_of(rig->s, block.ref, &owner));
    EXPECT_EQ(owner, wanted);
}

/* By a thread that ends before it returns. */
static inline void in_another_thread(void *(*body)(void *), void *context) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, body, context), 0);
    pthread_join(thread, NULL);
}

/* Each by a thread of its own, all at once: `contexts` is an array of `count`, each of `size` bytes. */
static inline void in_threads(void *(*body)(void *), void *contexts, size_t size, size_t count) {
    pthread_t threads[64];
    ASSERT_LE(count, COUNT(threads));
    for (size_t i = 0; i < count; i++) ASSERT_EQ(pthread_create(&threads[i], NULL, body, (char *)contexts + i * size), 0);
    for (size_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

/* A test of a rig, opened by a preset or a text with so much memory; of several: on each in turn. */
#define TEST_RIG(suite, name, capacity, ...) TEST_OPENED(suite, name, RIG, capacity, __VA_ARGS__)
/* Works like TEST_RIG with the layers of a stack alone. */
#define TEST_STACK(suite, name, capacity, ...) TEST_OPENED(suite, name, RIG_STACK, capacity, __VA_ARGS__)
#define TEST_OPENED(suite, name, opened, capacity, ...)                                                                            \
    static void suite##_##name##_on(rig_t *rig);                                                                                   \
    TEST(suite, name) {                                                                                                            \
        static const char *const texts[] = {__VA_ARGS__};                                                                          \
        for (size_t i = 0; i < COUNT(texts); i++) {                                                                                \
            opened(rig, texts[i], capacity);                                                                                       \
            suite##_##name##_on(&rig);                                                                                             \
        }                                                                                                                          \
    }                                                                                                                              \
    static void suite##_##name##_on(rig_t *rig)

/* Works like TEST_RIG, and is opened as the test says: TEST_BY(suite, name, rig_open(rig, "strata", NULL, 0, 0, 2)) { ... } */
#define TEST_BY(suite, name, open) TEST_WITH(suite, name, rig_t, rig, rig_finish, open)

/* A test of a rig, once for each `way` from 0 to below `ways`. */
#define TEST_RIG_WAYS(suite, name, way, ways, capacity, strategy)                                                                  \
    TEST_WAYS(suite, name, way, ways, rig_t, rig, rig_finish, rig_open(rig, strategy, NULL, 0, capacity, 1))

/* A decorator from outside: DECORATOR("test_x", STRATA_SCOPE_DEVICE, allocate_fn, free_fn, .guarded = true) */
#define DECORATOR(its_name, its_scope, its_allocate, ...)                                                                          \
    {                                                                                                                              \
        .struct_size = sizeof(strata_layer_type_t), .name = its_name, .doc = "of a test", .role = STRATA_DECORATOR,                \
        .scope = its_scope, .passes = ~0u, .state_size = sizeof(strata_layer_t), .create = strata_layer_create_nothing,            \
        .destroy = strata_layer_destroy_nothing, .allocate = its_allocate, .free = __VA_ARGS__                                     \
    }

static inline void register_layer(const strata_layer_type_t *type) { EXPECT_OK(strata_layers_register(&type, 1, true)); }

/* Frees blocks, in this order: RIG_FREE(&rig, a, b); */
#define RIG_FREE(rig, ...)                                                                                                         \
    rig_free((rig), (const strata_block_t[]){__VA_ARGS__}, sizeof((const strata_block_t[]){__VA_ARGS__}) / sizeof(strata_block_t))
static inline void rig_free(const rig_t *rig, const strata_block_t *blocks, size_t count) {
    for (size_t i = 0; i < count; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

/* A capture that the program begins of a stream of device 0, and tells nobody of. */
static inline void rig_begin_capture(rig_t *rig, strata_stream_t stream) {
    EXPECT_OK(strata_device_capture_begin(rig->devices[0], stream, STRATA_CAPTURE_RELAXED));
}

/* It was left alone; its graph ends with it. */
static inline void rig_end_capture(rig_t *rig, strata_stream_t stream) {
    strata_handle_t graph;
    EXPECT_OK(strata_device_capture_end(rig->devices[0], stream, &graph));
    EXPECT_OK(strata_device_graph_destroy(rig->devices[0], graph));
}

/* What ends a stack of a cache: a source of handles where it wants one. */
static inline const char *source_below(const strata_layer_type_t *cache) {
    return cache->needs & STRATA_TRAIT_HANDLE_SOURCE ? ", vmm" : ", system";
}

#endif
