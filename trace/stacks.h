/* Call stacks in a trace: "file:line inner;file:line outer", the innermost frame first. A file says each once, where it first stands. */
#ifndef STRATA_TRACE_STACKS_H
#define STRATA_TRACE_STACKS_H

#include "trace/trace.h"

/* Those that a reader has seen; stack n is texts[n - 1], which stays where it is. */
typedef struct strata_stacks {
    char **texts;
    size_t count, room, bytes;
} strata_stacks_t;

/* A copy of a text as a new stack; what a stack cannot hold becomes a space, and it is cut where it is too long. NULL with E_HOST_MEMORY,
 * or, if no more fit, with STRATA_OK. */
strata_status_t strata_stacks_add(strata_stacks_t *stacks, const char *text, const char **added);
/* A field of column `stack`: "", "7", or "7:frames" where 7 is new. *why: NULL, or what is wrong with it. E_HOST_MEMORY. */
strata_status_t strata_stacks_read(strata_stacks_t *stacks, const char *field, const char **text, const char **why);
void strata_stacks_clear(strata_stacks_t *stacks);
/* Whether it is one, or "". */
bool strata_stack_is_good(const char *text);

#endif
