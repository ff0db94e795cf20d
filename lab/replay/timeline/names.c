#include "lab/replay/timeline/names.h"

#include <stdio.h>

#include "platform/host/host_memory.h"

typedef struct name {
    char text[32];
} name_t;

static name_t name_of(uint64_t number) {
    name_t name;
    snprintf(name.text, sizeof name.text, "%llu", (unsigned long long)number);
    return name;
}

typedef strata_status_t (*name_fn)(strata_t facade, strata_place_t place, strata_stream_t stream, const char *name);

/* Calls `name_stream` for the places where memory has an owner stream. */
static strata_status_t name_in_places(const strata_timeline_t *timeline, const strata_machine_t *machine, uint32_t stream,
                                      strata_t facade, name_fn name_stream) {
    const strata_timeline_stream_t *at = &timeline->streams[stream];
    const strata_device_t *device = machine->devices[at->device];
    name_t number = name_of(timeline->trace->streams[stream].number);
    const char *name = timeline->trace->streams[stream].name ? timeline->trace->streams[stream].name : number.text;
    if (!at->handle) return STRATA_OK; /* the legacy default stream */
    strata_status_t status = name_stream(facade, strata_gpu(device->ordinal), at->handle, name);
    if (status == STRATA_OK && device->capabilities.managed)
        status = name_stream(facade, strata_managed(device->ordinal), at->handle, name);
    return status;
}

const char *strata_names_unmatched(const strata_strategy_t *strategy, const strata_trace_t *trace, uint32_t *at) {
    const strata_model_names_t *keys = &strategy->named[STRATA_NAMED_STREAM];
    while (*at < keys->count) {
        const strata_model_named_t *key = &keys->list[(*at)++];
        bool matched = false;
        for (uint32_t i = 0; i < trace->stream_count && !matched; i++) {
            name_t number = name_of(trace->streams[i].number);
            matched = strata_strategy_pattern(strategy, trace->streams[i].name ? trace->streams[i].name : number.text) == key;
        }
        if (!matched) return key->name;
    }
    return NULL;
}

strata_status_t strata_names_of_streams(const strata_strategy_t *strategy, const strata_timeline_t *timeline,
                                        const strata_machine_t *machine, strata_t facade) {
    strata_status_t status = STRATA_OK;
    if (strategy->named[STRATA_NAMED_STREAM].count == 0) return status;
    for (uint32_t i = 0; i < timeline->trace->stream_count && status == STRATA_OK; i++)
        status = name_in_places(timeline, machine, i, facade, strata_stream_name);
    return status;
}

static strata_status_t set_default(strata_t facade, strata_place_t place, strata_stream_t stream, const char *name) {
    (void)name;
    return strata_set_default_stream(facade, place, stream);
}

strata_status_t strata_names_default_streams(const strata_timeline_t *timeline, const strata_machine_t *machine, strata_t facade) {
    strata_status_t status = STRATA_OK;
    for (uint32_t i = 0; i < timeline->trace->stream_count && status == STRATA_OK; i++)
        if (timeline->trace->streams[i].number == 0) status = name_in_places(timeline, machine, i, facade, set_default);
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
