/* The calls of fuzz_calls(), one function each, and the table by which a byte chooses. */
#include <string.h>

#include "platform/host/host_memory.h"
#include "tests/fuzz/calls.h"

enum { TEXT = 1 << 16 };

/* ---- what a byte names ---- */

static strata_place_t some_place(calls_t *c) {
    static const uint8_t likely[] = {0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6};
    switch (likely[calls_below(c, 16)]) {
    case 0: return strata_gpu(0);
    case 1: return strata_gpu(1);
    case 2: return strata_managed(0);
    case 3: return strata_pinned();
    case 4: return strata_host();
    case 5: return strata_gpu(calls_byte(c));
    default: return (strata_place_t)calls_byte(c) << 16;
    }
}

/* A stream of the place's device, or of the other one, or none at all. */
static strata_stream_t some_stream(calls_t *c, strata_place_t place) {
    uint8_t byte = calls_byte(c);
    if (byte == 255) return (strata_stream_t)(uintptr_t)0xdead0;
    if (byte >= 250) return (strata_stream_t)(uintptr_t)(byte - 250);
    uint32_t device = strata_place_device(place) % CALLS_DEVICES;
    if (byte >= 245) device = (device + 1) % CALLS_DEVICES;
    return c->streams[device][byte % CALLS_STREAMS];
}

static size_t some_size(calls_t *c) {
    uint8_t shift = calls_byte(c), factor = calls_byte(c);
    if (shift == 255) return SIZE_MAX - factor;
    if (shift == 254) return 0;
    return (size_t)factor + ((size_t)factor << (shift % 20));
}

static calls_block_t *some_block(calls_t *c) {
    uint32_t at = calls_byte(c);
    return c->live ? &c->blocks[at % c->live] : NULL;
}

/* Names of nothing that is live. */
static strata_ref_t stale_ref(calls_t *c) {
    uint8_t byte = calls_byte(c);
    if (byte < 128) return c->dead[byte % CALLS_DEAD];
    if (byte < 192) return (strata_ref_t)calls_byte(c) << (byte & 63);
    strata_ref_t ref = c->live ? c->blocks[0].block.ref ^ (strata_ref_t)1 << (byte & 63) : 0;
    for (uint32_t i = 0; i < c->live; i++)
        if (c->blocks[i].block.ref == ref) return 0;
    return ref;
}

/* ---- blocks ---- */

static unsigned char *bytes_of(calls_t *c, const calls_block_t *b) {
    strata_place_kind_t kind = strata_place_kind(b->place);
    if (kind != STRATA_PLACE_GPU || !c->devices[0]->capabilities.contents || b->block.size < 2 * sizeof b->mark) return NULL;
    strata_device_t *device = c->devices[strata_place_device(b->place)];
    return strata_device_host_view(device, (uint64_t)(uintptr_t)b->block.ptr, b->block.size);
}

void calls_check_bytes(calls_t *c, const calls_block_t *b) {
    unsigned char *bytes = b->marked ? bytes_of(c, b) : NULL;
    if (!bytes) return;
    FUZZ_EXPECT(memcmp(bytes, &b->mark, sizeof b->mark) == 0);
    FUZZ_EXPECT(memcmp(bytes + b->block.size - sizeof b->mark, &b->mark, sizeof b->mark) == 0);
}

static void expect_apart(const calls_t *c, const calls_block_t *b) {
    uintptr_t begin = (uintptr_t)b->block.ptr, end = begin + b->block.size;
    for (uint32_t i = 0; i < c->live; i++) {
        uintptr_t other = (uintptr_t)c->blocks[i].block.ptr;
        FUZZ_EXPECT(other >= end || other + c->blocks[i].block.size <= begin);
    }
}

static void keep(calls_t *c, strata_place_t place, size_t asked, const strata_block_t *block) {
    calls_block_t b = {.block = *block, .place = place, .asked = asked, .owners = 1, .mark = ++c->marks};
    size_t alignment = strata_place_kind(place) == STRATA_PLACE_HOST ? 64 : 256;
    FUZZ_EXPECT(block->ref != 0 && block->size >= asked && (uintptr_t)block->ptr % alignment == 0);
    FUZZ_EXPECT((block->ptr != NULL) == (asked > 0));
    expect_apart(c, &b);
    unsigned char *bytes = bytes_of(c, &b);
    if (bytes) {
        memcpy(bytes, &b.mark, sizeof b.mark);
        memcpy(bytes + b.block.size - sizeof b.mark, &b.mark, sizeof b.mark);
        b.marked = true;
    }
    c->blocks[c->live++] = b;
}

/* One owner less; the last one's free ends the block. */
static void drop(calls_t *c, calls_block_t *b) {
    if (--b->owners > 0) return;
    c->dead[c->died++ % CALLS_DEAD] = b->block.ref;
    *b = c->blocks[--c->live];
}

static void call_allocate(calls_t *c) {
    strata_place_t place = some_place(c);
    strata_stream_t stream = some_stream(c, place);
    size_t size = some_size(c);
    strata_block_t block = {.ref = 77};
    if (c->live == CALLS_BLOCKS) return;
    if (strata_allocate(c->s, place, stream, size, &block) == STRATA_OK) keep(c, place, size, &block);
    else FUZZ_EXPECT(block.ref == 77);
}

/* The named pool, or one that may be none. */
static uint64_t some_pool(calls_t *c) {
    uint8_t byte = calls_byte(c);
    return c->pool && byte & 128 ? c->pool : byte;
}

static void call_allocate_with(calls_t *c) {
    static const char *const tags[] = {NULL, "", "weights",
                                       "a name that goes on, and on, and on, and on, and on, and on, and on, "
                                       "and on, and on, and on, and on, and on, until no more than its beginning is kept"};
    strata_place_t place = some_place(c);
    strata_stream_t stream = some_stream(c, place);
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = some_size(c)};
    uint8_t byte = calls_byte(c);
    options.flags = byte & 7;
    options.alignment = byte & 8 ? (size_t)1 << (calls_byte(c) & 63) : 0;
    options.tag = tags[byte >> 4 & 3];
    if (byte >= 240) options.pool = some_pool(c);
    strata_block_t block = {.ref = 77};
    if (c->live == CALLS_BLOCKS) return;
    if (strata_allocate_with(c->s, place, stream, &options, &block) == STRATA_OK) keep(c, place, options.size, &block);
    else FUZZ_EXPECT(block.ref == 77);
}

static void call_free(calls_t *c) {
    calls_block_t *b = some_block(c);
    if (!b) return;
    calls_check_bytes(c, b);
    FUZZ_EXPECT_OK(strata_free(c->s, b->block.ref));
    drop(c, b);
}

static void call_free_on(calls_t *c) {
    calls_block_t *b = some_block(c);
    if (!b) return;
    strata_stream_t stream = some_stream(c, b->place);
    calls_check_bytes(c, b);
    if (strata_free_on(c->s, b->block.ref, stream) == STRATA_OK) drop(c, b);
}

static void call_free_pointer(calls_t *c) {
    calls_block_t *b = some_block(c);
    if (!b) {
        FUZZ_EXPECT_OK(strata_free_pointer(c->s, NULL));
    } else if (b->block.ptr) {
        strata_status_t status = strata_free_pointer(c->s, b->block.ptr);
        FUZZ_EXPECT(status == STRATA_OK || status == STRATA_E_HOST_MEMORY);
        if (status == STRATA_OK) drop(c, b);
    }
}

static void call_retain(calls_t *c) {
    calls_block_t *b = some_block(c);
    if (b && strata_retain(c->s, b->block.ref) == STRATA_OK) b->owners++;
}

static void call_stale(calls_t *c) {
    strata_ref_t ref = stale_ref(c);
    strata_stream_t stream = NULL;
    FUZZ_EXPECT(strata_free(c->s, ref) == STRATA_E_STALE);
    FUZZ_EXPECT(strata_record_stream(c->s, ref, c->streams[0][1]) == STRATA_E_STALE);
    FUZZ_EXPECT(strata_retain(c->s, ref) == STRATA_E_STALE);
    FUZZ_EXPECT(strata_stream_of(c->s, ref, &stream) == STRATA_E_STALE);
    FUZZ_EXPECT(strata_free(c->s ^ 1, ref) == STRATA_E_STALE);
}

static void call_unknown_pointer(calls_t *c) {
    uint64_t address = 0;
    for (int i = 0; i < 6; i++) address = address << 8 | calls_byte(c);
    strata_block_t block;
    if (strata_base_pointer(c->s, (const void *)(uintptr_t)address, &block) == STRATA_OK) {
        FUZZ_EXPECT(address - (uintptr_t)block.ptr < block.size);
    } else if (address) {
        FUZZ_EXPECT(strata_free_pointer(c->s, (void *)(uintptr_t)address) != STRATA_OK);
    }
}

static void call_ask(calls_t *c) {
    calls_block_t *b = some_block(c);
    if (!b) return;
    char path[128];
    strata_block_t same;
    strata_neighbours_t neighbours = {.struct_size = sizeof neighbours};
    strata_stream_t stream;
    (void)strata_allocation_route(c->s, b->block.ref, path, 1 + calls_byte(c) % sizeof path);
    (void)strata_neighbours(c->s, b->block.ref, &neighbours);
    (void)strata_stream_of(c->s, b->block.ref, &stream);
    if (b->block.ptr && strata_block_of(c->s, b->block.ptr, &same) == STRATA_OK)
        FUZZ_EXPECT(same.ref == b->block.ref && same.size == b->block.size);
}

/* ---- streams ---- */

static void call_stream_create(calls_t *c) {
    uint32_t device = calls_below(c, CALLS_DEVICES), at = 1 + calls_below(c, CALLS_STREAMS - 1);
    if (!c->streams[device][at]) (void)strata_stream_create(c->s, strata_gpu(device), 0, &c->streams[device][at]);
}

/* As a program must: its blocks' places forget it first, and nobody uses it later. */
static void call_stream_destroy(calls_t *c) {
    uint32_t device = calls_below(c, CALLS_DEVICES), at = 1 + calls_below(c, CALLS_STREAMS - 1);
    strata_stream_t stream = c->streams[device][at];
    if (!stream) return;
    const strata_place_t places[] = {strata_gpu(device), strata_managed(device), strata_pinned(), strata_host()};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strata_stream_forget(c->s, places[i], stream) != STRATA_OK && i == 0) return;
    if (strata_stream_destroy(c->s, strata_gpu(device), stream) == STRATA_OK) c->streams[device][at] = NULL;
}

static void call_forget(calls_t *c) {
    strata_place_t place = some_place(c);
    (void)strata_stream_forget(c->s, place, some_stream(c, place));
}

static void call_borrow(calls_t *c) {
    calls_block_t *b = some_block(c);
    if (b) (void)strata_record_stream(c->s, b->block.ref, some_stream(c, b->place));
}

static void call_erase(calls_t *c) {
    calls_block_t *b = some_block(c);
    if (b) (void)strata_erase_stream(c->s, b->block.ref, some_stream(c, b->place));
}

static void call_work(calls_t *c) {
    calls_block_t *b = some_block(c);
    strata_place_t place = b ? b->place : strata_gpu(0);
    (void)strata_stream_work(c->s, place, some_stream(c, place), calls_byte(c) * 1000u, b ? &b->block.ref : NULL, b ? 1 : 0);
}

static void call_synchronize(calls_t *c) {
    strata_place_t place = some_place(c);
    (void)strata_stream_synchronize(c->s, place, some_stream(c, place));
}

static void call_same_stream(calls_t *c) {
    strata_place_t place = some_place(c);
    strata_stream_t a = some_stream(c, place), b = some_stream(c, place);
    bool same = false, back = false;
    if (strata_same_stream(c->s, place, a, b, &same) == STRATA_OK && strata_same_stream(c->s, place, b, a, &back) == STRATA_OK)
        FUZZ_EXPECT(same == back);
}

static void call_pass_time(calls_t *c) {
    strata_sim_advance_to(c->world, strata_sim_now(c->world) + (uint64_t)calls_byte(c) * 10000);
}

/* ---- the place as a whole ---- */

static void call_release(calls_t *c) {
    strata_place_t place = some_place(c);
    uint64_t released = 0;
    uint8_t keep_mib = calls_byte(c);
    if (keep_mib & 1) (void)strata_release(c->s, place, &released);
    else (void)strata_trim(c->s, place, (uint64_t)keep_mib << 20, NULL);
}

static void count_row(const strata_snapshot_row_t *row, void *context) { *(size_t *)context += row->state == 1; }

static void call_figures(calls_t *c) {
    strata_place_t place = some_place(c);
    strata_statistics_t figures = {.struct_size = sizeof figures};
    strata_mem_info_t info = {.struct_size = sizeof info};
    size_t rows = 0;
    if (strata_statistics_all(c->s, place, &figures) != STRATA_OK) return;
    FUZZ_EXPECT(figures.requested_bytes <= figures.allocated_bytes && figures.frees <= figures.allocations);
    FUZZ_EXPECT(figures.live_allocations == figures.allocations - figures.frees && figures.live_allocations <= c->live);
    if (strata_snapshot(c->s, place, count_row, &rows) == STRATA_OK) FUZZ_EXPECT(rows <= figures.live_allocations);
    (void)strata_statistics(c->s, place, some_stream(c, place), &figures);
    (void)strata_mem_info(c->s, place, &info);
}

/* Answers the room that the whole needs: the text is that long, or cut where its room ends. */
static size_t check_json(calls_t *c, char *text, size_t capacity) {
    size_t needed = 0;
    if (strata_statistics_json(c->s, text, capacity, &needed) != STRATA_OK) return 0;
    if (capacity) FUZZ_EXPECT(strlen(text) == (needed <= capacity ? needed : capacity) - 1);
    return needed;
}

static void call_texts(calls_t *c) {
    static char text[TEXT];
    uint8_t byte = calls_byte(c);
    size_t capacity = (size_t)byte * 256, needed = check_json(c, text, capacity);
    if (needed > 0 && needed < TEXT) FUZZ_EXPECT(check_json(c, text, needed - 1 + byte % 3) == needed);
    (void)strata_statistics_prometheus(c->s, text, capacity, NULL);
    (void)strata_explain(c->s, text, capacity, NULL);
}

static void call_victims(calls_t *c) {
    strata_place_t place = some_place(c);
    strata_ref_t victims[4];
    size_t count = 0;
    (void)strata_best_victims(c->s, place, some_size(c), victims, calls_below(c, 5), &count);
}

static void call_validate(calls_t *c) {
    strata_status_t status = strata_validate(c->s);
    FUZZ_EXPECT(status == STRATA_OK || status == STRATA_E_HOST_MEMORY);
}

static void call_notes(calls_t *c) {
    static const char *const operators[] = {NULL, "forward", "backward", ""};
    uint8_t byte = calls_byte(c);
    (void)strata_step(c->s);
    (void)strata_annotate(c->s, operators[byte % 4]);
    if (c->pool && byte & 4) (void)strata_pool_begin(c->s, strata_gpu(byte >> 3 & 1), c->pool);
    if (c->pool && byte & 16) (void)strata_pool_end(c->s, strata_gpu(byte >> 3 & 1));
}

/* Refused while anything is live; what is asked of it later tells. */
static void call_close(calls_t *c) {
    if (c->live > 0) FUZZ_EXPECT(strata_close(c->s, (strata_close_mode_t)calls_below(c, 2), NULL, NULL) != STRATA_OK);
}

/* ---- faults ---- */

static void call_fault(calls_t *c) {
    static const strata_status_t statuses[] = {STRATA_E_NO_MEMORY, STRATA_E_NO_MEMORY, STRATA_E_DEVICE, STRATA_E_DEVICE_LOST};
    uint8_t byte = calls_byte(c);
    strata_device_call_t call = (strata_device_call_t)calls_below(c, STRATA_DEVICE_CALLS + 1);
    if (byte & 128) call = STRATA_DEVICE_CALLS;
    (void)strata_sim_fail(c->devices[byte & 1], call, 1 + calls_below(c, 16), byte & 2, statuses[byte >> 2 & 3]);
}

static void call_host_fault(calls_t *c) { strata_host_fail_at(1 + calls_below(c, 8), calls_byte(c) & 1); }

static void (*const calls[])(calls_t *) = {call_allocate,
                                           call_allocate,
                                           call_allocate,
                                           call_allocate,
                                           call_allocate_with,
                                           call_free,
                                           call_free,
                                           call_free,
                                           call_free_on,
                                           call_free_pointer,
                                           call_retain,
                                           call_stale,
                                           call_ask,
                                           call_borrow,
                                           call_borrow,
                                           call_erase,
                                           call_work,
                                           call_work,
                                           call_stream_create,
                                           call_forget,
                                           call_stream_destroy,
                                           call_release,
                                           call_figures,
                                           call_texts,
                                           call_victims,
                                           call_validate,
                                           call_notes,
                                           call_close,
                                           call_fault,
                                           calls_calm,
                                           call_host_fault,
                                           call_unknown_pointer,
                                           call_synchronize,
                                           call_same_stream,
                                           call_pass_time};

void calls_one(calls_t *c) { calls[calls_below(c, sizeof calls / sizeof *calls)](c); }
