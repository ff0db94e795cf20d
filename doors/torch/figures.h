/* Exact counters with PyTorch's meaning. Any thread may call. */
#ifndef STRATA_INTEGRATION_TORCH_FIGURES_H
#define STRATA_INTEGRATION_TORCH_FIGURES_H

#include <atomic>

#include "doors/torch/door.h"

namespace strata_door {

/* The counter of a statistic. The peak is exact, because the thread that raises `current` gets the new value. */
struct Counter {
    std::atomic<int64_t> current{0}, peak{0}, total{0}, freed{0};

    void add(int64_t amount) {
        int64_t now = current.fetch_add(amount, std::memory_order_relaxed) + amount;
        total.fetch_add(amount, std::memory_order_relaxed);
        int64_t highest = peak.load(std::memory_order_relaxed);
        while (highest < now && !peak.compare_exchange_weak(highest, now, std::memory_order_relaxed)) {}
    }
    void remove(int64_t amount) {
        current.fetch_sub(amount, std::memory_order_relaxed);
        freed.fetch_add(amount, std::memory_order_relaxed);
    }
    void reset_peak() { peak.store(current.load(std::memory_order_relaxed), std::memory_order_relaxed); }
    void reset_totals() {
        total.store(0, std::memory_order_relaxed);
        freed.store(0, std::memory_order_relaxed);
    }
    void clear() {
        current.store(0, std::memory_order_relaxed);
        reset_peak();
        reset_totals();
    }
    Figure figure() const { return {current, peak, total, freed}; }
};

/* The counters of the blocks of a device. */
struct Meter {
    Counter count, bytes;
    std::atomic<bool> used{false}; /* the device has served a request */

    void add(size_t size) {
        used.store(true, std::memory_order_relaxed);
        count.add(1);
        bytes.add((int64_t)size);
    }
    void remove(size_t size) {
        count.remove(1);
        bytes.remove((int64_t)size);
    }
    void reset_peaks() {
        count.reset_peak();
        bytes.reset_peak();
    }
    void reset_totals() {
        count.reset_totals();
        bytes.reset_totals();
    }
    void clear() {
        used = false;
        count.clear();
        bytes.clear();
    }
};

} // namespace strata_door
#endif
