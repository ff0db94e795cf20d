/* A tool that records NVTX's ranges, linked into the test. */
#ifndef STRATA_TESTS_RANGES_TOOL_H
#define STRATA_TESTS_RANGES_TOOL_H

#include <stddef.h>
#include <stdint.h>

typedef struct tool_range {
    char name[32];
    uint64_t bytes;
    size_t depth; /* ranges around it */
} tool_range_t;

/* Forgets what was recorded. */
void tool_clear(void);
/* How many ranges of this name were begun since, and the first of them (NULL: none). */
size_t tool_count(const char *name);
const tool_range_t *tool_first(const char *name);
/* Ranges that were begun and not ended. */
size_t tool_open(void);
/* The name of the domain that the ranges were in. */
const char *tool_domain(void);

#endif
