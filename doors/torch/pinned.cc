/* The whole door's pinned memory, which makes Strata's pinned place PyTorch's host allocator (pin_memory, the data loader). The
 * interface is ATen/core/CachingHostAllocator.h as of PyTorch 2.11. A pinned block has no owner stream, because PyTorch calls
 * record_event() for every stream that uses one. */
#include <ATen/core/CachingHostAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdio>

#include "doors/torch/figures.h"

using namespace strata_door;

namespace {

void release_pinned(void *pointer);

class Pinned final : public at::HostAllocator {
  public:
    void use(strata_t facade) { facade_ = facade; }

    at::DataPtr allocate(size_t size) override {
        strata_block_t block{};
        if (size > 0) {
            strata_status_t status = strata_allocate(facade_, strata_pinned(), nullptr, size, &block);
            TORCH_CHECK(status == STRATA_OK, "Strata: ", strata_last_error()->text);
            meter_.add(block.size);
        }
        return {block.ptr, block.ptr, &release_pinned, c10::Device(c10::DeviceType::CPU)};
    }
    at::DeleterFnPtr raw_deleter() const override { return &release_pinned; }
    void copy_data(void *to, const void *from, size_t size) const override { default_copy_data(to, from, size); }

    void release(void *pointer) {
        strata_block_t block;
        strata_status_t status = strata_block_of(facade_, pointer, &block);
        if (status == STRATA_OK) meter_.remove(block.size);
        if (status == STRATA_OK) status = strata_free(facade_, block.ref);
        check_unless_over(status);
    }

    /* Returns false if another allocator pinned the memory. `pointer` may be inside a block. */
    bool record_event(void *pointer, void *, c10::Stream stream) override {
        strata_block_t block;
        if (strata_base_pointer(facade_, pointer, &block) != STRATA_OK) return false;
        strata_status_t status = strata_record_stream(facade_, block.ref, c10::cuda::CUDAStream(stream).stream());
        TORCH_CHECK(status == STRATA_OK, "Strata: ", strata_last_error()->text);
        return true;
    }
    void empty_cache() override { (void)strata_release(facade_, strata_pinned(), nullptr); }

    /* In newer versions "allocated" means the bytes that Strata calls reserved. The driver's time is not measured. */
    at::HostStats get_stats() override {
        strata_statistics_t now{};
        now.struct_size = sizeof now;
        (void)strata_statistics_all(facade_, strata_pinned(), &now);
        at::HostStats stats;
#if STRATA_TORCH >= 210
        auto &requests = stats.active_requests, &bytes = stats.active_bytes;
        auto &chunks = stats.allocations, &reserved = stats.allocated_bytes;
#else
        auto &requests = stats.allocation, &bytes = stats.allocated_bytes;
        auto &chunks = stats.segment, &reserved = stats.reserved_bytes;
#endif
        fill(requests, meter_.count);
        fill(bytes, meter_.bytes);
        chunks.current = chunks.peak = (int64_t)now.chunks;
        chunks.allocated = stats.num_host_alloc = (int64_t)now.growths;
        chunks.freed = stats.num_host_free = (int64_t)(now.growths - now.chunks);
        reserved.current = (int64_t)now.reserved_bytes;
        reserved.peak = (int64_t)now.peak_reserved_bytes;
        return stats;
    }
    void reset_accumulated_stats() override { meter_.reset_totals(); }
    void reset_peak_stats() override {
        meter_.reset_peaks();
        (void)strata_reset_peaks(facade_, strata_pinned());
    }

#if STRATA_TORCH >= 211
    /* Captured streams that use pinned memory borrow it, and the borrow lasts as long as their graph (docs/graphs.md). */
    void begin_allocate_to_pool(c10::MempoolId_t, std::function<bool(c10::Stream)>) override {}
    void end_allocate_to_pool(c10::MempoolId_t) override {}
    void release_pool(c10::MempoolId_t) override {}
#endif

  private:
    static void fill(c10::CachingAllocator::Stat &stat, const Counter &figure) {
        stat.current = figure.current;
        stat.peak = figure.peak;
        stat.allocated = figure.total;
        stat.freed = figure.freed;
    }

    strata_t facade_ = 0;
    Meter meter_;
};

Pinned &pinned() {
    static Pinned *one = new Pinned; /* never destroyed, because tensors outlive every static */
    return *one;
}

/* Called by destructors, which must not throw. */
void release_pinned(void *pointer) {
    try {
        pinned().release(pointer);
    } catch (const std::exception &error) { std::fprintf(stderr, "strata: pinned memory was not freed: %s\n", error.what()); }
}

} // namespace

/* Makes the pinned place of this facade PyTorch's host allocator. It must be called before the first pinned tensor. */
extern "C" __attribute__((visibility("default"))) void strata_whole_use_pinned(strata_t facade) {
    pinned().use(facade);
    at::setHostAllocator(c10::DeviceType::CUDA, &pinned(), UINT8_MAX);
}
