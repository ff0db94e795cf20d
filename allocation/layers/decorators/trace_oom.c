#include "allocation/layers/decorators/trace_oom.h"

#include <stdio.h>
#include <string.h>

#include "allocation/call/rows.h"
#include "platform/place.h"
#include "trace/pickle/pickle_snapshot.h"

enum { PATH_BYTES = 4096 };

/* Finds a block's tag and call stack by its name in the trace, which is its ref without the generation. */
static void put_block(strata_pickler_t *pickler, strata_recorder_ring_t *ring, const strata_snapshot_row_t *row) {
    char tag[STRATA_RECORDER_TAG] = "";
    const char *stack = "";
    strata_ref_t ref = row->block.ref;
    if (ref) (void)strata_recorder_read(ring, strata_ref_make(strata_ref_home(ref), strata_ref_slot(ref), 0), tag, &stack);
    strata_pickle_block(pickler, &(strata_pickle_block_t){.address = (uintptr_t)row->block.ptr,
                                                          .size = row->block.size,
                                                          .requested = row->requested,
                                                          .state = row->state,
                                                          .tag = tag,
                                                          .stack = stack});
}

static void put_run(strata_pickler_t *pickler, strata_recorder_ring_t *ring, const strata_rows_run_t *run) {
    strata_pickle_segment_t segment = {.device = (uint64_t)strata_place_device(ring->place),
                                       .address = (uintptr_t)run->first->block.ptr,
                                       .stream = strata_recorder_stream(ring, (uintptr_t)run->first->stream)};
    for (size_t i = 0; i < run->count; i++) {
        const strata_snapshot_row_t *row = &run->first[i];
        segment.size += row->block.size;
        segment.requested += row->requested;
        if (row->state == 1) segment.allocated += row->block.size;
        if (row->state != 0) segment.active += row->block.size;
    }
    strata_pickle_open_segment(pickler, &segment);
    for (size_t i = 0; i < run->count; i++) put_block(pickler, ring, &run->first[i]);
    strata_pickle_close_segment(pickler);
}

/* The history of events is in the trace, so the snapshot has none. */
static void put_no_events(strata_pickler_t *pickler, uint32_t devices) {
    strata_pickler_word(pickler, "device_traces");
    strata_pickler_open_list(pickler);
    for (uint32_t i = 0; i < devices; i++) {
        strata_pickler_open_list(pickler);
        strata_pickler_close_list(pickler);
    }
    strata_pickler_close_list(pickler);
    strata_pickler_word(pickler, "external_annotations");
    strata_pickler_open_list(pickler);
    strata_pickler_close_list(pickler);
}

static strata_status_t write_snapshot(strata_recorder_ring_t *ring, strata_domain_t *domain, const char *path) {
    strata_pickler_t pickler;
    strata_output_t *output;
    strata_rows_t rows;
    strata_status_t status = strata_rows_take(domain, &rows);
    if (status != STRATA_OK) return status;
    status = strata_output_open(path, &output);
    if (status == STRATA_OK) {
        strata_pickler_begin(&pickler, output);
        strata_pickler_open_dict(&pickler);
        strata_pickler_word(&pickler, "segments");
        strata_pickler_open_list(&pickler);
        for (size_t i = 0; i < rows.run_count; i++) put_run(&pickler, ring, &rows.runs[i]);
        strata_pickler_close_list(&pickler);
        put_no_events(&pickler, strata_place_device(ring->place) + 1);
        strata_pickler_close_dict(&pickler);
        strata_pickler_end(&pickler);
        status = strata_output_finish(output);
    }
    strata_rows_delete(&rows);
    return status;
}

static void cut_ending(char *path, const char *ending) {
    size_t length = strlen(path), cut = strlen(ending);
    if (length > cut && strcmp(path + length - cut, ending) == 0) path[length - cut] = '\0';
}

strata_status_t strata_trace_dump(strata_recorder_ring_t *ring, strata_domain_t *domain, const char *pattern, uint64_t now_ns) {
    char path[PATH_BYTES], snapshot[PATH_BYTES + 8];
    bool first;
    strata_status_t status = strata_recorder_copy(ring, pattern, now_ns, path, sizeof path, &first);
    if (status != STRATA_OK || !first) return status;
    cut_ending(path, ".gz");
    cut_ending(path, ".csv");
    snprintf(snapshot, sizeof snapshot, "%s.pickle", path);
    return write_snapshot(ring, domain, snapshot);
}
