/* The whole door: Strata as PyTorch's CUDAAllocator. It is compiled against the user's own PyTorch
 * (doors/python/strata/torch/_whole.py). The interface is c10/cuda/CUDACachingAllocator.h as of PyTorch 2.15. STRATA_TORCH
 * (209, 210, 211, ...) selects the differences of older versions. */
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdio>

#include "doors/torch/history.h"

using namespace strata_door;
using c10::DataPtr;
using c10::DeviceIndex;
using c10::cuda::MempoolId_t;
using Action = ca::TraceEntry::Action;

namespace {

struct Checkpoint final : ca::AllocatorState {
    Checkpoint(MempoolId_t pool, strata_checkpoint_t state) : pool(pool), state(state) {}
    ~Checkpoint() override { strata_graph_checkpoint_drop(state); }
    MempoolId_t pool;
    strata_checkpoint_t state;
};

void release_tensor(void *pointer);

/* Calls PyTorch's own callbacks before Strata reports out of memory. They free memory that other processes no longer use. */
uint64_t free_memory(strata_place_t place, size_t, void *context);

class Whole final : public ca::CUDAAllocator {
  public:
    std::string name() override { return "strata"; }

    /* ---- life ---- */

    void use(strata_t facade) {
        facade_ = facade;
        strata_torch_use(facade);
        check(strata_add_free_memory_callback(facade, free_memory, nullptr, nullptr));
    }
    void init(int devices) override {
        TORCH_CHECK(devices <= max_devices, "Strata serves at most ", max_devices, " devices");
        devices_ = devices;
    }
    bool initialized() override { return devices_ > 0; }
    void enable(bool) override {}
    bool isEnabled() const override { return true; }

    /* ---- requests ---- */

    DataPtr allocate(size_t size) override {
        void *pointer = raw_alloc(size);
        return {pointer, pointer, &release_tensor, c10::Device(c10::DeviceType::CUDA, c10::cuda::current_device())};
    }
    void *raw_alloc(size_t size) override { return raw_alloc_with_stream(size, c10::cuda::getCurrentCUDAStream().stream()); }
    void *raw_alloc_with_stream(size_t size, cudaStream_t stream) override {
        return size ? take(size, stream, c10::cuda::current_device()) : nullptr;
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release_tensor; }
    void raw_delete(void *pointer) override {
        strata_block_t block;
        int device = pointer ? strata_torch_find(pointer, &block) : -1;
        if (device < 0) return;
        if (history_.is_active()) note_free(device, block);
        strata_torch_count_free(device, &block);
        check_unless_over(strata_free(facade_, block.ref));
    }
    void recordStream(const DataPtr &pointer, c10::cuda::CUDAStream stream) override {
        /* Memory of other allocators is ignored, as in PyTorch's own allocator. */
        if (!pointer.get() || pointer.get_deleter() != &release_tensor) return;
        strata_torch_record_stream(pointer.get(), stream.stream());
    }
    void *getBaseAllocation(void *pointer, size_t *size) override { return strata_torch_chunk(pointer, size); }
    void copy_data(void *to, const void *from, size_t size) const override {
        C10_CUDA_CHECK(cudaMemcpy(to, from, size, cudaMemcpyKind::cudaMemcpyDeviceToDevice));
    }

    /* ---- memory of the device ---- */

    void emptyCache(MempoolId_t pool = {0, 0}) override {
        for (int device = 0; device < devices_; device++) {
            if (!strata_torch_used(device)) continue;
            strata_torch_release(device, pool);
            if (history_.is_active()) note_chunks(device, history_.gather(ca::RecordContext::ALL));
        }
    }
    double getMemoryFraction(DeviceIndex device) override { return strata_torch_fraction(device); }
    void setMemoryFraction(double fraction, DeviceIndex device) override { strata_torch_memory_fraction(fraction, device); }
    /* An upper bound for one request. cudnn.benchmark sizes its workspaces by it. */
    void cacheInfo(DeviceIndex device, size_t *largest) override { *largest = strata_torch_largest(device); }
#if STRATA_TORCH >= 210
    /* No chunk of Strata is an expandable segment of PyTorch. */
    std::vector<ca::StreamSegmentSize> getExpandableSegmentSizes(DeviceIndex) override { return {}; }
#endif

    /* ---- figures ---- */

    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device) override;
    void resetAccumulatedStats(DeviceIndex device) override {
        if (!strata_torch_used(device)) return;
        begun_[(size_t)device] = statistics_of(facade_, device);
        ooms_[(size_t)device] = 0;
        strata_torch_reset_totals(device);
    }
    void resetPeakStats(DeviceIndex device) override { strata_torch_reset_peaks(device); }
#if STRATA_TORCH >= 211
    ca::SnapshotInfo snapshot(MempoolId_t pool = {0, 0}, bool traces = true) override { return take_snapshot(pool, traces); }
#else
    ca::SnapshotInfo snapshot(MempoolId_t pool = {0, 0}) override { return take_snapshot(pool, true); }
#endif

    /* ---- pools of graphs ---- */

    void beginAllocateToPool(DeviceIndex device, MempoolId_t pool, std::function<bool(cudaStream_t)> filter) override {
        strata_torch_begin_pool(device, pool, std::move(filter));
    }
    void endAllocateToPool(DeviceIndex device, MempoolId_t pool) override { strata_torch_end_pool(device, pool); }
    void releasePool(DeviceIndex device, MempoolId_t pool) override { strata_torch_release_pool(device, pool); }
    int getPoolUseCount(DeviceIndex device, MempoolId_t pool) override { return strata_torch_pool_uses(device, pool); }
#if STRATA_TORCH >= 211
    void createOrIncrefPool(DeviceIndex device, MempoolId_t pool, std::shared_ptr<CUDAAllocator> other = nullptr) override {
        keep_pool(device, pool, other != nullptr);
    }
    void setUseOnOOM(DeviceIndex device, MempoolId_t pool, bool use) override { strata_torch_lend_pool(device, pool, use); }
    void setNoSplit(DeviceIndex device, MempoolId_t pool) override { strata_torch_unsplit_pool(device, pool); }
#else
    void createOrIncrefPool(DeviceIndex device, MempoolId_t pool, CUDAAllocator *other = nullptr) override {
        keep_pool(device, pool, other != nullptr);
    }
    void setUseOnOOM(DeviceIndex device, MempoolId_t pool) override { strata_torch_lend_pool(device, pool, true); }
#if STRATA_TORCH >= 210
    void setNoSplit(DeviceIndex device, MempoolId_t pool) override { strata_torch_unsplit_pool(device, pool); }
#endif
#endif
    bool checkPoolLiveAllocations(DeviceIndex device, MempoolId_t pool, const std::unordered_set<void *> &expected) override {
        std::vector<void *> live = live_of(device, pool);
        return live.size() == expected.size() &&
               std::all_of(live.begin(), live.end(), [&](void *block) { return expected.count(block) > 0; });
    }
    std::shared_ptr<ca::AllocatorState> getCheckpointState(DeviceIndex device, MempoolId_t pool) override {
        strata_checkpoint_t state;
        check(strata_graph_pool_checkpoint(facade_, place_of(device), strata_torch_pool_number(device, pool), &state));
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
#if STRATA_TORCH >= 214
    bool supportsUserMetadata() override { return true; }
    void annotateMemory(const void *block, const std::string &metadata) override {
        if (!history_.is_active()) return;
        std::string before = std::exchange(user_metadata(), metadata);
        note(Action::ANNOTATE, c10::cuda::current_device(), (size_t)block, 0, nullptr, {0, 0}, nullptr);
        user_metadata() = std::move(before);
    }
#endif
    void attachOutOfMemoryObserver(ca::OutOfMemoryObserver observer) override {
        std::lock_guard<std::mutex> guard(lock_);
        observers_.push_back(std::move(observer));
    }
#if STRATA_TORCH >= 212
    /* Strata rejects no request before it tries. */
    void attachOomRejectionObserver(ca::OomRejectionObserver) override {}
    Context getContextForPointer(const void *pointer) override { return history_.find(const_cast<void *>(pointer)); }
#endif
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
    ca::ShareableHandle shareIpcHandle(void *pointer) override;
    std::shared_ptr<void> getIpcDevPtr(std::string name) override;

  private:
    strata_t facade_ = 0;

    void *take(size_t size, cudaStream_t stream, DeviceIndex device) {
        Context context = history_.gather(ca::RecordContext::STATE);
        strata_block_t block;
        strata_status_t status = strata_torch_request(device, stream, size, &block);
        if (status == STRATA_E_NO_MEMORY) out_of_memory(device, size, stream, std::move(context));
        check(status);
        strata_torch_count_alloc(device, &block);
        if (history_.is_active()) {
            note_chunks(device, context);
            history_.store(block.ptr, context);
            note(Action::ALLOC, device, (size_t)block.ptr, block.size, stream, pool_of(device, block.ref), std::move(context));
        }
        return block.ptr;
    }
    [[noreturn]] void out_of_memory(DeviceIndex device, size_t size, cudaStream_t stream, Context context);

    void note(Action action, int device, size_t address, size_t size, void *stream, MempoolId_t pool, Context context) {
        const auto &compiled = compile_contexts();
        ca::TraceEntry entry(action, (DeviceIndex)device, address, size, (cudaStream_t)stream, pool, c10::getApproximateTime(),
                             std::move(context), compiled.empty() ? "N/A" : compiled.back());
#if STRATA_TORCH >= 210
        entry.user_metadata_ = user_metadata();
#endif
        history_.add(std::move(entry));
    }
    /* Records the request and the completion of a free together. The completion of a borrowed block is later, but Strata has no
     * event for it. */
    void note_free(int device, const strata_block_t &block) {
        strata_stream_t stream = nullptr;
        (void)strata_stream_of(facade_, block.ref, &stream); /* a block of a forgotten stream has none */
        Context context = history_.gather(ca::RecordContext::ALL);
        history_.remove(block.ptr);
        for (Action action : {Action::FREE_REQUESTED, Action::FREE_COMPLETED})
            note(action, device, (size_t)block.ptr, block.size, stream, pool_of(device, block.ref), context);
    }
    void begin_history(bool enabled);
    void note_chunks(int device, const Context &context);

    void keep_pool(DeviceIndex device, MempoolId_t pool, bool other) {
        TORCH_CHECK(!other, "Strata: a MemPool with its own allocator is not supported");
        strata_torch_retain_pool(device, pool);
    }

    std::vector<void *> live_of(int device, MempoolId_t pool) {
        std::vector<void *> live;
        strata_torch_rows(device, pool, [&](const strata_snapshot_row_t &row, PoolId) {
            if (row.pool && row.state == 1) live.push_back(row.block.ptr);
        });
        return live;
    }
    ca::SnapshotInfo take_snapshot(MempoolId_t pool, bool traces);
    void add_segments(ca::SnapshotInfo &snapshot, int device, MempoolId_t wanted);
    void add_block(ca::SegmentInfo &segment, const strata_snapshot_row_t &row);

    std::atomic<int> devices_{0};
    std::array<strata_statistics_t, max_devices> begun_{}; /* statistics at the last reset of the totals */
    std::array<std::atomic<int64_t>, max_devices> ooms_{}; /* failed requests, without those that a lending pool served */
    History history_;
    std::mutex lock_; /* guards observers_ */
    std::vector<ca::OutOfMemoryObserver> observers_;
};

void set(c10::CachingAllocator::Stat &stat, const Figure &figure) {
    stat.current = figure.current;
    stat.peak = figure.peak;
    stat.allocated = figure.total;
    stat.freed = figure.freed;
}

/* Strata has no small and large pools, so their values are 0, as are all values that Strata does not count. The peaks of
 * allocated and reserved bytes are exact. The peak of requested bytes is the place's. */
c10::CachingDeviceAllocator::DeviceStats Whole::getDeviceStats(DeviceIndex device) {
    c10::CachingDeviceAllocator::DeviceStats stats;
    Figure figures[2]; /* number of blocks, and their bytes */
    if (!strata_torch_used(device) || strata_torch_figures(device, figures)) return stats;
    strata_statistics_t now = statistics_of(facade_, device), begun = begun_[(size_t)device];
    const auto &[count, allocated] = figures;
    int64_t grown = (int64_t)(now.growths - begun.growths), chunks = (int64_t)now.chunks;
    int64_t active = (int64_t)(now.allocated_bytes + now.deferred_bytes), requested = (int64_t)now.peak_requested_bytes;
    set(stats.allocation[0], count);
    set(stats.active[0], count);
    set(stats.allocated_bytes[0], allocated);
    set(stats.active_bytes[0], {active, std::max(active, allocated.peak), 0, 0});
    set(stats.reserved_bytes[0], {(int64_t)now.reserved_bytes, (int64_t)now.peak_reserved_bytes, 0, 0});
    set(stats.requested_bytes[0], {(int64_t)now.requested_bytes, std::min(requested, allocated.peak), 0, 0});
    set(stats.segment[0], {chunks, chunks, grown, grown - chunks + (int64_t)begun.chunks});
    stats.num_alloc_retries = (int64_t)(now.recoveries - begun.recoveries);
    stats.num_ooms = ooms_[(size_t)device];
    stats.num_device_alloc = stats.segment[0].allocated;
    stats.num_device_free = stats.segment[0].freed;
    stats.max_split_size = -1;
    return stats;
}

/* Calls the observers, and throws PyTorch's OutOfMemoryError with Strata's report. */
void Whole::out_of_memory(DeviceIndex device, size_t size, cudaStream_t stream, Context context) {
    std::string report = reason(STRATA_E_NO_MEMORY);
    strata_mem_info_t info = mem_info_of(facade_, device);
    ooms_[(size_t)device]++;
    if (history_.is_active()) note(Action::OOM, device, (size_t)info.free, size, stream, {0, 0}, std::move(context));
    std::vector<ca::OutOfMemoryObserver> observers;
    {
        std::lock_guard<std::mutex> guard(lock_);
        observers = observers_;
    }
    for (const auto &observer : observers) observer(device, size, (size_t)std::min(info.limit, info.total), (size_t)info.free);
    TORCH_CHECK_WITH(OutOfMemoryError, false, report);
}

/* PyTorch returns every block of the pool, because it rebuilds them all. So does this function, although Strata leaves most blocks
 * unchanged. */
ca::CheckpointDelta Whole::setCheckpointPoolState(DeviceIndex device, std::shared_ptr<ca::AllocatorState> state) {
    auto *checkpoint = dynamic_cast<Checkpoint *>(state.get());
    TORCH_CHECK(checkpoint, "Strata: this is not the state of a Strata pool");
    ca::CheckpointDelta delta;
    delta.ptrs_freed = live_of(device, checkpoint->pool);
    auto changed = [](const strata_block_t *block, bool live, void *context) {
        (live ? strata_torch_count_alloc : strata_torch_count_free)(*static_cast<DeviceIndex *>(context), block);
    };
    check(strata_graph_pool_restore(facade_, place_of(device), checkpoint->state, changed, &device));
    for (void *block : live_of(device, checkpoint->pool))
        delta.dataptrs_allocd.emplace_back(block, block, &release_tensor, c10::Device(c10::DeviceType::CUDA, device));
    return delta;
}

/* Before a new history begins, notes the existing chunks, so that it records only later changes. */
void Whole::begin_history(bool enabled) {
    for (int device = 0; enabled && !history_.is_active() && device < devices_; device++)
        if (strata_torch_used(device)) strata_torch_changes(device, [](Change, const Chunk &) {});
}

void Whole::note_chunks(int device, const Context &context) {
    strata_torch_changes(device, [&](Change change, const Chunk &chunk) {
        static constexpr Action actions[] = {Action::SEGMENT_ALLOC, Action::SEGMENT_MAP, Action::SEGMENT_UNMAP,
                                             Action::SEGMENT_FREE};
        note(actions[(size_t)change], device, chunk.address, chunk.size, chunk.stream, chunk.pool, context);
    });
}

void Whole::add_block(ca::SegmentInfo &segment, const strata_snapshot_row_t &row) {
    ca::BlockInfo block;
    block.size = row.block.size;
    block.requested_size = row.requested;
    block.allocated = row.state == 1;
    block.active = row.state != 0;
    if (block.allocated) block.context_when_allocated = history_.find(row.block.ptr);
    segment.total_size += block.size;
    segment.requested_size += block.requested_size;
    segment.allocated_size += block.allocated ? block.size : 0;
    segment.active_size += block.active ? block.size : 0;
    segment.blocks.push_back(std::move(block));
}

void Whole::add_segments(ca::SnapshotInfo &snapshot, int device, MempoolId_t wanted) {
    uint64_t chunk = 0;
    bool open = false;
    strata_torch_rows(device, wanted, [&](const strata_snapshot_row_t &row, PoolId pool) {
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
    });
}

ca::SnapshotInfo Whole::take_snapshot(MempoolId_t pool, bool traces) {
    if (history_.is_active()) note(Action::SNAPSHOT, c10::cuda::current_device(), 0, 0, nullptr, {0, 0}, nullptr);
    ca::SnapshotInfo snapshot;
    for (int device = 0; device < devices_; device++)
        if (strata_torch_used(device)) add_segments(snapshot, device, pool);
    history_.append_to(snapshot, (size_t)devices_.load(), traces);
    snapshot.config_metadata = {};
    snapshot.config_metadata.max_split_size = SIZE_MAX;
    return snapshot;
}

/* The first byte of a name that is the driver's handle of a whole chunk. It is used for blocks that have no handles of Strata. */
constexpr char drivers = 'c';

ca::ShareableHandle Whole::shareIpcHandle(void *pointer) {
    std::string name(strata_torch_name_max, 0);
    ptrdiff_t offset;
    name.resize(strata_torch_share(pointer, &name[0], &offset));
    if (!name.empty()) return {offset, name};
    void *base = getBaseAllocation(pointer, nullptr);
    cudaIpcMemHandle_t told;
    C10_CUDA_CHECK(cudaIpcGetMemHandle(&told, base));
    return {(char *)pointer - (char *)base, drivers + std::string((const char *)&told, sizeof told)};
}

std::shared_ptr<void> Whole::getIpcDevPtr(std::string name) {
    cudaIpcMemHandle_t told;
    if (name.size() == 1 + sizeof told && name[0] == drivers) {
        void *base;
        std::memcpy(&told, name.data() + 1, sizeof told);
        C10_CUDA_CHECK(cudaIpcOpenMemHandle(&base, told, cudaIpcMemLazyEnablePeerAccess));
        return {base, [](void *pointer) { C10_CUDA_IGNORE_ERROR(cudaIpcCloseMemHandle(pointer)); }};
    }
    uint64_t id;
    void *block = strata_torch_open(c10::cuda::current_device(), name.data(), name.size(), &id);
    return {block, [id](void *) { strata_torch_open_end(id); }};
}

Whole &whole() {
    static Whole *one = new Whole; /* never destroyed, because tensors outlive every static */
    return *one;
}

/* Called by destructors, which must not throw. */
void release_tensor(void *pointer) {
    try {
        whole().raw_delete(pointer);
    } catch (const std::exception &error) { std::fprintf(stderr, "strata: a tensor's memory was not freed: %s\n", error.what()); }
}

uint64_t free_memory(strata_place_t place, size_t, void *) {
    if (strata_place_kind(place) != STRATA_PLACE_GPU) return 0;
    Figure before[2], now[2];
    int device = (int)strata_place_device(place);
    (void)strata_torch_figures(device, before);
    for (const auto &key : c10::FreeCudaMemoryCallbacksRegistry()->Keys())
        c10::FreeCudaMemoryCallbacksRegistry()->Create(key)->Execute();
    (void)strata_torch_figures(device, now);
    return (uint64_t)std::max<int64_t>(before[1].current - now[1].current, 0);
}

} // namespace

/* Makes the whole door over this facade PyTorch's allocator. It must be called before PyTorch's first request. Returns NULL, or
 * the reason of a failure. The text stays valid until the next call. */
extern "C" __attribute__((visibility("default"))) const char *strata_whole_use(strata_t facade) {
    static std::string why;
    try {
        TORCH_CHECK(!ca::allocator.load() || !ca::allocator.load()->initialized(), "PyTorch has already used CUDA");
        whole().use(facade);
        ca::allocator.store(&whole());
        c10::SetAllocator(c10::DeviceType::CUDA, &whole(), UINT8_MAX);
        return nullptr;
    } catch (const std::exception &error) {
        why = error.what();
        return why.c_str();
    }
}
