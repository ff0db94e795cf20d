/* Call stacks in a trace: "file:line inner;file:line outer", the innermost frame first. A file has the
 * text of each stack once, at its first use. */
#ifndef STRATA_TRACE_STACKS_H
#define STRATA_TRACE_STACKS_H

#include "trace/trace.h"

/* The stacks that a reader has read. Stack n is texts[n - 1], which never moves. */
typedef struct strata_stacks {
    char **texts;
    size_t count, room, bytes;
} strata_stacks_t;

/* Adds a copy of a text as a new stack. Characters that a stack cannot hold become spaces, and a long
 * text is truncated. *added is NULL on E_HOST_MEMORY, and with STRATA_OK if no more stacks fit. */
strata_status_t strata_stacks_add(strata_stacks_t *stacks, const char *text, const char **added);
/* Reads a field of column `stack`: "", "7", or "7:frames" for a new stack 7. Sets *why to NULL, or to
 * the reason if the field is wrong. Fails with E_HOST_MEMORY. */
strata_status_t strata_stacks_read(strata_stacks_t *stacks, const char *field, const char **text, const char **why);
void strata_stacks_clear(strata_stacks_t *stacks);
/* Returns true if the text is a valid stack or "". */
bool strata_stack_is_valid(const char *text);

#endif
