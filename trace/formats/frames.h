/* Call stacks of PyTorch's snapshots: lists of dicts of filename, line and name, the innermost frame first.
 *
 * PyTorch writes a list of its own for every event, so lists are compared by their contents: equal ones are one stack of the trace.
 * Objects that the pickle shows in many places are looked at once. */
#ifndef STRATA_TRACE_FRAMES_H
#define STRATA_TRACE_FRAMES_H

#include "trace/formats/pickle.h"
#include "trace/ids.h"
#include "trace/stacks.h"

/* The tag and the stack of a list of frames in a trace. */
typedef struct strata_frames_named {
    char *tag; /* "" if no frame has a file or a name */
    uint32_t stack; /* its number in the trace's stacks, from 1; 0: none */
    bool lost; /* it has frames, but the trace has no room for another stack */
} strata_frames_named_t;

typedef struct strata_frames {
    strata_stacks_t *stacks; /* of the trace; nothing else adds to them */
    strata_ids_t objects, contents; /* frames: by the dict's place in the pickle, and by their contents */
    uint32_t *frame_of; /* by the number of an object: the number of its contents */
    size_t object_room;
    struct strata_frame *frames; /* by the number of the contents */
    size_t frame_room;
    strata_ids_t lists, sequences; /* likewise of lists: by place, and by the numbers of their frames */
    uint32_t *sequence_of;
    size_t list_room;
    struct strata_frames_sequence *all; /* by the number of the sequence */
    size_t sequence_room;
    strata_ids_t texts; /* of the stacks, in the order of their numbers */
} strata_frames_t; /* all zero but `stacks` is an empty table */

/* Names a list of frames. *named is valid until the next call, and NULL if the value is no list or is empty. E_HOST_MEMORY. */
strata_status_t strata_frames_name(strata_frames_t *frames, const strata_pickle_value_t *list, const strata_frames_named_t **named);
void strata_frames_clear(strata_frames_t *frames);

#endif
