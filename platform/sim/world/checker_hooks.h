/* The events that the simulator reports to the checker. Without a checker each costs one test of a
 * pointer. All are called with the world's lock held, after the call has taken effect. */
#ifndef STRATA_PLATFORM_SIM_CHECKER_HOOKS_H
#define STRATA_PLATFORM_SIM_CHECKER_HOOKS_H

#include "platform/sim/world/sim_internal.h"

void check_on_work(sim_stream_t *stream, const strata_access_t *accesses, size_t count);
/* An access by an allocator itself: a fill, or one side of a copy. */
void check_on_fill(sim_stream_t *stream, strata_address_t address, uint64_t size, bool write);
void check_on_record(sim_stream_t *stream, sim_event_t *event);
void check_on_wait(sim_stream_t *stream, const sim_event_t *event);
void check_on_passed(const sim_event_t *event);
void check_on_synchronised(sim_stream_t *stream);
void check_on_device_done(sim_device_t *device);
void check_on_stream_destroyed(sim_stream_t *stream);
void check_event_end(sim_event_t *event);

/* The device lends memory or takes it back, in the order of a stream, or at once if that is NULL. */
void check_on_memory(sim_device_t *device, strata_address_t address, uint64_t size, sim_stream_t *stream);
void check_on_memory_freed(sim_device_t *device, strata_address_t address, uint64_t size, sim_stream_t *stream);
/* Reports the same for a mapping. The first is called before the mapping joins the list of its physical
 * memory, the second while it is in the list. The new owner must be ordered after all uses of that
 * memory at other addresses. */
void check_on_map(sim_device_t *device, const sim_mapping_t *mapping);
void check_on_unmap(sim_device_t *device, const sim_mapping_t *mapping);
void check_physical_end(sim_physical_t *physical);
/* Memory that a captured graph allocates, its own at each launch. The driver frees it itself once the
 * graph's work is done. */
void check_on_graph_memory(const sim_graph_t *graph, strata_address_t address, uint64_t size);
void check_on_graph_memory_freed(sim_device_t *device, strata_address_t address, uint64_t size);

/* Captures. The work of captured streams is kept with the graph and takes place at its launch. */
void check_on_captured(sim_stream_t *stream, const strata_access_t *accesses, size_t count);
void check_on_launch(const sim_graph_t *graph, sim_stream_t *stream);
void check_graph_end(sim_graph_t *graph);

void check_on_lock(strata_sim_t *world, const strata_lock_t *lock);
void check_on_unlock(strata_sim_t *world, const strata_lock_t *lock);

#endif
