/* The workload of many live blocks: a random one is freed, and one of 512 x 2^(17u) bytes, u uniform, is
 * allocated.
 *
 * A size is made from the drawn bits and a table of 4 KiB. 16 bits distinguish 65,536 sizes. A table of them
 * all (512 KiB) would occupy the CPU caches beside the measured data. With 100,000 blocks it caused every
 * sixth miss in a cache of 1 MB. */
#ifndef STRATA_BENCH_TURNOVER_H
#define STRATA_BENCH_TURNOVER_H

#include <stddef.h>
#include <stdint.h>

enum { TURNOVER_OCTAVES = 17, TURNOVER_MIN_BITS = 9, TURNOVER_STEP_BITS = 10, TURNOVER_SCALE_BITS = 30 };

/* factors[i] is for step i of an octave: 2^(i / steps), in 2^-SCALE_BITS. */
typedef struct turnover {
    uint32_t factors[1 << TURNOVER_STEP_BITS];
    uint64_t state;
} turnover_t;

static inline void turnover_init(turnover_t *turnover) {
    turnover->state = 88172645463325252u;
    for (int i = 0; i < 1 << TURNOVER_STEP_BITS; i++)
        turnover->factors[i] = (uint32_t)(__builtin_exp2((double)i / (1 << TURNOVER_STEP_BITS)) * (1u << TURNOVER_SCALE_BITS));
}

/* Returns 64 random bits. The low 16 make a size, the high 32 choose a block. */
static inline uint64_t turnover_draw(turnover_t *turnover) {
    uint64_t state = turnover->state;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return turnover->state = state;
}

static inline size_t turnover_size(const turnover_t *turnover, uint64_t drawn) {
    uint32_t exponent = (uint32_t)(drawn & 0xffff) * TURNOVER_OCTAVES;
    uint64_t factor = turnover->factors[(exponent & 0xffff) >> (16 - TURNOVER_STEP_BITS)];
    return factor << (exponent >> 16) >> (TURNOVER_SCALE_BITS - TURNOVER_MIN_BITS);
}

static inline size_t turnover_victim(uint64_t drawn, int live) { return (size_t)((drawn >> 32) * (uint64_t)live >> 32); }

#endif
