// PyTorch's own caching allocator as a peer, from the wheel's libc10_cuda.so. "torch" has its defaults, and
// "torch:expandable" has expandable segments. The environment selects them, as in PyTorch.
#include <cstdlib>
#include <cstring>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include "lab/bench/peers/peer.h"

// Exported by libc10_cuda.so; no header has it.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace torch_memory = c10::cuda::CUDACachingAllocator;

bool peer_open(const char *setup) {
    bool expandable = std::strcmp(setup, "torch:expandable") == 0;
    if (!expandable && std::strcmp(setup, "torch") != 0) return false;
    setenv("PYTORCH_CUDA_ALLOC_CONF", expandable ? "expandable_segments:True" : "", 1);
    // The rest of PyTorch, which defines this function, is not loaded here.
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    torch_memory::init(1);
    return true;
}

void *peer_stream() {
    cudaStream_t stream;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) std::exit(1);
    return stream;
}

bool peer_allocate(void *stream, std::size_t size, peer_block_t *block) {
    try {
        block->ptr = torch_memory::raw_alloc_with_stream(size, static_cast<cudaStream_t>(stream));
    } catch (const c10::Error &) { return false; }
    block->size = size;
    block->stream = stream;
    return true;
}

void peer_free(const peer_block_t *block) { torch_memory::raw_delete(block->ptr); }

bool peer_lend(const peer_block_t *block, void *stream) {
    c10::DataPtr held(block->ptr, block->ptr, torch_memory::get()->raw_deleter(), c10::Device(c10::kCUDA, 0));
    torch_memory::recordStream(held, c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(stream), 0));
    held.release_context();
    return true;
}
