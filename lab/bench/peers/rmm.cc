// RMM's resources over its cuda_memory_resource as a peer. "pool" grows as needed, and "arena" takes half of
// the device. "binning" is a pool behind bins of 256 KiB to 4 MiB, as in RMM's own replay benchmark.
#include <cstdlib>
#include <cstring>
#include <utility>

#include <rmm/cuda_device.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include "lab/bench/peers/peer.h"

namespace {
using pool_t = rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource>;
constexpr int least_bin = 18, largest_bin = 22; // powers of two

rmm::mr::cuda_memory_resource *device;
rmm::mr::device_memory_resource *resource;

} // namespace

// Replaces librmm.so's own function, which calls a runtime that is linked into it and needs a real driver.
std::pair<std::size_t, std::size_t> rmm::available_device_memory() {
    std::size_t unused = 0, total = 0;
    if (cudaMemGetInfo(&unused, &total) != cudaSuccess) std::exit(1);
    return {unused, total};
}

bool peer_open(const char *setup) {
    device = new rmm::mr::cuda_memory_resource;
    if (std::strcmp(setup, "pool") == 0) resource = new pool_t(device, 0);
    else if (std::strcmp(setup, "arena") == 0) resource = new rmm::mr::arena_memory_resource<rmm::mr::cuda_memory_resource>(device);
    else if (std::strcmp(setup, "binning") == 0)
        resource = new rmm::mr::binning_memory_resource<pool_t>(new pool_t(device, 0), least_bin, largest_bin);
    return resource != nullptr;
}

void *peer_stream() {
    cudaStream_t stream;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) std::exit(1);
    return stream;
}

bool peer_allocate(void *stream, std::size_t size, peer_block_t *block) {
    try {
        block->ptr = resource->allocate(rmm::cuda_stream_view(static_cast<cudaStream_t>(stream)), size);
    } catch (const std::bad_alloc &) { return false; }
    block->size = size;
    block->stream = stream;
    return true;
}

void peer_free(const peer_block_t *block) {
    resource->deallocate(rmm::cuda_stream_view(static_cast<cudaStream_t>(block->stream)), block->ptr, block->size);
}

bool peer_lend(const peer_block_t *, void *) { return false; }
