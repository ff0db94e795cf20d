#include "trace/recorder.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "platform/arithmetic.h"
#include "platform/host/file.h"
#include "platform/host/host_memory.h"
#include "platform/status.h"
#include "trace/ids.h"
#include "trace/recorder_stacks.h"
#include "trace/stream_names.h"

enum { PATH_BYTES = 4096, MIN_EVENTS = 64 };
#define COLUMNS                                                                                                                    \
    (1u << STRATA_COLUMN_device | 1u << STRATA_COLUMN_place | 1u << STRATA_COLUMN_thread | 1u << STRATA_COLUMN_align |             \
     1u << STRATA_COLUMN_tag | 1u << STRATA_COLUMN_pool | 1u << STRATA_COLUMN_dur_us | 1u << STRATA_COLUMN_other |                 \
     1u << STRATA_COLUMN_stack | 1u << STRATA_COLUMN_stream_name)

/* The file's entry for a block: the lifetime that it has now. */
typedef struct lifetime {
    uint64_t id; /* 0 if there is none */
    const char *stack;
    uint32_t owner;
    char tag[STRATA_RECORDER_TAG];
} lifetime_t;

/* The last kernel of a stream. */
typedef struct kernel {
    uint64_t number; /* 0 if there is none yet */
    uint64_t time_us, dur_us;
} kernel_t;

struct strata_recorder_file {
    strata_recorder_file_t *next;
    char *path;
    strata_trace_writer_t *writer;
    strata_error_t error; /* the first failure; no row is written after it */
    bool has_rows;
    bool copied;
    strata_recorder_ring_t **rings;
    size_t ring_count, ring_room;
    uint64_t begin_ns, last_us;
    uint64_t work_us; /* sum of all kernels */
    uint64_t steps; /* rows `step` written */
    strata_ids_t streams, blocks;
    lifetime_t *lifetimes; /* by the number of the block's name */
    size_t lifetime_room;
    strata_ids_t uses; /* by a block's name and a stream */
    uint64_t *used; /* by the number of the use: the lifetime in which the use is open; 0 if none */
    size_t used_room;
    uint64_t last_id;
    kernel_t *kernels; /* by stream */
    size_t kernel_room;
    bool *seen; /* by stream: true once a row has the stream, with its name if it has one */
    size_t seen_room;
    strata_recorder_stacks_t stacks;
};

/* Guards the files and the removal of events from rings. Taken with no lock of Strata held. The owners
 * of rings never take it to add events. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static strata_recorder_file_t *files;

/* ---- one event ---- */

/* Returns the number of a key, which is assigned at its first use. Returns NONE for E_HOST_MEMORY. */
static uint32_t number_of(strata_ids_t *ids, uint64_t key) {
    uint32_t number = strata_ids_find(ids, key);
    if (number != STRATA_IDS_NONE) return number;
    return strata_ids_add(ids, key) == STRATA_OK ? ids->count - 1 : STRATA_IDS_NONE;
}

/* Makes room for element `number` of an array, and zeroes new elements. Returns false for E_HOST_MEMORY. */
static bool reach(void **array, size_t *room, uint32_t number, size_t size) {
    if (number == STRATA_IDS_NONE) return false;
    if (number < *room) return true;
    size_t more = 2 * (size_t)number + 64;
    char *larger = strata_host_resize(*array, more, size);
    if (!larger) return false;
    memset(larger + *room * size, 0, (more - *room) * size);
    *array = larger;
    *room = more;
    return true;
}

static lifetime_t *lifetime_of(strata_recorder_file_t *file, uint64_t block) {
    uint32_t number = number_of(&file->blocks, block);
    bool there = reach((void **)&file->lifetimes, &file->lifetime_room, number, sizeof *file->lifetimes);
    return there ? &file->lifetimes[number] : NULL;
}

static uint64_t *use_of(strata_recorder_file_t *file, uint64_t block, uint32_t stream) {
    uint32_t number = number_of(&file->uses, (uint64_t)number_of(&file->blocks, block) << 32 | stream);
    return reach((void **)&file->used, &file->used_room, number, sizeof *file->used) ? &file->used[number] : NULL;
}

/* Sets *right to false for the end of a use that the file does not have, because the ring was full or
 * did not exist. Such a row is left out. */
static strata_status_t note_use(strata_recorder_file_t *file, const strata_recorder_event_t *event, uint64_t id, uint32_t stream,
                                bool *right) {
    if (event->op != STRATA_TRACE_borrow && event->op != STRATA_TRACE_unborrow) return STRATA_OK;
    uint64_t *use = use_of(file, event->block, stream);
    if (!use) return STRATA_E_HOST_MEMORY;
    *right = event->op == STRATA_TRACE_borrow || *use == id;
    *use = event->op == STRATA_TRACE_borrow ? id : 0;
    return STRATA_OK;
}

/* Returns the name of a row's stream for the stream's first row, else NULL. The default stream has no name. */
static const char *name_of(strata_recorder_file_t *file, uint32_t stream, uint64_t handle, char name[STRATA_TRACE_TAG_BYTES]) {
    if (stream == 0 || !reach((void **)&file->seen, &file->seen_room, stream, sizeof *file->seen) || file->seen[stream])
        return NULL;
    file->seen[stream] = true;
    return strata_stream_names_find(handle, name) ? name : NULL;
}

/* Time never decreases in a file. An event of one stack may therefore get the time of a later event of
 * another. */
static uint64_t time_of(strata_recorder_file_t *file, uint64_t time_ns) {
    uint64_t us = time_ns > file->begin_ns ? (time_ns - file->begin_ns) / 1000 : 0;
    if (us > file->last_us) file->last_us = strata_min(us, STRATA_TRACE_TIME_MAX);
    return file->last_us;
}

static strata_status_t write_step(strata_recorder_file_t *file, strata_recorder_ring_t *ring,
                                  const strata_recorder_event_t *event) {
    bool is_new = ring->steps == file->steps;
    file->steps += is_new;
    ring->steps = file->steps;
    if (!is_new) return STRATA_OK;
    strata_trace_record_t row = {.op = STRATA_TRACE_step, .time_us = time_of(file, event->time_ns)};
    return strata_trace_write(file->writer, &row);
}

/* Rows of one stream and time are one kernel, so the next kernel gets another time. If the file's time
 * has advanced, further rows of a kernel have no duration of their own. The sum of all durations stays
 * within a trace's limit. */
static void begin_kernel(strata_recorder_file_t *file, kernel_t *last, const strata_recorder_event_t *event) {
    uint64_t time_us = time_of(file, event->time_ns), dur_us = event->size / 1000 + (event->size % 1000 >= 500);
    bool same_time = last->number != 0 && time_us == last->time_us;
    if (last->number == event->pool) {
        if (!same_time) *last = (kernel_t){.number = event->pool, .time_us = time_us};
        return;
    }
    if (same_time && time_us < STRATA_TRACE_TIME_MAX) time_us = ++file->last_us;
    dur_us = strata_min(dur_us, STRATA_TRACE_TIME_MAX - file->work_us);
    file->work_us += dur_us;
    *last = (kernel_t){.number = event->pool, .time_us = time_us, .dur_us = dur_us};
}

static strata_status_t write_work(strata_recorder_file_t *file, strata_recorder_ring_t *ring,
                                  const strata_recorder_event_t *event) {
    uint32_t stream = number_of(&file->streams, event->stream);
    if (!reach((void **)&file->kernels, &file->kernel_room, stream, sizeof *file->kernels)) return STRATA_E_HOST_MEMORY;
    lifetime_t *life = event->block ? lifetime_of(file, event->block) : NULL;
    if (event->block && !life) return STRATA_E_HOST_MEMORY;
    if (life && life->id == 0) return STRATA_OK;
    begin_kernel(file, &file->kernels[stream], event);
    char name[STRATA_TRACE_TAG_BYTES];
    strata_trace_record_t row = {.op = STRATA_TRACE_work,
                                 .stream_name = name_of(file, stream, event->stream, name),
                                 .place = strata_place_kind(ring->place),
                                 .id = life ? life->id : 0,
                                 .has_id = life != NULL,
                                 .stream = stream,
                                 .time_us = file->kernels[stream].time_us,
                                 .dur_us = file->kernels[stream].dur_us,
                                 .device = strata_place_device(ring->place),
                                 .thread = event->thread};
    return strata_trace_write(file->writer, &row);
}

/* Writes a row without a block. */
static strata_status_t write_mark(strata_recorder_file_t *file, strata_recorder_ring_t *ring,
                                  const strata_recorder_event_t *event) {
    bool waits = event->op == STRATA_TRACE_wait, all = event->op == STRATA_TRACE_sync && event->block != 0;
    uint32_t stream = all ? 0 : number_of(&file->streams, event->stream);
    uint32_t other = waits ? number_of(&file->streams, event->block) : 0;
    if (stream == STRATA_IDS_NONE || other == STRATA_IDS_NONE) return STRATA_E_HOST_MEMORY;
    char name[STRATA_TRACE_TAG_BYTES];
    bool none = all || event->op == STRATA_TRACE_release;
    strata_trace_record_t row = {.op = (strata_trace_op_t)event->op,
                                 .stream_name = none ? NULL : name_of(file, stream, event->stream, name),
                                 .place = strata_place_kind(ring->place),
                                 .stream = stream,
                                 .all_streams = all,
                                 .other = other,
                                 .time_us = time_of(file, event->time_ns),
                                 .device = strata_place_device(ring->place),
                                 .thread = event->thread};
    return strata_trace_write(file->writer, &row);
}

static strata_status_t write_block(strata_recorder_file_t *file, strata_recorder_ring_t *ring,
                                   const strata_recorder_event_t *event) {
    lifetime_t *life = lifetime_of(file, event->block);
    uint32_t stream = number_of(&file->streams, event->stream);
    if (!life || stream == STRATA_IDS_NONE) return STRATA_E_HOST_MEMORY;
    if (event->op == STRATA_TRACE_alloc) *life = (lifetime_t){.id = ++file->last_id, .owner = stream};
    if (life->id == 0) return STRATA_OK;
    bool right = true;
    strata_status_t status = note_use(file, event, life->id, stream, &right);
    const char *stack = "";
    if (status == STRATA_OK && event->frames)
        status = strata_recorder_stack(&file->stacks, (const uint64_t *)(event + 1), event->frames, &stack);
    if (status != STRATA_OK || !right) return status;
    char name[STRATA_TRACE_TAG_BYTES];
    bool owners = event->op == STRATA_TRACE_free && life->owner != stream; /* the row has another stream than the event */
    strata_trace_record_t row = {.op = (strata_trace_op_t)event->op,
                                 .place = strata_place_kind(ring->place),
                                 .id = life->id,
                                 .size = event->size,
                                 .stream = event->op == STRATA_TRACE_free ? life->owner : stream,
                                 .stream_name = owners ? NULL : name_of(file, stream, event->stream, name),
                                 .time_us = time_of(file, event->time_ns),
                                 .device = strata_place_device(ring->place),
                                 .thread = event->thread,
                                 .has_id = true,
                                 .tag = event->tag,
                                 .stack = stack,
                                 .has_pool = event->pool != 0,
                                 .pool = event->pool - (event->pool != 0),
                                 .align = event->align ? UINT64_C(1) << event->align : 0};
    if (event->op == STRATA_TRACE_free) life->id = 0;
    if (event->op == STRATA_TRACE_alloc) life->stack = stack;
    if (event->op == STRATA_TRACE_alloc) memcpy(life->tag, event->tag, sizeof life->tag);
    return strata_trace_write(file->writer, &row);
}

static strata_status_t write_event(strata_recorder_file_t *file, strata_recorder_ring_t *ring,
                                   const strata_recorder_event_t *event) {
    switch (event->op) {
    case STRATA_TRACE_step: return write_step(file, ring, event);
    case STRATA_TRACE_work: return write_work(file, ring, event);
    case STRATA_TRACE_wait:
    case STRATA_TRACE_sync:
    case STRATA_TRACE_release: return write_mark(file, ring, event);
    default: return write_block(file, ring, event);
    }
}

/* ---- merging ---- */

/* Returns the time of the ring's next event, or UINT64_MAX if it has none from before the cut. */
static uint64_t next_time(const strata_recorder_ring_t *ring, uint64_t cut_ns) {
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail == atomic_load_explicit(&ring->head, memory_order_acquire)) return UINT64_MAX;
    uint64_t time = strata_recorder_at(ring, tail)->time_ns;
    return time <= cut_ns ? time : UINT64_MAX;
}

static void sift_down(strata_recorder_ring_t **rings, size_t count, size_t at, uint64_t cut_ns) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && next_time(rings[child + 1], cut_ns) < next_time(rings[child], cut_ns)) child++;
        if (next_time(rings[at], cut_ns) <= next_time(rings[child], cut_ns)) return;
        strata_recorder_ring_t *above = rings[at];
        rings[at] = rings[child];
        rings[child] = above;
    }
}

static void note_failure(strata_recorder_file_t *file, strata_status_t status) {
    if (status == STRATA_OK) file->has_rows = true;
    else file->error = *strata_last_error();
}

static strata_status_t repeat_error(const strata_recorder_file_t *file) {
    return file->error.status == STRATA_OK ? STRATA_OK : strata_fail_again(&file->error);
}

/* Returns false if a frame of the next event has no name yet. */
static bool is_named(strata_recorder_file_t *file, const strata_recorder_event_t *event) {
    if (event->frames == 0 || file->error.status != STRATA_OK) return true;
    return strata_recorder_names_complete(&file->stacks, (const uint64_t *)(event + 1), event->frames);
}

/* Writes the events up to the cut. Events added during this call are later and remain for the next one,
 * so that no ring runs ahead of another. Returns false if events remain because their frames must be
 * named first. */
static bool write_named(strata_recorder_file_t *file, uint64_t cut_ns) {
    for (size_t at = file->ring_count / 2; at-- > 0;) sift_down(file->rings, file->ring_count, at, cut_ns);
    while (next_time(file->rings[0], cut_ns) != UINT64_MAX) {
        strata_recorder_ring_t *ring = file->rings[0];
        uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        const strata_recorder_event_t *event = strata_recorder_at(ring, tail);
        if (!is_named(file, event)) return false;
        if (file->error.status == STRATA_OK) note_failure(file, write_event(file, ring, event));
        atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
        sift_down(file->rings, file->ring_count, 0, cut_ns);
    }
    return true;
}

/* The mutex is released while the loader looks up names. A thread that holds the loader's lock, as in a
 * constructor of a library, may be about to wait for the mutex. */
static void write_until(strata_recorder_file_t *file, uint64_t cut_ns) {
    while (!write_named(file, cut_ns)) {
        strata_recorder_names_t names;
        strata_recorder_names_missing(&file->stacks, &names);
        pthread_mutex_unlock(&mutex);
        strata_recorder_names_resolve(&names);
        pthread_mutex_lock(&mutex);
        strata_status_t status = strata_recorder_names_add(&file->stacks, &names);
        if (status != STRATA_OK && file->error.status == STRATA_OK) note_failure(file, status);
    }
}

strata_status_t strata_recorder_write(strata_recorder_ring_t *ring, uint64_t now_ns) {
    pthread_mutex_lock(&mutex);
    write_until(ring->file, now_ns);
    strata_status_t status = repeat_error(ring->file);
    pthread_mutex_unlock(&mutex);
    return status;
}

/* ---- files; under the mutex ---- */

static strata_status_t end_file(strata_recorder_file_t *file) {
    /* If a program could not begin, the trace of the one before is kept. */
    bool keep = file->writer && file->error.status == STRATA_OK && (file->has_rows || access(file->path, F_OK) != 0);
    strata_status_t status = repeat_error(file);
    if (keep) status = strata_trace_writer_finish(file->writer);
    else strata_trace_writer_abandon(file->writer);
    strata_ids_clear(&file->streams);
    strata_ids_clear(&file->blocks);
    strata_ids_clear(&file->uses);
    strata_host_delete(file->lifetimes);
    strata_host_delete(file->kernels);
    strata_host_delete(file->seen);
    strata_recorder_stacks_clear(&file->stacks);
    strata_host_delete(file->used);
    strata_host_delete(file->rings);
    strata_host_delete(file->path);
    strata_host_delete(file);
    return status;
}

/* Stream 0 of a file is the default stream. */
static strata_status_t begin_file(const char *path, uint64_t now_ns, strata_recorder_file_t **out) {
    strata_recorder_file_t *file = strata_host_new(1, sizeof *file);
    if (!file) return STRATA_E_HOST_MEMORY;
    file->begin_ns = now_ns;
    file->path = strata_host_strdup(path);
    strata_status_t status = file->path ? strata_ids_add(&file->streams, 0) : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK) status = strata_trace_writer_open(path, COLUMNS, &file->writer);
    if (status != STRATA_OK) {
        (void)end_file(file);
        return status;
    }
    file->next = files;
    files = file;
    *out = file;
    return STRATA_OK;
}

static strata_status_t detach_file(strata_recorder_file_t *file, strata_recorder_ring_t *ring) {
    for (size_t i = 0; i < file->ring_count; i++) {
        if (file->rings[i] != ring) continue;
        file->rings[i] = file->rings[--file->ring_count];
        break;
    }
    if (file->ring_count > 0) return repeat_error(file);
    strata_recorder_file_t **link = &files;
    while (*link != file) link = &(*link)->next;
    *link = file->next;
    return end_file(file);
}

static strata_status_t attach_file(strata_recorder_ring_t *ring, const char *path, uint64_t now_ns) {
    strata_recorder_file_t *file = files;
    while (file && strcmp(file->path, path) != 0) file = file->next;
    strata_status_t status = file ? STRATA_OK : begin_file(path, now_ns, &file);
    if (status != STRATA_OK) return status;
    if (file->ring_count == file->ring_room) {
        strata_recorder_ring_t **larger = strata_host_resize(file->rings, 2 * file->ring_room + 16,
                                                             sizeof(strata_recorder_ring_t *));
        if (!larger) {
            if (file->ring_count == 0) (void)detach_file(file, NULL);
            return STRATA_E_HOST_MEMORY;
        }
        file->rings = larger;
        file->ring_room = 2 * file->ring_room + 16;
    }
    file->rings[file->ring_count++] = ring;
    ring->steps = file->steps;
    ring->file = file;
    return STRATA_OK;
}

strata_status_t strata_recorder_copy(strata_recorder_ring_t *ring, const char *pattern, uint64_t now_ns, char *path,
                                     size_t capacity, bool *first) {
    strata_file_expand(pattern, path, capacity);
    pthread_mutex_lock(&mutex);
    *first = !ring->file->copied;
    ring->file->copied = true;
    if (*first) write_until(ring->file, now_ns);
    strata_status_t status = repeat_error(ring->file);
    if (status == STRATA_OK && *first) status = strata_trace_writer_copy(ring->file->writer, path);
    pthread_mutex_unlock(&mutex);
    return status;
}

bool strata_recorder_read(strata_recorder_ring_t *ring, uint64_t block, char tag[STRATA_RECORDER_TAG], const char **stack) {
    pthread_mutex_lock(&mutex);
    uint32_t number = strata_ids_find(&ring->file->blocks, block);
    const lifetime_t *life = number < ring->file->lifetime_room ? &ring->file->lifetimes[number] : NULL;
    bool lives = life && life->id != 0;
    if (lives) memcpy(tag, life->tag, sizeof life->tag);
    if (lives) *stack = life->stack;
    pthread_mutex_unlock(&mutex);
    return lives;
}

uint64_t strata_recorder_stream(strata_recorder_ring_t *ring, uint64_t stream) {
    pthread_mutex_lock(&mutex);
    uint32_t number = number_of(&ring->file->streams, stream);
    pthread_mutex_unlock(&mutex);
    return number == STRATA_IDS_NONE ? 0 : number;
}

strata_status_t strata_recorder_attach(strata_recorder_ring_t *ring, const char *path, uint64_t capacity, uint32_t frames,
                                       strata_place_t place, uint64_t now_ns) {
    char expanded[PATH_BYTES];
    size_t one = sizeof(strata_recorder_event_t) + frames * sizeof(uint64_t);
    *ring = (strata_recorder_ring_t){.place = place, .stride = one, .frames = frames};
    ring->events = strata_host_reserve(capacity * one, MIN_EVENTS * one, &ring->reserved);
    if (!ring->events) return STRATA_E_HOST_MEMORY;
    ring->capacity = strata_min(capacity, ring->reserved / one);
    strata_file_expand(path, expanded, sizeof expanded);
    pthread_mutex_lock(&mutex);
    strata_status_t status = attach_file(ring, expanded, now_ns);
    pthread_mutex_unlock(&mutex);
    if (status != STRATA_OK) {
        strata_host_unreserve(ring->events, ring->reserved);
        *ring = (strata_recorder_ring_t){.place = place};
    }
    return status;
}

strata_status_t strata_recorder_detach(strata_recorder_ring_t *ring, uint64_t now_ns) {
    pthread_mutex_lock(&mutex);
    write_until(ring->file, now_ns);
    /* Another thread's clock may be ahead. */
    for (uint64_t time; (time = next_time(ring, UINT64_MAX - 1)) != UINT64_MAX;) write_until(ring->file, time);
    strata_status_t status = detach_file(ring->file, ring);
    pthread_mutex_unlock(&mutex);
    strata_host_unreserve(ring->events, ring->reserved);
    return status;
}
