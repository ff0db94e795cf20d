#include "programs/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "facade/open/life.h"
#include "facade/registry/facade.h"
#include "platform/host/host_memory.h"
#include "platform/text/pointer.h"

/* ---- the verdict ---- */

void torture_fail(torture_world_t *w, torture_fault_t fault, int detail, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&w->lock);
    if (w->verdict.fault == TORTURE_FAULT_NONE) {
        w->verdict.fault = fault;
        w->verdict.detail = detail;
        vsnprintf(w->verdict.text, sizeof w->verdict.text, format, arguments);
    }
    pthread_mutex_unlock(&w->lock);
    va_end(arguments);
    atomic_store(&w->failed, true);
}

bool torture_same_fault(const torture_verdict_t *a, const torture_verdict_t *b) {
    return a->fault == b->fault && a->detail == b->detail;
}

const char *torture_fault_text(torture_fault_t fault) {
    static const char *const texts[] = {
#define TORTURE_FAULT_TEXT(name, text) text,
        TORTURE_FAULT_MAP(TORTURE_FAULT_TEXT)
#undef TORTURE_FAULT_TEXT
    };
    return texts[fault];
}

/* Called at the end of each call, so that the verdict has the first hazard. Later ones would only follow from it. */
void torture_check_hazards(torture_world_t *w) {
    if (!w->checker) return;
    uint64_t hazards = strata_checker_hazards(w->checker);
    if (hazards == 0) return;
    int kind = 0;
    while (kind < STRATA_HAZARDS && strata_checker_hazards_of(w->checker, (strata_hazard_t)kind) == 0) kind++;
    torture_fail(w, TORTURE_FAULT_HAZARD, kind, "%s", strata_checker_report(w->checker, 0));
    w->verdict.hazards = hazards;
}

bool torture_expect_ok(torture_world_t *w, strata_status_t status, const char *call) {
    if (status == STRATA_OK) return true;
    torture_fail(w, TORTURE_FAULT_CALL, (int)status, "%s returned %s: %s", call, strata_status_name(status),
                 strata_last_error()->text);
    return false;
}

/* ---- names ---- */

strata_place_t torture_place_of(uint32_t place) {
    switch (place) {
    case STRATA_TORTURE_PINNED: return strata_pinned();
    case STRATA_TORTURE_HOST: return strata_host();
    default: return place < STRATA_TORTURE_MANAGED ? strata_gpu(place & 1u) : strata_managed(place & 1u);
    }
}

static strata_device_t *device_of_place(const torture_world_t *w, uint32_t place) {
    return w->devices[place < STRATA_TORTURE_PINNED ? place & 1u : 0];
}

static strata_device_t *device_of(const torture_world_t *w, uint32_t stream) { return w->devices[torture_device_of(stream)]; }

/* Returns the block of a call, or NULL if it was refused or freed, or the run has failed. */
static torture_block_t *live_block(torture_world_t *w, uint32_t block) {
    torture_block_t *b = &w->blocks[block];
    return b->live && !atomic_load(&w->failed) ? b : NULL;
}

/* ---- bytes ---- */

static uint8_t *bytes_of(torture_world_t *w, const torture_block_t *b) {
    if (b->block.size == 0) return NULL;
    uint8_t *bytes = strata_device_host_view(device_of_place(w, b->place), (uintptr_t)b->block.ptr, b->block.size);
    if (!bytes)
        torture_fail(w, TORTURE_FAULT_CONTENTS, 0, "the memory of a live block of %zu bytes no longer exists", b->block.size);
    return bytes;
}

/* Returns the byte to mark after byte `at`. The marks are the first 65 bytes, where a layer may keep links, then one byte in at
 * least 1021, and the last byte. More marks would touch more pages, which costs the host time. */
static size_t next_mark(const torture_block_t *b, size_t at) {
    size_t last = b->block.size - 1, step = b->block.size / 32 > 1021 ? b->block.size / 32 | 1u : 1021;
    size_t next = at < 64 ? at + 1 : at + step;
    return at < last && next > last ? last : next;
}

void torture_write_marks(torture_world_t *w, torture_block_t *b) {
    uint8_t *bytes = bytes_of(w, b);
    b->mark = (uint8_t)(b->mark * 37 + 101);
    b->known = true;
    if (!bytes) return;
    for (size_t i = 0; i < b->block.size; i = next_mark(b, i)) bytes[i] = b->mark;
}

static void expect_marks(torture_world_t *w, const torture_block_t *b) {
    const uint8_t *bytes = b->known ? bytes_of(w, b) : NULL;
    if (!bytes) return;
    for (size_t i = 0; i < b->block.size; i = next_mark(b, i)) {
        if (bytes[i] == b->mark) continue;
        torture_fail(w, TORTURE_FAULT_CONTENTS, 0, "byte %zu of a block of %zu bytes is %u, not %u", i, b->block.size, bytes[i],
                     b->mark);
        return;
    }
}

static void expect_zeros(torture_world_t *w, const torture_block_t *b, size_t size) {
    const uint8_t *bytes = bytes_of(w, b);
    /* The first byte is 0, and each byte equals the one before it. */
    if (bytes && (bytes[0] || memcmp(bytes, bytes + 1, size - 1) != 0))
        torture_fail(w, TORTURE_FAULT_CONTENTS, 1, "%zu requested bytes are not zeroed", size);
}

/* ---- opening ---- */

#define FILL_CAPACITY (UINT64_C(512) << 20)

static strata_status_t make_stream(torture_world_t *w, uint32_t stream) {
    uint32_t within = stream % TORTURE_STREAMS_EACH;
    if (within == 0) return STRATA_OK; /* NULL */
    if (within == 1) return strata_device_stream_create(device_of(w, stream), STRATA_STREAM_BLOCKING, 0, &w->streams[stream]);
    return strata_stream_create(w->s, strata_gpu(torture_device_of(stream)), 0, &w->streams[stream]);
}

static void name_stream(torture_world_t *w, uint32_t stream) {
    char label[32];
    snprintf(label, sizeof label, "stream %u", stream);
    strata_checker_name(w->checker, device_of(w, stream), w->streams[stream], label);
}

void torture_world_open(torture_world_t *w, const strata_strategy_t *strategy, const torture_setting_t *setting) {
    *w = (torture_world_t){.device_count = setting->devices ? setting->devices : 1, .small = setting->capacity != 0};
    w->may_refuse = setting->may_refuse;
    pthread_mutex_init(&w->lock, NULL);
    w->block_count = setting->blocks ? setting->blocks : 64;
    w->blocks = strata_host_new(w->block_count, sizeof *w->blocks);
    if (!w->blocks) {
        torture_fail(w, TORTURE_FAULT_HOST, 0, "out of host memory for %u blocks", w->block_count);
        return;
    }
    strata_sim_options_t options = {
        .devices = w->device_count, .capacity = setting->capacity, .contents = true, .host_in_order = setting->host_in_order};
    /* A layer that fills may be below one that takes nearly all memory, and the simulation keeps all filled bytes in host
     * memory. */
    if (setting->may_refuse && !setting->capacity) options.capacity = FILL_CAPACITY;
    strata_status_t status = strata_sim_new(&options, &w->sim);
    for (uint32_t i = 0; i < w->device_count && status == STRATA_OK; i++) status = strata_sim_open(w->sim, i, &w->devices[i]);
    if (status == STRATA_OK) status = strata_checker_begin(w->sim, STRATA_CHECKER_ALL, &w->checker);
    uint32_t flags = setting->check_stream_ids ? STRATA_OPEN_CHECK_STREAM_IDS : 0;
    if (status == STRATA_OK) status = strata_facade_open_on(strategy, w->devices, w->device_count, flags, &w->s);
    for (uint32_t i = 0; i < w->device_count * TORTURE_STREAMS_EACH && status == STRATA_OK; i++) {
        status = make_stream(w, i);
        if (status == STRATA_OK) name_stream(w, i);
    }
    /* With little memory, the chunks that the strategy gets at open may not fit. */
    w->verdict.unopened = status == STRATA_E_NO_MEMORY && w->small;
    if (w->verdict.unopened) atomic_store(&w->failed, true);
    else (void)torture_expect_ok(w, status, "open");
}

/* ---- allocate and free ---- */

/* Returns true if a layer may have taken nearly all memory for one graph pool, so that nothing is left for others. */
static bool is_memory_scarce(const torture_world_t *w) {
    uint64_t available, total;
    for (uint32_t i = 0; i < w->device_count && atomic_load(&w->has_pools); i++)
        if (strata_device_mem_info(w->devices[i], &available, &total) == STRATA_OK && available < total / 4) return true;
    return false;
}

static bool may_be_refused(const torture_world_t *w, const torture_request_t *request, uint32_t stream, strata_status_t status) {
    if (status == STRATA_E_NO_MEMORY) return w->small || w->may_refuse || (request->flags & STRATA_NO_GROW) || is_memory_scarce(w);
    /* A layer that works on the stream itself, such as fill, refuses inside captures. */
    if (status == STRATA_E_CAPTURE) return w->may_refuse && stream < TORTURE_STREAMS && w->captured[stream];
    /* UNSUPPORTED: a cache needs an alignment that the layers below it lack, which is detected only at the first request. */
    return (status == STRATA_E_DEVICE || status == STRATA_E_UNSUPPORTED) && w->may_refuse;
}

static void expect_shape(torture_world_t *w, const torture_block_t *b, const torture_request_t *request) {
    uint64_t alignment = b->place == STRATA_TORTURE_HOST ? 64 : 256;
    if (request->alignment > alignment) alignment = request->alignment;
    if (b->block.size < request->size || (request->size == 0) != (b->block.ptr == NULL))
        torture_fail(w, TORTURE_FAULT_SHAPE, 0, "%zu bytes at %s were served for a request of %" PRIu64, b->block.size,
                     strata_pointer_text(b->block.ptr).text, request->size);
    if ((uintptr_t)b->block.ptr % alignment)
        torture_fail(w, TORTURE_FAULT_SHAPE, 1, "a block at %s is not aligned to %" PRIu64, strata_pointer_text(b->block.ptr).text,
                     alignment);
}

static void report_served(torture_world_t *w, const torture_block_t *b, strata_stream_t stream) {
    strata_checker_block_t reported = {.name = b->block.ref,
                                       .device = device_of_place(w, b->place),
                                       .stream = stream,
                                       .address = (uintptr_t)b->block.ptr,
                                       .size = b->block.size,
                                       .ownerless = torture_is_ownerless(b->place),
                                       .graph_pool = b->pool};
    strata_checker_allocated(w->checker, &reported);
}

void torture_allocate(torture_world_t *w, uint32_t block, uint32_t place, uint32_t stream, const torture_request_t *request) {
    torture_block_t *b = &w->blocks[block];
    strata_stream_t handle = stream < TORTURE_STREAMS ? w->streams[stream] : NULL;
    strata_allocate_options_t options = {.struct_size = sizeof options,
                                         .size = request->size,
                                         .alignment = request->alignment,
                                         .flags = request->flags,
                                         .tag = request->tag};
    if (atomic_load(&w->failed)) return;
    bool plain = !request->flags && !request->alignment && !request->tag;
    strata_status_t status = plain ? strata_allocate(w->s, torture_place_of(place), handle, request->size, &b->block)
                                   : strata_allocate_with(w->s, torture_place_of(place), handle, &options, &b->block);
    bool refused = may_be_refused(w, request, stream, status);
    atomic_fetch_add(refused ? &w->refused : &w->served, 1);
    if (refused || !torture_expect_ok(w, status, "allocate")) return;
    b->place = (uint8_t)place;
    b->requested = request->size;
    b->live = true;
    b->pool = request->pool;
    b->mark = (uint8_t)(block * 11 + 1);
    report_served(w, b, handle);
    expect_shape(w, b, request);
    bool zeroed = (request->flags & STRATA_ZERO) && !atomic_load(&w->failed);
    bool at_launch = zeroed && !torture_is_ownerless(b->place) &&
                     torture_note_written(w, stream, &(torture_written_t){.block = block, .filled = true});
    if (zeroed && !at_launch) expect_zeros(w, b, (size_t)request->size);
    torture_write_marks(w, b);
    torture_check_hazards(w);
}

static strata_status_t call_free(torture_world_t *w, const torture_block_t *b, uint32_t stream, bool by_pointer) {
    if (stream < TORTURE_STREAMS) return strata_free_on(w->s, b->block.ref, w->streams[stream]);
    return by_pointer ? strata_free_pointer(w->s, b->block.ptr) : strata_free(w->s, b->block.ref);
}

/* Reports a free before the call, because another thread may be served the memory after it. */
static void report_freed(torture_world_t *w, const torture_block_t *b, uint32_t stream, bool last) {
    if (last && b->owned && stream >= TORTURE_STREAMS) return;
    if (last && !b->owned && stream < TORTURE_STREAMS) strata_checker_freed_on(w->checker, b->block.ref, w->streams[stream]);
    else if (last && !b->owned) strata_checker_freed(w->checker, b->block.ref);
    else if (stream < TORTURE_STREAMS) strata_checker_borrowed(w->checker, b->block.ref, w->streams[stream]);
}

void torture_free(torture_world_t *w, uint32_t block, uint32_t stream, bool last, bool by_pointer) {
    torture_block_t *b = live_block(w, block);
    if (!b) return;
    expect_marks(w, b);
    report_freed(w, b, stream, last);
    (void)torture_expect_ok(w, call_free(w, b, stream, by_pointer), "free");
    if (last) b->live = false;
    if (last) b->freed = true;
    torture_check_hazards(w);
}

void torture_refuse_events(torture_world_t *w, bool refuse) {
    if (atomic_load(&w->failed)) return;
    for (uint32_t i = 0; i < w->device_count; i++) {
        if (!refuse) strata_sim_clear_faults(w->devices[i]);
        else (void)torture_expect_ok(w, strata_sim_fail(w->devices[i], STRATA_CALL_event_record, 1, true, STRATA_E_DEVICE), "fail");
    }
}

void torture_retain(torture_world_t *w, uint32_t block) {
    torture_block_t *b = live_block(w, block);
    if (b) (void)torture_expect_ok(w, strata_retain(w->s, b->block.ref), "retain");
}

/* ---- uses ---- */

void torture_work(torture_world_t *w, uint32_t stream, uint32_t us, const uint32_t *blocks, uint32_t count, uint32_t writes) {
    strata_access_t accesses[STRATA_TORTURE_NAMED];
    uint64_t names[STRATA_TORTURE_NAMED];
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        torture_block_t *b = live_block(w, blocks[i]);
        if (!b || b->block.size == 0) continue;
        names[used] = b->block.ref;
        accesses[used++] = (strata_access_t){(uintptr_t)b->block.ptr, b->block.size, (writes >> i & 1u) != 0};
        bool written = writes >> i & 1u;
        if (written && !torture_note_written(w, stream, &(torture_written_t){.block = blocks[i]})) torture_write_marks(w, b);
    }
    if (atomic_load(&w->failed)) return;
    strata_checker_expect(w->checker, names, used);
    (void)torture_expect_ok(w, strata_device_work(device_of(w, stream), w->streams[stream], us * UINT64_C(1000), accesses, used),
                            "work");
    torture_check_hazards(w);
}

void torture_fill(torture_world_t *w, uint32_t stream, uint32_t block) {
    torture_block_t *b = live_block(w, block);
    if (!b || b->block.size == 0) return;
    uint8_t byte = (uint8_t)(b->mark * 37 + 101);
    if (!torture_note_written(w, stream, &(torture_written_t){.block = block, .filled = true, .byte = byte})) {
        b->mark = byte;
        b->known = true;
    }
    (void)torture_expect_ok(
        w, strata_device_fill(device_of(w, stream), (uintptr_t)b->block.ptr, byte, b->block.size, w->streams[stream]), "fill");
    torture_check_hazards(w);
}

void torture_host(torture_world_t *w, uint32_t block, bool write) {
    torture_block_t *b = live_block(w, block);
    if (!b || b->block.size == 0) return;
    strata_checker_host_access(w->checker, (uintptr_t)b->block.ptr, b->block.size, write);
    if (write) torture_write_marks(w, b);
    else expect_marks(w, b);
    torture_check_hazards(w);
}

void torture_check(torture_world_t *w, uint32_t block) {
    torture_block_t *b = live_block(w, block);
    if (b) expect_marks(w, b);
}

/* ---- streams ---- */

/* If no layer handles borrows, the free waits on the host instead, which gives the program the same order. */
void torture_borrow(torture_world_t *w, uint32_t block, uint32_t stream) {
    torture_block_t *b = live_block(w, block);
    if (!b) return;
    strata_status_t status = strata_record_stream(w->s, b->block.ref, w->streams[stream]);
    (void)torture_expect_ok(w, status, "record_stream");
    strata_checker_borrowed(w->checker, b->block.ref, w->streams[stream]);
}

void torture_erase(torture_world_t *w, uint32_t block, uint32_t stream) {
    torture_block_t *b = live_block(w, block);
    if (!b) return;
    strata_status_t status = strata_erase_stream(w->s, b->block.ref, w->streams[stream]);
    if (status != STRATA_E_UNSUPPORTED) (void)torture_expect_ok(w, status, "erase_stream");
    strata_checker_erased(w->checker, b->block.ref, w->streams[stream]);
}

void torture_order(torture_world_t *w, uint32_t stream, uint32_t other) {
    strata_handle_t event = NULL;
    if (atomic_load(&w->failed)) return;
    if (!torture_expect_ok(w, strata_device_event_create(device_of(w, other), &event), "event_create")) return;
    if (torture_expect_ok(w, strata_device_event_record(device_of(w, other), event, w->streams[other]), "event_record"))
        (void)torture_expect_ok(w, strata_device_stream_wait(device_of(w, stream), w->streams[stream], event), "stream_wait");
    (void)torture_expect_ok(w, strata_device_event_destroy(device_of(w, other), event), "event_destroy");
}

void torture_synchronise(torture_world_t *w, uint32_t stream) {
    if (!atomic_load(&w->failed))
        (void)torture_expect_ok(w, strata_device_stream_synchronise(device_of(w, stream), w->streams[stream]), "synchronise");
}

void torture_renew(torture_world_t *w, uint32_t stream) {
    uint32_t device = torture_device_of(stream);
    strata_stream_t before = w->streams[stream];
    if (atomic_load(&w->failed)) return;
    (void)torture_expect_ok(w, strata_stream_forget(w->s, strata_gpu(device), w->streams[stream]), "stream_forget");
    for (uint32_t i = 0; i < w->device_count; i++)
        (void)torture_expect_ok(w, strata_stream_forget(w->s, strata_managed(i), w->streams[stream]), "stream_forget");
    (void)torture_expect_ok(w, strata_stream_forget(w->s, strata_pinned(), w->streams[stream]), "stream_forget");
    (void)torture_expect_ok(w, strata_stream_forget(w->s, strata_host(), w->streams[stream]), "stream_forget");
    (void)torture_expect_ok(w, strata_device_stream_destroy(device_of(w, stream), w->streams[stream]), "stream_destroy");
    (void)torture_expect_ok(w, make_stream(w, stream), "stream_create");
    w->recycled += w->streams[stream] == before;
    name_stream(w, stream);
    torture_check_hazards(w);
}

/* ---- the rest ---- */

void torture_release(torture_world_t *w, uint32_t place) {
    if (atomic_load(&w->failed)) return;
    (void)torture_expect_ok(w, strata_release(w->s, torture_place_of(place), NULL), "release");
    torture_check_hazards(w);
}

void torture_trim(torture_world_t *w, uint32_t place, uint64_t keep) {
    if (atomic_load(&w->failed)) return;
    (void)torture_expect_ok(w, strata_trim(w->s, torture_place_of(place), keep, NULL), "trim");
    torture_check_hazards(w);
}

static void count_row(const strata_snapshot_row_t *row, void *context) {
    uint64_t *live = context;
    *live += row->state == 1;
}

static void validate(torture_world_t *w) {
    if (strata_validate(w->s) != STRATA_OK) torture_fail(w, TORTURE_FAULT_VALIDATE, 0, "validate: %s", strata_last_error()->text);
}

void torture_query_place(torture_world_t *w, uint32_t place) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    uint64_t live = 0;
    if (atomic_load(&w->failed)) return;
    validate(w);
    (void)torture_expect_ok(w, strata_statistics_all(w->s, torture_place_of(place), &figures), "statistics_all");
    (void)torture_expect_ok(w, strata_snapshot(w->s, torture_place_of(place), count_row, &live), "snapshot");
}

void torture_query_block(torture_world_t *w, uint32_t block) {
    torture_block_t *b = live_block(w, block);
    strata_block_t found = {0};
    if (!b || b->block.size == 0) return;
    if (torture_expect_ok(w, strata_block_of(w->s, b->block.ptr, &found), "block_of") && found.ref != b->block.ref)
        torture_fail(w, TORTURE_FAULT_CALL, 100, "block_of returned another block");
    if (torture_expect_ok(w, strata_base_pointer(w->s, (char *)b->block.ptr + b->block.size / 2, &found), "base_pointer") &&
        found.ref != b->block.ref)
        torture_fail(w, TORTURE_FAULT_CALL, 101, "base_pointer returned another block");
}

void torture_advance(torture_world_t *w, uint32_t us) {
    if (!atomic_load(&w->failed)) strata_sim_advance_to(w->sim, strata_sim_now(w->sim) + us * UINT64_C(1000));
}

/* ---- the end ---- */

static void release_all(torture_world_t *w) {
    for (uint32_t i = 0; i < w->device_count; i++)
        (void)torture_expect_ok(w, strata_device_synchronise(w->devices[i]), "synchronise");
    for (uint32_t place = 0; place < STRATA_TORTURE_PLACES; place++)
        if (place >= STRATA_TORTURE_PINNED || (place & 1u) < w->device_count) torture_release(w, place);
}

/* Before the close only device bytes are checked, because an open domain keeps host memory, events, pools and addresses. */
static void expect_all_returned(torture_world_t *w, bool closed, const char *when) {
    for (uint32_t i = 0; i < w->device_count; i++) {
        char text[256];
        strata_sim_held_t held;
        strata_sim_held(w->devices[i], &held);
        if (!closed) held = (strata_sim_held_t){.device_bytes = held.device_bytes};
        strata_sim_held_text(&held, text, sizeof text);
        if (*text) torture_fail(w, TORTURE_FAULT_LEFT, closed, "%s device %u lacks %s", when, i, text);
    }
}

static void close_facade(torture_world_t *w) {
    bool sound = !atomic_load(&w->failed);
    if (w->s) (void)torture_expect_ok(w, strata_close(w->s, sound ? STRATA_CLOSE_WAIT : STRATA_CLOSE_FORCE, NULL, NULL), "close");
    if (w->checker && !strata_checker_complete(w->checker))
        torture_fail(w, TORTURE_FAULT_HOST, 0, "out of host memory for the checker's records");
    if (sound) torture_check_hazards(w);
}

void torture_world_end(torture_world_t *w) {
    if (!atomic_load(&w->failed)) {
        validate(w);
        release_all(w);
        expect_all_returned(w, false, "after the last free and a release");
    }
    bool sound = !atomic_load(&w->failed);
    close_facade(w);
    if (sound) expect_all_returned(w, true, "after the facade was closed");
    strata_checker_end(w->checker);
    w->verdict.recycled = w->recycled;
    w->verdict.served = w->served;
    w->verdict.refused = w->refused;
    w->verdict.captures = w->captures;
    w->verdict.launches = w->launches;
    for (uint32_t i = 0; i < w->device_count; i++)
        if (w->devices[i]) strata_device_close(w->devices[i]);
    if (w->sim) strata_sim_drop(w->sim);
    for (uint32_t i = 0; i < STRATA_TORTURE_GRAPHS; i++) strata_host_delete(w->graphs[i].written);
    strata_host_delete(w->blocks);
    pthread_mutex_destroy(&w->lock);
}
