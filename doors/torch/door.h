/* The functions of libstrata_torch.so: PyTorch's view of a facade, for both doors. It includes no header of PyTorch, so it needs
 * no compiler on the user's machine. Errors are std::runtime_error. Any thread may call. */
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

/* As PyTorch has them: c10::MempoolId_t, and what chooses the streams of a pool. */
using PoolId = std::pair<unsigned long long, unsigned long long>;
using Chosen = std::function<bool(CUstream_st *)>;

constexpr int most_devices = 16; /* of a facade */

/* One of PyTorch's statistics. */
struct Figure {
    int64_t current, peak, total, gone;
};
/* Memory that came from the device, or went back: a chunk, or what one grew or shrank by. */
enum class Change { came, grew, shrank, went };
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
/* Returns true if a failed free has nothing left to free: in a forked child, after the driver shut down, or after the facade was closed. The
 * first free after a close prints a line on standard error. Callers are destructors, which must not throw. */
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

/* PyTorch's name of the pool of a block; {0, 0}: it lies in none. */
__attribute__((visibility("default"))) PoolId pool_of(int device, strata_ref_t ref);

} // namespace strata_door

/* The facade that serves from now on, and of which nothing is live. */
STRATA_DOOR void strata_torch_use(strata_t facade);

/* ---- memory, as CUDAPluggableAllocator asks for it ---- */

/* Memory for `stream`. 0 bytes are no request: PyTorch never gives them back. */
STRATA_DOOR void *strata_torch_allocate(ssize_t size, int device, CUstream_st *stream);
/* May run in a destructor, so it says what is wrong instead of throwing. `stream` is that of the allocation, which Strata knows. */
STRATA_DOOR void strata_torch_free(void *pointer, ssize_t size, int device, CUstream_st *stream);
STRATA_DOOR void strata_torch_record_stream(void *pointer, CUstream_st *stream);
/* The start and the size of the block that `pointer` lies in, and of that block's chunk. */
STRATA_DOOR void *strata_torch_base(void *pointer, size_t *size);
STRATA_DOOR void *strata_torch_chunk(void *pointer, size_t *size);
/* The block that begins at `pointer`; the answer is its device, -1 once there is nothing to give back to. */
STRATA_DOOR int strata_torch_find(void *pointer, strata_block_t *block);
/* torch.cuda.empty_cache(), of all devices; of one device and one pool, or all of its pools ({0, 0}). */
STRATA_DOOR void strata_torch_reset();
STRATA_DOOR void strata_torch_release(int device, strata_door::PoolId pool);
/* The most bytes that one request may hope for. */
STRATA_DOOR size_t strata_torch_largest(int device);
/* torch.cuda.set_per_process_memory_fraction(), and what is set. */
STRATA_DOOR void strata_torch_memory_fraction(double fraction, int device);
STRATA_DOOR double strata_torch_fraction(int device);
/* A name of the block that `pointer` lies in, for other processes: it holds until the free. Its size; `*offset` is where `pointer` lies in
 * what it names. 0: the block lies in no handles. */
constexpr size_t strata_torch_name_most = 8192;
STRATA_DOOR size_t strata_torch_share(void *pointer, char name[strata_torch_name_most], ptrdiff_t *offset);
/* The block that another process named so, mapped until the last end; `*id` is for that. */
STRATA_DOOR void *strata_torch_open(int device, const char *name, size_t size, uint64_t *id);
STRATA_DOOR void strata_torch_open_end(uint64_t id);

/* ---- pools of graphs ---- */

STRATA_DOOR void strata_torch_begin_pool(int device, strata_door::PoolId id, strata_door::Chosen chosen);
STRATA_DOOR void strata_torch_end_pool(int device, strata_door::PoolId id);
STRATA_DOOR void strata_torch_release_pool(int device, strata_door::PoolId id);
/* One more use without requests: what torch.cuda.MemPool is. */
STRATA_DOOR void strata_torch_keep_pool(int device, strata_door::PoolId id);
/* How often it was begun or kept, and not released. */
STRATA_DOOR int strata_torch_pool_uses(int device, strata_door::PoolId id);
/* Sets whether requests outside pools may use free memory of a kept pool instead of failing (use_on_oom of torch.cuda.MemPool). */
STRATA_DOOR void strata_torch_lend_pool(int device, strata_door::PoolId id, bool lends);
/* Rounds later blocks of a pool up to the size of a PyTorch segment (no_split of torch.cuda.MemPool): 2 MiB up to 1 MiB, 20 MiB below
 * 10 MiB, else a multiple of 2 MiB. So a free block is reused whole, and small blocks do not fragment it. */
STRATA_DOOR void strata_torch_unsplit_pool(int device, strata_door::PoolId id);
/* Calls strata_allocate(); if that fails, takes a block that is free for `stream` from a pool with use_on_oom. The block still belongs to
 * its pool. */
STRATA_DOOR strata_status_t strata_torch_request(int device, CUstream_st *stream, size_t size, strata_block_t *block);
/* Strata's number of a pool; 0: there is none of that name. And its name by its number; {0, 0}: the program keeps none. */
STRATA_DOOR uint64_t strata_torch_pool_number(int device, strata_door::PoolId id);
STRATA_DOOR void strata_torch_pool_name(int device, uint64_t number, unsigned long long id[2]);

/* ---- figures ---- */

/* A block has come, after its allocation; one goes, before its free: so no sum stands above what is reserved. */
STRATA_DOOR void strata_torch_came(int device, const strata_block_t *block);
STRATA_DOOR void strata_torch_goes(int device, const strata_block_t *block);
/* Of the number and of the bytes of a device's blocks. Peaks are exact. 1: there is no such device. */
STRATA_DOOR int strata_torch_figures(int device, strata_door::Figure figures[2]);
/* Whether anything was served. A device of which nothing is asked must not be opened by a question about it. */
STRATA_DOOR int strata_torch_used(int device);
/* Peaks begin again at what is; what came and went begins again at 0. */
STRATA_DOOR void strata_torch_reset_peaks(int device);
STRATA_DOOR void strata_torch_reset_totals(int device);
/* The blocks of a device, of one pool or of all ({0, 0}), chunk by chunk and in the order of addresses in each; and what has come from the
 * device and gone back since the last call. Strata tells nobody when it grows, so its chunks are looked at where more or less is reserved
 * than before. What is called may call Strata. */
STRATA_DOOR void strata_torch_rows(int device, strata_door::PoolId pool, const strata_door::RowFn &row);
STRATA_DOOR void strata_torch_changes(int device, const strata_door::ChangeFn &change);

#endif
