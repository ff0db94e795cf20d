/* The chunks of a place as text, over the rows of a snapshot. */
#include <inttypes.h>

#include "facade/facade.h"
#include "facade/text.h"
#include "platform/host_memory.h"

typedef struct dump {
    strata_text_t text;
    strata_snapshot_row_t *rows; /* of the chunk that is being told */
    size_t count, room;
    strata_status_t status;
} dump_t;

typedef struct sums {
    uint64_t used, free, largest;
    size_t used_count, free_count;
} sums_t;

static sums_t sum_up(const dump_t *dump) {
    sums_t s = {0};
    for (size_t i = 0; i < dump->count; i++) {
        uint64_t size = dump->rows[i].block.size;
        if (dump->rows[i].state != 0) {
            s.used += size;
            s.used_count++;
            continue;
        }
        s.free += size;
        s.free_count++;
        if (size > s.largest) s.largest = size;
    }
    return s;
}

static void say_block(strata_text_t *text, const strata_snapshot_row_t *row) {
    static const char *const states[] = {"free", "live", "waiting for other streams"};
    strata_text_say(text, "  0x%" PRIxPTR, (uintptr_t)row->block.ptr);
    strata_text_say_size(text, " ", row->block.size);
    strata_text_say(text, " %s", states[row->state]);
    if (row->state == 1 && row->requested != row->block.size) strata_text_say_size(text, ", asked ", row->requested);
    strata_text_say(text, "\n");
}

/* Tells the chunk whose rows have been collected, and begins with none. */
static void say_chunk(dump_t *dump) {
    if (dump->count == 0) return;
    sums_t s = sum_up(dump);
    strata_text_t *text = &dump->text;
    strata_text_say(text, "chunk 0x%" PRIx64, dump->rows[0].chunk);
    strata_text_say_size(text, " ", s.used + s.free);
    strata_text_say(text, ", stream 0x%" PRIxPTR, (uintptr_t)dump->rows[0].stream);
    strata_text_say_size(text, ": used ", s.used);
    strata_text_say(text, " (%zu)", s.used_count);
    strata_text_say_size(text, ", free ", s.free);
    strata_text_say(text, " (%zu)", s.free_count);
    if (s.free_count > 1) strata_text_say_size(text, ", largest free ", s.largest);
    strata_text_say(text, "\n");
    for (size_t i = 0; i < dump->count; i++) say_block(text, &dump->rows[i]);
    dump->count = 0;
}

static bool make_room(dump_t *dump) {
    if (dump->count < dump->room) return true;
    size_t room = dump->room ? 2 * dump->room : 64;
    strata_snapshot_row_t *rows = strata_host_resize(dump->rows, room, sizeof *rows);
    if (!rows) return false;
    dump->rows = rows;
    dump->room = room;
    return true;
}

static void collect(const strata_snapshot_row_t *row, void *context) {
    dump_t *dump = context;
    if (dump->status != STRATA_OK) return;
    if (dump->count && dump->rows[0].chunk != row->chunk) say_chunk(dump);
    if (!make_room(dump)) dump->status = STRATA_E_HOST_MEMORY;
    else dump->rows[dump->count++] = *row;
}

strata_status_t strata_chunks_text(strata_t facade, strata_place_t place, char *out, size_t capacity, size_t *needed) {
    dump_t dump = {.text = {.text = out, .capacity = capacity}};
    if (capacity) out[0] = 0; /* there may be no chunk */
    strata_status_t status = strata_snapshot(facade, place, collect, &dump);
    if (status == STRATA_OK) status = dump.status;
    if (status == STRATA_OK) {
        say_chunk(&dump);
        if (needed) *needed = dump.text.length + 1;
    }
    strata_host_delete(dump.rows);
    return status;
}
