/* The conformance rows of RMM. A subject that is set to refuse requests must leave everything unchanged when
 * it refuses one. All other expectations hold for it, too. */
#include "lab/conform/rows.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "platform/arithmetic.h"

enum { THREADS = 4, HUNDRED = 100, TURNS = 200, TOGETHER = 20 };
#define LONG (1000ull * 1000)
#define KIB  1024ull

/* The refused requests of a thread that runs beside others. Such a thread does not wait for memory that it
 * cannot get, because the others only compute. */
typedef struct refusals {
    uint32_t refused;
    size_t size; /* of the first refused request */
    uint64_t least_free; /* the device's free memory for the place, at the refusal where it was least */
    char first[800]; /* the reason of the first refusal */
} refusals_t;

static _Thread_local refusals_t *thread_refusals; /* NULL if the thread is alone */

/* Returns the memory that the device has for the place now. */
static uint64_t free_of(rig_t *rig) {
    strata_mem_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_mem_info(rig->s, rig->gpu, &info));
    return info.free;
}
static uint64_t room_of(rig_t *rig) { return free_of(rig) + rig_figures(rig).reserved_bytes; }

/* Refusals are judged once all threads are done, because a thread may have memory that is not counted yet. */
static void note_refusal(rig_t *rig, size_t size) {
    if (thread_refusals->refused++ == 0) {
        thread_refusals->size = size;
        snprintf(thread_refusals->first, sizeof thread_refusals->first, "%.799s", strata_last_error()->text);
    }
    thread_refusals->least_free = strata_min(thread_refusals->least_free, free_of(rig));
}

/* Returns true if most of the room was taken at some time. Blocks may be larger than requested, or a buddy's
 * chunk may be most of the room. A driver's pool keeps memory for one stream that another may lack, and may
 * have returned it since. The used or idle memory of one thread's stack may also be the reason that another's
 * is refused. */
static bool was_mostly_reserved(rig_t *rig, const refusals_t *refusals_so_far, uint64_t room) {
    return rig_figures(rig).peak_reserved_bytes > room / 2 || strata_min(refusals_so_far->least_free, free_of(rig)) < room / 2;
}

/* Returns true if the request was served. */
static bool serve(const subject_t *subject, rig_t *rig, strata_stream_t stream, size_t size, strata_block_t *block) {
    strata_block_t served = {.ref = 3};
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size};
    if (thread_refusals && subject->may_refuse) options.flags = STRATA_NO_RETRY;
    strata_status_t status = strata_allocate_with(rig->s, rig->gpu, stream, &options, &served);
    if (subject->may_refuse && (status == STRATA_E_NO_MEMORY || status == STRATA_E_DEVICE)) {
        EXPECT_TRUE(served.ptr == NULL && served.size == 0 && served.ref == 3);
        return false;
    }
    if (status == STRATA_E_NO_MEMORY && thread_refusals) {
        note_refusal(rig, size);
        return false;
    }
    if (status != STRATA_OK) rig_expect_served(rig, size, status);
    if (status != STRATA_OK) return false;
    EXPECT_NE(served.ptr, NULL);
    EXPECT_EQ((uintptr_t)served.ptr % 256, 0);
    EXPECT_GE(served.size, size);
    *block = served;
    return true;
}

/* Frees every second block by its address. */
static void free_block(rig_t *rig, const strata_block_t *block, uint64_t number) {
    if (number % 2 && block->ptr) EXPECT_OK(strata_free_pointer(rig->s, block->ptr));
    else EXPECT_OK(strata_free(rig->s, block->ref));
}

/* Returns true if work given to `stream` from now on begins at `done` at the earliest. */
static bool begins_after(rig_t *rig, strata_stream_t stream, uint64_t done) {
    if (strata_sim_now(rig->world) >= done) return true;
    rig_work(rig, stream, 1, 0);
    return strata_sim_stream_end(rig->devices[0], stream) >= done;
}

/* ---- sizes ---- */

/* Rows 2 and 3 on one stream. */
static void request_sizes(const subject_t *subject, rig_t *rig, strata_stream_t stream) {
    static const size_t sizes[] = {4, KIB, MIB, GIB};
    strata_block_t b = {.ref = 5};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (!serve(subject, rig, stream, sizes[i], &b)) continue;
        rig_work(rig, stream, 1000, b.ref);
        free_block(rig, &b, i);
    }
    /* No request may be larger than 2^48 bytes. The layers must refuse one of exactly that size. */
    b = (strata_block_t){.ref = 5};
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocate(rig->s, rig->gpu, stream, 1024 * 1024 * GIB, &b));
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 256 * 1024 * GIB};
    if (thread_refusals) options.flags = STRATA_NO_RETRY;
    strata_status_t status = strata_allocate_with(rig->s, rig->gpu, stream, &options, &b);
    EXPECT_TRUE(status == STRATA_E_NO_MEMORY || (subject->may_refuse && status == STRATA_E_DEVICE));
    EXPECT_TRUE(b.ptr == NULL && b.size == 0 && b.ref == 5);
}

void sizes_from_4_bytes_to_1_petabyte(const subject_t *subject) {
    rig_t rig;
    strata_block_t b = {.ref = 5};
    subject_open(subject, 0, &rig);
    request_sizes(subject, &rig, NULL);
    request_sizes(subject, &rig, rig_stream(&rig));
    EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
    rig_close(&rig);
    if (subject->may_refuse || subject->other_memory) return;
    subject_open(subject, 64 * MIB, &rig);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, GIB, &b));
    EXPECT_CONTAINS(strata_last_error()->text, "requested 1,024MiB");
    EXPECT_EQ(b.ref, 5);
    rig_close(&rig);
}

/* ---- many ---- */

/* Row 5: random sizes up to 5 MiB, all allocated, then all freed. */
static void allocate_hundred(const subject_t *subject, rig_t *rig, strata_stream_t stream, uint64_t random) {
    strata_block_t blocks[HUNDRED];
    uint32_t count = 0;
    for (int i = 0; i < HUNDRED; i++) {
        if (!serve(subject, rig, stream, 1 + (size_t)(conform_draw(&random) % (5 * MIB)), &blocks[count])) continue;
        for (uint32_t k = 0; k < count; k++) EXPECT_FALSE(rig_overlap(&blocks[k], &blocks[count]));
        count++;
    }
    for (uint32_t i = 0; i < count; i++) free_block(rig, &blocks[i], i);
}

/* Row 6: 53 % of the turns allocate, the others free a random one. */
static void run_random(const subject_t *subject, rig_t *rig, strata_stream_t stream, uint64_t random) {
    strata_block_t live[TURNS];
    uint32_t count = 0;
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        if (conform_draw(&random) % 100 < 53) {
            size_t size = conform_draw(&random) % 4 ? (size_t)(conform_draw(&random) % (300 * KIB)) : 0;
            if (size && serve(subject, rig, stream, size, &live[count])) count++;
            if (!size && strata_allocate(rig->s, rig->gpu, stream, 0, &live[count]) == STRATA_OK) count++;
        } else if (count > 0) {
            uint32_t at = (uint32_t)(conform_draw(&random) % count);
            strata_block_t victim = live[at];
            live[at] = live[--count];
            free_block(rig, &victim, turn);
        }
    }
    for (uint32_t i = 0; i < count; i++) free_block(rig, &live[i], i);
}

void a_hundred_are_live_at_once(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    allocate_hundred(subject, &rig, NULL, conform_random(17));
    allocate_hundred(subject, &rig, rig_stream(&rig), conform_random(19));
    run_random(subject, &rig, NULL, conform_random(23));
    EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
    EXPECT_EQ(rig_figures(&rig).requested_bytes, 0);
    rig_close(&rig);
}

/* ---- figures and leaks ---- */

typedef struct leaks {
    uint32_t all, tagged;
} leaks_t;

static void count_leak(const strata_leak_t *leak, void *context) {
    leaks_t *leaks = context;
    EXPECT_EQ(leak->requested, 10 * MIB);
    leaks->all++;
    leaks->tagged += strcmp(leak->tag, "kept") == 0;
}

/* Rows 18 and 21: ten blocks of 10 MiB, five freed. The close reports the live ones with the tags of their
 * requests. An address that is not a block changes nothing. */
void five_of_ten_are_counted_and_told(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_block_t blocks[10];
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 10 * MIB};
    uint32_t count = 0;
    for (int i = 0; i < 10; i++) {
        options.tag = i < 3 ? "kept" : NULL;
        strata_status_t status = strata_allocate_with(rig.s, rig.gpu, NULL, &options, &blocks[count]);
        if (!subject->may_refuse) rig_expect_served(&rig, options.size, status);
        count += status == STRATA_OK;
    }
    for (uint32_t i = count / 2; i < count; i++) free_block(&rig, &blocks[i], i);
    strata_statistics_t f = {.struct_size = sizeof f};
    EXPECT_OK(strata_statistics(rig.s, rig.gpu, NULL, &f));
    EXPECT_EQ(f.requested_bytes, count / 2 * 10 * MIB);
    EXPECT_EQ(f.peak_requested_bytes, count * 10 * MIB);
    EXPECT_EQ(f.allocations, count);
    EXPECT_EQ(f.frees, count - count / 2);
    EXPECT_EQ(f.live_allocations, count / 2);
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig.s, &rig));
    EXPECT_EQ(rig_figures(&rig).requested_bytes, count / 2 * 10 * MIB);
    leaks_t leaks = {0};
    strata_status_t closed = strata_close(rig.s, STRATA_CLOSE_BUSY, count_leak, &leaks);
    EXPECT_EQ(leaks.all, count / 2);
    if (count == 10) EXPECT_STATUS(STRATA_E_BUSY, closed);
    if (count == 10) EXPECT_EQ(leaks.tagged, 3);
    if (closed == STRATA_OK) rig_end(&rig);
    else rig_close_by_force(&rig);
}

/* Row 10: the facade is a value. A block that one copy serves can be freed by another copy, but not by another facade. */
void a_copy_of_the_handle_is_the_handle(const subject_t *subject) {
    rig_t rig, other;
    subject_open(subject, 0, &rig);
    subject_open(subject, 0, &other);
    strata_t copy = rig.s;
    strata_block_t b;
    EXPECT_NE(copy, other.s);
    if (serve(subject, &rig, NULL, 1000, &b)) {
        EXPECT_STATUS(STRATA_E_STALE, strata_free(other.s, b.ref));
        EXPECT_OK(strata_free(copy, b.ref));
    }
    rig_close(&other);
    rig_close(&rig);
}

/* ---- threads ---- */

typedef struct worker {
    const subject_t *subject;
    rig_t *rig;
    strata_stream_t stream;
    uint64_t seed;
    refusals_t refusals;
} worker_t;

/* Row 4, then 2, 3, 5 and 6. */
static void *do_everything(void *context) {
    worker_t *w = context;
    strata_block_t a, b;
    thread_refusals = &w->refusals;
    bool first = serve(w->subject, w->rig, w->stream, 8, &a), second = serve(w->subject, w->rig, w->stream, 8, &b);
    if (first && second) EXPECT_FALSE(rig_overlap(&a, &b));
    if (first) free_block(w->rig, &a, w->seed);
    if (second) free_block(w->rig, &b, w->seed + 1);
    request_sizes(w->subject, w->rig, w->stream);
    allocate_hundred(w->subject, w->rig, w->stream, w->seed);
    run_random(w->subject, w->rig, w->stream, w->seed + THREADS);
    return NULL;
}

static void *hold_twenty(void *context) {
    worker_t *w = context;
    strata_block_t blocks[TOGETHER];
    uint32_t count = 0;
    thread_refusals = &w->refusals;
    for (int i = 0; i < TOGETHER; i++)
        if (serve(w->subject, w->rig, w->stream, 32 * KIB, &blocks[count])) count++;
    for (uint32_t i = 0; i < count; i++) free_block(w->rig, &blocks[i], i);
    return NULL;
}

static void run_threads(const subject_t *subject, rig_t *rig, void *(*body)(void *), uint32_t streams) {
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    strata_stream_t stream[THREADS];
    uint32_t started = 0;
    uint64_t room = room_of(rig);
    for (uint32_t i = 0; i < streams; i++) stream[i] = rig_stream(rig);
    for (; started < THREADS; started++) {
        workers[started] = (worker_t){.subject = subject,
                                      .rig = rig,
                                      .stream = stream[started % streams],
                                      .seed = conform_random(started),
                                      .refusals.least_free = UINT64_MAX};
        if (pthread_create(&threads[started], NULL, body, &workers[started]) != 0) break;
    }
    EXPECT_EQ(started, THREADS);
    for (uint32_t i = 0; i < started; i++) {
        EXPECT_EQ(pthread_join(threads[i], NULL), 0);
        if (workers[i].refusals.refused == 0 || was_mostly_reserved(rig, &workers[i].refusals, room)) continue;
        conform_judge_refusal(rig, workers[i].refusals.size, STRATA_E_NO_MEMORY);
        FAIL_TEST("%u requests of a thread were refused while most of the device was free: %s", workers[i].refusals.refused,
                  workers[i].refusals.first);
    }
}

/* Row 7: two threads share a stream. Row 22: an address that one has just freed is served to another. */
void four_threads_at_once(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    run_threads(subject, &rig, do_everything, 2);
    strata_statistics_t f = rig_figures(&rig);
    EXPECT_EQ(f.live_allocations, 0);
    EXPECT_EQ(f.requested_bytes, 0);
    EXPECT_EQ(f.allocations, f.frees);
    EXPECT_OK(strata_validate(rig.s));
    rig_close(&rig);
}

/* Row 25: four threads with their own streams, and then most of the device in one piece. */
void what_threads_freed_is_one_piece_again(const subject_t *subject) {
    rig_t rig;
    strata_block_t b;
    subject_open(subject, 64 * MIB, &rig);
    run_threads(subject, &rig, hold_twenty, THREADS);
    if (serve(subject, &rig, NULL, 50 * MIB, &b)) free_block(&rig, &b, 0);
    rig_close(&rig);
}

/* ---- one allocates, another frees ---- */

typedef struct handover {
    rig_t *rig;
    strata_stream_t stream;
    strata_handle_t event; /* after the producer's work */
    strata_block_t blocks[HUNDRED];
    uint32_t count;
    uint64_t done; /* end of the consumer's work */
} handover_t;

static void *consume(void *context) {
    handover_t *h = context;
    EXPECT_OK(strata_device_stream_wait(h->rig->devices[0], h->stream, h->event));
    for (uint32_t i = 0; i < h->count; i++) rig_work(h->rig, h->stream, LONG / 100, h->blocks[i].ref);
    h->done = strata_sim_stream_end(h->rig->devices[0], h->stream);
    for (uint32_t i = 0; i < h->count; i++) EXPECT_OK(strata_free_on(h->rig->s, h->blocks[i].ref, h->stream));
    return NULL;
}

/* The next owner of the memory begins after the consumer's work. */
static void check_handover(const subject_t *subject, rig_t *rig, strata_stream_t producer, strata_stream_t consumer) {
    handover_t h = {.rig = rig, .stream = consumer};
    uint64_t random = conform_random(29);
    size_t sizes[HUNDRED];
    pthread_t thread;
    for (int i = 0; i < HUNDRED; i++) {
        sizes[h.count] = 1 + (size_t)(conform_draw(&random) % MIB);
        if (serve(subject, rig, producer, sizes[h.count], &h.blocks[h.count])) h.count++;
    }
    rig_work(rig, producer, LONG, 0);
    ASSERT_OK(strata_device_event_create(rig->devices[0], &h.event));
    EXPECT_OK(strata_device_event_record(rig->devices[0], h.event, producer));
    ASSERT_EQ(pthread_create(&thread, NULL, consume, &h), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    for (uint32_t i = 0; i < h.count; i++) {
        strata_block_t b;
        if (!serve(subject, rig, producer, sizes[i], &b)) continue;
        bool again = false;
        for (uint32_t k = 0; k < h.count; k++) again |= rig_overlap(&b, &h.blocks[k]);
        EXPECT_TRUE(!again || begins_after(rig, producer, h.done));
        free_block(rig, &b, i);
    }
    EXPECT_OK(strata_device_event_destroy(rig->devices[0], h.event));
}

/* Row 8: on the default stream, on each thread's own, on one stream and on two. */
void another_thread_frees_on_its_stream(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_stream_t a = rig_stream(&rig), b = rig_stream(&rig);
    check_handover(subject, &rig, NULL, NULL);
    check_handover(subject, &rig, STRATA_STREAM_PER_THREAD, STRATA_STREAM_PER_THREAD);
    check_handover(subject, &rig, a, a);
    check_handover(subject, &rig, a, b);
    EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
    rig_close(&rig);
}

/* ---- streams that end ---- */

/* Rows 15 and 26: memory freed before the stream's end is served again, and blocks that are live then can be freed. */
void a_destroyed_stream_leaves_its_memory(const subject_t *subject) {
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_stream_t ending = rig_stream(&rig), other = rig_stream(&rig);
    strata_block_t freed = {0}, kept = {0}, b;
    bool has_freed = serve(subject, &rig, ending, 3 * MIB, &freed), has_kept = serve(subject, &rig, ending, 5000, &kept);
    rig_work(&rig, ending, LONG, has_freed ? freed.ref : 0);
    uint64_t done = strata_sim_stream_end(rig.devices[0], ending);
    if (has_freed) free_block(&rig, &freed, 0);
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, ending));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, ending));
    for (int later = 0; later < 2; later++) {
        if (serve(subject, &rig, other, 3 * MIB, &b)) {
            EXPECT_TRUE(!has_freed || !rig_overlap(&b, &freed) || begins_after(&rig, other, done));
            EXPECT_FALSE(has_kept && rig_overlap(&b, &kept));
            free_block(&rig, &b, 0);
        }
        rig_advance(&rig, 2 * LONG);
    }
    if (has_kept) free_block(&rig, &kept, 1);
    EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
    EXPECT_OK(strata_validate(rig.s));
    rig_close(&rig);
}
