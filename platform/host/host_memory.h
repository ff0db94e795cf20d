/* The library's own host memory. Everything that Strata allocates for itself goes through here, so that tests can fail each
 * allocation in turn and count them (docs/contracts.md §2). Never called with a lock held. */
#ifndef STRATA_PLATFORM_HOST_MEMORY_H
#define STRATA_PLATFORM_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"

/* Zeroed. NULL when there is none left, with the thread's last error set to E_HOST_MEMORY. */
void *strata_host_new(size_t count, size_t size);
/* Grows an array from strata_host_new() (or NULL) to `count` elements; the new tail is not zeroed. NULL: the old array is
 * unchanged. */
void *strata_host_resize(void *memory, size_t count, size_t size);
char *strata_host_strdup(const char *text);
void strata_host_delete(void *memory);

/* Address space that is zero and costs memory only where it is touched; touching it later is not an allocation. If address space is
 * limited, the size is halved until it fits, down to `least`; *got receives what came. NULL as above. */
void *strata_host_reserve(size_t size, size_t least, size_t *got);
void strata_host_unreserve(void *memory, size_t size);
/* Zeroes whole pages of a reserved range and gives their memory back. May be called with a lock held. false: the system refused,
 * and nothing has changed. */
bool strata_host_discard(void *memory, size_t size);

/* E_HOST_MEMORY, with the size that was asked for, and with the limit of address space if there is one. */
strata_status_t strata_host_out_of_memory(uint64_t bytes);
/* "; the process may map ..." where its address space is limited, else "". */
const char *strata_host_bound(char *text, size_t capacity);
/* Counts an allocation that platform/host/growing.c makes itself; true: it must fail. */
bool strata_host_refuses(void);

/* Asks for huge pages under any range of mapped memory. false: the system refused. */
bool strata_host_want_huge_pages(void *memory, size_t size);
/* Memory of strata_host_new() or strata_host_resize() that will be used whole, from its beginning on: the kernel may give it in huge
 * pages, and is so asked for it less often. For commands that hold millions of rows; a process that others share keeps small pages. */
void strata_host_will_fill(void *memory, size_t size);

/* All memory of the machine, in bytes. */
uint64_t strata_host_memory_size(void);
/* Returns the number of threads of the process, or 0 if the system does not report it. Takes no lock and no memory. */
uint32_t strata_host_threads(void);

/* For tests: allocations (new, resize, strdup, reserve) made by the process so far. */
uint64_t strata_host_allocations(void);
/* For tests: memory that the process has not freed. */
typedef struct strata_host_live {
    uint64_t allocations, bytes; /* bytes as allocated by the system */
    uint64_t mapped; /* bytes of ranges, touched or not */
} strata_host_live_t;
strata_host_live_t strata_host_live(void);
/* Counts memory that platform/host/growing.c maps itself, or unmaps (negative). */
void strata_host_count_mapped(int64_t bytes);
/* For tests: the k-th allocation from now on (1 = the next) fails, and with `onward` all after it. 0 switches this off. */
void strata_host_fail_at(uint64_t k, int onward);

#endif
