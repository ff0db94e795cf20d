#include "allocation/layers/decorators/guard_bytes.h"

#include "platform/arithmetic.h"

enum { PIECE = 1 << 20, ALIGNMENT = 4096 };

bool strata_guard_sees(strata_device_t *device, uint64_t address, uint64_t size) {
    return device->capabilities.contents || strata_device_host_view(device, address, size);
}

static uint64_t first_other(const uint8_t *bytes, uint8_t byte, uint64_t size) {
    uint64_t at = 0;
    while (at < size && bytes[at] == byte) at++;
    return at;
}

/* ---- copies ---- */

/* If two checks run concurrently, one allocates staging memory of its own. Returns 0 if there is none. */
static uint64_t take_staging(const guard_bytes_t *bytes) {
    strata_address_t staging = atomic_exchange(bytes->staging, 0);
    if (staging) return staging;
    strata_status_t status = strata_device_host_alloc(bytes->domain->device, STRATA_MEMORY_PINNED, PIECE, ALIGNMENT,
                                                      STRATA_HOST_PORTABLE, &staging);
    return status == STRATA_OK ? staging : 0;
}

static void give_staging(const guard_bytes_t *bytes, uint64_t staging) {
    uint64_t none = 0;
    if (atomic_compare_exchange_strong(bytes->staging, &none, staging)) return;
    (void)strata_device_host_free(bytes->domain->device, STRATA_MEMORY_PINNED, staging);
}

static bool copy_piece(const guard_bytes_t *bytes, uint64_t address, uint64_t size, uint64_t staging) {
    strata_stream_t stream = bytes->named ? bytes->stream : NULL;
    void *host = (void *)(uintptr_t)staging;
    if (strata_device_copy(bytes->domain->device, address, host, size, true, stream) != STRATA_OK) return false;
    return bytes->named ? strata_domain_wait_for(bytes->domain, stream) : strata_domain_wait_for_all(bytes->domain);
}

/* A free that cannot check is not a failure, so the reason of an earlier one is kept. */
static bool find_in_copies(const guard_bytes_t *bytes, uint64_t address, uint8_t byte, uint64_t size, uint64_t *at) {
    const strata_error_t reason = *strata_last_error();
    uint64_t staging = take_staging(bytes), piece, other = 0;
    bool seen = staging != 0;
    for (*at = 0; seen && *at < size; *at += piece) {
        piece = strata_min(PIECE, size - *at);
        seen = copy_piece(bytes, address + *at, piece, staging);
        if (seen && (other = first_other((const uint8_t *)(uintptr_t)staging, byte, piece)) < piece) break;
    }
    if (*at < size) *at += other;
    if (staging) give_staging(bytes, staging);
    if (!seen) (void)strata_fail_again(&reason);
    return seen;
}

bool strata_guard_first_other(const guard_bytes_t *bytes, uint64_t address, uint8_t byte, uint64_t size, uint64_t *at) {
    const uint8_t *view = strata_device_host_view(bytes->domain->device, address, size);
    *at = 0;
    if (!view) return bytes->domain->device->capabilities.contents && find_in_copies(bytes, address, byte, size, at);
    *at = first_other(view, byte, size);
    return true;
}

void strata_guard_end_staging(strata_device_t *device, _Atomic uint64_t *staging) {
    uint64_t left = atomic_exchange(staging, 0);
    if (left) (void)strata_device_host_free(device, STRATA_MEMORY_PINNED, left);
}
