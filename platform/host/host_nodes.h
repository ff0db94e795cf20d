/* Mapped host memory, and the nodes of the host (NUMA) that it comes from. */
#ifndef STRATA_PLATFORM_HOST_NODES_H
#define STRATA_PLATFORM_HOST_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STRATA_HOST_NODES = 64 }; /* nodes that can be named */

/* The nodes from which this process may have memory, bit n for node n; 0: the kernel has none, or does not say. */
uint64_t strata_host_nodes(void);

/* Untouched memory of `size` in whole pages, aligned to a power of two from the page size up; NULL: the host has none. */
void *strata_host_map(size_t size, size_t alignment);
/* The same at a given page; NULL: something is mapped there. */
void *strata_host_map_at(uintptr_t address, size_t size);
void strata_host_unmap(void *memory, size_t size);
/* From now on the node serves pages of mapped memory at their first touch, while it has any. false: the kernel refused. */
bool strata_host_take_from(void *memory, size_t size, uint32_t node);

#endif
