/* Host memory that is mapped, and the nodes of the host (NUMA) that it comes from. */
#ifndef STRATA_PLATFORM_HOST_NODES_H
#define STRATA_PLATFORM_HOST_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STRATA_HOST_NODES = 64 }; /* nodes that can be named */

/* The nodes that this process may have memory of, bit n for node n; 0: the kernel has none or does not say. */
uint64_t strata_host_nodes(void);

/* Untouched memory, `size` in whole pages, aligned to a power of two from the page on; NULL: the host has none. */
void *strata_host_map(size_t size, size_t alignment);
void strata_host_unmap(void *memory, size_t size);
/* Pages of mapped memory that are touched from now on come from the node while it has any. false: the kernel refuses. */
bool strata_host_take_from(void *memory, size_t size, uint32_t node);

#endif
