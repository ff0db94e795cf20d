/* Call stacks of PyTorch's snapshots: lists of dicts with filename, line and name, innermost frame first.
 *
 * PyTorch writes a separate list for every event. So lists are compared by contents, and equal ones become
 * one stack of the trace. Objects that the pickle references in several places are read once. */
#ifndef STRATA_TRACE_FRAMES_H
#define STRATA_TRACE_FRAMES_H

#include "lab/trace/formats/pickle.h"
#include "trace/ids.h"
#include "trace/stacks.h"

/* The tag and the stack of a list of frames in a trace. */
typedef struct strata_frames_named {
    char *tag; /* "" if no frame has a file or a name */
    uint32_t stack; /* number in the trace's stacks, from 1; 0 for none */
    bool no_room; /* it has frames, but the trace cannot hold another stack */
} strata_frames_named_t;

typedef struct strata_frames {
    strata_stacks_t *stacks; /* of the trace; no other code adds to them */
    strata_ids_t objects, contents; /* frames by position of the dict in the pickle, and by contents */
    uint32_t *frame_of; /* by object number: the number of its contents */
    size_t object_room;
    struct strata_frame *frames; /* by number of the contents */
    size_t frame_room;
    strata_ids_t lists, sequences; /* lists by position in the pickle, and by the numbers of their frames */
    uint32_t *sequence_of;
    size_t list_room;
    struct strata_frames_sequence *all; /* by number of the sequence */
    size_t sequence_room;
    strata_ids_t texts; /* texts of the stacks, in the order of their numbers */
} strata_frames_t; /* an empty table is all zero except `stacks` */

/* Finds the tag and stack of a list of frames. *named is valid until the next call, or NULL if the value is
 * not a list or is empty. Fails with E_HOST_MEMORY. */
strata_status_t strata_frames_name(strata_frames_t *frames, const strata_pickle_value_t *list, const strata_frames_named_t **named);
void strata_frames_clear(strata_frames_t *frames);

#endif
