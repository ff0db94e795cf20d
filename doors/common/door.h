/* A facade as the doors into other programs use it: addresses in and out, memory without a stream beside memory in stream order, and one
 * budget with whoever asks the device beside it. Any thread may call at any time, but for strata_door_close(). */
#ifndef STRATA_INTEGRATION_DOOR_H
#define STRATA_INTEGRATION_DOOR_H

#include <stdbool.h>

#include "strata/strata.h"

typedef struct strata_door strata_door_t;

/* Returns true if STRATA_BYPASS turns the doors off, so that the native allocator serves: set, and not empty, 0, false, no or off. */
bool strata_door_is_bypassed(void);

/* Opens a facade for a door. A simulated device is refused (E_UNSUPPORTED) unless `simulated` says that it is meant: its addresses are
 * made up. Errors otherwise: those of strata_open(). */
strata_status_t strata_door_open(const strata_open_options_t *options, bool simulated, strata_door_t **door);
/* Closes the facade by force. No other thread may be inside a call of the door. */
strata_status_t strata_door_close(strata_door_t *door);
strata_t strata_door_facade(const strata_door_t *door);

/* Memory without a stream, as cudaMalloc serves it (unordered.h), and in the order of a stream. */
strata_status_t strata_door_allocate(strata_door_t *door, strata_place_t place, size_t size, void **address);
strata_status_t strata_door_allocate_on(strata_door_t *door, strata_place_t place, strata_stream_t stream, size_t size,
                                        void **address);
/* The kind of memory that a function of CUDA frees: memory of devices, managed memory included, or pinned memory of the host. */
typedef enum strata_door_memory { STRATA_DOOR_DEVICE, STRATA_DOOR_HOST } strata_door_memory_t;

/* Frees a block of the given kind. E_UNKNOWN_POINTER: the address is not in memory that the door holds. E_INVALID: it is, but no live block
 * of this kind begins there: it was freed before, or the address is inside a block. On error nothing changes. */
strata_status_t strata_door_free(strata_door_t *door, strata_door_memory_t memory, void *address);
strata_status_t strata_door_free_on(strata_door_t *door, strata_door_memory_t memory, void *address, strata_stream_t stream);
/* Before a stream is destroyed. */
void strata_door_forget(strata_door_t *door, strata_stream_t stream);

/* Bytes of a place that are held and in no use: what a program would find free if nobody cached. */
uint64_t strata_door_idle(strata_door_t *door, strata_place_t place);
/* A request that others made of the device, or of the host's memory, failed: waits for what is freed, and gives every idle chunk of the
 * device's places back, or of the host's. The answer is in bytes; with 0 there is no use in trying again. */
uint64_t strata_door_give_back(strata_door_t *door, strata_place_t place);
/* Whether anything is live in places of devices other than `device`. */
bool strata_door_used_elsewhere(strata_door_t *door, uint32_t device);

#endif
