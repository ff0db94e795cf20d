#include "lab/replay/draw/map.h"

#include <stdlib.h>

#include "facade/registry/facade.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"

/* A live block: its address and its lifetime in the trace. */
typedef struct live {
    uint64_t address;
    uint32_t lifetime;
} live_t;

typedef struct copying {
    strata_map_t *map;
    live_t *lives; /* sorted by address */
    size_t live_count;
    const strata_run_moment_t *moment;
    strata_place_t place;
} copying_t;

/* Returns an array with room for `more` elements after `count`. Returns NULL if there is no host memory; the
 * old array then stays valid. */
static void *room_for(void *all, size_t size, size_t count, size_t more, size_t *room) {
    if (count + more <= *room) return all;
    size_t wanted = 2 * (count + more);
    void *grown = strata_host_resize(all, wanted, size);
    if (grown) *room = wanted;
    return grown;
}

static bool make_room(strata_map_t *map, size_t spans) {
    strata_map_chunk_t *chunks = room_for(map->chunks, sizeof *chunks, map->chunk_count, 1, &map->chunk_room);
    if (chunks) map->chunks = chunks;
    strata_map_span_t *all = room_for(map->spans, sizeof *all, map->span_count, spans, &map->span_room);
    if (all) map->spans = all;
    return chunks && all;
}

static int by_address(const void *a, const void *b) {
    uint64_t x = ((const live_t *)a)->address, y = ((const live_t *)b)->address;
    return (x > y) - (x < y);
}

static strata_map_span_t span_of(const copying_t *copying, const strata_snapshot_row_t *row) {
    live_t wanted = {.address = (uint64_t)(uintptr_t)row->block.ptr};
    const live_t *live = row->state == 1 && copying->live_count
                             ? bsearch(&wanted, copying->lives, copying->live_count, sizeof wanted, by_address)
                             : NULL;
    return (strata_map_span_t){.size = row->block.size,
                               .requested = row->requested,
                               .state = row->state,
                               .lifetime = live ? live->lifetime : STRATA_TRACE_NONE};
}

static void copy_chunk(const strata_chunk_t *from, void *context) {
    const copying_t *copying = context;
    strata_map_t *map = copying->map;
    if (map->status == STRATA_OK && !make_room(map, from->count)) map->status = STRATA_E_HOST_MEMORY;
    if (map->status != STRATA_OK) return;
    strata_map_chunk_t *chunk = &map->chunks[map->chunk_count++];
    *chunk = (strata_map_chunk_t){
        .size = from->size, .largest_free = from->largest_free, .first = map->span_count, .count = from->count};
    strata_place_text(copying->place, chunk->place);
    strata_stats_stream_name(copying->moment, copying->place, from->stream, chunk->stream);
    for (int state = 0; state < STRATA_CHUNK_STATES; state++) {
        chunk->bytes[state] = from->bytes[state];
        chunk->blocks[state] = from->blocks[state];
    }
    for (size_t i = 0; i < from->count; i++) map->spans[map->span_count++] = span_of(copying, &from->rows[i]);
}

/* ---- lifetimes of the live blocks ---- */

static void count_live(void *context, uint64_t address, uint32_t lifetime) {
    (void)address;
    (void)lifetime;
    (*(size_t *)context)++;
}

static void note_live(void *context, uint64_t address, uint32_t lifetime) {
    copying_t *copying = context;
    copying->lives[copying->live_count++] = (live_t){.address = address, .lifetime = lifetime};
}

static strata_status_t collect_live(copying_t *copying) {
    size_t count = 0;
    strata_run_each_live(copying->moment, count_live, &count);
    copying->lives = strata_host_new(count + 1, sizeof *copying->lives);
    if (!copying->lives) return STRATA_E_HOST_MEMORY;
    strata_run_each_live(copying->moment, note_live, copying);
    qsort(copying->lives, count, sizeof *copying->lives, by_address);
    return STRATA_OK;
}

void strata_map_fill(void *context, const strata_run_moment_t *moment) {
    strata_map_t *map = context;
    copying_t copying = {.map = map, .moment = moment};
    uint32_t index = 0;
    strata_domain_t *domain;
    map->rows = moment->rows;
    map->status = collect_live(&copying);
    while (map->status == STRATA_OK && (domain = strata_facade_next_domain(strata_facade_of(moment->facade), &index)) != NULL) {
        strata_place_kind_t kind = strata_place_kind(domain->place);
        copying.place = domain->place;
        if (kind != STRATA_PLACE_GPU && kind != STRATA_PLACE_MANAGED) continue;
        strata_status_t status = strata_chunks_each(moment->facade, domain->place, copy_chunk, &copying);
        if (map->status == STRATA_OK) map->status = status;
    }
    strata_host_delete(copying.lives);
}

void strata_map_delete(strata_map_t *map) {
    strata_host_delete(map->chunks);
    strata_host_delete(map->spans);
    *map = (strata_map_t){.rows = 0};
}
