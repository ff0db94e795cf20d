/* Checked arithmetic on sizes: each function returns false instead of wrapping, and then leaves *result as it was. */
#ifndef STRATA_PLATFORM_ARITHMETIC_H
#define STRATA_PLATFORM_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

static inline bool strata_add(uint64_t a, uint64_t b, uint64_t *result) { return !__builtin_add_overflow(a, b, result); }

static inline bool strata_multiply(uint64_t a, uint64_t b, uint64_t *result) { return !__builtin_mul_overflow(a, b, result); }

static inline bool strata_is_power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

/* Rounds up to a multiple of `unit`, a power of two. */
static inline bool strata_round_up(uint64_t value, uint64_t unit, uint64_t *result) {
    uint64_t sum;
    if (!strata_add(value, unit - 1, &sum)) return false;
    *result = sum & ~(unit - 1);
    return true;
}

/* Rounds up to a multiple of any unit. The sum of both must not overflow. */
static inline uint64_t strata_round_up_any(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

static inline uint64_t strata_round_down(uint64_t value, uint64_t unit) { return value & ~(unit - 1); }

/* Returns `fraction` of the bytes, rounded down, or UINT64_MAX if the result does not fit. Requires
 * fraction >= 0. */
static inline uint64_t strata_share(uint64_t bytes, double fraction) {
    double share = (double)bytes * fraction;
    if (fraction == 1) return bytes;
    return share < 18446744073709551616.0 ? (uint64_t)share : UINT64_MAX;
}

static inline uint64_t strata_min(uint64_t a, uint64_t b) { return a < b ? a : b; }

static inline uint64_t strata_max(uint64_t a, uint64_t b) { return a > b ? a : b; }

#endif
