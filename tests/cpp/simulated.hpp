// A facade on a small simulated device.
#ifndef STRATA_TESTS_CPP_SIMULATED_HPP
#define STRATA_TESTS_CPP_SIMULATED_HPP

#include "strata/strata.hpp"

constexpr std::size_t KiB = 1024, MiB = KiB * KiB, GiB = KiB * MiB;

inline strata::options simulated(const char *preset = "strata") {
    strata::options options;
    options.preset = preset;
    options.devices = "sim";
    options.flags = STRATA_OPEN_IGNORE_ENVIRONMENT;
    return options;
}

inline std::uint64_t live(const strata::facade &facade, strata_place_t place = strata_gpu(0)) {
    return facade.statistics(place).live_allocations;
}

// A block is freed on `stream` while work is under way there: the bytes of the place that wait for it.
inline std::uint64_t deferred(const strata::facade &facade, strata_place_t place = strata_gpu(0)) {
    return facade.statistics(place).deferred_bytes;
}

#endif
