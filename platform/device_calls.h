/* The counted calls of the device contract. platform/device.h includes this file and documents the calls. */
#ifndef STRATA_PLATFORM_DEVICE_CALLS_H
#define STRATA_PLATFORM_DEVICE_CALLS_H

strata_status_t strata_device_malloc(strata_device_t *device, strata_memory_t memory, uint64_t size, strata_address_t *address);
strata_status_t strata_device_free(strata_device_t *device, strata_memory_t memory, strata_address_t address);
strata_status_t strata_device_host_alloc(strata_device_t *device, strata_memory_t memory, uint64_t size, uint64_t alignment,
                                         uint32_t flags, strata_address_t *address);
strata_status_t strata_device_host_free(strata_device_t *device, strata_memory_t memory, strata_address_t address);
strata_status_t strata_device_mem_info(strata_device_t *device, uint64_t *free, uint64_t *total);

strata_status_t strata_device_malloc_async(strata_device_t *device, strata_handle_t pool, uint64_t size, strata_handle_t stream,
                                           strata_address_t *address);
strata_status_t strata_device_free_async(strata_device_t *device, strata_address_t address, strata_handle_t stream);
strata_status_t strata_device_pool_create(strata_device_t *device, uint64_t max_size, bool shareable, strata_handle_t *pool);
strata_status_t strata_device_pool_destroy(strata_device_t *device, strata_handle_t pool);
strata_status_t strata_device_pool_default(strata_device_t *device, strata_handle_t *pool);
strata_status_t strata_device_pool_set(strata_device_t *device, strata_handle_t pool, strata_pool_attribute_t attribute,
                                       uint64_t value);
strata_status_t strata_device_pool_get(strata_device_t *device, strata_handle_t pool, strata_pool_attribute_t attribute,
                                       uint64_t *value);
strata_status_t strata_device_pool_trim(strata_device_t *device, strata_handle_t pool, uint64_t keep);
strata_status_t strata_device_pool_set_access(strata_device_t *device, strata_handle_t pool, uint32_t peer);

strata_status_t strata_device_reserve(strata_device_t *device, uint64_t size, uint64_t alignment, strata_address_t *address);
strata_status_t strata_device_unreserve(strata_device_t *device, strata_address_t address, uint64_t size);
strata_status_t strata_device_create(strata_device_t *device, uint64_t size, bool shareable, strata_physical_t *handle);
strata_status_t strata_device_release(strata_device_t *device, strata_physical_t handle);
strata_status_t strata_device_map(strata_device_t *device, strata_address_t address, uint64_t size, strata_physical_t handle);
strata_status_t strata_device_unmap(strata_device_t *device, strata_address_t address, uint64_t size);
strata_status_t strata_device_set_access(strata_device_t *device, strata_address_t address, uint64_t size, const uint32_t *peers,
                                         size_t peer_count);

strata_status_t strata_device_stream_create(strata_device_t *device, strata_stream_flags_t flags, int priority,
                                            strata_handle_t *stream);
strata_status_t strata_device_stream_destroy(strata_device_t *device, strata_handle_t stream);
strata_status_t strata_device_stream_query(strata_device_t *device, strata_handle_t stream);
strata_status_t strata_device_stream_synchronise(strata_device_t *device, strata_handle_t stream);
strata_status_t strata_device_stream_wait(strata_device_t *device, strata_handle_t stream, strata_handle_t event);
strata_status_t strata_device_stream_id(strata_device_t *device, strata_handle_t stream, uint64_t *id);
strata_status_t strata_device_synchronise(strata_device_t *device);

strata_status_t strata_device_event_create(strata_device_t *device, strata_handle_t *event);
strata_status_t strata_device_event_destroy(strata_device_t *device, strata_handle_t event);
strata_status_t strata_device_event_record(strata_device_t *device, strata_handle_t event, strata_handle_t stream);
strata_status_t strata_device_event_query(strata_device_t *device, strata_handle_t event);
strata_status_t strata_device_event_synchronise(strata_device_t *device, strata_handle_t event);
uint64_t strata_device_event_ready_at(strata_device_t *device, strata_handle_t event);
bool strata_device_event_is_captured(strata_device_t *device, strata_handle_t event);

strata_status_t strata_device_fill(strata_device_t *device, strata_address_t address, uint8_t byte, uint64_t size,
                                   strata_handle_t stream);
strata_status_t strata_device_copy(strata_device_t *device, strata_address_t address, void *host, uint64_t size, bool to_host,
                                   strata_handle_t stream);
void *strata_device_host_view(strata_device_t *device, strata_address_t address, uint64_t size);
strata_status_t strata_device_prefetch(strata_device_t *device, strata_address_t address, uint64_t size, bool to_host,
                                       strata_handle_t stream);
strata_status_t strata_device_advise(strata_device_t *device, strata_address_t address, uint64_t size, strata_advice_t advice,
                                     bool host);

strata_status_t strata_device_capture_begin(strata_device_t *device, strata_handle_t stream, strata_capture_mode_t mode);
strata_status_t strata_device_capture_end(strata_device_t *device, strata_handle_t stream, strata_handle_t *graph);
strata_status_t strata_device_capture_status(strata_device_t *device, strata_handle_t stream, strata_capture_status_t *status,
                                             uint64_t *id);
strata_status_t strata_device_capture_follows(strata_device_t *device, strata_handle_t stream, strata_handle_t other, uint64_t *id);
strata_status_t strata_device_graph_on_destroy(strata_device_t *device, strata_handle_t stream, void (*callback)(void *),
                                               void *context);
strata_status_t strata_device_graph_launch(strata_device_t *device, strata_handle_t graph, strata_handle_t stream);
strata_status_t strata_device_graph_destroy(strata_device_t *device, strata_handle_t graph);

strata_status_t strata_device_can_access_peer(strata_device_t *device, uint32_t peer, bool *can);
strata_status_t strata_device_enable_peer(strata_device_t *device, uint32_t peer);
strata_status_t strata_device_export_memory(strata_device_t *device, strata_physical_t handle, int *descriptor);
strata_status_t strata_device_import_memory(strata_device_t *device, int descriptor, strata_physical_t *handle);

strata_status_t strata_device_work(strata_device_t *device, strata_handle_t stream, uint64_t duration_ns,
                                   const strata_access_t *accesses, size_t count);
/* Ends the use of the device and frees it. */
void strata_device_close(strata_device_t *device);

#endif
