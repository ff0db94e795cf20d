/* What both doors into PyTorch share: exact figures, and PyTorch's pools over Strata's pools of graphs. Includes nothing of PyTorch. */
#ifndef STRATA_INTEGRATION_TORCH_DOOR_H
#define STRATA_INTEGRATION_TORCH_DOOR_H

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "strata/strata.h"

struct CUstream_st;

namespace strata_door {

/* As PyTorch has them: c10::MempoolId_t, and what chooses the streams of a pool. */
using PoolId = std::pair<unsigned long long, unsigned long long>;
using Chosen = std::function<bool(CUstream_st *)>;

constexpr int most_devices = 16; /* of a facade */

/* Why the last call of this thread failed. What asks for memory and does not get it begins as PyTorch's own message does, since programs
 * look for these words. */
inline std::string reason(strata_status_t status) {
    return std::string(status == STRATA_E_NO_MEMORY ? "CUDA out of memory. " : "Strata: ") + strata_last_error()->text;
}

/* Whether a free has nothing left to give back to: in a forked child, whose copies of tensors end with it, and once the driver shuts down. */
inline bool is_over(strata_status_t status) { return status == STRATA_E_FORKED || status == STRATA_E_SHUTDOWN; }

/* One of PyTorch's statistics. The peak is exact: whoever raises `current` sees what it then is. */
struct Figure {
    std::atomic<int64_t> current{0}, peak{0}, total{0}, gone{0};

    void add(int64_t amount) {
        int64_t now = current.fetch_add(amount, std::memory_order_relaxed) + amount;
        total.fetch_add(amount, std::memory_order_relaxed);
        int64_t highest = peak.load(std::memory_order_relaxed);
        while (highest < now && !peak.compare_exchange_weak(highest, now, std::memory_order_relaxed)) {}
    }
    void take(int64_t amount) {
        current.fetch_sub(amount, std::memory_order_relaxed);
        gone.fetch_add(amount, std::memory_order_relaxed);
    }
    void reset_peak() { peak.store(current.load(std::memory_order_relaxed), std::memory_order_relaxed); }
    void reset_totals() {
        total.store(0, std::memory_order_relaxed);
        gone.store(0, std::memory_order_relaxed);
    }
    void clear() {
        current.store(0, std::memory_order_relaxed);
        reset_peak();
        reset_totals();
    }
};

/* What the blocks of a device are. A block counts from after its allocation until before its free, so no sum stands above reserved. */
struct Meter {
    Figure count, allocated;
    /* Something was served. A device of which nothing is asked must not be opened by a question about it. */
    std::atomic<bool> used{false};

    void add(size_t bytes) {
        used.store(true, std::memory_order_relaxed);
        count.add(1);
        allocated.add((int64_t)bytes);
    }
    void take(size_t bytes) {
        count.take(1);
        allocated.take((int64_t)bytes);
    }
    void reset_peaks() {
        count.reset_peak();
        allocated.reset_peak();
    }
    void reset_totals() {
        count.reset_totals();
        allocated.reset_totals();
    }
    void clear() {
        used = false;
        count.clear();
        allocated.clear();
    }
};

/* The function of a pool that is begun. Strata may call it until a moment after the end; by then what it captured may be gone, so it is
 * asked only while `lock` says that it is still there. */
class Filter {
  public:
    void begin(Chosen chosen) {
        std::unique_lock<std::shared_mutex> guard(lock_);
        chosen_ = std::move(chosen);
    }
    /* Returns when nobody is inside, and nobody will be. */
    void end() {
        std::unique_lock<std::shared_mutex> guard(lock_);
        chosen_ = nullptr;
    }
    static bool call(strata_stream_t stream, void *context) {
        auto *self = static_cast<Filter *>(context);
        std::shared_lock<std::shared_mutex> guard(self->lock_);
        return self->chosen_ && self->chosen_(static_cast<CUstream_st *>(stream));
    }

  private:
    std::shared_mutex lock_;
    Chosen chosen_;
};

/* PyTorch's pools by their names. A begin counts until its release, as in Strata. Every function may throw std::runtime_error. */
class Pools {
  public:
    struct Pool {
        uint64_t number = 0; /* Strata's; 0: not begun yet */
        int uses = 0; /* without a release */
        int unknown = 0; /* of these, how many Strata was not told of */
        std::unique_ptr<Filter> filter; /* while it is begun */
    };

    void begin(strata_t facade, int device, PoolId id, Chosen chosen) {
        std::lock_guard<std::recursive_mutex> guard(lock_);
        Pool &pool = pools_[{device, id}];
        std::unique_ptr<Filter> filter = take_filter();
        filter->begin(std::move(chosen));
        strata_status_t status = strata_graph_pool_begin_filtered(facade, strata_gpu((uint32_t)device), Filter::call, filter.get(),
                                                                  &pool.number);
        if (status != STRATA_OK) {
            retire(std::move(filter));
            if (pool.uses == 0) pools_.erase({device, id});
            throw std::runtime_error(reason(status));
        }
        pool.filter = std::move(filter);
        pool.uses++;
    }

    /* One more use without requests: what torch.cuda.MemPool is. */
    void keep(strata_t facade, int device, PoolId id) {
        {
            std::lock_guard<std::recursive_mutex> guard(lock_);
            Pool &pool = pools_[{device, id}];
            if (pool.filter) { /* begun now, so it cannot be begun again; that begin keeps it as long */
                pool.uses++;
                pool.unknown++;
                return;
            }
        }
        begin(facade, device, id, [](CUstream_st *) { return false; });
        end(facade, device, id);
    }

    void end(strata_t facade, int device, PoolId id) {
        std::lock_guard<std::recursive_mutex> guard(lock_);
        Pool &pool = find(device, id);
        check(strata_graph_pool_end(facade, strata_gpu((uint32_t)device), pool.number));
        retire(std::move(pool.filter));
    }

    /* Takes one begin back. With the last the name is free: what is live in the pool, and what graphs keep, stays theirs. */
    void release(strata_t facade, int device, PoolId id) {
        std::lock_guard<std::recursive_mutex> guard(lock_);
        Pool &pool = find(device, id);
        if (pool.unknown > 0) pool.unknown--;
        else check(strata_graph_pool_remove(facade, strata_gpu((uint32_t)device), pool.number));
        if (--pool.uses == 0 && !pool.filter) pools_.erase({device, id});
    }

    void clear() {
        std::lock_guard<std::recursive_mutex> guard(lock_);
        pools_.clear();
    }

    int uses(int device, PoolId id) {
        std::lock_guard<std::recursive_mutex> guard(lock_);
        auto found = pools_.find({device, id});
        return found == pools_.end() ? 0 : found->second.uses;
    }

    /* Strata's number; 0: there is no such pool. */
    uint64_t number(int device, PoolId id) {
        std::lock_guard<std::recursive_mutex> guard(lock_);
        auto found = pools_.find({device, id});
        return found == pools_.end() ? 0 : found->second.number;
    }

    /* The name of the pool of this number; {0, 0}: none has it. */
    PoolId name(int device, uint64_t number) {
        std::lock_guard<std::recursive_mutex> guard(lock_);
        for (auto &[key, pool] : pools_)
            if (key.first == device && pool.number == number) return key.second;
        return {0, 0};
    }

  private:
    static constexpr size_t kept = 64;

    static void check(strata_status_t status) {
        if (status != STRATA_OK) throw std::runtime_error(reason(status));
    }

    Pool &find(int device, PoolId id) {
        auto found = pools_.find({device, id});
        if (found == pools_.end()) throw std::runtime_error("Strata: no such pool of graphs was begun");
        return found->second;
    }

    /* A late call may still come to a filter that was ended: it serves again only after many others. */
    void retire(std::unique_ptr<Filter> filter) {
        if (!filter) return;
        filter->end();
        retired_.push_back(std::move(filter));
    }
    std::unique_ptr<Filter> take_filter() {
        if (retired_.size() <= kept) return std::make_unique<Filter>();
        std::unique_ptr<Filter> oldest = std::move(retired_.front());
        retired_.pop_front();
        return oldest;
    }

    std::recursive_mutex lock_; /* a begin may ask for memory, and so call back */
    std::map<std::pair<int, PoolId>, Pool> pools_;
    std::deque<std::unique_ptr<Filter>> retired_;
};

} // namespace strata_door
#endif
