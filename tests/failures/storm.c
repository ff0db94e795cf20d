/* Everything from everywhere: 8 threads on 4 streams of each of 2 devices and on a stream of their own that they end and
 * begin anew, blocks that other threads free, under every preset and every layer. Once as it comes, and with the schedule
 * disturbed at every lock where the build can (STRATA_CHECK_LOCKS). STRATA_FAILURES_SCHEDULES=n: n seeds for each subject. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/failures/subjects.h"
#include "tests/harness/test.h"

enum { THREADS = 8, SHARED_STREAMS = 4, DEVICES = 2, HELD = 8, EXCHANGE = 32 };

typedef struct parcel {
    strata_block_t block;
    uint64_t mark;
    uint32_t device;
} parcel_t;

typedef struct storm {
    rig_t *rig;
    strata_stream_t streams[DEVICES][SHARED_STREAMS];
    uint64_t pool; /* 0: the strategy has none */
    pthread_mutex_t exchange_lock;
    parcel_t exchange[EXCHANGE]; /* blocks that another thread will free; ref 0: none */
    uint32_t operations;
    _Atomic uint64_t served, refused;
} storm_t;

typedef struct stormer {
    storm_t *storm;
    pthread_t thread;
    uint64_t random;
    strata_stream_t own[DEVICES];
    parcel_t held[HELD];
    uint32_t count;
} stormer_t;

static uint64_t below(stormer_t *t, uint64_t bound) {
    t->random = t->random * 6364136223846793005ull + 1442695040888963407ull;
    return (t->random >> 33) % bound;
}

/* ---- bytes ---- */

static void mark(stormer_t *t, parcel_t *p, bool write) {
    if (p->block.size < 2 * sizeof p->mark) return;
    unsigned char *bytes = strata_device_host_view(t->storm->rig->devices[p->device], (uint64_t)(uintptr_t)p->block.ptr,
                                                   p->block.size);
    if (!bytes) return;
    for (int end = 0; end < 2; end++) {
        unsigned char *at = end ? bytes + p->block.size - sizeof p->mark : bytes;
        if (write) memcpy(at, &p->mark, sizeof p->mark);
        else EXPECT_EQ(memcmp(at, &p->mark, sizeof p->mark), 0);
    }
}

/* ---- operations ---- */

static strata_stream_t some_stream(stormer_t *t, uint32_t device) {
    uint64_t which = below(t, SHARED_STREAMS + 2);
    return which < SHARED_STREAMS ? t->storm->streams[device][which] : which == SHARED_STREAMS ? t->own[device] : NULL;
}

static void may_fail(strata_status_t status, strata_status_t also) {
    if (status == STRATA_OK || status == also) return;
    FAIL_TEST("%s: %s", strata_status_name(status), strata_last_error()->text);
}

static void allocate(stormer_t *t, uint32_t device) {
    static const size_t most[] = {1000, 1000, 60000, 60000, 60000, 3 << 20};
    strata_allocate_options_t options = {.struct_size = sizeof options,
                                         .size = 1 + (size_t)below(t, most[below(t, 6)]),
                                         .tag = below(t, 5) ? NULL : "storm",
                                         .flags = below(t, 9) ? 0 : STRATA_NO_RETRY,
                                         .pool = below(t, 3) ? 0 : t->storm->pool};
    strata_place_t place = below(t, 12) ? strata_gpu(device) : strata_pinned();
    parcel_t *p = &t->held[t->count];
    *p = (parcel_t){.mark = below(t, UINT64_MAX), .device = device};
    strata_status_t status = strata_allocate_with(t->storm->rig->s, place, some_stream(t, device), &options, &p->block);
    may_fail(status, STRATA_E_NO_MEMORY);
    if (status == STRATA_OK) mark(t, p, true);
    if (status == STRATA_OK) t->count++;
    atomic_fetch_add(status == STRATA_OK ? &t->storm->served : &t->storm->refused, 1);
}

static void give(stormer_t *t, parcel_t *p) {
    strata_t s = t->storm->rig->s;
    mark(t, p, false);
    switch (below(t, 4)) {
    case 0: EXPECT_OK(strata_free_pointer(s, p->block.ptr)); break;
    case 1: EXPECT_OK(strata_free_on(s, p->block.ref, some_stream(t, p->device))); break;
    default: EXPECT_OK(strata_free(s, p->block.ref)); break;
    }
}

/* Puts one of its own there and frees what another thread has left. */
static void exchange(stormer_t *t) {
    storm_t *storm = t->storm;
    parcel_t mine = t->held[--t->count], theirs;
    parcel_t *slot = &storm->exchange[below(t, EXCHANGE)];
    pthread_mutex_lock(&storm->exchange_lock);
    theirs = *slot;
    *slot = mine;
    pthread_mutex_unlock(&storm->exchange_lock);
    if (theirs.block.ref) give(t, &theirs);
}

/* Lawful on memory that is unmapped as well, whose free waits for no work that it was not told of; and where borrows are noted at the
 * use, since it comes before the call. */
static void work(strata_t s, const parcel_t *p, strata_stream_t stream) {
    may_fail(strata_stream_work(s, strata_gpu(p->device), stream, 20 * 1000, &p->block.ref, 1), STRATA_OK);
    EXPECT_OK(strata_record_stream(s, p->block.ref, stream));
}

static void use(stormer_t *t, parcel_t *p) {
    strata_t s = t->storm->rig->s;
    strata_ref_t ref = p->block.ref;
    strata_stream_t stream = some_stream(t, p->device);
    switch (below(t, 4)) {
    case 0: work(s, p, stream); break;
    case 1:
        EXPECT_OK(strata_stream_synchronize(s, strata_gpu(p->device), stream));
        may_fail(strata_erase_stream(s, ref, stream), STRATA_E_UNSUPPORTED);
        break;
    case 2:
        EXPECT_OK(strata_retain(s, ref));
        EXPECT_OK(strata_free_on(s, ref, stream));
        break;
    default: EXPECT_OK(strata_record_stream(s, ref, stream)); break;
    }
}

static void count_row(const strata_snapshot_row_t *row, void *context) { *(uint64_t *)context += row->block.size; }

static void look(stormer_t *t, uint32_t device) {
    strata_t s = t->storm->rig->s;
    uint64_t bytes = 0;
    char text[300];
    size_t needed;
    switch (below(t, 8)) {
    case 0: EXPECT_OK(strata_validate(s)); break;
    case 1: EXPECT_OK(strata_release(s, strata_gpu(device), &bytes)); break;
    case 2: EXPECT_OK(strata_trim(s, strata_gpu(device), 4 * MIB, &bytes)); break;
    case 3: EXPECT_OK(strata_snapshot(s, strata_gpu(device), count_row, &bytes)); break;
    case 4: EXPECT_OK(strata_statistics_json(s, text, sizeof text, &needed)); break;
    case 5: EXPECT_OK(strata_step(s)); break;
    case 6: EXPECT_OK(strata_annotate(s, below(t, 2) ? "kernel" : NULL)); break;
    default: EXPECT_STATUS(STRATA_E_STALE, strata_free(s, below(t, 1ull << 31) << 33 | 1)); break;
    }
}

/* Nobody else uses the thread's own stream. */
static void end_stream(stormer_t *t, uint32_t device) {
    strata_t s = t->storm->rig->s;
    strata_place_t place = strata_gpu(device);
    EXPECT_OK(strata_stream_forget(s, place, t->own[device]));
    EXPECT_OK(strata_stream_forget(s, strata_pinned(), t->own[device]));
    EXPECT_OK(strata_stream_destroy(s, place, t->own[device]));
    EXPECT_OK(strata_stream_create(s, place, 0, &t->own[device]));
}

static void *run(void *argument) {
    stormer_t *t = argument;
    strata_t s = t->storm->rig->s;
    for (uint32_t i = 0; i < DEVICES; i++) EXPECT_OK(strata_stream_create(s, strata_gpu(i), 0, &t->own[i]));
    for (uint32_t i = 0; i < t->storm->operations && !strata_test_has_failed(); i++) {
        uint64_t dice = below(t, 100);
        uint32_t device = (uint32_t)below(t, DEVICES);
        if (dice < 42 && t->count < HELD) allocate(t, device);
        else if (dice < 46) look(t, device);
        else if (dice < 48) end_stream(t, device);
        else if (t->count == 0) continue;
        else if (dice < 60) exchange(t);
        else if (dice < 78) use(t, &t->held[below(t, t->count)]);
        else give(t, &t->held[--t->count]);
    }
    while (t->count > 0) give(t, &t->held[--t->count]);
    EXPECT_OK(strata_annotate(s, NULL));
    return NULL;
}

/* ---- a storm ---- */

/* Every other storm is told of recycled handles: what that asks for takes locks, after which races may hide. */
static void begin(storm_t *storm, rig_t *rig, const failing_subject_t *subject, uint32_t operations, bool check_ids) {
    static const strata_sim_options_t options = {.devices = DEVICES, .capacity = 48 * MIB, .contents = true};
    rig_open_on(rig, subject->strategy, &options, check_ids ? STRATA_OPEN_CHECK_STREAM_IDS : 0);
    *storm = (storm_t){.rig = rig, .operations = operations};
    pthread_mutex_init(&storm->exchange_lock, NULL);
    if (strata_pool(rig->s, FAILING_POOL, &storm->pool) != STRATA_OK) storm->pool = 0;
    for (uint32_t d = 0; d < DEVICES; d++)
        for (int i = 0; i < SHARED_STREAMS; i++) EXPECT_OK(strata_stream_create(rig->s, strata_gpu(d), 0, &storm->streams[d][i]));
}

/* Nothing is live; nothing is reserved once all work is done and the caches are empty; and a third of the memory is served again. */
static void end(storm_t *storm) {
    rig_t *rig = storm->rig;
    for (int i = 0; i < EXCHANGE; i++)
        if (storm->exchange[i].block.ref) EXPECT_OK(strata_free(rig->s, storm->exchange[i].block.ref));
    pthread_mutex_destroy(&storm->exchange_lock);
    rig_advance(rig, 1000 * 1000 * 1000);
    for (uint32_t i = 0; i <= DEVICES; i++) {
        strata_place_t place = i < DEVICES ? strata_gpu(i) : strata_pinned();
        strata_statistics_t f = {.struct_size = sizeof f};
        EXPECT_OK(strata_release(rig->s, place, NULL));
        EXPECT_OK(strata_statistics_all(rig->s, place, &f));
        EXPECT_EQ(f.live_allocations, 0);
        EXPECT_EQ(f.allocated_bytes, 0);
        EXPECT_EQ(f.requested_bytes, 0);
        EXPECT_EQ(f.quarantined_bytes, 0);
        EXPECT_EQ(f.reserved_bytes, 0);
        strata_block_t block = {0};
        EXPECT_OK(strata_allocate(rig->s, place, NULL, 16 * MIB, &block));
        EXPECT_OK(strata_free(rig->s, block.ref));
    }
    rig_close(rig);
}

static void blow(const failing_subject_t *subject, uint32_t operations, uint64_t seed, uint64_t *served) {
    static storm_t storm;
    static stormer_t threads[THREADS];
    rig_t rig;
    begin(&storm, &rig, subject, operations, seed % 2);
    for (uint64_t i = 0; i < THREADS; i++) {
        threads[i] = (stormer_t){.storm = &storm, .random = seed * 1000003 + i * 7919 + 1};
        ASSERT_EQ(pthread_create(&threads[i].thread, NULL, run, &threads[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i].thread, NULL);
    *served += storm.served;
    EXPECT_GT(storm.served, 0);
    end(&storm);
    if (strata_test_has_failed()) FAIL_TEST("%s, seed %llu\n%s", subject->name, (unsigned long long)seed, subject->text);
}

static uint64_t schedules(void) {
    const char *text = getenv("STRATA_FAILURES_SCHEDULES");
    return text ? strtoull(text, NULL, 10) : 1;
}

static void every_subject(uint32_t operations, bool disturbed) {
    failing_subjects_t subjects;
    uint64_t storms = 0, served = 0;
    failing_subjects_make(&subjects);
    for (size_t i = 0; i < subjects.count && !strata_test_has_failed(); i++) {
        for (uint64_t seed = 1; seed <= schedules() && !strata_test_has_failed(); seed++, storms++) {
#ifdef STRATA_CHECK_LOCKS
            strata_lock_perturb(disturbed ? seed * 0x100000001b3ull + i : 0);
#endif
            blow(&subjects.list[i], operations, seed + i + disturbed, &served);
        }
    }
#ifdef STRATA_CHECK_LOCKS
    strata_lock_perturb(0);
#endif
    printf("storms: %zu subjects, %llu schedules%s, %llu requests served\n", subjects.count, (unsigned long long)storms,
           disturbed ? " disturbed" : "", (unsigned long long)served);
    failing_subjects_drop(&subjects);
}

/* ---- the first free by pointer ---- */

enum { SERVED = 40 };

typedef struct server {
    rig_t *rig;
    strata_stream_t stream;
    pthread_barrier_t *barrier;
    strata_block_t blocks[SERVED];
} server_t;

static void *serve(void *argument) {
    server_t *server = argument;
    pthread_barrier_wait(server->barrier);
    for (int i = 0; i < SERVED; i++)
        EXPECT_OK(strata_allocate(server->rig->s, server->rig->gpu, server->stream, 3000, &server->blocks[i]));
    return NULL;
}

/* What is served while the first free by pointer makes every stack note its addresses is found by its own afterwards. */
static void free_by_pointer_meanwhile(const char *preset) {
    pthread_t thread;
    pthread_barrier_t barrier;
    OPENED(rig_t, rig, rig_close_by_force, rig_open(&rig, preset, NULL, 0, 0, 1));
    server_t server = {.rig = &rig, .stream = rig_stream(&rig), .barrier = &barrier};
    strata_block_t first = rig_allocate(&rig, server.stream, 1000);
    pthread_barrier_init(&barrier, NULL, 2);
    ASSERT_EQ(pthread_create(&thread, NULL, serve, &server), 0);
    pthread_barrier_wait(&barrier);
    EXPECT_OK(strata_free_pointer(rig.s, first.ptr));
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    for (int i = 0; i < SERVED; i++) EXPECT_OK(strata_free_pointer(rig.s, server.blocks[i].ptr));
}

TEST(storm, what_is_served_beside_the_first_free_by_pointer_is_found) {
    for (uint64_t seed = 1; seed <= 12 && !strata_test_has_failed(); seed++) {
#ifdef STRATA_CHECK_LOCKS
        strata_lock_perturb(seed);
#endif
        for (size_t i = 0; strata_preset_name(i); i++) free_by_pointer_meanwhile(strata_preset_name(i));
    }
#ifdef STRATA_CHECK_LOCKS
    strata_lock_perturb(0);
#endif
}

TEST(storm, eight_threads_on_four_streams_of_two_devices) { every_subject(STRIDE == 1 ? 300 : 100, false); }

TEST(storm, with_the_schedule_disturbed_at_every_lock) {
#ifdef STRATA_CHECK_LOCKS
    every_subject(STRIDE == 1 ? 120 : 40, true);
#else
    TEST_SKIP("this build has no seam at its locks (STRATA_CHECK_LOCKS)");
#endif
}
