/* The facade from inside: devices x streams x stacks. The public functions are in include/strata/strata.h. */
#ifndef STRATA_FACADE_FACADE_H
#define STRATA_FACADE_FACADE_H

#include <pthread.h>

#include "allocation/domain/domain.h"
#include "facade/registry/names.h"
#include "platform/sim/sim.h"
#include "strategy/model.h"

enum { STRATA_FACADE_DEVICES = STRATA_MODEL_DEVICES, STRATA_FACADES = 256, STRATA_FACADE_CALLBACKS = 32 };

typedef struct strata_callback {
    uint32_t id; /* 0: removed */
    strata_out_of_memory_fn observer;
    strata_free_memory_fn free_memory;
    void *context;
} strata_callback_t;

/* A stream with a name from the program. */
typedef struct strata_named_stream {
    strata_place_t place;
    strata_stream_t stream;
    const char *name; /* in the facade's names */
} strata_named_stream_t;

typedef struct strata_stream_ids strata_stream_ids_t;
typedef struct strata_imports strata_imports_t;

/* A thread of the facade's own; guarded by the facade's lock. facade/open/worker.h */
typedef struct strata_worker {
    pthread_t thread;
    bool runs, stops;
    strata_condition_t wakes;
} strata_worker_t;

typedef struct strata_facade {
    _Atomic strata_t handle; /* 0: closed. The struct is never freed, so a stale handle is always noticed */
    uint32_t flags;
    strata_strategy_t *strategy;
    bool owns_strategy;
    bool owns_devices;
    bool every_device; /* `devices: gpu`: all except the first are opened at their first use */
    strata_sim_t *world; /* of simulated devices that the facade itself opened */
    strata_plan_t *plans; /* facade/registry/plans.c */
    strata_directory_t *directories[2]; /* [0] blocks of 256 bytes, [1] of 64 (the host place) */
    strata_directory_t *_Atomic noted; /* directories[0] once somebody frees by pointer */

    /* One thread builds at a time, with no lock held; what it built is published under the lock. */
    strata_lock_t lock;
    strata_condition_t built;
    bool building;
    strata_device_t *_Atomic devices[STRATA_FACADE_DEVICES]; /* by number; NULL: not open. Written only while building */
    strata_domain_t *_Atomic domains[STRATA_PLACE_KINDS][STRATA_FACADE_DEVICES];
    strata_domain_said_t said[STRATA_PLACE_KINDS][STRATA_FACADE_DEVICES]; /* settings for the next domain of a place */
    strata_callback_t callbacks[STRATA_FACADE_CALLBACKS];
    uint32_t next_callback;
    strata_names_t names; /* of tags, operators, streams and pools */
    strata_named_stream_t *named_streams; /* only while building */
    uint32_t named_stream_count, named_stream_room;
    strata_stream_ids_t *stream_ids; /* facade/streams/stream_ids.h; NULL: not checked. Guarded by the lock */
    strata_captures_t captures; /* in all of its places */
    _Atomic uint32_t graph_pools; /* numbers that were given to pools of graphs */
    strata_imports_t *_Atomic imports; /* facade/share/imports.c; NULL: none so far. Used while building, and at the end */
    _Atomic bool ever_paused; /* strata_pause() was called */
    bool pausing; /* a thread pauses or resumes: facade/pause/pause.h. Guarded by the lock */
    struct strata_pauses *pauses; /* what is kept of paused memory; NULL: nothing so far. Of whoever is pausing, and at the end */
    strata_lost_t lost; /* reported by strata_close() */
    bool reports_unread; /* nobody reads the report of an out-of-memory: a line stands for it. Set before the first request */
    uint64_t idle_after; /* the shortest `after` of its stacks, ns; STRATA_NEVER: none says `idle:`. facade/open/idle.c */
    strata_worker_t idle; /* facade/open/idle.c */
    strata_domain_free_memory_fn free_memory; /* For every domain, with the facade as context. Set before the first is built. */
    _Atomic uint64_t step; /* number of strata_step() calls that have ended */
} strata_facade_t;

/* The facade of a handle; NULL with E_STALE or E_FORKED set. */
strata_facade_t *strata_facade_of(strata_t handle);
/* Whether a handle names an open facade; sets no error. */
bool strata_facade_is_open(strata_t handle);
/* Copies a name of an open facade, cut to the room; false: the facade is closed, or the number is 0. Any thread. */
bool strata_facade_name(strata_t handle, uint32_t number, char *text, size_t capacity);
/* The domain of a place, opened if the strategy serves it and it is not open yet. */
strata_status_t strata_facade_domain(strata_facade_t *facade, strata_place_t place, strata_domain_t **domain);
/* The stack of a stream, built at its first use. */
strata_status_t strata_facade_stack(strata_facade_t *facade, strata_place_t place, strata_stream_t stream, strata_stack_t **stack);
/* The handle of a stack, in a named pool (0: none). The stack may end at any time if its stream is forgotten. */
strata_status_t strata_facade_stack_handle(strata_facade_t *facade, strata_place_t place, uint64_t pool, strata_stream_t stream,
                                           strata_stack_handle_t *handle);
/* The stack itself, valid as long as nobody forgets the stream. */
strata_status_t strata_facade_pool_stack(strata_facade_t *facade, strata_place_t place, uint64_t pool, strata_stream_t stream,
                                         strata_stack_t **stack);
/* The stream by which a stack is found: NULL becomes the place's default stream, the legacy stream becomes NULL; pinned and host
 * places have one stack for all streams. */
strata_stream_t strata_facade_stream_key(const strata_domain_t *domain, strata_stream_t stream);
/* Between the two steps, for a replay: `deferral` of the domain of a place, which must outlive the facade. */
void strata_facade_watch_deferred(strata_t facade, strata_place_t place, strata_deferral_t *deferral);
/* Every open domain in turn: begin with index 0; NULL after the last. */
strata_domain_t *strata_facade_next_domain(strata_facade_t *facade, uint32_t *index);

/* The record of a ref, with the lock of the stack that served it held; the caller begins the call. */
strata_status_t strata_facade_find(strata_t facade, strata_ref_t ref, strata_call_t *call, strata_record_t **record);

/* Whether the process has opened any facade so far. */
bool strata_facade_ever_opened(void);
/* The first free by pointer: from now on every stack notes what it hands out; what is live is noted now. E_HOST_MEMORY: there is no
 * room for notes, and nothing has changed. */
strata_status_t strata_facade_note_pointers(strata_facade_t *facade);

/* ---- pools and names of streams ---- */

/* What `pool` of a request means: a pool's number, or 0 for none. E_INVALID. */
strata_status_t strata_facade_pool(strata_facade_t *facade, strata_place_t place, uint64_t said, uint64_t *pool);

/* One thread builds at a time; no lock is held. */
void strata_facade_begin_building(strata_facade_t *facade);
void strata_facade_end_building(strata_facade_t *facade);
/* While building: the name of a stream; NULL: it has none. */
const strata_named_stream_t *strata_facade_named_stream(const strata_facade_t *facade, strata_place_t place,
                                                        strata_stream_t stream);
/* The stream is gone, and its name. */
void strata_facade_forget_name(strata_facade_t *facade, strata_place_t place, strata_stream_t stream);

/* ---- the look-up caches of all threads ---- */

/* A facade was closed: every thread must look up its cached directories again. */
void strata_lookup_forget_all(void);

#endif
