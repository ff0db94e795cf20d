/* The functions of libstrata_torch.so, which give both doors PyTorch's view of a facade.
 *
 *   pluggable door:  PyTorch's CUDAPluggableAllocator ----> libstrata_torch.so ----> facade
 *   whole door:      PyTorch's CUDAAllocator ----> libstrata_whole.so ----> libstrata_torch.so ----> facade
 *
 * libstrata_torch.so includes no header of PyTorch, so it needs no compiler on the user's machine. The whole door (whole.cc,
 * pinned.cc) is compiled there. Errors are std::runtime_error. Any thread may call. */
#ifndef STRATA_INTEGRATION_TORCH_DOOR_H
#define STRATA_INTEGRATION_TORCH_DOOR_H

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "strata/strata.h"

#define STRATA_DOOR extern "C" __attribute__((visibility("default")))

struct CUstream_st;

namespace strata_door {

/* PyTorch's types: c10::MempoolId_t, and the function that selects the streams of a pool. */
using PoolId = std::pair<unsigned long long, unsigned long long>;
using Chosen = std::function<bool(CUstream_st *)>;

constexpr int max_devices = 16; /* the max of a facade */

/* One of PyTorch's statistics. */
struct Figure {
    int64_t current, peak, total, freed;
};
/* A change of the memory that Strata holds of the device: a chunk was created or released, or it grew or shrank. */
enum class Change { created, grew, shrank, released };
struct Chunk {
    size_t address, size;
    strata_stream_t stream;
    PoolId pool;
};

using RowFn = std::function<void(const strata_snapshot_row_t &row, PoolId name)>;
using ChangeFn = std::function<void(Change change, const Chunk &chunk)>;

/* Returns why the last call of this thread failed. For out of memory it begins with "CUDA out of memory.", because programs search
 * PyTorch's message for these words. The report's "out of memory in gpu:0 ..." then continues as "In gpu:0 ...". */
inline std::string reason(strata_status_t status) {
    std::string text = strata_last_error()->text;
    if (status != STRATA_E_NO_MEMORY) return "Strata: " + text;
    const std::string repeated = "out of memory in ";
    if (text.compare(0, repeated.size(), repeated) == 0) text.replace(0, repeated.size(), "In ");
    return "CUDA out of memory. " + text;
}
inline void check(strata_status_t status) {
    if (status != STRATA_OK) throw std::runtime_error(reason(status));
}
/* Returns true if a failed free has nothing left to free. That is so in a forked child, after the driver shut down, and after
 * the facade was closed. The first free after a close prints a line on standard error. Callers are destructors, which must not
 * throw. */
__attribute__((visibility("default"))) bool is_over(strata_status_t status);
inline void check_unless_over(strata_status_t status) {
    if (status != STRATA_OK && !is_over(status)) check(status);
}

inline strata_place_t place_of(int device) { return strata_gpu((uint32_t)device); }
inline strata_mem_info_t mem_info_of(strata_t facade, int device) {
    strata_mem_info_t info = {};
    info.struct_size = sizeof info;
    check(strata_mem_info(facade, place_of(device), &info));
    return info;
}
inline strata_statistics_t statistics_of(strata_t facade, int device) {
    strata_statistics_t statistics = {};
    statistics.struct_size = sizeof statistics;
    check(strata_statistics_all(facade, place_of(device), &statistics));
    return statistics;
}

/* Returns PyTorch's name of the pool of a block, or {0, 0} if the block is in no pool. */
__attribute__((visibility("default"))) PoolId pool_of(int device, strata_ref_t ref);

} // namespace strata_door

/* Sets the facade that serves all later requests. It must have no live block. */
STRATA_DOOR void strata_torch_use(strata_t facade);

/* ---- memory, with the signatures of CUDAPluggableAllocator ---- */

/* Serves memory for `stream`. For 0 bytes it returns NULL and counts no request, because PyTorch never frees those. */
STRATA_DOOR void *strata_torch_allocate(ssize_t size, int device, CUstream_st *stream);
/* Frees a block. It may run in a destructor, so it prints errors instead of throwing. `stream` is the stream of the allocation,
 * which Strata has recorded already. */
STRATA_DOOR void strata_torch_free(void *pointer, ssize_t size, int device, CUstream_st *stream);
STRATA_DOOR void strata_torch_record_stream(void *pointer, CUstream_st *stream);
/* Return the start and the size of the block that contains `pointer`, or of that block's chunk. */
STRATA_DOOR void *strata_torch_base(void *pointer, size_t *size);
STRATA_DOOR void *strata_torch_chunk(void *pointer, size_t *size);
/* Finds the block that begins at `pointer`. Returns its device, or -1 if is_over(). */
STRATA_DOOR int strata_torch_find(void *pointer, strata_block_t *block);
/* torch.cuda.empty_cache(): releases idle memory of all devices, or of one pool of one device. The pool {0, 0} means all pools. */
STRATA_DOOR void strata_torch_reset();
STRATA_DOOR void strata_torch_release(int device, strata_door::PoolId pool);
/* Returns an upper bound for the bytes of one request. */
STRATA_DOOR size_t strata_torch_largest(int device);
/* torch.cuda.set_per_process_memory_fraction(), and the fraction that is set. */
STRATA_DOOR void strata_torch_memory_fraction(double fraction, int device);
STRATA_DOOR double strata_torch_fraction(int device);
/* Writes a name of the block that contains `pointer`, for other processes. The name is valid until the free. `*offset` receives the
 * offset of `pointer` in the block. Returns the size of the name, or 0 if the block has no handles. */
constexpr size_t strata_torch_name_max = 8192;
STRATA_DOOR size_t strata_torch_share(void *pointer, char name[strata_torch_name_max], ptrdiff_t *offset);
/* Maps the block that another process named. It stays mapped until the last strata_torch_open_end(). `*id` receives the
 * argument for that call. */
STRATA_DOOR void *strata_torch_open(int device, const char *name, size_t size, uint64_t *id);
STRATA_DOOR void strata_torch_open_end(uint64_t id);

/* ---- pools of graphs ---- */

STRATA_DOOR void strata_torch_begin_pool(int device, strata_door::PoolId id, strata_door::Chosen chosen);
STRATA_DOOR void strata_torch_end_pool(int device, strata_door::PoolId id);
STRATA_DOOR void strata_torch_release_pool(int device, strata_door::PoolId id);
/* Adds a use without requests, as torch.cuda.MemPool does. */
STRATA_DOOR void strata_torch_retain_pool(int device, strata_door::PoolId id);
/* Returns the number of begins and keeps that were not released. */
STRATA_DOOR int strata_torch_pool_uses(int device, strata_door::PoolId id);
/* If `lends` is true, requests outside pools use free memory of a kept pool before they fail (use_on_oom of torch.cuda.MemPool). */
STRATA_DOOR void strata_torch_lend_pool(int device, strata_door::PoolId id, bool lends);
/* Rounds later blocks of a pool up to the size of a PyTorch segment (no_split of torch.cuda.MemPool). That is 2 MiB up to 1
 * MiB, 20 MiB below 10 MiB, else a multiple of 2 MiB. So a free block is reused whole, and small blocks do not fragment it. */
STRATA_DOOR void strata_torch_unsplit_pool(int device, strata_door::PoolId id);
/* Calls strata_allocate(); if that fails, takes a block that is free for `stream` from a pool with use_on_oom. The block still
 * belongs to its pool. */
STRATA_DOOR strata_status_t strata_torch_request(int device, CUstream_st *stream, size_t size, strata_block_t *block);
/* Return Strata's number of a pool, or the name of a number. The number is 0 if no pool has that name. The name is {0, 0} if
 * the program keeps no such pool. */
STRATA_DOOR uint64_t strata_torch_pool_number(int device, strata_door::PoolId id);
STRATA_DOOR void strata_torch_pool_name(int device, uint64_t number, unsigned long long id[2]);

/* ---- figures ---- */

/* Add a block to the figures after its allocation, or remove it before its free. In this order no sum exceeds the reserved bytes. */
STRATA_DOOR void strata_torch_count_alloc(int device, const strata_block_t *block);
STRATA_DOOR void strata_torch_count_free(int device, const strata_block_t *block);
/* Returns the figures of the number and of the bytes of a device's blocks. Peaks are exact. Returns 1 if the device does not
 * exist. */
STRATA_DOOR int strata_torch_figures(int device, strata_door::Figure figures[2]);
/* Returns nonzero if the device has served a request. Callers check this first, because statistics of an unused device would
 * open it. */
STRATA_DOOR int strata_torch_used(int device);
/* Resets peaks to the current values, or totals to 0. */
STRATA_DOOR void strata_torch_reset_peaks(int device);
STRATA_DOOR void strata_torch_reset_totals(int device);
/* Call a function for each block of a device, or for each change of its chunks since the last call. The blocks are of one pool,
 * or of all with {0, 0}, chunk by chunk in address order. Strata has no event for growth, so the chunks are compared with the
 * last call if the reserved bytes or the growths differ. The functions may call Strata. */
STRATA_DOOR void strata_torch_rows(int device, strata_door::PoolId pool, const strata_door::RowFn &row);
STRATA_DOOR void strata_torch_changes(int device, const strata_door::ChangeFn &change);

#endif
