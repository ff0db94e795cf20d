/* The pluggable door: the functions that PyTorch's CUDAPluggableAllocator calls, over a facade that Python has opened
 * (python/strata/torch). Compiled once, into the wheel, without PyTorch; an error is a C++ exception, which PyTorch makes a RuntimeError
 * of. Signatures: torch/csrc/cuda/CUDAPluggableAllocator.h of PyTorch 2.11, the same since 2.6. */
#include <sys/types.h>

#include <atomic>
#include <cstdio>

#include "integration/torch/door.h"

using strata_door::is_over;
using strata_door::most_devices;
using strata_door::PoolId;
using strata_door::reason;

namespace {

std::atomic<strata_t> facade{0};
std::array<strata_door::Meter, most_devices> meters;
strata_door::Pools pools;

void check(strata_status_t status) {
    if (status != STRATA_OK) throw std::runtime_error(reason(status));
}

strata_door::Meter *meter(int device) { return device >= 0 && device < most_devices ? &meters[(size_t)device] : nullptr; }

} // namespace

#define DOOR extern "C" __attribute__((visibility("default")))

/* The facade that serves from now on, and of which nothing is live. */
DOOR void strata_torch_use(strata_t opened) {
    for (strata_door::Meter &meter : meters) meter.clear();
    pools.clear();
    facade = opened;
}

/* Memory for `stream`. 0 bytes are no request: PyTorch never gives them back. */
DOOR void *strata_torch_allocate(ssize_t size, int device, CUstream_st *stream) {
    if (size == 0) return nullptr;
    if (size < 0 || !meter(device)) throw std::runtime_error("Strata: a request of a negative size, or of no device");
    strata_block_t block;
    check(strata_allocate(facade, strata_gpu((uint32_t)device), stream, (size_t)size, &block));
    meter(device)->add(block.size);
    return block.ptr;
}

/* May run in a destructor, so it says what is wrong instead of throwing. `stream` is that of the allocation, which Strata knows. */
DOOR void strata_torch_free(void *pointer, ssize_t size, int device, CUstream_st *stream) {
    (void)size, (void)stream;
    if (!pointer) return;
    strata_block_t block;
    strata_status_t status = strata_block_of(facade, pointer, &block);
    if (status == STRATA_OK && meter(device)) meter(device)->take(block.size);
    if (status == STRATA_OK) status = strata_free(facade, block.ref);
    if (status != STRATA_OK && !is_over(status))
        std::fprintf(stderr, "strata: free of %p: %s\n", pointer, strata_last_error()->text);
}

DOOR void strata_torch_record_stream(void *pointer, CUstream_st *stream) {
    if (!pointer) return;
    strata_block_t block;
    check(strata_block_of(facade, pointer, &block));
    check(strata_record_stream(facade, block.ref, stream));
}

/* The start and the size of the block that `pointer` lies in. */
DOOR void *strata_torch_base(void *pointer, size_t *size) {
    strata_block_t block;
    check(strata_base_pointer(facade, pointer, &block));
    if (size) *size = block.size;
    return block.ptr;
}

/* torch.cuda.empty_cache(). */
DOOR void strata_torch_reset() {
    for (int device = 0; device < most_devices; device++)
        if (meter(device)->used) check(strata_release(facade, strata_gpu((uint32_t)device), nullptr));
}

/* torch.cuda.set_per_process_memory_fraction(). */
DOOR void strata_torch_memory_fraction(double fraction, int device) {
    strata_place_t place = strata_gpu((uint32_t)device);
    strata_mem_info_t info = {};
    info.struct_size = sizeof info;
    check(strata_mem_info(facade, place, &info));
    check(strata_set_limit(facade, place, fraction >= 1 ? STRATA_UNLIMITED : (uint64_t)(fraction * (double)info.total)));
}

/* ---- graphs: torch.cuda.graph() ---- */

DOOR void strata_torch_begin_pool(int device, PoolId id, strata_door::Chosen chosen) {
    pools.begin(facade, device, id, std::move(chosen));
}
DOOR void strata_torch_end_pool(int device, PoolId id) { pools.end(facade, device, id); }
DOOR void strata_torch_release_pool(int device, PoolId id) { pools.release(facade, device, id); }

/* ---- figures ---- */

/* The number and the bytes of a device's blocks: current, peak, and what came and went in all, of each. 1: there is no such device. */
DOOR int strata_torch_figures(int device, int64_t figures[8]) {
    const strata_door::Meter *told = meter(device);
    if (!told) return 1;
    for (const strata_door::Figure *figure : {&told->count, &told->allocated}) {
        *figures++ = figure->current;
        *figures++ = figure->peak;
        *figures++ = figure->total;
        *figures++ = figure->gone;
    }
    return 0;
}
/* PyTorch's name of the pool of graphs that Strata counts as `number`; {0, 0}: the program keeps none of it. */
DOOR void strata_torch_pool_name(int device, uint64_t number, unsigned long long id[2]) {
    PoolId name = pools.name(device, number);
    id[0] = name.first;
    id[1] = name.second;
}
/* Whether anything was served on the device. */
DOOR int strata_torch_used(int device) { return meter(device) && meter(device)->used; }
/* Peaks begin again at what is. */
DOOR void strata_torch_reset_peaks(int device) {
    if (!strata_torch_used(device)) return;
    meter(device)->reset_peaks();
    strata_reset_peaks(facade, strata_gpu((uint32_t)device));
}
/* What came and went begins again at 0. */
DOOR void strata_torch_reset_totals(int device) {
    if (meter(device)) meter(device)->reset_totals();
}
