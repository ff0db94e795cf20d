#include "replay/names.h"

#include <stdio.h>

#include "platform/host_memory.h"

typedef struct name {
    char text[32];
} name_t;

static name_t name_of(uint64_t number) {
    name_t name;
    snprintf(name.text, sizeof name.text, "%llu", (unsigned long long)number);
    return name;
}

strata_status_t strata_names_of_streams(const strata_strategy_t *strategy, const strata_timeline_t *timeline,
                                        const strata_machine_t *machine, strata_t facade) {
    strata_status_t status = STRATA_OK;
    if (strategy->named[STRATA_NAMED_STREAM].count == 0) return status;
    for (uint32_t i = 0; i < timeline->trace->stream_count && status == STRATA_OK; i++) {
        const strata_timeline_stream_t *stream = &timeline->streams[i];
        name_t name = name_of(timeline->trace->streams[i].number);
        const strata_device_t *device = machine->devices[stream->device];
        if (!stream->handle) continue; /* the legacy default stream */
        status = strata_stream_name(facade, strata_gpu(device->ordinal), stream->handle, name.text);
        if (status == STRATA_OK && device->capabilities.managed)
            status = strata_stream_name(facade, strata_managed(device->ordinal), stream->handle, name.text);
    }
    return status;
}

strata_status_t strata_names_of_pools(const strata_strategy_t *strategy, const strata_trace_t *trace, strata_t facade,
                                      uint64_t **pools) {
    strata_status_t status = STRATA_OK;
    *pools = NULL;
    if (strategy->named[STRATA_NAMED_POOL].count == 0 || trace->pool_count == 0) return status;
    uint64_t *found = strata_host_new(trace->pool_count, sizeof *found);
    if (!found) return STRATA_E_HOST_MEMORY;
    for (uint32_t i = 0; i < trace->pool_count && status == STRATA_OK; i++) {
        name_t name = name_of(trace->pools[i]);
        if (strata_strategy_named(strategy, STRATA_NAMED_POOL, name.text)) status = strata_pool(facade, name.text, &found[i]);
    }
    if (status == STRATA_OK) *pools = found;
    else strata_host_delete(found);
    return status;
}
