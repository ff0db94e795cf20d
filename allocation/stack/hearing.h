/* What layers of the tree are told of the program beside its requests. */
#ifndef STRATA_ALLOCATION_HEARING_H
#define STRATA_ALLOCATION_HEARING_H

#include "allocation/stack/stack.h"

/* X(name, meaning) */
#define STRATA_TOLD_MAP(X)                                                                                                         \
    X(WORK, "strata_stream_work(), strata_note_work(): a kernel on `stream` uses the block, or none")                              \
    X(WAIT, "strata_stream_wait(), strata_note_wait(): later work of `stream` comes after that of `other`")                        \
    X(SYNC, "strata_stream_synchronize(), strata_note_sync(): the host has waited for `stream`, or for the device")                \
    X(RELEASE, "strata_release(): the caches of the place are emptied")                                                            \
    X(OUT_OF_MEMORY, "a request has failed for memory at last, and its report is full")

typedef enum strata_told_kind {
#define STRATA_TOLD_ENUM(name, meaning) STRATA_TOLD_##name,
    STRATA_TOLD_MAP(STRATA_TOLD_ENUM)
#undef STRATA_TOLD_ENUM
} strata_told_kind_t;

typedef struct strata_told {
    size_t struct_size;
    strata_told_kind_t kind;
    strata_stream_t stream, other; /* WORK, WAIT, SYNC: `stream`; WAIT: `other` too. As the device knows them */
    const strata_record_t *record; /* WORK: a live block of the stack; NULL: the kernel uses none that was heard of */
    uint64_t kernel; /* WORK: the same number for all blocks of a kernel */
    uint64_t duration_ns; /* WORK */
    bool all; /* SYNC: for the whole device */
    bool heard; /* set by a layer that has taken it up */
} strata_told_t;

typedef struct strata_hearing {
    /* After the program has done it. WORK goes to the stack of each block that the kernel uses, the others to the layers of one stack of
     * the place; what nobody there has heard goes to the next. Under the lock of the layer. */
    void (*told)(strata_layer_t *self, strata_told_t *told, strata_call_t *call);
} strata_hearing_t;

/* The program has done something beside its requests: to the layers of a domain's stacks, until one has heard it. */
void strata_domain_tell(strata_domain_t *domain, strata_told_t *told);
/* The same of work with a live block, to the layers of the block's stack. The lock of the block's stack may be held by `call`. */
void strata_record_tell(strata_record_t *record, strata_told_t *told, strata_call_t *call);

#endif
