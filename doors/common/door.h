/* The facade behind a door into another program. A door passes addresses, not blocks. It serves memory without a stream and
 * memory in stream order. It shares one budget with other users of the device, so that idle memory never makes their requests
 * fail. Any thread may call any function at any time, except strata_door_close(). */
#ifndef STRATA_INTEGRATION_DOOR_H
#define STRATA_INTEGRATION_DOOR_H

#include <stdbool.h>

#include "strata/strata.h"

typedef struct strata_door strata_door_t;

/* Returns true if STRATA_BYPASS turns the doors off, so that the native allocator serves. It does so if it is set and its value is
 * not empty, 0, false, no or off. */
bool strata_door_is_bypassed(void);

/* Opens a facade for a door. Refuses a simulated device (E_UNSUPPORTED) unless `simulated` is true, because real kernels must
 * not get simulated addresses. Returns the other errors of strata_open(). */
strata_status_t strata_door_open(const strata_open_options_t *options, bool simulated, strata_door_t **door);
/* Closes the facade by force. No other thread may be inside a call of the door. */
strata_status_t strata_door_close(strata_door_t *door);
strata_t strata_door_facade(const strata_door_t *door);

/* Serves memory without a stream, as cudaMalloc does (unordered.h), or in the order of a stream. */
strata_status_t strata_door_allocate(strata_door_t *door, strata_place_t place, size_t size, void **address);
strata_status_t strata_door_allocate_on(strata_door_t *door, strata_place_t place, strata_stream_t stream, size_t size,
                                        void **address);
/* The kind of memory that a function of CUDA frees: memory of devices, managed memory included, or pinned memory of the host. */
typedef enum strata_door_memory { STRATA_DOOR_DEVICE, STRATA_DOOR_HOST } strata_door_memory_t;

/* Frees a block of the given kind. Returns E_UNKNOWN_POINTER if the address is not in memory that the door holds. Returns
 * E_INVALID if it is, but no live block of this kind begins there. The block was then freed before, or the address is inside a
 * block. On error nothing changes. */
strata_status_t strata_door_free(strata_door_t *door, strata_door_memory_t memory, void *address);
strata_status_t strata_door_free_on(strata_door_t *door, strata_door_memory_t memory, void *address, strata_stream_t stream);
/* Forgets a stream. It must be called before the stream is destroyed. */
void strata_door_forget_stream(strata_door_t *door, strata_stream_t stream);

/* Returns the idle bytes of a place: the bytes that would be free on the device if Strata cached nothing. */
uint64_t strata_door_idle(strata_door_t *door, strata_place_t place);
/* Makes room after another user of the device, or of host memory, ran out of memory. Waits for pending frees, then releases
 * every idle chunk of the device's places, or of the host's. Returns the bytes released. If it returns 0, a retry cannot
 * succeed. */
uint64_t strata_door_release_idle(strata_door_t *door, strata_place_t place);
/* Returns true if a block is live in a place of a device other than `device`. */
bool strata_door_has_other_users(strata_door_t *door, uint32_t device);

#endif
