/* What the files of the fake share. */
#ifndef STRATA_TESTS_CUDA_FAKE_INTERNAL_H
#define STRATA_TESTS_CUDA_FAKE_INTERNAL_H

#include <pthread.h>

#include "tests/cuda/fake/fake_driver.h"

#define FAKE_MANY      128
#define FAKE_CALLS_MAX 65536

typedef enum fake_kind { FAKE_DEVICE_MEMORY = 1, FAKE_MANAGED, FAKE_PINNED, FAKE_POOL, FAKE_GRAPH, FAKE_REGISTERED } fake_kind_t;

/* Nodes of a graph that is being captured: those that a node comes after. */
enum { FAKE_NODES = 256, FAKE_BEFORE = 24 };

typedef struct fake_tail {
    struct fake_node *nodes[FAKE_BEFORE];
    size_t count;
} fake_tail_t;

typedef struct fake_node {
    fake_tail_t before;
} fake_node_t;

typedef struct fake_capture {
    bool used;
    uint64_t id;
    int device;
    CUstreamCaptureMode mode;
    pthread_t thread;
    CUstreamCaptureStatus status;
    struct fake_stream *origin;
    struct fake_graph *graph;
    fake_node_t nodes[FAKE_NODES];
    size_t node_count;
} fake_capture_t;

typedef struct fake_stream {
    bool used;
    int device;
    unsigned int flags;
    uint64_t id;
    uint64_t submitted, done;
    fake_capture_t *capture;
    fake_tail_t tail; /* what its next captured node comes after */
} fake_stream_t;

typedef struct fake_event {
    bool used;
    int device;
    unsigned int flags;
    fake_stream_t *stream; /* recorded in, or NULL */
    uint64_t stream_id, point;
    uint64_t captured; /* id of the capture recorded in, or 0 */
    fake_tail_t tail; /* of the stream then */
} fake_event_t;

typedef struct fake_object {
    bool used;
    void *value;
    CUhostFn destroy;
    unsigned int references;
} fake_object_t;

typedef struct fake_graph {
    bool used, destroyed;
    int device;
    uint64_t instances;
    fake_object_t *objects[8];
    size_t object_count;
    uint64_t alloc_nodes, free_count;
    struct fake_memory *memory[8]; /* of its allocation nodes */
    bool left[8]; /* allocated by a launch, freed by none */
    bool freed_inside[8];
    CUdeviceptr frees[8]; /* memory of other graphs, at each launch */
} fake_graph_t;

typedef struct fake_instance {
    bool used;
    fake_graph_t *graph;
    bool auto_free;
} fake_instance_t;

typedef struct fake_memory {
    bool used;
    fake_kind_t kind;
    CUdeviceptr address;
    uint64_t size;
    int device;
    void *raw;
    struct fake_pool *pool;
    fake_graph_t *graph;
} fake_memory_t;

typedef struct fake_pool {
    bool used;
    int device;
    bool is_default, shareable;
    uint64_t threshold, reserved, used_bytes, reserved_high, used_high, max_size;
    int policies[4];
    uint64_t peers;
} fake_pool_t;

typedef struct fake_range {
    bool used;
    CUdeviceptr address;
    uint64_t size;
} fake_range_t;
typedef struct fake_physical {
    bool used, shareable;
    uint64_t size, mappings, held; /* held: once for its creation, and for each import */
    int device;
} fake_physical_t;
typedef struct fake_mapping {
    bool used;
    CUdeviceptr address;
    uint64_t size;
    fake_physical_t *physical;
    uint64_t access;
} fake_mapping_t;
typedef struct fake_context_state {
    int retains;
    uint64_t enabled;
} fake_context_state_t;

typedef struct fake_world {
    fake_context_state_t contexts[FAKE_DEVICES];
    fake_stream_t legacy[FAKE_DEVICES], per_thread[FAKE_DEVICES], streams[FAKE_MANY];
    fake_event_t events[FAKE_MANY];
    fake_capture_t captures[FAKE_MANY];
    fake_graph_t graphs[FAKE_MANY];
    fake_instance_t instances[FAKE_MANY];
    fake_object_t objects[FAKE_MANY];
    fake_memory_t memory[FAKE_MANY];
    fake_pool_t pools[FAKE_MANY]; /* the first ones are the devices' default pools */
    fake_range_t ranges[FAKE_MANY];
    fake_physical_t physical[FAKE_MANY];
    fake_mapping_t mappings[FAKE_MANY];
    uint64_t used[FAKE_DEVICES], graph_reserved[FAKE_DEVICES];
    uint64_t next_stream_id, next_capture_id, next_address, reserved_addresses, mapping_count;
    int init_pid;
} fake_world_t;

extern fake_world_t fake;

/* CONTEXT: needs a current one. UNSAFE: refused by captures that forbid it. QUIET: about no context, sticky errors pass by. */
enum { FAKE_QUIET = 0, FAKE_CONTEXT = 1, FAKE_UNSAFE = 2 };
CUresult fake_enter(const char *name, int flags, uint64_t value, uint64_t extra);
void fake_lock(void);

void fake_unlock_guard(int *guard);

/* Locks to the end of the function. */
#define FAKE_LOCKED()                                                                                                              \
    int guard_ __attribute__((cleanup(fake_unlock_guard))) = 0;                                                                    \
    fake_lock();                                                                                                                   \
    (void)guard_

/* Begins a fake entry: locks, records, answers what the world makes of such a call. */
#define FAKE_ENTER(field, flags, value, extra)                                                                                     \
    FAKE_LOCKED();                                                                                                                 \
    CUresult entered_ = fake_enter(#field, flags, (uint64_t)(value), (uint64_t)(extra));                                           \
    if (entered_ != CUDA_SUCCESS) return entered_

/* A free element of one of the world's arrays, marked used. Slots are reused at once, so handles are recycled. */
#define FAKE_TAKE(array, pointer)                                                                                                  \
    do {                                                                                                                           \
        (pointer) = NULL;                                                                                                          \
        for (size_t i_ = 0; i_ < FAKE_MANY && !(pointer); i_++)                                                                    \
            if (!(array)[i_].used) (pointer) = &(array)[i_];                                                                       \
        if (!(pointer)) return CUDA_ERROR_OUT_OF_MEMORY;                                                                           \
        memset((pointer), 0, sizeof *(pointer));                                                                                   \
        (pointer)->used = true;                                                                                                    \
    } while (0)
#define FAKE_IS(array, pointer)                                                                                                    \
    ((uintptr_t)(pointer) >= (uintptr_t)(array) && (uintptr_t)(pointer) < (uintptr_t)((array) + FAKE_MANY) && (pointer)->used)

int fake_current_device(void); /* -1: none */
fake_stream_t *fake_stream_of(CUstream stream); /* NULL: no such stream of the current device */
/* One piece of work on the stream: pending, or a node of its capture. */
CUresult fake_push(fake_stream_t *stream, bool *captured);
/* Likewise, but without a node. */
CUresult fake_touch(fake_stream_t *stream, bool *captured);
void fake_invalidate(fake_capture_t *capture);
void fake_wait_stream(fake_stream_t *stream);
void fake_wait_device(int device); /* every stream; pools give back what is above their threshold */
void fake_pools_observe(int device);
CUresult fake_memory_new(fake_kind_t kind, uint64_t size, fake_memory_t **memory);
fake_memory_t *fake_memory_at(CUdeviceptr address);
void fake_memory_delete(fake_memory_t *memory);
CUresult fake_graph_alloc(fake_stream_t *stream, uint64_t size, CUdeviceptr *address);
CUresult fake_graph_free(fake_stream_t *stream, fake_memory_t *memory);
CUresult fake_graph_freed_outside(fake_memory_t *memory);

#define FAKE_DECLARE(field, name, version, group, arguments) extern CUresult fake_##field arguments;
STRATA_CUDA_ENTRY_MAP(FAKE_DECLARE)
#undef FAKE_DECLARE

#endif
