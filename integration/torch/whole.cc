/* The whole door: Strata as PyTorch's CUDAAllocator, compiled against the user's own PyTorch (python/strata/torch/_whole.py). The interface is
 * c10/cuda/CUDACachingAllocator.h as of PyTorch 2.11; STRATA_TORCH (209, 210, 211, ...) says where older ones differ. */
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "integration/torch/door.h"
#include "integration/torch/history.h"
#include "integration/torch/ipc.h"

using namespace strata_door;
using c10::DataPtr;
using c10::DeviceIndex;
using c10::cuda::MempoolId_t;
using Action = ca::TraceEntry::Action;

namespace {

/* A chunk as the history was last told of it. */
struct Chunk {
    size_t size;
    void *stream;
    MempoolId_t pool;
};
using Chunks = std::map<size_t, Chunk>; /* by address */

struct Checkpoint final : ca::AllocatorState {
    Checkpoint(MempoolId_t pool, strata_checkpoint_t state) : pool(pool), state(state) {}
    ~Checkpoint() override { strata_graph_checkpoint_drop(state); }
    MempoolId_t pool;
    strata_checkpoint_t state;
};

void check(strata_status_t status) { TORCH_CHECK(status == STRATA_OK, reason(status)); }
strata_place_t place_of(int device) { return strata_gpu((uint32_t)device); }
void release_tensor(void *pointer);

/* What Strata asks before it gives up: PyTorch's own callbacks (memory that other processes have ended with). */
uint64_t free_memory(strata_place_t place, size_t, void *context);

/* A snapshot's rows, copied while it is told. */
std::vector<strata_snapshot_row_t> rows_of(strata_t facade, int device) {
    std::vector<strata_snapshot_row_t> rows;
    check(strata_snapshot(
        facade, place_of(device),
        [](const strata_snapshot_row_t *row, void *all) {
            static_cast<std::vector<strata_snapshot_row_t> *>(all)->push_back(*row);
        },
        &rows));
    return rows;
}

class Whole final : public ca::CUDAAllocator {
  public:
    std::string name() override { return "strata"; }

    /* ---- life ---- */

    void use(strata_t facade) {
        facade_ = facade;
        check(strata_add_free_memory_callback(facade, free_memory, nullptr, nullptr));
    }
    void init(int devices) override {
        TORCH_CHECK(devices <= most_devices, "Strata serves ", most_devices, " devices");
        devices_ = devices;
    }
    bool initialized() override { return devices_ > 0; }
    void enable(bool) override {}
    bool isEnabled() const override { return true; }

    /* ---- requests ---- */

    DataPtr allocate(size_t size) override {
        auto device = c10::cuda::current_device();
        void *pointer = size ? take(size, c10::cuda::getCurrentCUDAStream(device).stream(), device) : nullptr;
        return {pointer, pointer, &release_tensor, c10::Device(c10::DeviceType::CUDA, device)};
    }
    void *raw_alloc(size_t size) override {
        auto device = c10::cuda::current_device();
        return size ? take(size, c10::cuda::getCurrentCUDAStream(device).stream(), device) : nullptr;
    }
    void *raw_alloc_with_stream(size_t size, cudaStream_t stream) override {
        return size ? take(size, stream, c10::cuda::current_device()) : nullptr;
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release_tensor; }
    void raw_delete(void *pointer) override {
        if (!pointer) return;
        strata_block_t block;
        strata_place_t place;
        strata_status_t status = strata_block_of(facade_, pointer, &block);
        if (is_over(status)) return;
        check(status);
        check(strata_place_of(facade_, block.ref, &place));
        int device = (int)strata_place_device(place);
        if (shared_) ipc_.forget(pointer);
        if (history_.listens()) note_free(device, block);
        meters_[(size_t)device].take(block.size);
        check(strata_free(facade_, block.ref));
    }
    void recordStream(const DataPtr &pointer, c10::cuda::CUDAStream stream) override {
        /* Memory that is not from here is nobody's to record, as with PyTorch's own. */
        if (!pointer.get() || pointer.get_deleter() != &release_tensor) return;
        strata_block_t block;
        check(strata_block_of(facade_, pointer.get(), &block));
        check(strata_record_stream(facade_, block.ref, stream.stream()));
    }
    void *getBaseAllocation(void *pointer, size_t *size) override {
        strata_block_t block;
        void *base;
        size_t bytes;
        check(strata_base_pointer(facade_, pointer, &block));
        check(strata_base_of(facade_, block.ref, &base, &bytes));
        if (size) *size = bytes;
        return base;
    }
    void copy_data(void *to, const void *from, size_t size) const override {
        C10_CUDA_CHECK(cudaMemcpy(to, from, size, cudaMemcpyKind::cudaMemcpyDeviceToDevice));
    }

    /* ---- memory of the device ---- */

    void emptyCache(MempoolId_t pool = {0, 0}) override {
        for (int device = 0; device < devices_; device++) {
            if (!meters_[(size_t)device].used) continue;
            uint64_t number = pools_.number(device, pool);
            if (pool == MempoolId_t{0, 0}) check(strata_release(facade_, place_of(device), nullptr));
            else if (number) check(strata_release_pool(facade_, place_of(device), number, nullptr));
            if (history_.listens()) note_chunks(device, history_.gather(ca::RecordContext::ALL));
        }
    }
    double getMemoryFraction(DeviceIndex device) override {
        strata_mem_info_t info = mem_info(device);
        return info.limit >= info.total ? 1.0 : (double)info.limit / (double)info.total;
    }
    void setMemoryFraction(double fraction, DeviceIndex device) override {
        TORCH_CHECK(0 <= fraction && fraction <= 1, "invalid fraction:", fraction, ". Please set within [0, 1].");
        uint64_t limit = fraction == 1 ? STRATA_UNLIMITED : (uint64_t)(fraction * (double)mem_info(device).total);
        check(strata_set_limit(facade_, place_of(device), limit));
    }
    /* The most that one request may hope for: cudnn.benchmark sizes its workspaces by it. */
    void cacheInfo(DeviceIndex device, size_t *largest) override {
        strata_mem_info_t info = mem_info(device);
        uint64_t room = info.free + info.cached;
        strata_statistics_t now = statistics(device);
        if (info.limit != STRATA_UNLIMITED) {
            uint64_t left = info.limit > now.allocated_bytes ? info.limit - now.allocated_bytes : 0;
            room = std::min(room, left);
        }
        *largest = (size_t)room;
    }
#if STRATA_TORCH >= 210
    /* Chunks are Strata's: none is an expandable segment of PyTorch's. */
    std::vector<ca::StreamSegmentSize> getExpandableSegmentSizes(DeviceIndex) override { return {}; }
#endif

    /* ---- figures ---- */

    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device) override;
    void resetAccumulatedStats(DeviceIndex device) override {
        if (!meters_[(size_t)device].used) return;
        begun_[(size_t)device] = statistics(device);
        meters_[(size_t)device].reset_totals();
    }
    void resetPeakStats(DeviceIndex device) override {
        if (!meters_[(size_t)device].used) return;
        meters_[(size_t)device].reset_peaks();
        check(strata_reset_peaks(facade_, place_of(device)));
    }
#if STRATA_TORCH >= 211
    ca::SnapshotInfo snapshot(MempoolId_t pool = {0, 0}, bool traces = true) override { return take_snapshot(pool, traces); }
#else
    ca::SnapshotInfo snapshot(MempoolId_t pool = {0, 0}) override { return take_snapshot(pool, true); }
#endif

    /* ---- pools of graphs ---- */

    void beginAllocateToPool(DeviceIndex device, MempoolId_t pool, std::function<bool(cudaStream_t)> filter) override {
        pools_.begin(facade_, device, pool, std::move(filter));
    }
    void endAllocateToPool(DeviceIndex device, MempoolId_t pool) override { pools_.end(facade_, device, pool); }
    void releasePool(DeviceIndex device, MempoolId_t pool) override { pools_.release(facade_, device, pool); }
    int getPoolUseCount(DeviceIndex device, MempoolId_t pool) override { return pools_.uses(device, pool); }
#if STRATA_TORCH >= 211
    void createOrIncrefPool(DeviceIndex device, MempoolId_t pool, std::shared_ptr<CUDAAllocator> other = nullptr) override {
        keep_pool(device, pool, other != nullptr);
    }
    void setUseOnOOM(DeviceIndex, MempoolId_t, bool use) override { refuse_option(use, "use_on_oom"); }
    void setNoSplit(DeviceIndex, MempoolId_t) override { refuse_option(true, "no_split"); }
#else
    void createOrIncrefPool(DeviceIndex device, MempoolId_t pool, CUDAAllocator *other = nullptr) override {
        keep_pool(device, pool, other != nullptr);
    }
    void setUseOnOOM(DeviceIndex, MempoolId_t) override { refuse_option(true, "use_on_oom"); }
#if STRATA_TORCH >= 210
    void setNoSplit(DeviceIndex, MempoolId_t) override { refuse_option(true, "no_split"); }
#endif
#endif
    bool checkPoolLiveAllocations(DeviceIndex device, MempoolId_t pool, const std::unordered_set<void *> &expected) override {
        std::vector<void *> live = live_of(device, pool);
        return live.size() == expected.size() &&
               std::all_of(live.begin(), live.end(), [&](void *block) { return expected.count(block) > 0; });
    }
    std::shared_ptr<ca::AllocatorState> getCheckpointState(DeviceIndex device, MempoolId_t pool) override {
        strata_checkpoint_t state;
        check(strata_graph_pool_checkpoint(facade_, place_of(device), pools_.number(device, pool), &state));
        return std::make_shared<Checkpoint>(pool, state);
    }
    ca::CheckpointDelta setCheckpointPoolState(DeviceIndex device, std::shared_ptr<ca::AllocatorState> state) override;

    /* ---- history ---- */

    bool isHistoryEnabled() override { return history_.enabled(); }
#if STRATA_TORCH >= 211
    void recordHistory(bool enabled, ca::CreateContextFn recorder, size_t most, ca::RecordContext when, bool clear,
                       const std::vector<std::string> &skip) override {
        begin_history(enabled);
        history_.record(enabled, recorder, most, when, clear, skip);
    }
#else
    void recordHistory(bool enabled, ca::CreateContextFn recorder, size_t most, ca::RecordContext when, bool clear) override {
        begin_history(enabled);
        history_.record(enabled, recorder, most, when, clear, {});
    }
#endif
    void recordAnnotation(const std::vector<std::pair<std::string, std::string>> &pairs) override {
        Annotation annotation(c10::cuda::current_device(), c10::getApproximateTime());
        for (const auto &[name, value] : pairs) annotation.recordUserMetadata(name, value);
        history_.annotate(std::move(annotation));
    }
    void pushCompileContext(std::string &context) override { compile_contexts().push_back(context); }
    void popCompileContext() override {
        if (!compile_contexts().empty()) compile_contexts().pop_back();
    }
#if STRATA_TORCH >= 210
    void setUserMetadata(const std::string &metadata) override { user_metadata() = metadata; }
    std::string getUserMetadata() override { return user_metadata(); }
#endif
    void attachOutOfMemoryObserver(ca::OutOfMemoryObserver observer) override {
        std::lock_guard<std::mutex> guard(lock_);
        observers_.push_back(std::move(observer));
    }
    void attachAllocatorTraceTracker(ca::AllocatorTraceTracker tracker) override { history_.attach(std::move(tracker)); }

    /* ---- other devices, other processes ---- */

    void enablePeerAccess(DeviceIndex device, DeviceIndex other) override {
        c10::DeviceGuard guard(c10::Device(c10::DeviceType::CUDA, device));
        cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
        if (error == cudaErrorPeerAccessAlreadyEnabled) (void)cudaGetLastError();
        else C10_CUDA_CHECK(error);
        check(strata_enable_peer(facade_, (uint32_t)other, (uint32_t)device));
    }
    cudaError_t memcpyAsync(void *to, int to_device, const void *from, int from_device, size_t size, cudaStream_t stream,
                            bool peers) override {
        if (peers || to_device == from_device) return cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
        return cudaMemcpyPeerAsync(to, to_device, from, from_device, size, stream);
    }
    ca::ShareableHandle shareIpcHandle(void *pointer) override {
        strata_block_t block;
        check(strata_base_pointer(facade_, pointer, &block));
        shared_ = true;
        auto [handle, offset] = ipc_.share(facade_, block);
        return {offset + ((char *)pointer - (char *)block.ptr), handle};
    }
    std::shared_ptr<void> getIpcDevPtr(std::string handle) override {
        return ipc_.open(facade_, c10::cuda::current_device(), handle);
    }

    uint64_t allocated(int device) { return (uint64_t)meters_[(size_t)device].allocated.current; }

  private:
    strata_t facade_ = 0;

    strata_mem_info_t mem_info(int device) {
        strata_mem_info_t info{};
        info.struct_size = sizeof info;
        check(strata_mem_info(facade_, place_of(device), &info));
        return info;
    }
    strata_statistics_t statistics(int device) {
        strata_statistics_t told{};
        told.struct_size = sizeof told;
        check(strata_statistics_all(facade_, place_of(device), &told));
        return told;
    }

    void *take(size_t size, cudaStream_t stream, DeviceIndex device) {
        Context context = history_.gather(ca::RecordContext::STATE);
        strata_block_t block;
        strata_status_t status = strata_allocate(facade_, place_of(device), stream, size, &block);
        if (status == STRATA_E_NO_MEMORY) out_of_memory(device, size, stream, std::move(context));
        check(status);
        meters_[(size_t)device].add(block.size);
        if (history_.listens()) {
            note_chunks(device, context);
            history_.keep(block.ptr, context);
            note(Action::ALLOC, device, (size_t)block.ptr, block.size, stream, pool_of(device, block.ref), std::move(context));
        }
        return block.ptr;
    }
    [[noreturn]] void out_of_memory(DeviceIndex device, size_t size, cudaStream_t stream, Context context);

    /* PyTorch's name of the pool of a block. */
    MempoolId_t pool_of(int device, strata_ref_t ref) {
        uint64_t number = 0;
        bool named = strata_pool_of(facade_, ref, &number) == STRATA_OK && number > STRATA_POOL_ORDINARY;
        return named ? pools_.name(device, number) : MempoolId_t{0, 0};
    }
    void note(Action action, int device, size_t address, size_t size, void *stream, MempoolId_t pool, Context context) {
        const auto &compiled = compile_contexts();
        ca::TraceEntry entry(action, (DeviceIndex)device, address, size, (cudaStream_t)stream, pool, c10::getApproximateTime(),
                             std::move(context), compiled.empty() ? "N/A" : compiled.back());
#if STRATA_TORCH >= 210
        entry.user_metadata_ = user_metadata();
#endif
        history_.add(std::move(entry));
    }
    /* The memory of a borrowed block comes back later; the history tells both at once, since Strata polls without telling. */
    void note_free(int device, const strata_block_t &block) {
        strata_stream_t stream = nullptr;
        (void)strata_stream_of(facade_, block.ref, &stream); /* a block of a forgotten stream has none */
        Context context = history_.gather(ca::RecordContext::ALL);
        history_.forget(block.ptr);
        for (Action action : {Action::FREE_REQUESTED, Action::FREE_COMPLETED})
            note(action, device, (size_t)block.ptr, block.size, stream, pool_of(device, block.ref), context);
    }
    void begin_history(bool enabled);
    Chunks chunks_of(int device);
    void note_chunks(int device, const Context &context);

    void keep_pool(DeviceIndex device, MempoolId_t pool, bool other) {
        TORCH_CHECK(!other, "Strata: a MemPool with an allocator of its own is not served");
        pools_.keep(facade_, device, pool);
    }
    static void refuse_option(bool wanted, const char *option) {
        TORCH_CHECK(!wanted, "Strata: a MemPool has no ", option, "; a strategy says how a pool is served (docs/strategy.md)");
    }

    std::vector<void *> live_of(int device, MempoolId_t pool) {
        std::vector<void *> live;
        uint64_t number = pools_.number(device, pool);
        for (const auto &row : rows_of(facade_, device))
            if (number && row.pool == number && row.state == 1) live.push_back(row.block.ptr);
        return live;
    }
    ca::SnapshotInfo take_snapshot(MempoolId_t pool, bool traces);
    void add_segments(ca::SnapshotInfo &snapshot, int device, MempoolId_t wanted);
    void add_block(ca::SegmentInfo &segment, const strata_snapshot_row_t &row);

    std::atomic<int> devices_{0};
    std::atomic<bool> shared_{false}; /* a block was given to another process */
    std::array<Meter, most_devices> meters_;
    std::array<strata_statistics_t, most_devices> begun_{}; /* when the totals were reset */
    Pools pools_;
    History history_;
    Ipc ipc_;
    std::mutex chunks_lock_; /* the two below */
    std::array<Chunks, most_devices> chunks_;
    std::array<uint64_t, most_devices> reserved_{}; /* when the chunks were last looked at */
    std::mutex lock_; /* observers_ */
    std::vector<ca::OutOfMemoryObserver> observers_;
};

void set(c10::CachingAllocator::Stat &stat, uint64_t current, uint64_t peak, uint64_t total = 0, uint64_t gone = 0) {
    stat.current = (int64_t)current;
    stat.peak = (int64_t)peak;
    stat.allocated = (int64_t)total;
    stat.freed = (int64_t)gone;
}
void set(c10::CachingAllocator::Stat &stat, const Figure &figure) {
    stat.current = figure.current;
    stat.peak = figure.peak;
    stat.allocated = figure.total;
    stat.freed = figure.gone;
}

/* Strata has no small and large pools: these stay 0, and so does what it does not count. The peaks of allocated and reserved are exact; that
 * of requested is the place's. */
c10::CachingDeviceAllocator::DeviceStats Whole::getDeviceStats(DeviceIndex device) {
    c10::CachingDeviceAllocator::DeviceStats stats;
    if (!meters_[(size_t)device].used) return stats;
    strata_statistics_t now = statistics(device), begun = begun_[(size_t)device];
    const Meter &meter = meters_[(size_t)device];
    uint64_t gone = now.growths - now.chunks, gone_before = begun.growths - begun.chunks;
    uint64_t active = now.allocated_bytes + now.deferred_bytes;
    set(stats.allocation[0], meter.count);
    set(stats.active[0], meter.count);
    set(stats.allocated_bytes[0], meter.allocated);
    set(stats.active_bytes[0], active, std::max(active, (uint64_t)meter.allocated.peak));
    set(stats.reserved_bytes[0], now.reserved_bytes, now.peak_reserved_bytes);
    set(stats.requested_bytes[0], now.requested_bytes, std::min(now.peak_requested_bytes, (uint64_t)meter.allocated.peak));
    set(stats.segment[0], now.chunks, now.chunks, now.growths - begun.growths, gone - gone_before);
    stats.num_alloc_retries = (int64_t)(now.ladders - begun.ladders);
    stats.num_ooms = (int64_t)(now.out_of_memory - begun.out_of_memory);
    stats.num_device_alloc = stats.segment[0].allocated;
    stats.num_device_free = stats.segment[0].freed;
    stats.max_split_size = -1;
    return stats;
}

/* Tells those who wait for it, and throws what PyTorch's programs catch, with Strata's report. */
void Whole::out_of_memory(DeviceIndex device, size_t size, cudaStream_t stream, Context context) {
    std::string report = reason(STRATA_E_NO_MEMORY);
    strata_mem_info_t info = mem_info(device);
    if (history_.listens()) note(Action::OOM, device, (size_t)info.free, size, stream, {0, 0}, std::move(context));
    std::vector<ca::OutOfMemoryObserver> observers;
    {
        std::lock_guard<std::mutex> guard(lock_);
        observers = observers_;
    }
    for (const auto &observer : observers) observer(device, size, (size_t)std::min(info.limit, info.total), (size_t)info.free);
    TORCH_CHECK_WITH(OutOfMemoryError, false, report);
}

/* PyTorch's own answer names every block of the pool that it has laid anew; so does this one, though Strata leaves most as they are. */
ca::CheckpointDelta Whole::setCheckpointPoolState(DeviceIndex device, std::shared_ptr<ca::AllocatorState> state) {
    auto *checkpoint = dynamic_cast<Checkpoint *>(state.get());
    TORCH_CHECK(checkpoint, "Strata: this is no state of a pool of Strata's");
    ca::CheckpointDelta delta;
    delta.ptrs_freed = live_of(device, checkpoint->pool);
    auto changed = [](const strata_block_t *block, bool live, void *context) {
        auto *meter = static_cast<Meter *>(context);
        if (live) meter->add(block->size);
        else meter->take(block->size);
    };
    check(strata_graph_pool_restore(facade_, place_of(device), checkpoint->state, changed, &meters_[(size_t)device]));
    for (void *block : live_of(device, checkpoint->pool))
        delta.dataptrs_allocd.emplace_back(block, block, &release_tensor, c10::Device(c10::DeviceType::CUDA, device));
    return delta;
}

Chunks Whole::chunks_of(int device) {
    Chunks chunks;
    uint64_t chunk = 0;
    auto last = chunks.end();
    for (const auto &row : rows_of(facade_, device)) {
        if (last == chunks.end() || row.chunk != chunk) {
            MempoolId_t pool = row.pool ? pools_.name(device, row.pool) : MempoolId_t{0, 0};
            last = chunks.emplace((size_t)row.block.ptr, Chunk{0, row.stream, pool}).first;
            chunk = row.chunk;
        }
        last->second.size += row.block.size;
    }
    return chunks;
}

/* A history that begins knows what is there already. */
void Whole::begin_history(bool enabled) {
    if (!enabled || history_.listens()) return;
    std::lock_guard<std::mutex> guard(chunks_lock_);
    for (int device = 0; device < devices_; device++) {
        if (!meters_[(size_t)device].used) continue;
        reserved_[(size_t)device] = statistics(device).reserved_bytes;
        chunks_[(size_t)device] = chunks_of(device);
    }
}

/* Tells the history what has come and gone since it was last told. Strata tells nobody when it grows or gives back, so the chunks are looked
 * at after requests and releases that change how much is reserved. */
void Whole::note_chunks(int device, const Context &context) {
    std::lock_guard<std::mutex> guard(chunks_lock_);
    uint64_t reserved = statistics(device).reserved_bytes;
    if (reserved == reserved_[(size_t)device]) return;
    reserved_[(size_t)device] = reserved;
    Chunks now = chunks_of(device), told = std::move(chunks_[(size_t)device]);
    for (const auto &[address, chunk] : told)
        if (!now.count(address)) note(Action::SEGMENT_FREE, device, address, chunk.size, chunk.stream, chunk.pool, context);
    for (const auto &[address, chunk] : now) {
        auto before = told.find(address);
        size_t size = before == told.end() ? 0 : before->second.size;
        Action grown = size ? Action::SEGMENT_MAP : Action::SEGMENT_ALLOC;
        if (chunk.size > size) note(grown, device, address + size, chunk.size - size, chunk.stream, chunk.pool, context);
        if (chunk.size < size)
            note(Action::SEGMENT_UNMAP, device, address + chunk.size, size - chunk.size, chunk.stream, chunk.pool, context);
    }
    chunks_[(size_t)device] = std::move(now);
}

void Whole::add_block(ca::SegmentInfo &segment, const strata_snapshot_row_t &row) {
    ca::BlockInfo block;
    block.size = row.block.size;
    block.requested_size = row.requested;
    block.allocated = row.state == 1;
    block.active = row.state != 0;
    if (block.allocated) block.context_when_allocated = history_.of(row.block.ptr);
    segment.total_size += block.size;
    segment.requested_size += block.requested_size;
    segment.allocated_size += block.allocated ? block.size : 0;
    segment.active_size += block.active ? block.size : 0;
    segment.blocks.push_back(std::move(block));
}

void Whole::add_segments(ca::SnapshotInfo &snapshot, int device, MempoolId_t wanted) {
    uint64_t chunk = 0;
    bool open = false;
    for (const auto &row : rows_of(facade_, device)) {
        MempoolId_t pool = row.pool ? pools_.name(device, row.pool) : MempoolId_t{0, 0};
        if (wanted != MempoolId_t{0, 0} && pool != wanted) continue;
        if (!open || row.chunk != chunk) {
            ca::SegmentInfo segment;
            segment.device = (DeviceIndex)device;
            segment.address = (size_t)row.block.ptr;
            segment.stream = (cudaStream_t)row.stream;
            segment.is_large = true;
            segment.owner_private_pool_id = pool;
            snapshot.segments.push_back(std::move(segment));
            chunk = row.chunk;
            open = true;
        }
        add_block(snapshot.segments.back(), row);
    }
}

ca::SnapshotInfo Whole::take_snapshot(MempoolId_t pool, bool traces) {
    if (history_.listens()) note(Action::SNAPSHOT, c10::cuda::current_device(), 0, 0, nullptr, {0, 0}, nullptr);
    ca::SnapshotInfo snapshot;
    for (int device = 0; device < devices_; device++)
        if (meters_[(size_t)device].used) add_segments(snapshot, device, pool);
    history_.tell(snapshot, (size_t)devices_.load(), traces);
    snapshot.config_metadata = {};
    snapshot.config_metadata.max_split_size = SIZE_MAX;
    return snapshot;
}

Whole &whole() {
    static Whole *one = new Whole; /* tensors outlive every static */
    return *one;
}

void release_tensor(void *pointer) { whole().raw_delete(pointer); }

uint64_t free_memory(strata_place_t place, size_t, void *) {
    if (strata_place_kind(place) != STRATA_PLACE_GPU) return 0;
    int device = (int)strata_place_device(place);
    uint64_t before = whole().allocated(device);
    for (const auto &key : c10::FreeCudaMemoryCallbacksRegistry()->Keys())
        c10::FreeCudaMemoryCallbacksRegistry()->Create(key)->Execute();
    uint64_t now = whole().allocated(device);
    return before > now ? before - now : 0;
}

} // namespace

/* Makes the whole door over this facade PyTorch's allocator, before PyTorch's first request. NULL, or why not; the text stays. */
extern "C" __attribute__((visibility("default"))) const char *strata_whole_use(strata_t facade) {
    static std::string why;
    try {
        TORCH_CHECK(!ca::allocator.load() || !ca::allocator.load()->initialized(), "PyTorch has used CUDA already");
        whole().use(facade);
        ca::allocator.store(&whole());
        c10::SetAllocator(c10::DeviceType::CUDA, &whole(), UINT8_MAX);
        return nullptr;
    } catch (const std::exception &error) {
        why = error.what();
        return why.c_str();
    }
}
