#include "tests/records/made.h"

#include <stdlib.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "trace/pickle/pickle_writer.h"

static void put(strata_pickler_t *p, const char *name, uint64_t number) {
    strata_pickler_word(p, name);
    strata_pickler_integer(p, (int64_t)number);
}

static void put_frame(strata_pickler_t *p, const made_frame_t *frame) {
    strata_pickler_open_dict(p);
    strata_pickler_word(p, "filename");
    strata_pickler_text(p, frame->file);
    put(p, "line", frame->line);
    strata_pickler_word(p, "name");
    strata_pickler_text(p, frame->name);
    strata_pickler_close_dict(p);
}

static void put_frames(strata_pickler_t *p, const char *file, const made_frame_t *frames) {
    strata_pickler_word(p, "frames");
    strata_pickler_open_list(p);
    if (file) put_frame(p, &(made_frame_t){file, 7, "step"});
    for (; frames && frames->line; frames++) put_frame(p, frames);
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
        put_frames(p, NULL, NULL);
        strata_pickler_close_dict(p);
    }
    strata_pickler_close_list(p);
    strata_pickler_close_dict(p);
}

static void put_event(strata_pickler_t *p, const made_more_t *more) {
    const made_event_t *event = &more->event;
    strata_pickler_open_dict(p);
    strata_pickler_word(p, "action");
    strata_pickler_text(p, event->action);
    put(p, event->action[0] == 'o' ? "device_free" : "addr", event->address);
    put(p, "size", event->size);
    put(p, "stream", event->stream);
    if (event->time_us) put(p, "time_us", event->time_us);
    if (more->metadata) {
        strata_pickler_word(p, "user_metadata");
        strata_pickler_text(p, more->metadata);
    }
    put_frames(p, event->file, more->frames);
    strata_pickler_close_dict(p);
}

static void put_segments(strata_pickler_t *p, const made_segment_t *segments) {
    strata_pickler_word(p, "segments");
    strata_pickler_open_list(p);
    for (; segments->total; segments++) put_segment(p, segments);
    strata_pickler_close_list(p);
}

static void put_traces(strata_pickler_t *p, const made_more_t *events, uint32_t devices) {
    strata_pickler_word(p, "device_traces");
    strata_pickler_open_list(p);
    for (uint32_t device = 0; device < devices; device++) {
        strata_pickler_open_list(p);
        for (const made_more_t *event = events; event->event.action; event++)
            if (event->device == device) put_event(p, event);
        strata_pickler_close_list(p);
    }
    strata_pickler_close_list(p);
}

static void put_annotations(strata_pickler_t *p, const made_annotation_t *annotation) {
    strata_pickler_word(p, "external_annotations");
    strata_pickler_open_list(p);
    for (; annotation->name; annotation++) {
        strata_pickler_open_dict(p);
        strata_pickler_word(p, "name");
        strata_pickler_text(p, annotation->name);
        strata_pickler_word(p, "stage");
        strata_pickler_text(p, annotation->stage);
        put(p, "device", 0);
        put(p, "time_us", annotation->time_us);
        strata_pickler_close_dict(p);
    }
    strata_pickler_close_list(p);
}

const char *made_file(const made_t *made) {
    const char *path = temporary("made.pickle");
    strata_output_t *output;
    strata_pickler_t pickler, *p = &pickler;
    if (strata_output_open(path, &output) != STRATA_OK) {
        FAIL_TEST("%s", strata_last_error()->text);
        return NULL;
    }
    strata_pickler_begin(p, output);
    strata_pickler_open_dict(p);
    if (made->segments) put_segments(p, made->segments);
    if (made->events) put_traces(p, made->events, made->devices ? made->devices : 1);
    if (made->annotations) put_annotations(p, made->annotations);
    strata_pickler_close_dict(p);
    strata_pickler_end(p);
    EXPECT_OK(strata_output_finish(output));
    return path;
}

const char *made_snapshot(const made_segment_t *segments, const made_event_t *events) {
    size_t count = 0;
    while (events[count].action) count++;
    made_more_t *more = calloc(count + 1, sizeof *more);
    if (!more) FAIL_TEST("no memory");
    for (size_t i = 0; more && i < count; i++) more[i].event = events[i];
    const char *path = more ? made_file(&(made_t){.segments = segments, .events = more}) : NULL;
    free(more);
    return path;
}
