#include "lab/trace/formats/gathered.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

enum { HEADER_LINES = 2 }; /* lines before the first row in the output of strata convert */

static strata_status_t refuse(const strata_gathered_t *gathered, const char *what, uint64_t value) {
    return strata_fail(STRATA_E_FORMAT, 0, "%s: event %zu of the record: %s %" PRIu64 " is more than a trace can hold",
                       gathered->path, gathered->rows.count + 1, what, value);
}

static strata_status_t check(const strata_gathered_t *gathered, const strata_gathered_event_t *event) {
    if (event->size > STRATA_TRACE_SIZE_MAX) return refuse(gathered, "size", event->size);
    if (gathered->ids == STRATA_TRACE_EVENTS) return refuse(gathered, "allocation", gathered->ids);
    return STRATA_OK;
}

strata_status_t strata_gathered_device(strata_gathered_t *gathered, uint64_t ordinal, uint32_t *device) {
    uint32_t found = STRATA_TRACE_DEVICES;
    for (uint32_t i = 0; i < STRATA_TRACE_DEVICES; i++) {
        bool known = gathered->known_devices & 1u << i;
        if (known && gathered->ordinals[i] == ordinal) {
            *device = i;
            return STRATA_OK;
        }
        if (!known && (found == STRATA_TRACE_DEVICES || found != ordinal)) found = i;
    }
    if (found == STRATA_TRACE_DEVICES)
        return strata_fail(STRATA_E_FORMAT, 0,
                           "%s: device %" PRIu64 " is above the maximum of %d devices in a trace; record fewer of them",
                           gathered->path, ordinal, STRATA_TRACE_DEVICES);
    gathered->known_devices |= 1u << found;
    gathered->ordinals[found] = ordinal;
    gathered->notes.renumbered += found != ordinal;
    *device = found;
    return STRATA_OK;
}

static strata_status_t stream_of(strata_gathered_t *gathered, uint64_t stream, uint64_t *number) {
    *number = stream;
    if (stream <= STRATA_TRACE_NUMBER_MAX) return STRATA_OK;
    uint32_t index = strata_ids_find(&gathered->far_streams, stream);
    strata_status_t status = STRATA_OK;
    if (index == STRATA_IDS_NONE) {
        index = gathered->far_streams.count;
        status = strata_ids_add(&gathered->far_streams, stream);
    }
    *number = STRATA_TRACE_NUMBER_MAX - index;
    return status;
}

/* Returns the event with the trace's numbers of its device and stream. */
static strata_status_t translate(strata_gathered_t *gathered, const strata_gathered_event_t *event, strata_gathered_event_t *own) {
    uint32_t device = 0;
    *own = *event;
    strata_status_t status = check(gathered, event);
    if (status == STRATA_OK) status = strata_gathered_device(gathered, event->device, &device);
    if (status == STRATA_OK) status = stream_of(gathered, event->stream, &own->stream);
    own->device = device;
    return status;
}

/* ---- rows ---- */

static strata_status_t add_row(strata_gathered_t *gathered, strata_gathered_rows_t *rows, const strata_gathered_row_t *row) {
    if (row->device) gathered->columns |= 1u << STRATA_COLUMN_device;
    if (row->place != STRATA_PLACE_GPU) gathered->columns |= 1u << STRATA_COLUMN_place;
    if (row->thread) gathered->columns |= 1u << STRATA_COLUMN_thread;
    if (row->tag) gathered->columns |= 1u << STRATA_COLUMN_tag;
    if (row->stack) gathered->columns |= 1u << STRATA_COLUMN_stack;
    if (rows->count == rows->capacity) {
        size_t larger = rows->capacity + rows->capacity / 2 + 1024;
        strata_gathered_row_t *grown = strata_host_resize(rows->all, larger, sizeof *grown);
        if (!grown) return STRATA_E_HOST_MEMORY;
        rows->all = grown;
        rows->capacity = larger;
    }
    rows->all[rows->count++] = *row;
    return STRATA_OK;
}

/* Returns times from the first event on. They never fall, although the clocks of two threads or devices may differ a little. */
static strata_status_t time_of(strata_gathered_t *gathered, uint64_t time_us, uint64_t *time) {
    if (!gathered->has_began) gathered->began = time_us;
    gathered->has_began = true;
    uint64_t since = time_us > gathered->began ? time_us - gathered->began : 0;
    if (since > STRATA_TRACE_TIME_MAX) return refuse(gathered, "time", time_us);
    gathered->last = strata_max(gathered->last, since);
    *time = gathered->last;
    return STRATA_OK;
}

/* Sets the row of an event, without its id and operation. */
static strata_status_t row_of(strata_gathered_t *gathered, const strata_gathered_event_t *event, strata_gathered_row_t *row) {
    *row = (strata_gathered_row_t){.size = event->size,
                                   .stream = event->stream,
                                   .address = event->address,
                                   .id = STRATA_TRACE_NONE,
                                   .thread = event->thread,
                                   .stack = event->stack,
                                   .device = (uint8_t)event->device,
                                   .place = (uint8_t)event->place};
    return time_of(gathered, event->time_us, &row->time_us);
}

static strata_status_t add_op(strata_gathered_t *gathered, const strata_gathered_row_t *like, strata_trace_op_t op,
                              uint64_t stream) {
    strata_gathered_row_t row = *like;
    row.op = (uint8_t)op;
    row.stream = stream;
    if (op != STRATA_TRACE_alloc) row.size = 0, row.stack = 0;
    if (op != STRATA_TRACE_alloc && op != STRATA_TRACE_step) row.tag = 0;
    return add_row(gathered, &gathered->rows, &row);
}

/* ---- tags ---- */

static void tag_copy(char *copy, const char *tag) {
    size_t length = 0;
    for (; tag[length] && length + 1 < STRATA_TRACE_TAG_BYTES; length++) {
        bool odd = tag[length] == '\n' || tag[length] == '\r';
        copy[length] = odd ? ' ' : tag[length];
    }
    copy[length] = '\0';
}

static strata_status_t add_tag(strata_gathered_t *gathered, const char *tag, uint64_t key) {
    if (gathered->tag_count == gathered->tag_capacity) {
        uint32_t larger = gathered->tag_capacity * 2 + 64;
        char **grown = strata_host_resize(gathered->tags, larger, sizeof *grown);
        if (!grown) return STRATA_E_HOST_MEMORY;
        gathered->tags = grown;
        gathered->tag_capacity = larger;
    }
    char *copy = strata_host_strdup(tag);
    if (!copy) return STRATA_E_HOST_MEMORY;
    gathered->tags[gathered->tag_count++] = copy;
    return strata_ids_add(&gathered->tag_ids, key);
}

/* The number of different tags in a trace is limited. Later rows get none. */
static strata_status_t tag_of(strata_gathered_t *gathered, const char *tag, uint16_t *index) {
    char copy[STRATA_TRACE_TAG_BYTES];
    strata_status_t status = STRATA_OK;
    *index = 0;
    if (gathered->tag_count == 0) status = add_tag(gathered, "", strata_ids_hash_word(&gathered->tag_ids, ""));
    if (status != STRATA_OK || !tag || !*tag) return status;
    tag_copy(copy, tag);
    uint64_t key = strata_ids_hash_word(&gathered->tag_ids, copy);
    uint32_t found = strata_ids_find(&gathered->tag_ids, key);
    while (found != STRATA_IDS_NONE && strcmp(gathered->tags[found], copy) != 0) found = strata_ids_find(&gathered->tag_ids, ++key);
    if (found == STRATA_IDS_NONE) {
        if (gathered->tag_count == STRATA_TRACE_TAGS) {
            gathered->notes.tags_lost++;
            return STRATA_OK;
        }
        found = gathered->tag_count;
        status = add_tag(gathered, copy, key);
    }
    *index = (uint16_t)found;
    return status;
}

/* ---- lives ---- */

/* Finds the state of an address, which is created at its first use. The pointer is valid until the next call. */
static strata_status_t life_at(strata_gathered_t *gathered, const strata_gathered_event_t *event, strata_gathered_life_t **life) {
    strata_gathered_device_t *device = &gathered->devices[event->device];
    uint32_t number = strata_ids_find(&device->addresses, event->address);
    if (number == STRATA_IDS_NONE) {
        number = device->addresses.count;
        if (number == device->capacity) {
            size_t larger = device->capacity * 2 + 256;
            strata_gathered_life_t *grown = strata_host_resize(device->lives, larger, sizeof *grown);
            if (!grown) return STRATA_E_HOST_MEMORY;
            device->lives = grown;
            device->capacity = larger;
        }
        device->lives[number] = (strata_gathered_life_t){.id = STRATA_TRACE_NONE};
        strata_status_t status = strata_ids_add(&device->addresses, event->address);
        if (status != STRATA_OK) return status;
    }
    *life = &device->lives[number];
    return STRATA_OK;
}

/* Begins a life that is older than the record. */
static strata_status_t begin_older(strata_gathered_t *gathered, const strata_gathered_event_t *event,
                                   strata_gathered_life_t *life) {
    strata_gathered_row_t row = {.size = event->size,
                                 .stream = event->stream,
                                 .address = event->address,
                                 .id = gathered->ids++,
                                 .stack = event->stack,
                                 .op = STRATA_TRACE_alloc,
                                 .device = (uint8_t)event->device,
                                 .place = (uint8_t)event->place};
    strata_status_t status = tag_of(gathered, event->tag, &row.tag);
    *life = (strata_gathered_life_t){.stream = event->stream, .id = row.id, .known = true};
    gathered->notes.older++;
    return status == STRATA_OK ? add_row(gathered, &gathered->older, &row) : status;
}

static strata_status_t end_life(strata_gathered_t *gathered, strata_gathered_row_t *row, strata_gathered_life_t *life) {
    gathered->live_bytes -= life->size;
    row->id = life->id;
    life->id = STRATA_TRACE_NONE;
    return add_op(gathered, row, STRATA_TRACE_free, life->stream);
}

static strata_status_t alloc(strata_gathered_t *gathered, const strata_gathered_event_t *event) {
    strata_gathered_row_t row;
    strata_gathered_life_t *life;
    strata_status_t status = row_of(gathered, event, &row);
    if (status == STRATA_OK) status = life_at(gathered, event, &life);
    if (status == STRATA_OK && life->id != STRATA_TRACE_NONE) {
        gathered->notes.freed_unseen++;
        status = end_life(gathered, &row, life);
    }
    if (status == STRATA_OK) status = tag_of(gathered, event->tag, &row.tag);
    if (status != STRATA_OK) return status;
    row.id = gathered->ids++;
    *life = (strata_gathered_life_t){.stream = event->stream, .size = event->size, .id = row.id, .known = true};
    gathered->live_bytes += event->size; /* an overflow exceeds the limit of a trace, which is refused when it is loaded */
    gathered->live_peak = strata_max(gathered->live_peak, gathered->live_bytes);
    return add_op(gathered, &row, STRATA_TRACE_alloc, event->stream);
}

static strata_status_t free_block(strata_gathered_t *gathered, const strata_gathered_event_t *event, bool borrowed) {
    strata_gathered_row_t row;
    strata_gathered_life_t *life;
    strata_status_t status = row_of(gathered, event, &row);
    if (status == STRATA_OK) status = life_at(gathered, event, &life);
    if (status == STRATA_OK && life->id == STRATA_TRACE_NONE && life->known) {
        gathered->notes.never_live++;
        return STRATA_OK;
    }
    if (status == STRATA_OK && life->id == STRATA_TRACE_NONE) status = begin_older(gathered, event, life);
    if (status != STRATA_OK) return status;
    row.id = life->id;
    if (borrowed) {
        gathered->notes.borrowed++;
        status = add_op(gathered, &row, STRATA_TRACE_borrow, STRATA_TRACE_BORROWER);
    }
    life->use_pending = borrowed;
    return status == STRATA_OK ? end_life(gathered, &row, life) : status;
}

strata_status_t strata_gathered_alloc(strata_gathered_t *gathered, const strata_gathered_event_t *event) {
    strata_gathered_event_t own;
    strata_status_t status = translate(gathered, event, &own);
    return status == STRATA_OK ? alloc(gathered, &own) : status;
}

strata_status_t strata_gathered_free(strata_gathered_t *gathered, const strata_gathered_event_t *event, bool borrowed) {
    strata_gathered_event_t own;
    strata_status_t status = translate(gathered, event, &own);
    return status == STRATA_OK ? free_block(gathered, &own, borrowed) : status;
}

strata_status_t strata_gathered_completed(strata_gathered_t *gathered, const strata_gathered_event_t *event) {
    strata_gathered_event_t own;
    strata_gathered_life_t *life;
    strata_status_t status = translate(gathered, event, &own);
    if (status == STRATA_OK) status = life_at(gathered, &own, &life);
    if (status != STRATA_OK) return status;
    if (life->use_pending) {
        life->use_pending = false;
        return STRATA_OK;
    }
    return free_block(gathered, &own, false);
}

strata_status_t strata_gathered_reallocated(strata_gathered_t *gathered, const strata_gathered_event_t *event, uint64_t from,
                                            uint32_t since) {
    strata_gathered_event_t own, old;
    strata_gathered_life_t *life;
    strata_status_t status = translate(gathered, event, &own);
    if (status == STRATA_OK) status = life_at(gathered, &own, &life);
    if (status != STRATA_OK) return status;
    if (life->id != STRATA_TRACE_NONE && life->id >= since) return STRATA_OK;
    old = own;
    old.address = from;
    old.size = 0;
    old.tag = NULL;
    if (from) status = life_at(gathered, &old, &life);
    bool lives = status == STRATA_OK && from && (!life->known || (life->id != STRATA_TRACE_NONE && life->id < since));
    if (lives) status = free_block(gathered, &old, false);
    return status == STRATA_OK ? alloc(gathered, &own) : status;
}

strata_status_t strata_gathered_failed(strata_gathered_t *gathered, const strata_gathered_event_t *event) {
    strata_gathered_row_t row;
    strata_gathered_event_t own;
    strata_status_t status = translate(gathered, event, &own);
    if (status == STRATA_OK) status = row_of(gathered, &own, &row);
    if (status == STRATA_OK) status = tag_of(gathered, own.tag, &row.tag);
    if (status != STRATA_OK) return status;
    row.id = gathered->ids++;
    gathered->notes.failed++;
    status = add_op(gathered, &row, STRATA_TRACE_alloc, own.stream);
    return status == STRATA_OK ? add_op(gathered, &row, STRATA_TRACE_free, own.stream) : status;
}

strata_status_t strata_gathered_live_at_end(strata_gathered_t *gathered, const strata_gathered_event_t *event) {
    strata_gathered_event_t own;
    strata_gathered_life_t *life;
    strata_status_t status = translate(gathered, event, &own);
    if (status == STRATA_OK) status = life_at(gathered, &own, &life);
    if (status != STRATA_OK || life->known) return status;
    return begin_older(gathered, &own, life);
}

strata_status_t strata_gathered_mark(strata_gathered_t *gathered, strata_trace_op_t op, const strata_gathered_event_t *event) {
    strata_gathered_row_t row;
    strata_gathered_event_t own;
    strata_status_t status = translate(gathered, event, &own);
    if (status == STRATA_OK) status = row_of(gathered, &own, &row);
    if (status == STRATA_OK) status = tag_of(gathered, own.tag, &row.tag);
    return status == STRATA_OK ? add_op(gathered, &row, op, 0) : status;
}

/* ---- as a format ---- */

static int by_address(const void *a, const void *b) {
    const strata_gathered_row_t *one = a, *other = b;
    if (one->device != other->device) return one->device < other->device ? -1 : 1;
    if (one->address != other->address) return one->address < other->address ? -1 : 1;
    return one->id < other->id ? -1 : 1;
}

strata_status_t strata_gathered_open(const char *path, strata_input_t *input, strata_gather_fn gather, void **state) {
    strata_gathered_t *gathered = strata_host_new(1, sizeof *gathered);
    strata_status_t status = gathered ? STRATA_OK : STRATA_E_HOST_MEMORY;
    if (gathered) {
        gathered->path = path;
        status = gather(gathered, input);
    }
    strata_input_close(input);
    if (status != STRATA_OK) {
        strata_gathered_close(gathered);
        return status;
    }
    if (gathered->older.count) qsort(gathered->older.all, gathered->older.count, sizeof *gathered->older.all, by_address);
    gathered->path = NULL;
    *state = gathered;
    return STRATA_OK;
}

strata_status_t strata_gathered_read(void *state, strata_trace_record_t *record, bool *end) {
    strata_gathered_t *gathered = state;
    size_t at = gathered->next, older = gathered->older.count;
    *end = at >= older + gathered->rows.count;
    if (*end) return STRATA_OK;
    const strata_gathered_row_t *row = at < older ? &gathered->older.all[at] : &gathered->rows.all[at - older];
    *record = (strata_trace_record_t){.op = (strata_trace_op_t)row->op,
                                      .place = (strata_place_kind_t)row->place,
                                      .id = row->id,
                                      .has_id = row->id != STRATA_TRACE_NONE,
                                      .size = row->size,
                                      .stream = row->stream,
                                      .time_us = row->time_us,
                                      .device = row->device,
                                      .thread = row->thread,
                                      .line = (uint32_t)(at + HEADER_LINES + 1),
                                      .tag = gathered->tag_count ? gathered->tags[row->tag] : "",
                                      .stack = row->stack ? gathered->stacks.texts[row->stack - 1] : ""};
    gathered->next++;
    return STRATA_OK;
}

uint32_t strata_gathered_columns(const void *state) { return ((const strata_gathered_t *)state)->columns; }

const strata_trace_notes_t *strata_gathered_notes(const void *state) { return &((const strata_gathered_t *)state)->notes; }

void strata_gathered_close(void *state) {
    strata_gathered_t *gathered = state;
    if (!gathered) return;
    for (int i = 0; i < STRATA_TRACE_DEVICES; i++) {
        strata_ids_clear(&gathered->devices[i].addresses);
        strata_host_delete(gathered->devices[i].lives);
    }
    for (uint32_t i = 0; i < gathered->tag_count; i++) strata_host_delete(gathered->tags[i]);
    strata_host_delete(gathered->tags);
    strata_ids_clear(&gathered->tag_ids);
    strata_ids_clear(&gathered->far_streams);
    strata_stacks_clear(&gathered->stacks);
    strata_host_delete(gathered->older.all);
    strata_host_delete(gathered->rows.all);
    strata_host_delete(gathered);
}
