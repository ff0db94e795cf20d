/* Memory that is freed all at once: the contents of a strategy, and scratch memory for reading a file.
 * For one thread at a time. */
#ifndef STRATA_STRATEGY_ARENA_H
#define STRATA_STRATEGY_ARENA_H

#include <stddef.h>

typedef struct strata_arena strata_arena_t;

/* Returns NULL with E_HOST_MEMORY if out of memory, as the functions below do. */
strata_arena_t *strata_arena_new(void);
/* Returns zeroed memory, aligned for any type. */
void *strata_arena_alloc(strata_arena_t *arena, size_t count, size_t size);
/* Copies `length` bytes and adds a terminating zero. */
char *strata_arena_strndup(strata_arena_t *arena, const char *text, size_t length);
/* Accepts NULL. */
void strata_arena_delete(strata_arena_t *arena);

#endif
