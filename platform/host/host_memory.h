/* The library's own host memory. All of Strata's own allocations use these functions, so that tests can
 * count the allocations and make each fail in turn (docs/contracts.md §2). Never called with a lock
 * held. */
#ifndef STRATA_PLATFORM_HOST_MEMORY_H
#define STRATA_PLATFORM_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"

/* Returns zeroed memory. Returns NULL if there is none left, and sets the thread's last error to
 * E_HOST_MEMORY. */
void *strata_host_new(size_t count, size_t size);
/* Grows an array from strata_host_new() (or NULL) to `count` elements. The new tail is not zeroed. On
 * NULL the old array is unchanged. */
void *strata_host_resize(void *memory, size_t count, size_t size);
char *strata_host_strdup(const char *text);
void strata_host_delete(void *memory);

/* Reserves address space that is zero and costs memory only where it is touched. Touching it later is
 * not an allocation. If address space is limited, the size is halved until it fits, down to `least`.
 * Sets *got to the final size. Returns NULL as above. */
void *strata_host_reserve(size_t size, size_t least, size_t *got);
void strata_host_unreserve(void *memory, size_t size);
/* Zeroes whole pages of a reserved range and gives their memory back. May be called with a lock held.
 * Returns false if the system refused, and then nothing has changed. */
bool strata_host_discard(void *memory, size_t size);

/* Fails with E_HOST_MEMORY. The text has the requested size, and the limit of address space if there is one. */
strata_status_t strata_host_out_of_memory(uint64_t bytes);
/* Writes and returns "; the process may map ..." if the process's address space is limited, otherwise "". */
const char *strata_host_bound(char *text, size_t capacity);
/* Counts an allocation that platform/host/growing.c makes itself. Returns true if a test makes this
 * allocation fail. */
bool strata_host_refuses(void);

/* Asks for huge pages under any range of mapped memory. Returns false if the system refused. */
bool strata_host_advise_huge_pages(void *memory, size_t size);
/* Tells the kernel that memory of strata_host_new() or strata_host_resize() will be used whole, from
 * its beginning on. The kernel may then serve it in huge pages, with fewer page faults. For commands
 * that hold millions of rows; a process shared with others keeps small pages. */
void strata_host_will_fill(void *memory, size_t size);

/* Returns all memory of the machine in bytes. */
uint64_t strata_host_memory_size(void);
/* Returns the number of threads of the process, or 0 if the system does not report it. Takes no lock and no memory. */
uint32_t strata_host_threads(void);

/* For tests: returns the number of allocations (new, resize, strdup, reserve) made by the process so far. */
uint64_t strata_host_allocations(void);
/* For tests: memory that the process has not freed. */
typedef struct strata_host_live {
    uint64_t allocations, bytes; /* bytes as allocated by the system */
    uint64_t mapped; /* bytes of ranges, touched or not */
} strata_host_live_t;
strata_host_live_t strata_host_live(void);
/* Counts memory that platform/host/growing.c maps itself, or unmaps (negative). */
void strata_host_count_mapped(int64_t bytes);
/* For tests: makes the k-th allocation from now on fail (1 is the next), and with `onward` all after
 * it. 0 switches this off. */
void strata_host_fail_at(uint64_t k, int onward);

#endif
