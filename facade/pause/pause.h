/* Pause and resume take the device memory of pools away and bring it back at the same addresses.
 *
 *     pause.c    the two functions, step by step
 *     parts.c    selects sources of handles, and handles in them
 *     kept.c     the list of kept contents, and when they are removed
 *     copy.c     copies between the device, pinned memory and a file
 *
 * Only one thread at a time pauses or resumes (strata_pauses_begin()), and that thread owns the list of
 * kept contents. None of these functions may be called with a lock held. */
#ifndef STRATA_FACADE_PAUSE_H
#define STRATA_FACADE_PAUSE_H

#include "allocation/stack/handles.h"
#include "facade/registry/facade.h"

/* ---- selection ---- */

typedef struct strata_pause_part {
    strata_group_t *group;
    strata_layer_t *source;
    const strata_pausing_t *pausing;
    /* the held pool of a group of graphs, which cannot end now; NULL if nothing keeps it or it has none */
    strata_graph_pool_t *held;
} strata_pause_part_t;

typedef struct strata_pause_parts {
    strata_facade_t *facade;
    strata_domain_t *domain;
    uint64_t pool; /* the number in groups, or STRATA_POOL_EVERY */
    uint32_t tag; /* 0 for any */
    strata_pause_part_t *all;
    uint32_t count;
} strata_pause_parts_t;

/* Finds the sources of a pool. To pause, returns E_UNSUPPORTED if not all of its memory is in handles
 * that can be taken away. The caller must end `parts` whatever the status. */
strata_status_t strata_pause_parts_find(strata_pause_parts_t *parts, strata_facade_t *facade, strata_place_t place,
                                        uint64_t named_pool, const char *tag, bool pauses);
void strata_pause_parts_end(strata_pause_parts_t *parts);
/* Marks the handles that contain blocks with the tag. With `stays`, handles that contain other blocks are
 * marked to stay. Returns E_HOST_MEMORY if out of memory. */
strata_status_t strata_pause_mark(const strata_pause_parts_t *parts, bool stays);
/* Returns E_BUSY if a captured graph may use the selected memory. */
strata_status_t strata_pause_refuse_graphs(const strata_pause_parts_t *parts);

/* ---- kept contents ---- */

typedef struct strata_kept_file {
    int descriptor;
    uint32_t users;
    uint64_t end;
} strata_kept_file_t;

/* The contents of a paused handle. */
typedef struct strata_kept {
    strata_layer_t *source;
    uint64_t address, number, size; /* of the handle */
    strata_block_t pinned; /* `ref` is 0 if the contents are in the file */
    strata_kept_file_t *file;
    uint64_t offset;
} strata_kept_t;

struct strata_pauses {
    strata_kept_t *kept;
    size_t count, room;
};

/* Appends an entry, zero except for the handle. Returns NULL with E_HOST_MEMORY. The entry is valid until
 * the next call. */
strata_kept_t *strata_kept_add(strata_facade_t *facade, strata_layer_t *source, const strata_held_t *handle);
/* Returns an entry by index, from 0 on. */
strata_kept_t *strata_kept_at(const strata_facade_t *facade, size_t index);
/* Returns the entry of a paused handle, or NULL if its contents were not kept. Do not call it between an
 * addition and strata_kept_prune(), which sorts the list. */
const strata_kept_t *strata_kept_of(const strata_facade_t *facade, const strata_held_t *handle);
/* Removes the entries from `first` on, which must be newer than the last strata_kept_prune(). */
void strata_kept_drop_from(strata_facade_t *facade, size_t first);
/* Removes the entries of handles that are not paused, and sorts the others. */
void strata_kept_prune(strata_facade_t *facade);
size_t strata_kept_count(const strata_facade_t *facade);

/* Creates a file in a directory, with one user. Returns NULL with E_IO, E_HOST_MEMORY or E_INVALID. */
strata_kept_file_t *strata_kept_file_make(const char *directory);
void strata_kept_file_release(strata_kept_file_t *file);

/* ---- copies ---- */

enum { STRATA_COPY_SLOTS = 4 };

/* A piece of pinned memory for a copy to or from a file. */
typedef struct strata_copy_slot {
    strata_block_t block;
    strata_handle_t event; /* recorded after the copy */
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
    strata_copy_slot_t slots[STRATA_COPY_SLOTS]; /* created at their first use */
    uint32_t next_slot;
    uint64_t start_ns;
} strata_copy_t;

/* Begins copies. The caller must call strata_copy_end() whatever the status. `staging` is as in the options. */
strata_status_t strata_copy_begin(strata_copy_t *copy, strata_facade_t *facade, strata_domain_t *domain, uint64_t staging);
/* Reserves room for the contents of a handle. With `file` the room is in the file, and the entry becomes
 * a user of it. If `file` is NULL, the room is in pinned memory, and E_NO_MEMORY is possible. */
strata_status_t strata_copy_reserve(const strata_copy_t *copy, strata_kept_t *kept, strata_kept_file_t *file);
/* Starts the clock of the copies, once there is room for everything. */
static inline void strata_copy_start(strata_copy_t *copy) { copy->start_ns = strata_real_now(); }
/* Start copies to the kept contents, back from them, and of zeros. They may still run at the return.
 * Return E_IO, E_NO_MEMORY (slots), or errors of the device. */
strata_status_t strata_copy_save(strata_copy_t *copy, const strata_kept_t *kept);
strata_status_t strata_copy_restore(strata_copy_t *copy, const strata_kept_t *kept);
strata_status_t strata_copy_zero(strata_copy_t *copy, uint64_t address, uint64_t size);
/* Waits for all copies. Writes the remaining slots to `written`, unless it is NULL. */
strata_status_t strata_copy_finish(strata_copy_t *copy, strata_kept_file_t *written);
/* Ends all copies. Returns the real time since the start in ns. */
uint64_t strata_copy_end(strata_copy_t *copy);

/* ---- for the rest of the facade ---- */

/* Waits until no other thread pauses or resumes, and enters. Without `wait`, returns false if another thread does. */
bool strata_pauses_begin(strata_facade_t *facade, bool wait);
void strata_pauses_end(strata_facade_t *facade);
/* Discards all kept contents, so that nothing can be resumed. */
void strata_pauses_forget(strata_facade_t *facade);
/* Releases blocks that were freed during a pause, with their kept contents. Pools without paused memory
 * serve again. Does nothing while another thread pauses or resumes (facade/pause/). */
void strata_facade_sweep_pauses(strata_facade_t *facade);

#endif
