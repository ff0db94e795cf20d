/* Frames as PyTorch's snapshots have them: a list of dicts of filename, line and name, the innermost first. */
#ifndef STRATA_TRACE_PICKLE_FRAMES_H
#define STRATA_TRACE_PICKLE_FRAMES_H

#include "trace/formats/pickle_writer.h"

/* A tag is the innermost frame, if the stack does not begin with it; those of the stack follow. "" has none. */
void strata_pickle_frames(strata_pickler_t *pickler, const char *tag, const char *stack);

#endif
