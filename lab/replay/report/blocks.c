#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lab/replay/compare/json.h"
#include "lab/replay/report/parts.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

enum { MIN_SCALE = 512, MIXED = STRATA_CHUNK_STATES };
/* Limits for all runs of a page together, and the minimum and maximum for one run. */
enum {
    ALL_ROWS = 16000,
    MIN_ROWS = 16,
    MAX_ROWS = 6000,
    ALL_TAGS = 1000,
    MIN_TAGS = 3,
    MAX_TAGS = 256,
    ALL_HOLDERS = 1600,
    MIN_HOLDERS = 6,
    MAX_HOLDERS = 64
};

/* The rows that allocate and free a block, by its lifetime. */
typedef struct life {
    uint32_t alloc_row, free_row; /* 0 if there is none */
} life_t;

typedef struct blocks {
    strata_output_t *out;
    const strata_trace_t *trace;
    const strata_map_t *map;
    uint64_t scale; /* smaller blocks are grouped */
    life_t *lives;
    uint16_t *tags; /* the page's number of each tag of the trace, from 1 */
    uint16_t shown[MAX_TAGS]; /* the trace's tag, by the page's number minus 1 */
    uint16_t tag_count, max_tags;
    uint32_t more_tags; /* tags of blocks on the page that are not shown */
    size_t max_holders;
} blocks_t;

/* ---- groups of small blocks ---- */

/* Adjacent blocks of a chunk that are all smaller than the scale. A larger block forms a group of its own. */
typedef struct group {
    size_t first, count;
    uint64_t bytes[STRATA_CHUNK_STATES];
} group_t;

static group_t next_group(const blocks_t *blocks, size_t at, size_t end) {
    const strata_map_span_t *spans = blocks->map->spans;
    group_t group = {.first = at};
    do {
        group.bytes[spans[at + group.count].state] += spans[at + group.count].size;
        group.count++;
    } while (spans[at].size < blocks->scale && at + group.count < end && spans[at + group.count].size < blocks->scale);
    return group;
}

static size_t rows_of_chunk(const blocks_t *blocks, const strata_map_chunk_t *chunk) {
    size_t rows = 1;
    for (size_t at = chunk->first, end = chunk->first + chunk->count; at < end; rows++) at += next_group(blocks, at, end).count;
    return rows;
}

/* Finds the smallest scale that leaves at most `most` rows. Chunks smaller than the scale are only summed up. */
static void find_scale(blocks_t *blocks, size_t most) {
    for (blocks->scale = 0;; blocks->scale = strata_max(2 * blocks->scale, MIN_SCALE)) {
        size_t rows = 0;
        for (size_t i = 0; i < blocks->map->chunk_count && rows <= most; i++)
            if (blocks->map->chunks[i].size >= blocks->scale) rows += rows_of_chunk(blocks, &blocks->map->chunks[i]);
        if (rows <= most) return;
    }
}

/* ---- rows ---- */

static unsigned tag_of(blocks_t *blocks, const strata_trace_event_t *alloc) {
    uint16_t *number = &blocks->tags[alloc->tag];
    if (!alloc->tag || *number) return *number;
    if (blocks->tag_count == blocks->max_tags) {
        blocks->more_tags++;
        *number = blocks->max_tags + 1;
        return *number;
    }
    blocks->shown[blocks->tag_count++] = alloc->tag;
    *number = blocks->tag_count;
    return *number;
}

static void put_live(blocks_t *blocks, const strata_map_span_t *span) {
    const life_t *life = &blocks->lives[span->lifetime];
    const strata_trace_event_t *alloc = &blocks->trace->events[life->alloc_row - 1];
    strata_output_print(blocks->out, "[%" PRIu64 ",1,%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%u]", span->size,
                        span->requested, life->alloc_row, life->free_row, blocks->trace->streams[alloc->stream].number,
                        tag_of(blocks, alloc));
}

/* Writes one of these rows:
 *
 *     [size, state]
 *     [size, 1, requested, row of its alloc, row of its free or 0, stream, tag or 0]   a live block of the trace
 *     [size, 3, free, live, waiting, blocks]                                           a group */
static void put_group(blocks_t *blocks, const group_t *group) {
    const strata_map_span_t *span = &blocks->map->spans[group->first];
    const uint64_t *bytes = group->bytes;
    if (group->count > 1) {
        strata_output_print(blocks->out, "[%" PRIu64 ",%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%zu]", bytes[0] + bytes[1] + bytes[2],
                            MIXED, bytes[0], bytes[1], bytes[2], group->count);
    } else if (span->state == 1 && span->lifetime != STRATA_TRACE_NONE) {
        put_live(blocks, span);
    } else {
        strata_output_print(blocks->out, "[%" PRIu64 ",%" PRIu32 "]", span->size, span->state);
    }
}

static void put_chunk(blocks_t *blocks, const strata_map_chunk_t *chunk) {
    const char *comma = "";
    strata_output_print(blocks->out, "\n{\"place\": ");
    strata_json_text(blocks->out, chunk->place);
    strata_output_print(blocks->out, ", \"stream\": ");
    strata_json_text(blocks->out, chunk->stream);
    strata_output_print(blocks->out, ", \"rows\": [");
    for (size_t at = chunk->first, end = chunk->first + chunk->count; at < end;) {
        group_t group = next_group(blocks, at, end);
        strata_output_print(blocks->out, "%s", comma);
        put_group(blocks, &group);
        at += group.count;
        comma = ",";
    }
    strata_output_print(blocks->out, "]}");
}

/* Tags can be long and numerous, so the page has the beginning of some and one text for all others. */
static void put_tags(blocks_t *blocks) {
    strata_output_print(blocks->out, "\"tags\": [\"\"");
    for (uint16_t i = 0; i < blocks->tag_count; i++) {
        char tag[STRATA_PAGE_TAG];
        snprintf(tag, sizeof tag, "%s", blocks->trace->tags[blocks->shown[i]]);
        strata_output_print(blocks->out, ", ");
        strata_json_text(blocks->out, tag);
    }
    if (blocks->more_tags) strata_output_print(blocks->out, ", \"one of %" PRIu32 " more, left out\"", blocks->more_tags);
    strata_output_print(blocks->out, "], \"more_tags\": %" PRIu32, blocks->more_tags);
}

/* ---- by stream ---- */

/* Sums over chunks of one place and stream, in the order of the map. */
typedef struct holder {
    const strata_map_chunk_t *first;
    uint64_t bytes[STRATA_CHUNK_STATES];
    size_t chunks;
} holder_t;

/* If there are more holders than the page has room for, the last one sums up all others. */
static size_t sum_holders(const strata_map_t *map, holder_t *holders, size_t most) {
    size_t count = 0;
    for (size_t i = 0; i < map->chunk_count; i++) {
        const strata_map_chunk_t *chunk = &map->chunks[i];
        size_t at = 0;
        while (at < count && at < most - 1 &&
               (strcmp(holders[at].first->stream, chunk->stream) || strcmp(holders[at].first->place, chunk->place)))
            at++;
        if (at == count) holders[count++].first = chunk;
        holders[at].chunks++;
        for (int state = 0; state < STRATA_CHUNK_STATES; state++) holders[at].bytes[state] += chunk->bytes[state];
    }
    return count;
}

static void put_holders(strata_output_t *out, const strata_map_t *map, size_t most) {
    holder_t holders[MAX_HOLDERS] = {{0}};
    size_t count = sum_holders(map, holders, most);
    strata_output_print(out, "\"by_stream\": [");
    for (size_t i = 0; i < count; i++) {
        bool others = i == most - 1;
        strata_output_print(out, "%s{\"place\": ", i ? ", " : "");
        strata_json_text(out, others ? "" : holders[i].first->place);
        strata_output_print(out, ", \"stream\": ");
        strata_json_text(out, others ? "all others" : holders[i].first->stream);
        strata_output_print(out, ", \"chunks\": %zu, \"free\": %" PRIu64 ", \"live\": %" PRIu64 ", \"waiting\": %" PRIu64 "}",
                            holders[i].chunks, holders[i].bytes[0], holders[i].bytes[1], holders[i].bytes[2]);
    }
    strata_output_print(out, "]");
}

/* ---- the map ---- */

static void put_map(blocks_t *blocks) {
    const strata_map_t *map = blocks->map;
    uint64_t rest[STRATA_CHUNK_STATES] = {0};
    size_t left_out = 0;
    const char *comma = "";
    strata_output_print(blocks->out, "{\"row\": %zu, \"scale\": %" PRIu64 ", \"chunks\": [", map->rows, blocks->scale);
    for (size_t i = 0; i < map->chunk_count; i++) {
        if (map->chunks[i].size < blocks->scale) {
            left_out++;
            for (int state = 0; state < STRATA_CHUNK_STATES; state++) rest[state] += map->chunks[i].bytes[state];
            continue;
        }
        strata_output_print(blocks->out, "%s", comma);
        put_chunk(blocks, &map->chunks[i]);
        comma = ",";
    }
    strata_output_print(
        blocks->out, "],\n\"rest\": {\"chunks\": %zu, \"free\": %" PRIu64 ", \"live\": %" PRIu64 ", \"waiting\": %" PRIu64 "},\n",
        left_out, rest[0], rest[1], rest[2]);
    put_holders(blocks->out, map, blocks->max_holders);
    strata_output_print(blocks->out, ",\n");
    put_tags(blocks);
    strata_output_print(blocks->out, "}");
}

static void note_lives(blocks_t *blocks) {
    for (size_t i = 0; i < blocks->trace->count; i++) {
        const strata_trace_event_t *event = &blocks->trace->events[i];
        if (event->op == STRATA_TRACE_alloc) blocks->lives[event->id].alloc_row = (uint32_t)i + 1;
        if (event->op == STRATA_TRACE_free) blocks->lives[event->id].free_row = (uint32_t)i + 1;
    }
}

strata_page_room_t strata_page_room(size_t runs) {
    return (strata_page_room_t){.rows = strata_page_share(ALL_ROWS, MIN_ROWS, MAX_ROWS, runs),
                                .tags = strata_page_share(ALL_TAGS, MIN_TAGS, MAX_TAGS, runs),
                                .holders = strata_page_share(ALL_HOLDERS, MIN_HOLDERS, MAX_HOLDERS, runs)};
}

strata_status_t strata_page_blocks(strata_output_t *out, const strata_page_run_t *run, const strata_page_room_t *room) {
    blocks_t blocks = {.out = out,
                       .trace = run->trace,
                       .map = &run->map,
                       .max_tags = (uint16_t)strata_min(room->tags, MAX_TAGS),
                       .max_holders = room->holders};
    blocks.lives = strata_host_new((size_t)run->trace->lifetimes + 1, sizeof *blocks.lives);
    blocks.tags = strata_host_new((size_t)run->trace->tag_count + 1, sizeof *blocks.tags);
    strata_status_t status = blocks.lives && blocks.tags ? STRATA_OK : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK) {
        note_lives(&blocks);
        find_scale(&blocks, room->rows);
        put_map(&blocks);
    }
    strata_host_delete(blocks.lives);
    strata_host_delete(blocks.tags);
    return status;
}
