// CUB's CachingDeviceAllocator as a peer. "cub" has its defaults, which keep at most 6 MiB in bins of powers
// of 8 up to 2 MiB. "cub:wide" has bins of powers of 2 up to 2 GiB and no limit on the kept memory.
#include <cstdlib>
#include <cstring>

#include <cub/util_allocator.cuh>

#include "lab/bench/peers/peer.h"

static cub::CachingDeviceAllocator *allocator;

bool peer_open(const char *setup) {
    if (std::strcmp(setup, "cub") == 0) allocator = new cub::CachingDeviceAllocator();
    else if (std::strcmp(setup, "cub:wide") == 0) allocator = new cub::CachingDeviceAllocator(2, 8, 31);
    return allocator != nullptr;
}

void *peer_stream() {
    cudaStream_t stream;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) std::exit(1);
    return stream;
}

bool peer_allocate(void *stream, std::size_t size, peer_block_t *block) {
    if (allocator->DeviceAllocate(&block->ptr, size, static_cast<cudaStream_t>(stream)) != cudaSuccess) return false;
    block->size = size;
    block->stream = stream;
    return true;
}

void peer_free(const peer_block_t *block) { allocator->DeviceFree(block->ptr); }

bool peer_lend(const peer_block_t *, void *) { return false; }
