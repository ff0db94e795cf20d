/* Mapped host memory, and the NUMA nodes of the host that provide it. */
#ifndef STRATA_PLATFORM_HOST_NODES_H
#define STRATA_PLATFORM_HOST_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STRATA_HOST_NODES = 64 }; /* nodes that can be named */

/* Returns the nodes from which this process may have memory, bit n for node n, or 0 if the kernel
 * reports none. */
uint64_t strata_host_nodes(void);

/* Maps untouched memory of `size`, in whole pages, aligned to a power of two that is at least the page
 * size. Returns NULL if the host has none. */
void *strata_host_map(size_t size, size_t alignment);
/* Maps memory at the page `address`. Returns NULL if something is mapped there. */
void *strata_host_map_at(uintptr_t address, size_t size);
void strata_host_unmap(void *memory, size_t size);
/* Makes the node serve pages of mapped memory at their first touch, while it has any. Returns false if
 * the kernel refused. */
bool strata_host_prefer_node(void *memory, size_t size, uint32_t node);

#endif
