/* The call stacks of a file that is being recorded. Frames are addresses, and each stack is converted
 * to text once. */
#ifndef STRATA_TRACE_RECORDER_STACKS_H
#define STRATA_TRACE_RECORDER_STACKS_H

#include "platform/host/call_stack.h"
#include "trace/ids.h"
#include "trace/stacks.h"

enum { STRATA_RECORDER_NAMES = 32 };

/* All zero is an empty table. */
typedef struct strata_recorder_stacks {
    strata_ids_t addresses; /* by frame address */
    char **names; /* by frame number */
    size_t name_room;
    uint64_t missing[STRATA_RECORDER_NAMES]; /* addresses without a name from the latest query */
    uint32_t missing_count;
    strata_ids_t keys; /* by stack */
    struct strata_recorder_stack {
        uint64_t *frames;
        uint32_t count;
        const char *text; /* "" if there was no room for it */
    } * stacks; /* by stack number */
    size_t stack_room;
    strata_stacks_t texts;
} strata_recorder_stacks_t;

/* Frames to be named with no lock held. */
typedef struct strata_recorder_names {
    uint64_t frames[STRATA_RECORDER_NAMES];
    char texts[STRATA_RECORDER_NAMES][STRATA_CALL_STACK_NAME];
    uint32_t count;
} strata_recorder_names_t;

/* Returns true if every frame has a name. Otherwise records the frames without one, as many as fit, for
 * strata_recorder_names_missing(). */
bool strata_recorder_names_complete(strata_recorder_stacks_t *stacks, const uint64_t *frames, uint32_t count);
void strata_recorder_names_missing(const strata_recorder_stacks_t *stacks, strata_recorder_names_t *names);
void strata_recorder_names_resolve(strata_recorder_names_t *names);
strata_status_t strata_recorder_names_add(strata_recorder_stacks_t *stacks, const strata_recorder_names_t *names);

/* Sets *text to the text of a stack with named frames, or to "" if no more stacks fit. The text never
 * moves. Fails with E_HOST_MEMORY. */
strata_status_t strata_recorder_stack(strata_recorder_stacks_t *stacks, const uint64_t *frames, uint32_t count, const char **text);
void strata_recorder_stacks_clear(strata_recorder_stacks_t *stacks);

#endif
