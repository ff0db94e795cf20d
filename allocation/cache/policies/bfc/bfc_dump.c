/* The memory map of bfc: every block, bin and statistic as JSON, in a file beside its report. The names are
 * those of the peer's MemoryDump. */
#include <stdio.h>
#include <string.h>

#include "allocation/cache/policies/bfc/bfc_debug.h"
#include "platform/clock.h"
#include "platform/host/host_memory.h"
#include "trace/text/output.h"

enum { ROOM = 64, TRIES = 4 };

/* Copied under the lock, and written without it. */
typedef struct map {
    bfc_row_t *rows;
    uint64_t *history; /* NULL if none is kept */
    uint32_t count, capacity;
    uint64_t actions, used, peak, allocations, largest;
    double fragmentation;
    bfc_bin_t bins[STRATA_BFC_BINS];
} map_t;

static void copy(const bfc_t *self, const strata_report_sink_t *sink, map_t *map) {
    STRATA_EACH_CHUNK(&self->chunks, node)
        STRATA_EACH_BLOCK(&self->chunks, node, slot) strata_bfc_read_row(self, sink, slot, &map->rows[map->count++]);
    strata_bfc_sum_bins(self, map->bins);
    if (map->history) memcpy(map->history, self->history, STRATA_BFC_HISTORY * sizeof *map->history);
    map->actions = self->actions;
    map->used = self->used_bytes;
    map->peak = self->peak_used;
    map->allocations = self->ids;
    map->largest = self->largest_allocation;
    map->fragmentation = strata_bfc_fragmentation(self);
}

/* Reads the map. Room is allocated with the lock open, and may be too small by then. Returns false if the host
 * has no memory, or if new blocks outpace the room. */
static bool read_map(bfc_t *self, const strata_report_sink_t *sink, map_t *map) {
    if (self->history && !(map->history = strata_host_new(STRATA_BFC_HISTORY, sizeof *map->history))) return false;
    for (int i = 0; i < TRIES; i++) {
        strata_stack_lock_own(self->base.stack);
        uint32_t count = 0;
        STRATA_EACH_CHUNK(&self->chunks, node)
            STRATA_EACH_BLOCK(&self->chunks, node, slot) count++;
        bool fits = count <= map->capacity;
        if (fits) copy(self, sink, map);
        strata_unlock(&self->base.stack->lock);
        if (fits) return true;
        strata_host_delete(map->rows);
        map->capacity = count + ROOM;
        map->rows = strata_host_new(map->capacity, sizeof *map->rows);
        if (!map->rows) return false;
    }
    return false;
}

/* Writes a name that the facade keeps, which is printable. */
static void write_text(strata_output_t *out, const char *text) {
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') (void)strata_output_print(out, "\\%c", *text);
        else (void)strata_output_write(out, text, 1);
    }
}

static void write_bins(strata_output_t *out, const map_t *map) {
    for (uint32_t b = 0; b < STRATA_BFC_BINS; b++) {
        const bfc_bin_t *bin = &map->bins[b];
        (void)strata_output_print(out,
                                  "%s{\"bin\":%u,\"total_bytes_in_use\":%llu,\"total_bytes_in_bin\":%llu,"
                                  "\"total_chunks_in_use\":%u,\"total_chunks_in_bin\":%u}",
                                  b ? "," : "", b, (unsigned long long)bin->bytes_in_use, (unsigned long long)bin->bytes,
                                  bin->chunks_in_use, bin->chunks);
    }
}

static void write_rows(strata_output_t *out, const map_t *map) {
    for (uint32_t i = 0; i < map->count; i++) {
        const bfc_row_t *r = &map->rows[i];
        (void)strata_output_print(out, "%s\n{\"address\":%llu,\"size\":%llu,\"requested_size\":%llu,\"bin\":%d,\"op_name\":\"",
                                  i ? "," : "", (unsigned long long)r->address, (unsigned long long)r->size,
                                  (unsigned long long)r->requested, r->bin);
        write_text(out, r->operator_name);
        (void)strata_output_print(out,
                                  "\",\"freed_at_count\":%llu,\"action_count\":%llu,\"allocation_id\":%llu,\"in_use\":%s,"
                                  "\"step_id\":%llu}",
                                  (unsigned long long)r->freed_at, (unsigned long long)r->action, (unsigned long long)r->id,
                                  r->in_use ? "true" : "false", (unsigned long long)r->step);
    }
}

/* Writes the oldest kept action first. */
static void write_history(strata_output_t *out, const map_t *map) {
    uint64_t kept = map->actions < STRATA_BFC_HISTORY ? map->actions : STRATA_BFC_HISTORY;
    for (uint64_t i = 0; map->history && i < kept; i++) {
        uint64_t action = map->actions - kept + 1 + i;
        (void)strata_output_print(out, "%s{\"action_count\":%llu,\"size\":%llu}", i ? "," : "", (unsigned long long)action,
                                  (unsigned long long)map->history[action % STRATA_BFC_HISTORY]);
    }
}

static strata_status_t write_map(const map_t *map, const char *layer, const char *path) {
    strata_output_t *out;
    strata_status_t status = strata_output_open(path, &out);
    if (status != STRATA_OK) return status;
    (void)strata_output_print(out, "{\"allocator_name\":\"%s\",\n\"bin_summary\":[", layer);
    write_bins(out, map);
    (void)strata_output_print(out, "],\n\"chunk\":[");
    write_rows(out, map);
    (void)strata_output_print(out, "],\n\"snap_shot\":[");
    write_history(out, map);
    (void)strata_output_print(out,
                              "],\n\"stats\":{\"num_allocs\":%llu,\"bytes_in_use\":%llu,\"peak_bytes_in_use\":%llu,"
                              "\"largest_alloc_size\":%llu,\"fragmentation_metric\":%.6f}}\n",
                              (unsigned long long)map->allocations, (unsigned long long)map->used, (unsigned long long)map->peak,
                              (unsigned long long)map->largest, map->fragmentation);
    return strata_output_finish(out);
}

void strata_bfc_dump(bfc_t *self, const strata_report_sink_t *sink) {
    char path[STRATA_OPTION_TEXT_BYTES + 128], line[2 * STRATA_OPTION_TEXT_BYTES + 512];
    map_t map = {.rows = NULL};
    snprintf(path, sizeof path, "%s_%s.%llu.json", bfc_options_of(self)->memory_dump, sink->layer,
             (unsigned long long)(strata_real_now() / 1000));
    if (!read_map(self, sink, &map)) snprintf(line, sizeof line, "\n    memory map could not be read for %s", path);
    else if (write_map(&map, sink->layer, path) == STRATA_OK) snprintf(line, sizeof line, "\n    memory map in %s", path);
    else snprintf(line, sizeof line, "\n    memory map could not be written to %s (%.400s)", path, strata_last_error()->text);
    sink->write(sink, line);
    strata_host_delete(map.rows);
    strata_host_delete(map.history);
}
