/* What the files of this room share.
 *
 *     pause.c    the two functions, step by step
 *     parts.c    which sources of handles are meant, and which of their handles
 *     kept.c     contents that are kept: the list of them, and when they go
 *     copy.c     bytes on their way between the device, pinned memory and a file
 *
 * One thread at a time pauses or resumes (strata_pauses_begin()); the list of what is kept is its. No lock is held in any of this. */
#ifndef STRATA_FACADE_PAUSE_H
#define STRATA_FACADE_PAUSE_H

#include "allocation/stack/handles.h"
#include "facade/registry/facade.h"

/* ---- which memory ---- */

typedef struct strata_pause_part {
    strata_group_t *group;
    strata_layer_t *source;
    const strata_pausing_t *pausing;
    strata_graph_pool_t *held; /* of a group of graphs: it does not end meanwhile; NULL: nothing keeps it, or it has none */
} strata_pause_part_t;

typedef struct strata_pause_parts {
    strata_facade_t *facade;
    strata_domain_t *domain;
    uint64_t pool; /* as groups have it; STRATA_POOL_EVERY */
    uint32_t tag; /* 0: any */
    strata_pause_part_t *all;
    uint32_t count;
} strata_pause_parts_t;

/* The sources of a pool. To pause, E_UNSUPPORTED: not all of its memory is in handles that can be taken away. `parts` is to be ended
 * whatever the answer. */
strata_status_t strata_pause_parts_find(strata_pause_parts_t *parts, strata_facade_t *facade, strata_place_t place, uint64_t said,
                                        const char *tag, bool pauses);
void strata_pause_parts_end(strata_pause_parts_t *parts);
/* Marks what lies in handles with the tag, and (`stays`) what lies beside it. E_HOST_MEMORY. */
strata_status_t strata_pause_mark(const strata_pause_parts_t *parts, bool stays);
/* E_BUSY: a captured graph may use what is chosen. */
strata_status_t strata_pause_refuse_graphs(const strata_pause_parts_t *parts);

/* ---- what is kept ---- */

typedef struct strata_kept_file {
    int descriptor;
    uint32_t users;
    uint64_t end;
} strata_kept_file_t;

/* The contents of a handle that is paused. */
typedef struct strata_kept {
    strata_layer_t *source;
    uint64_t address, number, size; /* of the handle */
    strata_block_t pinned; /* `ref` 0: in the file */
    strata_kept_file_t *file;
    uint64_t offset;
} strata_kept_t;

struct strata_pauses {
    strata_kept_t *kept;
    size_t count, room;
};

/* One more entry, zero but for the handle; NULL: E_HOST_MEMORY. Valid until the next one. */
strata_kept_t *strata_kept_add(strata_facade_t *facade, strata_layer_t *source, const strata_held_t *handle);
/* By number, from 0 on. */
strata_kept_t *strata_kept_at(const strata_facade_t *facade, size_t index);
/* Of a handle that is paused; NULL: nothing is kept of it. Not between an addition and strata_kept_settle(). */
const strata_kept_t *strata_kept_of(const strata_facade_t *facade, const strata_held_t *handle);
/* Those from `first` on go, which were added since the last strata_kept_settle(). */
void strata_kept_drop_from(strata_facade_t *facade, size_t first);
/* Those go whose handles are not paused; the others are in order. */
void strata_kept_settle(strata_facade_t *facade);
size_t strata_kept_count(const strata_facade_t *facade);

/* A file of its own in a directory, with one user; NULL: E_IO, E_HOST_MEMORY, E_INVALID. */
strata_kept_file_t *strata_kept_file_make(const char *directory);
void strata_kept_file_leave(strata_kept_file_t *file);

/* ---- copies ---- */

enum { STRATA_COPY_SLOTS = 4 };

/* A piece of pinned memory on its way to or from a file. */
typedef struct strata_copy_slot {
    strata_block_t block;
    strata_handle_t event; /* after the copy */
    bool busy;
    uint64_t offset, size; /* in the file */
} strata_copy_slot_t;

typedef struct strata_copy {
    strata_facade_t *facade;
    strata_device_t *device;
    strata_events_t *events;
    strata_handle_t stream;
    bool has_stream;
    uint64_t slot_size;
    strata_copy_slot_t slots[STRATA_COPY_SLOTS]; /* made at the first use */
    uint32_t next_slot;
    uint64_t began;
} strata_copy_t;

/* To be ended whatever the answer. `staging` as in the options. */
strata_status_t strata_copy_begin(strata_copy_t *copy, strata_facade_t *facade, strata_domain_t *domain, uint64_t staging);
/* Room for the bytes of a handle: in the file, of which the entry is a user from now on, or in pinned memory (`file` NULL; E_NO_MEMORY). */
strata_status_t strata_copy_room(const strata_copy_t *copy, strata_kept_t *kept, strata_kept_file_t *file);
/* There is room for everything: copying begins. */
static inline void strata_copy_start(strata_copy_t *copy) { copy->began = strata_real_now(); }
/* The bytes go there, and come back. They are on their way at the return. E_IO, E_NO_MEMORY (slots), errors of the device. */
strata_status_t strata_copy_keep(strata_copy_t *copy, const strata_kept_t *kept);
strata_status_t strata_copy_bring(strata_copy_t *copy, const strata_kept_t *kept);
strata_status_t strata_copy_zero(strata_copy_t *copy, uint64_t address, uint64_t size);
/* All are there; what is to be `written` (NULL: nothing) is in the file. */
strata_status_t strata_copy_finish(strata_copy_t *copy, strata_kept_file_t *written);
/* Nothing is under way any more; the ns of real time since the start. */
uint64_t strata_copy_end(strata_copy_t *copy);

/* ---- for the rest of the facade ---- */

/* False (without `wait`): another thread pauses or resumes. */
bool strata_pauses_begin(strata_facade_t *facade, bool wait);
void strata_pauses_end(strata_facade_t *facade);
/* Everything that is kept goes: nothing will be resumed. */
void strata_pauses_forget(strata_facade_t *facade);
/* What was freed while it was paused goes, with what was kept of it; pools serve again of which nothing is paused. Nothing happens while
 * another thread pauses or resumes (facade/pause/). */
void strata_facade_sweep_pauses(strata_facade_t *facade);

#endif
