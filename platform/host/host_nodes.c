#include "platform/host/host_nodes.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/arithmetic.h"

uint64_t strata_host_nodes(void) {
    unsigned long nodes[1024 / (8 * sizeof(unsigned long))] = {0};
    /* The kernel refuses masks that are shorter than its own. */
    long answer = syscall(SYS_get_mempolicy, NULL, nodes, 8 * sizeof nodes, NULL, MPOL_F_MEMS_ALLOWED);
    return answer == 0 ? nodes[0] : 0;
}

void *strata_host_map(size_t size, size_t alignment) {
    uint64_t room;
    if (!strata_add(size, alignment, &room)) return NULL;
    uint8_t *all = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return NULL;
    uint64_t before = (alignment - ((uintptr_t)all & (alignment - 1))) & (alignment - 1);
    if (before) munmap(all, before);
    if (room - before > size) munmap(all + before + size, room - before - size);
    return all + before;
}

/* A kernel without the flag MAP_FIXED_NOREPLACE takes the address as a hint. */
void *strata_host_map_at(uintptr_t address, size_t size) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void *memory = mmap((void *)address, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED || (uintptr_t)memory == address) return memory == MAP_FAILED ? NULL : memory;
    munmap(memory, size);
    return NULL;
}

void strata_host_unmap(void *memory, size_t size) { munmap(memory, size); }

/* The node is preferred, not bound: a bound process is killed when the node has no page left. */
bool strata_host_prefer_node(void *memory, size_t size, uint32_t node) {
    if (node >= STRATA_HOST_NODES) return false;
    unsigned long mask[2] = {1ul << node, 0};
    return syscall(SYS_mbind, memory, size, MPOL_PREFERRED, mask, 8 * sizeof mask, 0) == 0;
}
