/* The blocks of a facade, and the changes of its chunks. */
#include <map>
#include <mutex>
#include <vector>

#include "doors/torch/state.h"

using namespace strata_door;

namespace {

using Chunks = std::map<size_t, Chunk>; /* by address */

/* The chunks of a device at the last call of strata_torch_changes(). */
struct Reported {
    Chunks chunks;
    uint64_t reserved = 0, growths = 0;
};
/* Never destroyed, because tensors outlive every static. */
std::mutex &lock = *new std::mutex;
std::array<Reported, max_devices> &reported = *new std::array<Reported, max_devices>;

/* Copies the rows of a snapshot, because a row is valid only during the callback. */
std::vector<strata_snapshot_row_t> rows_of(int device) {
    std::vector<strata_snapshot_row_t> rows;
    auto add = [](const strata_snapshot_row_t *row, void *all) {
        static_cast<std::vector<strata_snapshot_row_t> *>(all)->push_back(*row);
    };
    check(strata_snapshot(facade, place_of(device), add, &rows));
    return rows;
}

Chunks chunks_of(int device) {
    Chunks chunks;
    uint64_t number = 0;
    auto last = chunks.end();
    strata_torch_rows(device, {0, 0}, [&](const strata_snapshot_row_t &row, PoolId name) {
        size_t address = (size_t)row.block.ptr;
        if (last == chunks.end() || row.chunk != number) last = chunks.insert({address, {address, 0, row.stream, name}}).first;
        number = row.chunk;
        last->second.size += row.block.size;
    });
    return chunks;
}

void report_changes(const Chunks &before, const Chunks &now, const ChangeFn &change) {
    for (const auto &[address, chunk] : before)
        if (!now.count(address)) change(Change::released, chunk);
    for (const auto &[address, chunk] : now) {
        auto known = before.find(address);
        size_t size = known == before.end() ? 0 : known->second.size;
        Change grown = size ? Change::grew : Change::created;
        if (chunk.size > size) change(grown, {address + size, chunk.size - size, chunk.stream, chunk.pool});
        if (chunk.size < size) change(Change::shrank, {address + chunk.size, size - chunk.size, chunk.stream, chunk.pool});
    }
}

} // namespace

void strata_door::forget_chunks() {
    std::lock_guard<std::mutex> guard(lock);
    reported = {};
}

void strata_torch_rows(int device, PoolId pool, const RowFn &row) {
    for (const strata_snapshot_row_t &one : rows_of(device)) {
        unsigned long long name[2] = {0, 0};
        if (one.pool) strata_torch_pool_name(device, one.pool, name);
        PoolId its{name[0], name[1]};
        if (pool == PoolId{0, 0} || pool == its) row(one, its);
    }
}

void strata_torch_changes(int device, const ChangeFn &change) {
    if (!meter(device)) return;
    std::lock_guard<std::mutex> guard(lock);
    Reported &last = reported[(size_t)device];
    strata_statistics_t figures = statistics_of(facade, device);
    if (figures.reserved_bytes == last.reserved && figures.growths == last.growths) return;
    last.reserved = figures.reserved_bytes;
    last.growths = figures.growths;
    Chunks now = chunks_of(device);
    report_changes(last.chunks, now, change);
    last.chunks = std::move(now);
}
