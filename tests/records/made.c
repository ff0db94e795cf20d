#include "tests/records/made.h"

#include <stddef.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "trace/formats/pickle_writer.h"

static void put(strata_pickler_t *p, const char *name, uint64_t number) {
    strata_pickler_word(p, name);
    strata_pickler_integer(p, (int64_t)number);
}

static void put_frames(strata_pickler_t *p, const char *file) {
    strata_pickler_word(p, "frames");
    strata_pickler_open_list(p);
    if (file) {
        strata_pickler_open_dict(p);
        strata_pickler_word(p, "filename");
        strata_pickler_text(p, file);
        put(p, "line", 7);
        strata_pickler_word(p, "name");
        strata_pickler_text(p, "step");
        strata_pickler_close_dict(p);
    }
    strata_pickler_close_list(p);
}

static void put_segment(strata_pickler_t *p, const made_segment_t *segment) {
    strata_pickler_open_dict(p);
    put(p, "device", segment->device);
    put(p, "address", segment->address);
    put(p, "total_size", segment->total);
    put(p, "stream", segment->stream);
    strata_pickler_word(p, "blocks");
    strata_pickler_open_list(p);
    uint64_t address = segment->address;
    for (const made_block_t *block = segment->blocks; block->state; address += block->size, block++) {
        strata_pickler_open_dict(p);
        put(p, "address", address);
        put(p, "size", block->size);
        put(p, "requested_size", block->requested);
        strata_pickler_word(p, "state");
        strata_pickler_text(p, block->state);
        put_frames(p, NULL);
        strata_pickler_close_dict(p);
    }
    strata_pickler_close_list(p);
    strata_pickler_close_dict(p);
}

static void put_event(strata_pickler_t *p, const made_event_t *event) {
    strata_pickler_open_dict(p);
    strata_pickler_word(p, "action");
    strata_pickler_text(p, event->action);
    put(p, event->action[0] == 'o' ? "device_free" : "addr", event->address);
    put(p, "size", event->size);
    put(p, "stream", event->stream);
    if (event->time_us) put(p, "time_us", event->time_us);
    put_frames(p, event->file);
    strata_pickler_close_dict(p);
}

const char *made_snapshot(const made_segment_t *segments, const made_event_t *events) {
    const char *path = temporary("made.pickle");
    strata_output_t *output;
    strata_pickler_t pickler, *p = &pickler;
    if (strata_output_open(path, &output) != STRATA_OK) {
        FAIL_TEST("%s", strata_last_error()->text);
        return NULL;
    }
    strata_pickler_begin(p, output);
    strata_pickler_open_dict(p);
    strata_pickler_word(p, "segments");
    strata_pickler_open_list(p);
    for (; segments->total; segments++) put_segment(p, segments);
    strata_pickler_close_list(p);
    strata_pickler_word(p, "device_traces");
    strata_pickler_open_list(p);
    strata_pickler_open_list(p);
    for (; events->action; events++) put_event(p, events);
    strata_pickler_close_list(p);
    strata_pickler_close_list(p);
    strata_pickler_close_dict(p);
    strata_pickler_end(p);
    EXPECT_OK(strata_output_finish(output));
    return path;
}
