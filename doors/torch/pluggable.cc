/* The functions that PyTorch's CUDAPluggableAllocator calls, over a facade that Python opened (doors/python/strata/torch), and
 * statistics with PyTorch's meaning. An error is a C++ exception, which PyTorch converts to a RuntimeError. The signatures are
 * those of torch/csrc/cuda/CUDAPluggableAllocator.h in PyTorch 2.11, and have not changed since 2.6. */
#include <algorithm>
#include <cstdio>

#include "doors/torch/state.h"

using namespace strata_door;

namespace strata_door {
std::atomic<strata_t> facade{0};
std::array<Meter, max_devices> meters;
static std::atomic<strata_t> reported_closed{0}; /* the closed facade that was reported last */

bool is_over(strata_status_t status) {
    if (status == STRATA_E_FORKED || status == STRATA_E_SHUTDOWN) return true;
    if (status != STRATA_E_STALE) return false;
    strata_t used = facade;
    strata_block_t none;
    std::string why = strata_last_error()->text;
    if (strata_block_of(used, nullptr, &none) != STRATA_E_STALE) { /* the facade is open, so only a ref was stale */
        (void)strata_fail(status, 0, "%s", why.c_str());
        return false;
    }
    if (reported_closed.exchange(used) != used)
        std::fprintf(
            stderr, "strata: the facade behind PyTorch was closed while tensors were live. Their memory is released, and they must "
                    "not be used; freeing them does nothing, and new tensors on the GPU fail. Close it after the last tensor.\n");
    return true;
}
} // namespace strata_door

void strata_torch_use(strata_t opened) {
    for (Meter &meter : meters) meter.clear();
    forget_pools();
    forget_names();
    forget_chunks();
    facade = opened;
}

void *strata_torch_allocate(ssize_t size, int device, CUstream_st *stream) {
    if (size == 0) return nullptr;
    if (size < 0 || !meter(device)) throw std::runtime_error("Strata: a request with a negative size or without a device");
    strata_block_t block;
    check(strata_allocate(facade, place_of(device), stream, (size_t)size, &block));
    strata_torch_count_alloc(device, &block);
    return block.ptr;
}

void strata_torch_free(void *pointer, ssize_t, int device, CUstream_st *) {
    if (!pointer) return;
    strata_block_t block;
    strata_status_t status = strata_block_of(facade, pointer, &block);
    if (status == STRATA_OK) strata_torch_count_free(device, &block);
    if (status == STRATA_OK) status = strata_free(facade, block.ref);
    if (status != STRATA_OK && !is_over(status))
        std::fprintf(stderr, "strata: a tensor's memory was not freed: %s\n", strata_last_error()->text);
}

void strata_torch_record_stream(void *pointer, CUstream_st *stream) {
    if (!pointer) return;
    strata_block_t block;
    strata_status_t status = strata_block_of(facade, pointer, &block);
    if (status == STRATA_OK) status = strata_record_stream(facade, block.ref, stream);
    check_unless_over(status);
}

void *strata_torch_base(void *pointer, size_t *size) {
    strata_block_t block;
    check(strata_base_pointer(facade, pointer, &block));
    if (size) *size = block.size;
    return block.ptr;
}

void *strata_torch_chunk(void *pointer, size_t *size) {
    strata_block_t block;
    void *base;
    size_t bytes;
    check(strata_base_pointer(facade, pointer, &block));
    check(strata_base_of(facade, block.ref, &base, &bytes));
    if (size) *size = bytes;
    return base;
}

int strata_torch_find(void *pointer, strata_block_t *block) {
    strata_place_t place;
    strata_status_t status = strata_block_of(facade, pointer, block);
    if (is_over(status)) return -1;
    check(status);
    check(strata_place_of(facade, block->ref, &place));
    return (int)strata_place_device(place);
}

void strata_torch_reset() {
    for (int device = 0; device < max_devices; device++)
        if (meter(device)->used) strata_torch_release(device, {0, 0});
}

void strata_torch_release(int device, PoolId pool) {
    uint64_t number = strata_torch_pool_number(device, pool);
    if (pool == PoolId{0, 0}) check_unless_over(strata_release(facade, place_of(device), nullptr));
    else if (number) check_unless_over(strata_release_pool(facade, place_of(device), number, nullptr));
}

void strata_torch_memory_fraction(double fraction, int device) {
    if (!(0 <= fraction && fraction <= 1)) throw std::runtime_error("Strata: the memory fraction must be between 0 and 1");
    uint64_t limit = fraction == 1 ? STRATA_UNLIMITED : (uint64_t)(fraction * (double)mem_info_of(facade, device).total);
    check(strata_set_limit(facade, place_of(device), limit));
}

double strata_torch_fraction(int device) {
    strata_mem_info_t info = mem_info_of(facade, device);
    return info.limit >= info.total ? 1.0 : (double)info.limit / (double)info.total;
}

size_t strata_torch_largest(int device) {
    strata_mem_info_t info = mem_info_of(facade, device);
    uint64_t room = info.free + info.cached;
    if (info.limit == STRATA_UNLIMITED) return room;
    uint64_t allocated = statistics_of(facade, device).allocated_bytes;
    return std::min(room, info.limit > allocated ? info.limit - allocated : 0);
}

/* ---- figures ---- */

void strata_torch_count_alloc(int device, const strata_block_t *block) {
    if (meter(device)) meter(device)->add(block->size);
}

void strata_torch_count_free(int device, const strata_block_t *block) {
    end_name(block->ptr);
    if (meter(device)) meter(device)->remove(block->size);
}

int strata_torch_figures(int device, Figure figures[2]) {
    const Meter *counters = meter(device);
    if (!counters) return 1;
    figures[0] = counters->count.figure();
    figures[1] = counters->bytes.figure();
    return 0;
}

int strata_torch_used(int device) { return meter(device) && meter(device)->used; }

void strata_torch_reset_peaks(int device) {
    if (!strata_torch_used(device)) return;
    meter(device)->reset_peaks();
    strata_reset_peaks(facade, place_of(device));
}

void strata_torch_reset_totals(int device) {
    if (meter(device)) meter(device)->reset_totals();
}
