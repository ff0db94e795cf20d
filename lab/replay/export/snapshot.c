#include "lab/replay/export/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "facade/figures/chunks.h"
#include "facade/registry/facade.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"
#include "trace/pickle/pickle_snapshot.h"

typedef struct frames {
    uint32_t remembered; /* number in the pickle's memo plus 1, or 0 if not written yet */
    uint16_t tag; /* the tag before the stack */
} frames_t;

typedef struct writing {
    strata_snapshot_file_t *file;
    strata_pickler_t pickler;
    const strata_run_moment_t *moment;
    strata_place_t place;
    frames_t *frames; /* indexed by tag, then by stack */
} writing_t;

static void put_integer(writing_t *w, const char *name, uint64_t number) {
    strata_pickler_word(&w->pickler, name);
    strata_pickler_integer(&w->pickler, (int64_t)number);
}

static void put_text(writing_t *w, const char *name, const char *text) {
    strata_pickler_word(&w->pickler, name);
    strata_pickler_text(&w->pickler, text);
}

/* Reuses one list for all events of a tag without a stack, and for a stack as long as its tag stays the same. */
static void put_frames(writing_t *w, uint16_t tag, uint32_t stack) {
    const strata_trace_t *trace = w->file->entries.trace;
    frames_t *frames = &w->frames[stack ? trace->tag_count + stack : tag];
    strata_pickler_word(&w->pickler, "frames");
    if (frames->remembered && frames->tag == tag) {
        strata_pickler_recall(&w->pickler, frames->remembered - 1);
        return;
    }
    strata_pickle_frames(&w->pickler, trace->tags[tag], trace->stacks[stack]);
    *frames = (frames_t){.remembered = strata_pickler_remember(&w->pickler) + 1, .tag = tag};
}

/* ---- memory at the end ---- */

static void put_chunk(const strata_chunk_t *chunk, void *context) {
    writing_t *w = context;
    if (chunk->count == 0) return;
    strata_pickle_segment_t segment = {.device = (uint64_t)strata_place_device(w->place),
                                       .address = chunk->address,
                                       .size = chunk->size,
                                       .stream = strata_entries_stream(w->moment, w->place, chunk->stream),
                                       .allocated = chunk->bytes[1],
                                       .active = chunk->bytes[1] + chunk->bytes[2]};
    for (size_t i = 0; i < chunk->count; i++) segment.requested += chunk->rows[i].requested;
    strata_pickle_open_segment(&w->pickler, &segment);
    for (size_t i = 0; i < chunk->count; i++) {
        const strata_snapshot_row_t *row = &chunk->rows[i];
        strata_pickle_block(&w->pickler, &(strata_pickle_block_t){.address = (uintptr_t)row->block.ptr,
                                                                  .size = row->block.size,
                                                                  .requested = row->requested,
                                                                  .state = row->state,
                                                                  .tag = "",
                                                                  .stack = ""});
    }
    strata_pickle_close_segment(&w->pickler);
}

static strata_status_t put_segments(writing_t *w) {
    uint32_t index = 0;
    strata_domain_t *domain;
    strata_status_t status = STRATA_OK;
    strata_pickler_word(&w->pickler, "segments");
    strata_pickler_open_list(&w->pickler);
    while (status == STRATA_OK && (domain = strata_facade_next_domain(strata_facade_of(w->moment->facade), &index)) != NULL) {
        strata_place_kind_t kind = strata_place_kind(domain->place);
        w->place = domain->place;
        if (kind == STRATA_PLACE_GPU || kind == STRATA_PLACE_MANAGED)
            status = strata_chunks_each(w->moment->facade, domain->place, put_chunk, w);
    }
    strata_pickler_close_list(&w->pickler);
    return status;
}

/* ---- events ---- */

static void put_entry(writing_t *w, const strata_entry_t *entry) {
    static const char *const actions[] = {
#define STRATA_ENTRY_WORD(name) #name,
        STRATA_ENTRY_MAP(STRATA_ENTRY_WORD)
#undef STRATA_ENTRY_WORD
    };
    strata_pickler_open_dict(&w->pickler);
    strata_pickler_word(&w->pickler, "action");
    strata_pickler_word(&w->pickler, actions[entry->action]);
    put_integer(w, entry->action == STRATA_ENTRY_oom ? "device_free" : "addr", entry->address);
    put_integer(w, "size", entry->size);
    put_integer(w, "stream", entry->stream);
    put_integer(w, "time_us", entry->time_us);
    put_frames(w, entry->tag, entry->stack);
    const char *tag = w->file->entries.trace->tags[entry->tag];
    if (*tag && !strata_pickle_is_frame(tag)) put_text(w, "user_metadata", tag);
    strata_pickler_close_dict(&w->pickler);
}

static void put_traces(writing_t *w) {
    const strata_entries_t *entries = &w->file->entries;
    strata_pickler_word(&w->pickler, "device_traces");
    strata_pickler_open_list(&w->pickler);
    for (uint32_t device = 0; device < entries->trace->devices; device++) {
        strata_pickler_open_list(&w->pickler);
        for (size_t i = 0; i < entries->count; i++)
            if (entries->all[i].device == device) put_entry(w, &entries->all[i]);
        strata_pickler_close_list(&w->pickler);
    }
    strata_pickler_close_list(&w->pickler);
}

static void put_settings(writing_t *w) {
    strata_pickler_word(&w->pickler, "allocator_settings");
    strata_pickler_open_dict(&w->pickler);
    put_text(w, "PYTORCH_CUDA_ALLOC_CONF", "");
    put_text(w, "strata_strategy", w->file->strategy);
    strata_pickler_close_dict(&w->pickler);
    strata_pickler_word(&w->pickler, "external_annotations");
    strata_pickler_open_list(&w->pickler);
    strata_pickler_close_list(&w->pickler);
}

static strata_status_t write_all(writing_t *w) {
    strata_pickler_begin(&w->pickler, w->file->out);
    strata_pickler_open_dict(&w->pickler);
    strata_status_t status = put_segments(w);
    put_traces(w);
    put_settings(w);
    strata_pickler_close_dict(&w->pickler);
    strata_pickler_end(&w->pickler);
    return status;
}

void strata_snapshot_write(void *context, const strata_run_moment_t *moment) {
    strata_snapshot_file_t *file = context;
    writing_t writing = {.file = file, .moment = moment};
    strata_entries_finish(&file->entries);
    file->status = file->entries.status;
    if (file->status != STRATA_OK) return;
    writing.frames = strata_host_new((size_t)file->entries.trace->tag_count + file->entries.trace->stack_count,
                                     sizeof *writing.frames);
    file->status = writing.frames ? write_all(&writing) : STRATA_E_HOST_MEMORY;
    strata_host_delete(writing.frames);
}
