#include "planning/problem/buffers.h"

#include "platform/arithmetic.h"

#define SIZE_LIMIT    ((uint64_t)1 << 48)
#define ALIGNMENT_MAX ((uint64_t)1 << 40)
#define OFFSET_MAX    ((uint64_t)1 << 60)
#define SUM_MAX       ((uint64_t)1 << 61)

static strata_status_t check_one(const strata_plan_buffer_t *b, size_t index) {
    unsigned long long lower = b->lower, upper = b->upper, size = b->size, alignment = b->alignment, offset = b->offset;
    if (lower >= upper)
        return strata_fail(STRATA_E_INVALID, 0, "buffer %zu lives from %llu to %llu; lower must be below upper", index, lower,
                           upper);
    if (size > SIZE_LIMIT) return strata_fail(STRATA_E_INVALID, 0, "buffer %zu has %llu bytes; the maximum is 2^48", index, size);
    if (alignment != 0 && (!strata_is_power_of_two(alignment) || alignment > ALIGNMENT_MAX))
        return strata_fail(STRATA_E_INVALID, 0, "buffer %zu has alignment %llu; write a power of two up to 2^40", index, alignment);
    if (b->flags & ~(uint32_t)(STRATA_PLAN_FIXED | STRATA_PLAN_OUTPUT | STRATA_PLAN_REMOVED | STRATA_PLAN_HELD))
        return strata_fail(STRATA_E_INVALID, 0, "buffer %zu has flags 0x%x, some of which are unknown", index, b->flags);
    if (!(b->flags & STRATA_PLAN_FIXED)) return STRATA_OK;
    if (offset > OFFSET_MAX)
        return strata_fail(STRATA_E_INVALID, 0, "buffer %zu is fixed at %llu; the maximum is 2^60", index, offset);
    if (alignment > 1 && offset % alignment)
        return strata_fail(STRATA_E_INVALID, 0, "buffer %zu is fixed at %llu, which is not a multiple of its alignment %llu", index,
                           offset, alignment);
    return STRATA_OK;
}

strata_status_t strata_buffers_check(const strata_plan_buffer_t *buffers, size_t count) {
    uint64_t sum = 0;
    if (count > STRATA_PLAN_BUFFERS)
        return strata_fail(STRATA_E_LIMIT, 0, "%zu buffers; the maximum is %d", count, STRATA_PLAN_BUFFERS);
    for (size_t i = 0; i < count; i++) {
        strata_status_t status = check_one(&buffers[i], i);
        if (status != STRATA_OK) return status;
        sum += buffers[i].size; /* at most 2^24 times 2^49, so it cannot overflow unnoticed */
        if (buffers[i].alignment > 1) sum += buffers[i].alignment;
        if (sum > SUM_MAX) return strata_fail(STRATA_E_LIMIT, 0, "the buffers up to number %zu have more than 2^61 bytes", i);
    }
    return STRATA_OK;
}
