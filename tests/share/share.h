/* Facades over vmm, for tests of sharing. */
#ifndef STRATA_TESTS_SHARE_H
#define STRATA_TESTS_SHARE_H

#include <sys/socket.h>
#include <unistd.h>

#include "tests/facade/support/fixture.h"

#define CACHED     "stack: [stream_safe, auto_growth_vmm, vmm]\n"
#define ONE_HANDLE "stack: [stream_safe, auto_growth: {chunk_size: 20MiB}, vmm: {registrable: true}]\n"
#define ONLY_VMM   "stack: [vmm]\n"

/* Two simulated devices whose memory has contents. */
static inline void open_two(rig_t *rig, const char *strategy) {
    rig_open_with(rig, strategy, &(strata_sim_options_t){.devices = 2, .contents = true, .capacity = 4 * GIB}, 0);
}

static inline uint8_t *bytes_at(rig_t *rig, uint32_t device, const void *ptr) {
    return strata_device_host_view(rig->devices[device], (uintptr_t)ptr, 1);
}

/* Whether a device may use an address. */
static inline bool can_use(rig_t *rig, uint32_t device, const void *ptr, uint64_t size) {
    return strata_device_fill(rig->devices[device], (uintptr_t)ptr, *bytes_at(rig, device, ptr), size, NULL) == STRATA_OK;
}

static inline strata_shared_t export_block(rig_t *rig, const strata_block_t *block) {
    strata_shared_t shared = {0};
    EXPECT_OK(strata_export(rig->s, block->ref, &shared));
    return shared;
}

/* Into the other device of the facade. */
static inline strata_imported_t import_block(rig_t *rig, const strata_block_t *block) {
    strata_shared_t shared = export_block(rig, block);
    strata_imported_t imported = {0};
    EXPECT_OK(strata_import(rig->s, strata_gpu(1), &shared, &imported));
    strata_shared_close(&shared);
    return imported;
}

/* Addresses that are reserved on a device. */
static inline uint64_t reserved_addresses(rig_t *rig, uint32_t device) {
    strata_sim_held_t held;
    strata_sim_held(rig->devices[device], &held);
    return held.address_bytes;
}

/* Blocks that leave holes, and then one that no hole holds. */
strata_block_t make_join(rig_t *rig);
/* How many handles vmm has moved. */
uint64_t joins_of(rig_t *rig);

/* Another process (child/child.c), at the other end of a socket. */
typedef struct other {
    pid_t process;
    int socket;
} other_t;
other_t other_start(const char *role);
uint8_t other_byte(const other_t *other);
/* It ends by itself, without a failure, once the socket is closed; or it is killed. */
void other_end(other_t *other, bool kills);

/* How many descriptors the process has open. */
int open_descriptors(void);

#endif
