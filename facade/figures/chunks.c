/* Gathers the chunks of a place from the rows of a snapshot, and prints them. */
#include "facade/figures/chunks.h"

#include <inttypes.h>
#include <stdio.h>

#include "facade/registry/text.h"
#include "platform/arguments.h"
#include "platform/host/host_memory.h"

/* ---- chunk by chunk ---- */

typedef struct gathering {
    strata_snapshot_row_t *rows; /* of the current chunk */
    size_t count, room;
    strata_status_t status;
    strata_chunk_fn tell;
    void *context;
} gathering_t;

/* Free memory of a cache may belong to no stream, so a chunk belongs to the stream that uses a block in it. */
static strata_stream_t stream_of(const gathering_t *gathering) {
    for (size_t i = 0; i < gathering->count; i++)
        if (gathering->rows[i].state != 0) return gathering->rows[i].stream;
    return gathering->rows[0].stream;
}

/* Reports the current chunk and begins the next one. */
static void report_chunk(gathering_t *gathering) {
    if (gathering->count == 0) return;
    strata_chunk_t chunk = {
        .address = gathering->rows[0].chunk, .rows = gathering->rows, .count = gathering->count, .stream = stream_of(gathering)};
    for (size_t i = 0; i < gathering->count; i++) {
        uint64_t size = gathering->rows[i].block.size;
        uint32_t state = gathering->rows[i].state;
        chunk.size += size;
        chunk.bytes[state] += size;
        chunk.blocks[state]++;
        if (state == 0 && size > chunk.largest_free) chunk.largest_free = size;
    }
    gathering->tell(&chunk, gathering->context);
    gathering->count = 0;
}

static bool make_room(gathering_t *gathering) {
    if (gathering->count < gathering->room) return true;
    size_t room = gathering->room ? 2 * gathering->room : 64;
    strata_snapshot_row_t *rows = strata_host_resize(gathering->rows, room, sizeof *rows);
    if (!rows) return false;
    gathering->rows = rows;
    gathering->room = room;
    return true;
}

static void gather(const strata_snapshot_row_t *row, void *context) {
    gathering_t *gathering = context;
    if (gathering->status != STRATA_OK) return;
    if (gathering->count && gathering->rows[0].chunk != row->chunk) report_chunk(gathering);
    if (!make_room(gathering)) gathering->status = STRATA_E_HOST_MEMORY;
    else gathering->rows[gathering->count++] = *row;
}

strata_status_t strata_chunks_each(strata_t facade, strata_place_t place, strata_chunk_fn chunk, void *context) {
    gathering_t gathering = {.tell = chunk, .context = context};
    strata_status_t status = strata_snapshot(facade, place, gather, &gathering);
    if (status == STRATA_OK) status = gathering.status;
    if (status == STRATA_OK) report_chunk(&gathering);
    strata_host_delete(gathering.rows);
    return status;
}

/* ---- as text ---- */

typedef struct dump {
    strata_text_t text;
    strata_chunk_stream_fn stream_name;
    const void *context;
} dump_t;

static void write_block(strata_text_t *text, const strata_snapshot_row_t *row) {
    static const char *const states[STRATA_CHUNK_STATES] = {"free", "live", "waiting for other streams"};
    strata_text_append(text, "  0x%" PRIxPTR, (uintptr_t)row->block.ptr);
    strata_text_append_size(text, " ", row->block.size);
    strata_text_append(text, " %s", states[row->state]);
    if (row->state == 1 && row->requested != row->block.size) strata_text_append_size(text, ", requested ", row->requested);
    strata_text_append(text, "\n");
}

static void write_chunk(const strata_chunk_t *chunk, void *context) {
    dump_t *dump = context;
    strata_text_t *text = &dump->text;
    char stream[64];
    dump->stream_name(chunk->stream, dump->context, stream, sizeof stream);
    strata_text_append(text, "chunk 0x%" PRIx64, chunk->address);
    strata_text_append_size(text, " ", chunk->size);
    strata_text_append(text, ", %s", stream);
    strata_text_append_size(text, ": used ", chunk->bytes[1] + chunk->bytes[2]);
    strata_text_append(text, " (%zu)", chunk->blocks[1] + chunk->blocks[2]);
    strata_text_append_size(text, ", free ", chunk->bytes[0]);
    strata_text_append(text, " (%zu)", chunk->blocks[0]);
    if (chunk->blocks[0] > 1) strata_text_append_size(text, ", largest free ", chunk->largest_free);
    strata_text_append(text, "\n");
    for (size_t i = 0; i < chunk->count; i++) write_block(text, &chunk->rows[i]);
}

strata_status_t strata_chunks_text_named(strata_t facade, strata_place_t place, strata_chunk_stream_fn stream_name,
                                         const void *context, char *out, size_t capacity, size_t *needed) {
    dump_t dump = {.text = {.text = out, .capacity = capacity}, .stream_name = stream_name, .context = context};
    if (capacity) out[0] = 0; /* there may be no chunk */
    strata_status_t status = strata_chunks_each(facade, place, write_chunk, &dump);
    if (status == STRATA_OK && needed) *needed = dump.text.length + 1;
    return status;
}

static void name_by_handle(strata_stream_t stream, const void *none, char *name, size_t capacity) {
    (void)none;
    snprintf(name, capacity, "stream 0x%" PRIxPTR, (uintptr_t)stream);
}

strata_status_t strata_chunks_text(strata_t facade, strata_place_t place, char *out, size_t capacity, size_t *needed) {
    STRATA_REFUSE_NULL_ARRAY_AS(out, "text", capacity);
    return strata_chunks_text_named(facade, place, name_by_handle, NULL, out, capacity, needed);
}
