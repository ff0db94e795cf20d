/* What the doors share, over the simulated device: memory without a stream, and one budget with whoever else asks the device. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "doors/common/door.h"
#include "doors/common/refs.h"
#include "doors/common/unordered.h"
#include "facade/figures/figures.h"
#include "facade/registry/facade.h"
#include "platform/host/host_memory.h"
#include "tests/harness/test.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* Chunks of exactly one block of 8 MiB. */
static const char chunky[] = "version: 1\nstrategy: chunky\ndevices: sim\nstack: [stream_safe: {}, auto_growth: {chunk_size: 8MiB}, "
                             "system: {}]\n";

static void door_cleanup(strata_door_t **door) {
    if (*door) EXPECT_OK(strata_door_close(*door));
}
static strata_door_t *open_door(const char *text, const char *preset) {
    strata_door_t *door = NULL;
    strata_open_options_t options = {
        .struct_size = sizeof options, .text = text, .preset = preset, .devices = "sim", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    EXPECT_OK(strata_door_open(&options, true, &door));
    return door;
}
#define DOOR(door, text, preset)                                                                                                   \
    strata_door_t *door __attribute__((cleanup(door_cleanup))) = open_door(text, preset);                                          \
    ASSERT_TRUE(door)

static strata_device_t *device_of(strata_door_t *door) {
    return atomic_load(&strata_facade_of(strata_door_facade(door))->devices[0]);
}

static uint64_t calls(strata_door_t *door, const char *figure) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(strata_door_facade(door), strata_gpu(0), &figures));
    return strcmp(figure, "growths") == 0 ? figures.growths : figures.live_allocations;
}

static void *take(strata_door_t *door, size_t size) {
    void *address = NULL;
    EXPECT_OK(strata_door_allocate(door, strata_gpu(0), size, &address));
    return address;
}

/* Work that a program has begun on a stream of its own. */
static strata_stream_t busy_stream(strata_door_t *door) {
    strata_stream_t stream = NULL;
    EXPECT_OK(strata_stream_create(strata_door_facade(door), strata_gpu(0), 0, &stream));
    EXPECT_OK(strata_stream_work(strata_door_facade(door), strata_gpu(0), stream, UINT64_C(1000000000), NULL, 0));
    return stream;
}

TEST(doors, a_freed_block_is_waited_for_once_and_late) {
    DOOR(door, chunky, NULL);
    void *blocks[3];
    for (int i = 0; i < 3; i++) blocks[i] = take(door, 8 * MIB);
    strata_stream_t stream = busy_stream(door);
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, blocks[i]));
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_stream_query(device_of(door), stream));
    EXPECT_EQ(calls(door, "live"), 3);
    take(door, 8 * MIB);
    EXPECT_OK(strata_device_stream_query(device_of(door), stream));
    EXPECT_EQ(calls(door, "live"), 1);
    EXPECT_EQ(calls(door, "growths"), 3);
    take(door, 8 * MIB); /* what the wait has freed too serves without another */
    EXPECT_OK(strata_stream_work(strata_door_facade(door), strata_gpu(0), stream, UINT64_C(1000000000), NULL, 0));
    take(door, 8 * MIB);
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_stream_query(device_of(door), stream));
    EXPECT_EQ(calls(door, "growths"), 3);
    EXPECT_OK(strata_device_stream_synchronise(device_of(door), stream));
}

/* What could not serve the request is not waited for: growth is no worse than without a cache. */
TEST(doors, too_little_freed_is_no_reason_to_wait) {
    DOOR(door, chunky, NULL);
    void *small = take(door, MIB);
    strata_stream_t stream = busy_stream(door);
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, small));
    take(door, 8 * MIB);
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_stream_query(device_of(door), stream));
    EXPECT_OK(strata_device_stream_synchronise(device_of(door), stream));
}

/* Memory that another stream has freed is ready for all when the request returns. */
TEST(doors, memory_taken_from_a_stream_is_ready) {
    static const char *const presets[] = {"strata", "strata-malloc", "pytorch", "tensorflow", "cuda_malloc_async", "system"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        DOOR(door, NULL, presets[i]);
        void *address = NULL;
        strata_stream_t stream = busy_stream(door);
        EXPECT_OK(strata_door_allocate_on(door, strata_gpu(0), stream, 50 * GIB, &address));
        EXPECT_OK(strata_stream_work(strata_door_facade(door), strata_gpu(0), stream, UINT64_C(1000000000), NULL, 0));
        EXPECT_OK(strata_door_free_on(door, STRATA_DOOR_DEVICE, address, stream));
        take(door, 50 * GIB); /* of 80: the same memory */
        EXPECT_OK(strata_device_stream_query(device_of(door), stream));
    }
}

TEST(doors, out_of_memory_settles_what_is_freed) {
    DOOR(door, NULL, "strata");
    void *large = take(door, 60 * GIB), *address = NULL;
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, large));
    strata_stream_t stream = busy_stream(door);
    EXPECT_OK(strata_door_allocate_on(door, strata_gpu(0), stream, 70 * GIB, &address));
    EXPECT_EQ(calls(door, "live"), 1);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_door_allocate(door, strata_gpu(0), 60 * GIB, &large));
}

static void *chunk_of(strata_door_t *door, void *address) {
    strata_block_t block;
    void *base = NULL;
    size_t size;
    EXPECT_OK(strata_block_of(strata_door_facade(door), address, &block));
    EXPECT_OK(strata_base_of(strata_door_facade(door), block.ref, &base, &size));
    return base;
}

TEST(doors, an_address_that_is_not_a_live_block_is_not_freed) {
    DOOR(door, chunky, NULL);
    char *own = take(door, MIB), elsewhere;
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_door_free(door, STRATA_DOOR_DEVICE, &elsewhere));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_door_free_on(door, STRATA_DOOR_DEVICE, &elsewhere, NULL));
    EXPECT_STATUS(STRATA_E_INVALID, strata_door_free(door, STRATA_DOOR_DEVICE, own + 256));
    EXPECT_STATUS(STRATA_E_INVALID, strata_door_free_on(door, STRATA_DOOR_DEVICE, own + 256, NULL));
    char *chunk = chunk_of(door, own);
    EXPECT_STATUS(STRATA_E_INVALID,
                  strata_door_free(door, STRATA_DOOR_DEVICE, own == chunk ? own + MIB : chunk)); /* a free block */
    EXPECT_EQ(calls(door, "live"), 1);
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, own));
    EXPECT_EQ(strata_door_release_idle(door, strata_gpu(0)), 8 * MIB);
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_door_free(door, STRATA_DOOR_DEVICE, own)); /* the chunk is the device's again */
    EXPECT_EQ(calls(door, "live"), 0);
}

static strata_status_t free_by(strata_door_t *door, bool on_stream, void *address) {
    return on_stream ? strata_door_free_on(door, STRATA_DOOR_DEVICE, address, NULL)
                     : strata_door_free(door, STRATA_DOOR_DEVICE, address);
}

/* Frees a block in each way, then tries each way again. A block freed on a stream becomes idle once that stream's work is known to be done. */
TEST(doors, a_second_free_is_refused_and_counts_nothing) {
    for (int first = 0; first < 2; first++)
        for (int second = 0; second < 2; second++) {
            DOOR(door, chunky, NULL);
            void *address = take(door, 8 * MIB), *kept = take(door, 8 * MIB);
            EXPECT_OK(free_by(door, first, address));
            for (int again = 0; again < 3; again++) EXPECT_STATUS(STRATA_E_INVALID, free_by(door, second, address));
            EXPECT_EQ(strata_door_idle(door, strata_gpu(0)), first ? 0 : 8 * MIB);
            EXPECT_EQ(strata_door_release_idle(door, strata_gpu(0)), 8 * MIB);
            EXPECT_EQ(calls(door, "live"), 1);
            EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, free_by(door, second, address));
            EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, kept));
            EXPECT_TRUE(take(door, 8 * MIB) == kept); /* once it is served again, it may be freed again */
            EXPECT_OK(free_by(door, second, kept));
        }
}

/* A pending block that is freed directly through the facade becomes idle, and counts once. */
TEST(doors, a_block_freed_past_the_door_counts_once) {
    DOOR(door, chunky, NULL);
    void *past = take(door, 8 * MIB), *other = take(door, 8 * MIB);
    strata_block_t block;
    EXPECT_OK(strata_block_of(strata_door_facade(door), past, &block));
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, past));
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, other));
    EXPECT_OK(strata_free(strata_door_facade(door), block.ref));
    EXPECT_TRUE(take(door, 16 * MIB) != NULL); /* settles both, and grows */
    EXPECT_EQ(strata_door_idle(door, strata_gpu(0)), 16 * MIB);
    EXPECT_EQ(strata_door_release_idle(door, strata_gpu(0)), 16 * MIB);
    EXPECT_EQ(strata_door_idle(door, strata_gpu(0)), 0);
}

/* Compares the set with a plain array. Small tables make most refs collide. */
TEST(doors, the_set_of_refs_is_exact) {
    enum { ROOM = 16, REFS = 64, SETS = 200, STEPS_OF_EACH = 100 };
    unsigned seed = 5;
    for (int set = 0; set < SETS; set++) {
        strata_ref_t slots[ROOM] = {0}, refs[REFS];
        strata_refs_t tested = {slots, ROOM};
        bool in[REFS] = {false};
        int count = 0;
        for (size_t i = 0; i < REFS; i++) refs[i] = ((strata_ref_t)rand_r(&seed) << 32 | (unsigned)rand_r(&seed)) * 2 + 1;
        for (int step = 0; step < STEPS_OF_EACH; step++) {
            int k = rand_r(&seed) % REFS;
            if (!in[k] && count < ROOM / 2) strata_refs_add(&tested, refs[k]), in[k] = true, count++;
            else strata_refs_remove(&tested, refs[k]), count -= in[k], in[k] = false;
            for (int i = 0; i < REFS; i++) EXPECT_EQ(strata_refs_contain(&tested, refs[i]), in[i]);
        }
    }
    EXPECT_TRUE(!strata_refs_contain(&(strata_refs_t){NULL, 0}, 1));
}

/* With many pending blocks the list grows and loses entries at its front, and each block still counts as freed. */
TEST(doors, each_of_many_pending_blocks_is_known_as_freed) {
    DOOR(door, NULL, "strata");
    enum { BLOCKS = 1500 };
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) blocks[i] = take(door, 4096);
    for (int round = 0; round < 2; round++) {
        for (int i = round; i < BLOCKS; i += 2) EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, blocks[i]));
        for (int i = round; i < BLOCKS; i += 2)
            EXPECT_STATUS(STRATA_E_INVALID, strata_door_free(door, STRATA_DOOR_DEVICE, blocks[i]));
        EXPECT_EQ(calls(door, "live"), round ? BLOCKS / 2 : BLOCKS); /* settled, pending */
        (void)strata_door_release_idle(door, strata_gpu(0));
        EXPECT_EQ(calls(door, "live"), round ? 0 : BLOCKS / 2);
    }
}

/* The 65536th block that waits is the one that settles them all. */
TEST(doors, many_pending_blocks_are_settled) {
    DOOR(door, NULL, "strata");
    enum { MOST = 65536 };
    void **blocks = malloc(MOST * sizeof *blocks);
    for (int i = 0; i < MOST; i++) blocks[i] = take(door, 256);
    for (int i = 0; i < MOST - 1; i++) EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, blocks[i]));
    EXPECT_EQ(calls(door, "live"), MOST);
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, blocks[MOST - 1]));
    EXPECT_EQ(calls(door, "live"), 0);
    free(blocks);
}

TEST(doors, memory_of_the_other_kind_is_not_freed) {
    DOOR(door, NULL, "strata");
    void *device = take(door, MIB), *pinned = NULL, *managed = NULL;
    EXPECT_OK(strata_door_allocate(door, strata_pinned(), MIB, &pinned));
    EXPECT_OK(strata_door_allocate(door, strata_managed(0), MIB, &managed));
    EXPECT_STATUS(STRATA_E_INVALID, strata_door_free(door, STRATA_DOOR_HOST, device));
    EXPECT_STATUS(STRATA_E_INVALID, strata_door_free(door, STRATA_DOOR_HOST, managed));
    EXPECT_STATUS(STRATA_E_INVALID, strata_door_free(door, STRATA_DOOR_DEVICE, pinned));
    EXPECT_STATUS(STRATA_E_INVALID, strata_door_free_on(door, STRATA_DOOR_DEVICE, pinned, NULL));
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, device));
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, managed));
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_HOST, pinned));
}

TEST(doors, idle_memory_is_what_is_cached_and_what_is_freed) {
    DOOR(door, chunky, NULL);
    void *one = take(door, 8 * MIB), *other = take(door, MIB);
    EXPECT_EQ(strata_door_idle(door, strata_gpu(0)), 7 * MIB);
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, one));
    EXPECT_EQ(strata_door_idle(door, strata_gpu(0)), 15 * MIB);
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, other));
    EXPECT_EQ(strata_door_release_idle(door, strata_gpu(0)), 16 * MIB);
    EXPECT_EQ(strata_door_idle(door, strata_gpu(0)), 0);
    EXPECT_EQ(strata_door_release_idle(door, strata_gpu(0)), 0);
}

/* Pending frees of the device are not settled by those of the host, nor the other way round. */
TEST(doors, each_kind_of_memory_is_settled_by_itself) {
    DOOR(door, chunky, NULL);
    void *host = NULL;
    EXPECT_OK(strata_door_allocate(door, strata_pinned(), MIB, &host));
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, take(door, 8 * MIB)));
    (void)strata_door_release_idle(door, strata_pinned());
    EXPECT_EQ(calls(door, "live"), 1);
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_HOST, host));
    EXPECT_EQ(strata_door_release_idle(door, strata_gpu(0)), 8 * MIB);
    EXPECT_EQ(strata_door_idle(door, strata_pinned()) >= MIB, true);
}

/* Live memory of a device keeps the reset of another one away; memory of the host keeps none. */
TEST(doors, host_memory_is_used_on_no_device) {
    DOOR(door, chunky, NULL);
    void *host = NULL;
    EXPECT_OK(strata_door_allocate(door, strata_pinned(), MIB, &host));
    for (uint32_t device = 0; device < 2; device++) EXPECT_FALSE(strata_door_has_other_users(door, device));
    void *block = take(door, MIB);
    for (uint32_t device = 0; device < 2; device++) EXPECT_EQ(strata_door_has_other_users(door, device), device == 1);
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_HOST, host));
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, block));
}

/* The wait for its stream fails after the block was served: it goes back. */
TEST(doors, a_block_that_is_not_ready_goes_back) {
    DOOR(door, chunky, NULL);
    void *address = NULL;
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, take(door, 8 * MIB)));
    (void)strata_door_release_idle(door, strata_gpu(0));
    ASSERT_OK(strata_sim_fail(device_of(door), STRATA_CALL_stream_synchronise, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_door_allocate(door, strata_gpu(0), 8 * MIB, &address));
    EXPECT_EQ(address, NULL);
    EXPECT_EQ(calls(door, "live"), 0);
}

TEST(doors, host_memory_waits_for_the_devices) {
    DOOR(door, NULL, "strata");
    void *pinned = NULL, *again = NULL;
    EXPECT_OK(strata_door_allocate(door, strata_pinned(), 8 * MIB, &pinned));
    strata_stream_t stream = busy_stream(door);
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_HOST, pinned));
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_stream_query(device_of(door), stream));
    EXPECT_OK(strata_door_allocate(door, strata_pinned(), 8 * MIB, &again));
    EXPECT_TRUE(again == pinned);
    EXPECT_OK(strata_device_stream_query(device_of(door), stream));
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_HOST, again));
    EXPECT_TRUE(strata_door_release_idle(door, strata_pinned()) >= 8 * MIB);
}

TEST(doors, a_simulated_device_must_be_meant) {
    strata_door_t *door = NULL;
    strata_open_options_t options = {.struct_size = sizeof options, .devices = "sim", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_door_open(&options, false, &door));
    EXPECT_CONTAINS(strata_last_error()->text, "simulated");
    options.devices = "sum";
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_door_open(&options, true, &door));
    EXPECT_TRUE(door == NULL);
}

/* Each allocation of the host fails in turn; where a free cannot be noted, the device is waited for. */
TEST(doors, failures_of_the_host_in_turn) {
    for (uint64_t k = 1; k < 40; k++) {
        DOOR(door, chunky, NULL);
        void *address = take(door, 8 * MIB), *other = NULL;
        strata_stream_t stream = busy_stream(door);
        strata_host_fail_at(k, 0);
        strata_status_t freed = strata_door_free(door, STRATA_DOOR_DEVICE, address);
        strata_status_t served = strata_door_allocate(door, strata_gpu(0), 8 * MIB, &other);
        strata_host_fail_at(0, 0);
        EXPECT_TRUE(freed == STRATA_OK || freed == STRATA_E_HOST_MEMORY);
        EXPECT_TRUE(served == STRATA_OK || served == STRATA_E_HOST_MEMORY);
        if (served == STRATA_OK && other == address) EXPECT_OK(strata_device_stream_query(device_of(door), stream));
        EXPECT_OK(strata_validate(strata_door_facade(door)));
        EXPECT_OK(strata_device_stream_synchronise(device_of(door), stream));
    }
}

/* While a stream is captured the device is not waited for: what is freed stays, and requests are served from elsewhere. The library has
 * been told of the capture by the device, or by the program. */
static void expect_put_off(bool told) {
    DOOR(door, chunky, NULL);
    void *address = take(door, 8 * MIB);
    strata_stream_t stream = NULL;
    strata_handle_t graph = NULL;
    EXPECT_OK(strata_stream_create(strata_door_facade(door), strata_gpu(0), 0, &stream));
    if (told) EXPECT_OK(strata_device_capture_begin(device_of(door), stream, STRATA_CAPTURE_GLOBAL));
    else strata_unordered_capture_begins();
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, address));
    EXPECT_TRUE(take(door, 8 * MIB) != address);
    EXPECT_EQ(strata_door_release_idle(door, strata_gpu(0)), 0);
    if (told) EXPECT_OK(strata_device_capture_end(device_of(door), stream, &graph));
    else strata_unordered_capture_ends();
    EXPECT_TRUE(take(door, 8 * MIB) == address);
    if (told) EXPECT_OK(strata_device_graph_destroy(device_of(door), graph));
}

/* The end of a capture whose beginning was not seen, as of another library's, puts nothing off. */
TEST(doors, an_end_without_a_beginning_is_ignored) {
    DOOR(door, chunky, NULL);
    strata_unordered_capture_ends();
    EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, take(door, 8 * MIB)));
    EXPECT_EQ(strata_door_release_idle(door, strata_gpu(0)), 8 * MIB);
    EXPECT_EQ(calls(door, "live"), 0);
}

TEST(doors, a_capture_puts_settling_off) {
    expect_put_off(true);
    expect_put_off(false);
}

/* ---- one budget ---- */

enum { STEPS = 10000, HELD = 24 };

typedef struct budget {
    strata_door_t *door;
    unsigned seed;
    void *own[HELD]; /* served through the door */
    strata_address_t foreign[HELD]; /* got from the device by others */
    uint64_t foreign_size[HELD];
    uint64_t failures, refusals, helped;
} budget_t;

static size_t draw_size(budget_t *b) {
    unsigned shift = (unsigned)rand_r(&b->seed) % 12;
    return (8 * MIB << shift) + (size_t)(rand_r(&b->seed) % 4096) * 256;
}

static void serve_step(budget_t *b) {
    void **slot = &b->own[rand_r(&b->seed) % HELD];
    if (*slot) EXPECT_OK(strata_door_free(b->door, STRATA_DOOR_DEVICE, *slot));
    *slot = NULL;
    if (rand_r(&b->seed) % 3) (void)strata_door_allocate(b->door, strata_gpu(0), draw_size(b), slot);
}

/* As somebody beside Strata asks: the device, and the device again once idle memory has gone back. It may fail only where that, with
 * nothing idle, would not have helped. */
static void foreign_step(budget_t *b) {
    size_t i = (size_t)rand_r(&b->seed) % HELD;
    strata_device_t *device = device_of(b->door);
    if (b->foreign[i]) EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, b->foreign[i]));
    b->foreign[i] = 0;
    if (rand_r(&b->seed) % 3 == 0) return;
    size_t size = draw_size(b);
    uint64_t before = 0, total = 0, kept = strata_facade_reserved(strata_door_facade(b->door), strata_gpu(0));
    EXPECT_OK(strata_device_mem_info(device, &before, &total));
    strata_status_t status = strata_device_malloc(device, STRATA_MEMORY_DEVICE, size, &b->foreign[i]);
    if (status == STRATA_OK) return;
    b->refusals++;
    uint64_t given = strata_door_release_idle(b->door, strata_gpu(0));
    EXPECT_EQ(strata_facade_reserved(strata_door_facade(b->door), strata_gpu(0)) + given, kept);
    if (given) status = strata_device_malloc(device, STRATA_MEMORY_DEVICE, size, &b->foreign[i]);
    b->helped += status == STRATA_OK;
    bool covered = before + given >= (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    if (status != STRATA_OK && covered) b->failures++;
    if (status != STRATA_OK) b->foreign[i] = 0;
}

static void interleave(const char *preset, unsigned seed) {
    DOOR(door, NULL, preset);
    budget_t b = {.door = door, .seed = seed};
    for (int step = 0; step < STEPS; step++) (rand_r(&b.seed) % 2 ? serve_step : foreign_step)(&b);
    for (size_t i = 0; i < HELD; i++)
        if (b.foreign[i]) EXPECT_OK(strata_device_free(device_of(door), STRATA_MEMORY_DEVICE, b.foreign[i]));
    EXPECT_EQ(b.failures, 0);
    EXPECT_GT(b.helped, 10);
    EXPECT_GT(b.refusals, b.helped); /* the device was small enough for both */
}

TEST(doors, nobody_fails_while_idle_memory_covers_it) {
    interleave("strata", 1);
    interleave("strata-malloc", 2);
    interleave("pytorch", 3);
    interleave("tensorflow", 4);
}

/* ---- threads ---- */

static void *churn(void *door) {
    static _Atomic unsigned seeds;
    unsigned seed = 1 + atomic_fetch_add(&seeds, 1);
    void *held[6] = {NULL};
    for (int i = 0; i < 1500; i++) {
        void **slot = &held[rand_r(&seed) % 6];
        if (*slot) EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, *slot));
        *slot = NULL;
        if (rand_r(&seed) % 2) EXPECT_OK(strata_door_allocate(door, strata_gpu(0), 1 + (size_t)rand_r(&seed) % (4 * MIB), slot));
        if (i % 300 == 299) (void)strata_door_release_idle(door, strata_gpu(0));
    }
    for (int i = 0; i < 6; i++)
        if (held[i]) EXPECT_OK(strata_door_free(door, STRATA_DOOR_DEVICE, held[i]));
    return NULL;
}

TEST(doors, threads_share_one) {
    DOOR(door, NULL, "strata");
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) ASSERT_EQ(pthread_create(&threads[i], NULL, churn, door), 0);
    for (size_t i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    (void)strata_door_release_idle(door, strata_gpu(0));
    EXPECT_EQ(calls(door, "live"), 0);
    EXPECT_EQ(strata_facade_reserved(strata_door_facade(door), strata_gpu(0)), 0);
    EXPECT_OK(strata_validate(strata_door_facade(door)));
}

/* Every other value means that the door steps aside. */
TEST(doors, false_words_do_not_bypass) {
    static const struct {
        const char *value;
        bool bypassed;
    } rows[] = {
        {"", false}, {"0", false}, {"false", false}, {"NO", false},  {"Off", false},
        {"1", true}, {"00", true}, {"yes", true},    {"none", true},
    };
    EXPECT_EQ(unsetenv("STRATA_BYPASS"), 0);
    EXPECT_FALSE(strata_door_is_bypassed());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXPECT_EQ(setenv("STRATA_BYPASS", rows[i].value, 1), 0);
        EXPECT_EQ(strata_door_is_bypassed(), rows[i].bypassed);
        if (strata_test_has_failed()) FAIL_TEST("STRATA_BYPASS=%s", rows[i].value);
    }
    EXPECT_EQ(unsetenv("STRATA_BYPASS"), 0);
}
