/* The parts of PyTorch's snapshots, as pickles: frames, segments and their blocks. */
#ifndef STRATA_TRACE_PICKLE_SNAPSHOT_H
#define STRATA_TRACE_PICKLE_SNAPSHOT_H

#include "trace/pickle/pickle_writer.h"

enum { STRATA_PICKLE_STATES = 3 };

typedef struct strata_pickle_segment {
    uint64_t device, address, size, stream;
    uint64_t allocated, active, requested; /* of its blocks */
} strata_pickle_segment_t;

typedef struct strata_pickle_block {
    uint64_t address, size, requested;
    uint32_t state; /* 0 free, 1 live, 2 freed and still in use */
    const char *tag, *stack;
} strata_pickle_block_t;

/* Returns true if a tag has the form of a frame: "train.py:31 forward". */
bool strata_pickle_is_frame(const char *tag);
/* Writes a list of dicts of filename, line and name. The tag is the innermost frame, unless the stack
 * begins with it. The frames of the stack follow. "" has no frames. */
void strata_pickle_frames(strata_pickler_t *pickler, const char *tag, const char *stack);
/* Opens an item of the list of segments. Its blocks follow, in the order of their addresses. */
void strata_pickle_open_segment(strata_pickler_t *pickler, const strata_pickle_segment_t *segment);
void strata_pickle_block(strata_pickler_t *pickler, const strata_pickle_block_t *block);
void strata_pickle_close_segment(strata_pickler_t *pickler);

#endif
