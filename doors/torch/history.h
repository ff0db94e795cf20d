/* The history of events in PyTorch's snapshots: a ring of entries, the stack frames of live blocks, and trackers that observe
 * each entry. */
#ifndef STRATA_INTEGRATION_TORCH_HISTORY_H
#define STRATA_INTEGRATION_TORCH_HISTORY_H

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/ApproximateClock.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "doors/torch/door.h"

namespace strata_door {

namespace ca = c10::cuda::CUDACachingAllocator;
using Context = std::shared_ptr<c10::GatheredContext>;
using Annotation = decltype(ca::SnapshotInfo::external_annotations)::value_type;

/* PyTorch's names of its actions, for skip_actions. */
inline const char *action_name(ca::TraceEntry::Action action) {
    static constexpr const char *names[] = {"alloc",       "free_requested", "free_completed", "segment_alloc", "segment_free",
                                            "segment_map", "segment_unmap",  "snapshot",       "oom",           "annotate"};
    return names[(size_t)action];
}

/* The compile contexts of the thread, the innermost last. */
inline std::vector<std::string> &compile_contexts() {
    static thread_local std::vector<std::string> contexts;
    return contexts;
}
inline std::string &user_metadata() {
    static thread_local std::string metadata;
    return metadata;
}

class History {
  public:
    /* Returns true if an event must be recorded or passed to a tracker. It costs one load. */
    bool is_active() const { return on_.load(std::memory_order_acquire); }
    bool enabled() const { return enabled_.load(std::memory_order_acquire); }

    void record(bool enabled, ca::CreateContextFn recorder, size_t most, ca::RecordContext when, bool clear,
                const std::vector<std::string> &skip) {
        std::lock_guard<std::mutex> guard(lock_);
        recorder_ = recorder;
        when_ = when;
        skip_ = skip;
        std::rotate(entries_.begin(), entries_.begin() + (ptrdiff_t)first_, entries_.end());
        first_ = 0;
        capacity_ = std::max<size_t>(most, 1);
        if (entries_.size() > capacity_) entries_.erase(entries_.begin(), entries_.end() - (ptrdiff_t)capacity_);
        if (clear || !enabled) {
            entries_.clear();
            annotations_.clear();
        }
        if (!enabled) live_.clear();
        enabled_ = enabled;
        on_ = enabled || !trackers_.empty();
    }
    void attach(ca::AllocatorTraceTracker tracker) {
        std::lock_guard<std::mutex> guard(lock_);
        trackers_.push_back(std::move(tracker));
        on_ = true;
    }

    /* Returns the caller's stack frames, if this detail is recorded. Call it before taking any lock, because it takes Python's. */
    Context gather(ca::RecordContext least) const { return enabled() && recorder_ && when_ >= least ? recorder_() : nullptr; }

    void add(ca::TraceEntry entry) {
        std::lock_guard<std::mutex> guard(lock_);
        for (const auto &tracker : trackers_) tracker(entry);
        if (!enabled() || std::find(skip_.begin(), skip_.end(), action_name(entry.action_)) != skip_.end()) return;
        if (when_ < ca::RecordContext::ALLOC) entry.context_ = nullptr;
        if (entries_.size() < capacity_) {
            entries_.push_back(std::move(entry));
        } else {
            entries_[first_] = std::move(entry);
            first_ = (first_ + 1) % capacity_;
        }
    }
    void annotate(Annotation annotation) {
        std::lock_guard<std::mutex> guard(lock_);
        if (enabled() && annotations_.size() < capacity_) annotations_.push_back(std::move(annotation));
    }

    void store(void *block, Context context) {
        if (!context) return;
        std::lock_guard<std::mutex> guard(lock_);
        live_[block] = std::move(context);
    }
    Context remove(void *block) {
        std::lock_guard<std::mutex> guard(lock_);
        auto found = live_.find(block);
        if (found == live_.end()) return nullptr;
        Context context = std::move(found->second);
        live_.erase(found);
        return context;
    }
    Context find(void *block) {
        std::lock_guard<std::mutex> guard(lock_);
        auto found = live_.find(block);
        return found == live_.end() ? nullptr : found->second;
    }

    /* Adds the entries by device, the oldest first, and the annotations to a snapshot. Times are in microseconds, as in PyTorch. */
    void append_to(ca::SnapshotInfo &snapshot, size_t devices, bool entries) {
        std::lock_guard<std::mutex> guard(lock_);
        auto nanoseconds = clock_.makeConverter();
        snapshot.device_traces.resize(devices);
        for (size_t i = 0; entries && i < entries_.size(); i++) {
            ca::TraceEntry entry = entries_[(first_ + i) % entries_.size()];
            entry.time_.t_ = nanoseconds(entry.time_.approx_t_) / 1000;
            if ((size_t)entry.device_ < devices) snapshot.device_traces[(size_t)entry.device_].push_back(std::move(entry));
        }
        for (Annotation annotation : annotations_) {
            annotation.time_.t_ = nanoseconds(annotation.time_.approx_t_) / 1000;
            snapshot.external_annotations.push_back(std::move(annotation));
        }
    }

  private:
    std::mutex lock_;
    std::atomic<bool> on_{false}, enabled_{false};
    std::atomic<ca::CreateContextFn> recorder_{nullptr};
    std::atomic<ca::RecordContext> when_{ca::RecordContext::NEVER};
    size_t capacity_ = 1, first_ = 0; /* capacity of the ring, and its oldest entry once it is full */
    std::vector<ca::TraceEntry> entries_;
    std::vector<Annotation> annotations_;
    std::vector<std::string> skip_;
    std::vector<ca::AllocatorTraceTracker> trackers_;
    std::unordered_map<void *, Context> live_;
    c10::ApproximateClockToUnixTimeConverter clock_;
};

} // namespace strata_door
#endif
