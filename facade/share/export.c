/* Exports a block to another process. */
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "facade/share/share.h"
#include "platform/arguments.h"
#include "platform/arithmetic.h"

/* A random name of this process, because handle numbers are unique only within it. The first caller draws
 * it, and writes both halves before `drawn` becomes 2. */
static uint64_t own_name[2];
static _Atomic int drawn; /* 0 before the draw, 1 during it, 2 after it */

static strata_status_t owner_of(uint64_t owner[2]) {
    int nobody = 0;
    if (atomic_compare_exchange_strong(&drawn, &nobody, 1)) {
        bool got = getrandom(own_name, sizeof own_name, 0) == (ssize_t)sizeof own_name;
        atomic_store(&drawn, got ? 2 : 0);
    }
    if (atomic_load(&drawn) != 2)
        return strata_fail(STRATA_E_BUSY, 0, "strata_export: the system has no random numbers yet; try again");
    memcpy(owner, own_name, sizeof own_name);
    return STRATA_OK;
}

void strata_shared_close(strata_shared_t *shared) {
    if (!shared) return;
    for (uint32_t i = 0; i < shared->count && i < STRATA_SHARE_SEGMENTS; i++)
        if (shared->descriptors[i] >= 0) close(shared->descriptors[i]);
    if (shared->count > 0 && shared->lease >= 0) close(shared->lease);
    memset(shared, 0, sizeof *shared);
}

static strata_status_t export_all(const strata_share_block_t *block, strata_shared_t *shared) {
    strata_status_t status = STRATA_OK;
    for (uint32_t i = 0; i < block->count && status == STRATA_OK; i++) {
        shared->segments[i] = (strata_segment_t){block->held[i].number, block->held[i].size};
        status = strata_device_export_memory(block->domain->device, block->held[i].physical, &shared->descriptors[i]);
        shared->count += status == STRATA_OK;
    }
    return status;
}

static strata_status_t export_block(const strata_share_block_t *block, strata_ref_t ref, strata_shared_t *shared) {
    strata_shared_t made = {.lease = -1,
                            .offset = block->address - block->held[0].address,
                            .size = block->size,
                            .device = strata_place_device(block->domain->place)};
    strata_status_t status = owner_of(made.owner);
    if (status == STRATA_OK) status = export_all(block, &made);
    if (status == STRATA_OK) status = strata_sent_lease(block->domain, ref, &made.lease);
    if (status == STRATA_OK) {
        *shared = made;
        return STRATA_OK;
    }
    const strata_error_t reason = *strata_last_error();
    strata_shared_close(&made);
    (void)strata_share_handles(block->source)->unhold(block->source, STRATA_HOLD_EXPORTED, block->address, block->size);
    return strata_fail_again(&reason);
}

strata_status_t strata_export(strata_t handle, strata_ref_t ref, strata_shared_t *shared) {
    STRATA_REFUSE_NULL(shared);
    strata_share_block_t block;
    strata_status_t status = strata_share_hold(handle, ref, STRATA_HOLD_EXPORTED, "strata_export", STRATA_SHARE_SEGMENTS, &block);
    if (status != STRATA_OK) return status;
    if (block.domain->device->capabilities.share) return export_block(&block, ref, shared);
    (void)strata_share_handles(block.source)->unhold(block.source, STRATA_HOLD_EXPORTED, block.address, block.size);
    return strata_fail(STRATA_E_UNSUPPORTED, 0, "strata_export: %s cannot share memory with other processes",
                       block.domain->device->name);
}

/* ---- input from outside ---- */

enum { MAX_BITS = 47 }; /* log2 of bytes; no process has more address space */

static strata_status_t fail_format(const char *what) { return strata_fail(STRATA_E_FORMAT, 0, "shared memory: %s", what); }

strata_status_t strata_shared_check(const strata_shared_t *shared) {
    uint64_t sum = 0, last = 0;
    if (shared->count == 0 || shared->count > STRATA_SHARE_SEGMENTS) return fail_format("it has no segments, or too many");
    for (uint32_t i = 0; i < shared->count; i++) {
        last = shared->segments[i].size;
        if (last == 0 || last >> MAX_BITS) return fail_format("a segment has an impossible size");
        sum += last;
    }
    if (sum >> MAX_BITS) return fail_format("its segments exceed any address space");
    if (shared->offset >= shared->segments[0].size) return fail_format("it does not begin in its first segment");
    if (shared->size == 0 || shared->size > sum - shared->offset) return fail_format("it does not fit into its segments");
    if (shared->count > 1 && shared->offset + shared->size <= sum - last) return fail_format("it does not reach its last segment");
    return STRATA_OK;
}
