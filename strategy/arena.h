/* Memory that is given back all at once: what a strategy owns, and what reading a file needs. For one thread at a time. */
#ifndef STRATA_STRATEGY_ARENA_H
#define STRATA_STRATEGY_ARENA_H

#include <stddef.h>

typedef struct strata_arena strata_arena_t;

/* NULL: E_HOST_MEMORY, here and below. */
strata_arena_t *strata_arena_new(void);
/* Zeroed, aligned for anything. */
void *strata_arena_take(strata_arena_t *arena, size_t count, size_t size);
/* A copy of `length` bytes with a terminating zero. */
char *strata_arena_text(strata_arena_t *arena, const char *text, size_t length);
/* NULL is allowed. */
void strata_arena_delete(strata_arena_t *arena);

#endif
