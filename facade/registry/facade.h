/* The internal facade: devices, domains of places, and stacks of streams. The public functions are in
 * include/strata/strata.h.
 *
 *     facade -> device -> domain (a place) -> group (pool) -> stack (stream) -> layers
 *
 * Domains, groups and stacks are built by one thread at a time, at opening or at their first use. */
#ifndef STRATA_FACADE_FACADE_H
#define STRATA_FACADE_FACADE_H

#include <pthread.h>

#include "allocation/domain/domain.h"
#include "facade/registry/names.h"
#include "platform/sim/sim.h"
#include "strategy/model.h"

enum { STRATA_FACADE_DEVICES = STRATA_MODEL_DEVICES, STRATA_FACADES = 256, STRATA_FACADE_CALLBACKS = 32 };

typedef struct strata_callback {
    uint32_t id; /* 0 if removed */
    strata_out_of_memory_fn observer;
    strata_free_memory_fn free_memory;
    void *context;
} strata_callback_t;

/* A stream that the program has named. */
typedef struct strata_named_stream {
    strata_place_t place;
    strata_stream_t stream;
    const char *name; /* owned by the facade's names */
} strata_named_stream_t;

typedef struct strata_stream_ids strata_stream_ids_t;
typedef struct strata_imports strata_imports_t;

/* A thread owned by the facade (facade/open/worker.h), guarded by the facade's lock. */
typedef struct strata_worker {
    pthread_t thread;
    bool runs, stops;
    strata_condition_t wakes;
} strata_worker_t;

typedef struct strata_facade {
    _Atomic strata_t handle; /* 0 if closed; the struct is never freed, so a stale handle is always noticed */
    uint32_t flags;
    strata_strategy_t *strategy;
    bool owns_strategy;
    bool owns_devices;
    bool every_device; /* `devices: gpu`; all devices except the first are opened at their first use */
    strata_sim_t *world; /* of simulated devices that the facade itself opened */
    strata_plan_t *plans; /* facade/registry/plans.c */
    strata_directory_t *directories[2]; /* [0] blocks of 256 bytes, [1] blocks of 64 (the host place) */
    strata_directory_t *_Atomic pointer_directory; /* set to directories[0] at the first free by pointer */

    /* One thread builds at a time, with no lock held. It publishes the result under the lock. */
    strata_lock_t lock;
    strata_condition_t built;
    bool building;
    strata_device_t *_Atomic devices[STRATA_FACADE_DEVICES]; /* by number; NULL if not open. Written only while building */
    strata_domain_t *_Atomic domains[STRATA_PLACE_KINDS][STRATA_FACADE_DEVICES];
    strata_domain_settings_t settings[STRATA_PLACE_KINDS][STRATA_FACADE_DEVICES]; /* settings for the next domain of a place */
    strata_callback_t callbacks[STRATA_FACADE_CALLBACKS];
    uint32_t next_callback;
    strata_names_t names; /* of tags, operators, streams and pools */
    strata_named_stream_t *named_streams; /* used only while building */
    uint32_t named_stream_count, named_stream_room;
    strata_stream_ids_t *stream_ids; /* facade/streams/stream_ids.h; NULL if not checked; guarded by the lock */
    strata_captures_t captures; /* of all its places */
    _Atomic uint32_t graph_pools; /* count of numbers given to pools of graphs */
    strata_imports_t *_Atomic imports; /* facade/share/imports.c; NULL before the first. Used while building, and at the end */
    _Atomic bool ever_paused; /* true after the first strata_pause() */
    bool pausing; /* true while a thread pauses or resumes (facade/pause/pause.h); guarded by the lock */
    /* kept contents; NULL before the first. Owned by the thread that pauses, or by the closing thread */
    struct strata_pauses *pauses;
    strata_unreported_t unreported; /* reported by strata_close() */
    bool reports_unread; /* out-of-memory reports are not read, so one line replaces them; set before the first request */
    uint64_t idle_after; /* shortest `after` of its stacks in ns; STRATA_NEVER without `idle:` (facade/open/idle.c) */
    strata_worker_t idle; /* facade/open/idle.c */
    strata_domain_free_memory_fn free_memory; /* for every domain, with the facade as context; set before the first is built */
    _Atomic uint64_t step; /* number of completed strata_step() calls */
} strata_facade_t;

/* Returns the facade of a handle, or NULL with E_STALE or E_FORKED set. */
strata_facade_t *strata_facade_of(strata_t handle);
/* Returns true if a handle names an open facade; sets no error. */
bool strata_facade_is_open(strata_t handle);
/* Copies a name of an open facade, truncated to the capacity. Returns false if the facade is closed or
 * the number is 0. Any thread may call it. */
bool strata_facade_name(strata_t handle, uint32_t number, char *text, size_t capacity);
/* Returns the domain of a place. Opens it if the strategy serves the place and it is not open yet. */
strata_status_t strata_facade_domain(strata_facade_t *facade, strata_place_t place, strata_domain_t **domain);
/* Returns the stack of a stream, built at its first use. */
strata_status_t strata_facade_stack(strata_facade_t *facade, strata_place_t place, strata_stream_t stream, strata_stack_t **stack);
/* Returns the handle of a stack in a named pool; 0 means no pool. The stack may end at any time if its
 * stream is forgotten. */
strata_status_t strata_facade_stack_handle(strata_facade_t *facade, strata_place_t place, uint64_t pool, strata_stream_t stream,
                                           strata_stack_handle_t *handle);
/* Returns the stack itself, which is valid until its stream is forgotten. */
strata_status_t strata_facade_pool_stack(strata_facade_t *facade, strata_place_t place, uint64_t pool, strata_stream_t stream,
                                         strata_stack_t **stack);
/* Returns the stream under which a stack is found. NULL becomes the place's default stream, and the
 * legacy stream becomes NULL. Pinned and host places have one stack for all streams. */
strata_stream_t strata_facade_stream_key(const strata_domain_t *domain, strata_stream_t stream);
/* Sets the `deferral` of a place's domain, which must outlive the facade. For a replay, between
 * strata_facade_begin_on() and strata_facade_ready(). */
void strata_facade_watch_deferred(strata_t facade, strata_place_t place, strata_deferral_t *deferral);
/* Returns every open domain in turn. Begin with index 0; returns NULL after the last. */
strata_domain_t *strata_facade_next_domain(strata_facade_t *facade, uint32_t *index);

/* Finds the record of a ref. On success, *call holds the lock of the stack that served it, and the caller
 * must call strata_call_unlock(). */
strata_status_t strata_facade_find(strata_t facade, strata_ref_t ref, strata_call_t *call, strata_record_t **record);

/* Returns true if the process has ever opened a facade. */
bool strata_facade_ever_opened(void);
/* Starts recording addresses at the first free by pointer: live blocks now, and new blocks of every stack
 * from now on. Returns E_HOST_MEMORY and changes nothing if there is no room for the records. */
strata_status_t strata_facade_note_pointers(strata_facade_t *facade);

/* ---- pools and names of streams ---- */

/* Resolves the `pool` of a request to a pool's number, or 0 for none. Returns E_INVALID for an unknown pool. */
strata_status_t strata_facade_pool(strata_facade_t *facade, strata_place_t place, uint64_t named_pool, uint64_t *pool);

/* One thread builds at a time. Call them with no lock held. */
void strata_facade_begin_building(strata_facade_t *facade);
void strata_facade_end_building(strata_facade_t *facade);
/* Returns the named stream, or NULL if it has no name. Call it while building. */
const strata_named_stream_t *strata_facade_named_stream(const strata_facade_t *facade, strata_place_t place,
                                                        strata_stream_t stream);
/* Forgets the name of a stream that no longer exists. */
void strata_facade_forget_name(strata_facade_t *facade, strata_place_t place, strata_stream_t stream);

/* ---- lookup caches of all threads ---- */

/* Makes every thread look up its cached directories again, because a facade was closed. */
void strata_lookup_forget_all(void);

#endif
