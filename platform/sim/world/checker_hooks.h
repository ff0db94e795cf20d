/* What the simulator reports to the checker; each costs one look at a pointer if there is none. Called with the world's lock held,
 * after the call has taken effect. */
#ifndef STRATA_PLATFORM_SIM_CHECKER_HOOKS_H
#define STRATA_PLATFORM_SIM_CHECKER_HOOKS_H

#include "platform/sim/world/sim_internal.h"

void check_on_work(sim_stream_t *stream, const strata_access_t *accesses, size_t count);
/* What an allocator does itself: a fill, or one side of a copy. */
void check_on_fill(sim_stream_t *stream, strata_address_t address, uint64_t size, bool write);
void check_on_record(sim_stream_t *stream, sim_event_t *event);
void check_on_wait(sim_stream_t *stream, const sim_event_t *event);
void check_on_passed(const sim_event_t *event);
void check_on_synchronised(sim_stream_t *stream);
void check_on_device_done(sim_device_t *device);
void check_on_stream_gone(sim_stream_t *stream);
void check_event_end(sim_event_t *event);

/* Memory comes from the device, in the order of a stream or at once (NULL), and goes back. */
void check_on_memory(sim_device_t *device, strata_address_t address, uint64_t size, sim_stream_t *stream);
void check_on_memory_gone(sim_device_t *device, strata_address_t address, uint64_t size, sim_stream_t *stream);
/* The same of a mapping: before it is among those of its physical memory, and while it is. Who used that at other addresses comes first. */
void check_on_map(sim_device_t *device, const sim_mapping_t *mapping);
void check_on_unmap(sim_device_t *device, const sim_mapping_t *mapping);
void check_physical_end(sim_physical_t *physical);
/* Memory that a captured graph allocates: its own at each launch. The driver itself takes it back, once the graph's work is done. */
void check_on_graph_memory(const sim_graph_t *graph, strata_address_t address, uint64_t size);
void check_on_graph_memory_gone(sim_device_t *device, strata_address_t address, uint64_t size);

/* Captures: what their streams do is kept with the graph, and happens at its launch. */
void check_on_captured(sim_stream_t *stream, const strata_access_t *accesses, size_t count);
void check_on_launch(const sim_graph_t *graph, sim_stream_t *stream);
void check_graph_end(sim_graph_t *graph);

void check_on_lock(strata_sim_t *world, const strata_lock_t *lock);
void check_on_unlock(strata_sim_t *world, const strata_lock_t *lock);

#endif
