/* The library's own host memory. Everything that Strata allocates for itself goes through here, so that tests can fail each
 * allocation in turn and count them (CONTRACTS §2). Never called with a lock held. */
#ifndef STRATA_PLATFORM_HOST_MEMORY_H
#define STRATA_PLATFORM_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/status.h"

/* Zeroed. NULL when there is none left, with the thread's last error set to E_HOST_MEMORY. */
void *strata_host_new(size_t count, size_t size);
/* Grows an array that strata_host_new() gave (or NULL) to `count` elements; the new tail is not zeroed. NULL: the old one
 * stands as it was. */
void *strata_host_resize(void *memory, size_t count, size_t size);
char *strata_host_strdup(const char *text);
void strata_host_delete(void *memory);

/* Address space that is zero and costs memory only where it is touched; touching it later is no allocation. Where address
 * space is limited the size is halved until it fits, down to `least`; *got says what came. NULL as above. */
void *strata_host_reserve(size_t size, size_t least, size_t *got);
void strata_host_unreserve(void *memory, size_t size);
/* Makes whole pages of a reserved range zero and gives their memory back; may be called with a lock held. false: the system
 * would not, nothing has changed. */
bool strata_host_discard(void *memory, size_t size);

/* E_HOST_MEMORY, with what was asked and the limit of address space, if there is one. */
strata_status_t strata_host_out_of_memory(uint64_t bytes);
/* "; the process may map ..." where its address space is limited, else "". */
const char *strata_host_bound(char *text, size_t capacity);
/* Counts an allocation that platform/host/growing.c makes by itself; true: it is to fail. */
bool strata_host_refuses(void);

/* Asks for huge pages under a range of mapped memory of anybody's. false: the system would not. */
bool strata_host_want_huge_pages(void *memory, size_t size);

/* All memory that the machine has, in bytes. */
uint64_t strata_host_memory_size(void);

/* For tests. Allocations (new, resize, strdup, reserve) made by the process so far. */
uint64_t strata_host_allocations(void);
/* For tests: the k-th allocation from now on (1 = the next) fails, and with `onward` all behind it. 0 switches off. */
void strata_host_fail_at(uint64_t k, int onward);

#endif
