/* Names of streams, which select a key of the strategy's `streams:` and appear in reports. */
#include <string.h>

#include "facade/streams/stream_ids.h"
#include "platform/arguments.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"
#include "platform/text/pointer.h"
#include "trace/stream_names.h"

enum { NAMES_MAX = 4096, ROOM_FIRST = 16 };

/* Call it while building. */
static strata_status_t make_room(strata_facade_t *facade) {
    if (facade->named_stream_count < facade->named_stream_room) return STRATA_OK;
    if (facade->named_stream_count == NAMES_MAX)
        return strata_fail(STRATA_E_LIMIT, 0, "%d streams have names, the maximum", NAMES_MAX);
    uint32_t room = facade->named_stream_room ? 2 * facade->named_stream_room : ROOM_FIRST;
    strata_named_stream_t *larger = strata_host_new(room, sizeof *larger);
    if (!larger) return STRATA_E_HOST_MEMORY;
    if (facade->named_streams) memcpy(larger, facade->named_streams, facade->named_stream_count * sizeof *larger);
    strata_host_delete(facade->named_streams);
    facade->named_streams = larger;
    facade->named_stream_room = room;
    return STRATA_OK;
}

/* Call it while building. A stack that was built under another name, or none, stays as it is. */
static strata_status_t give_name(strata_facade_t *facade, strata_domain_t *domain, strata_stream_t stream,
                                 const strata_named_stream_t *named) {
    strata_named_stream_t *before = (strata_named_stream_t *)(uintptr_t)strata_facade_named_stream(facade, domain->place, stream);
    if (before && strcmp(before->name, named->name) == 0) return STRATA_OK;
    if (strata_domain_serves(domain, stream))
        return strata_fail(STRATA_E_BUSY, 0, "stream %s was already served as \"%s\"; name a stream before its first request",
                           strata_pointer_text(stream).text, before ? before->name : "");
    strata_status_t status = before ? STRATA_OK : make_room(facade);
    if (status != STRATA_OK) return status;
    if (!before) before = &facade->named_streams[facade->named_stream_count++];
    *before = *named;
    return STRATA_OK;
}

strata_status_t strata_stream_name(strata_t handle, strata_place_t place, strata_stream_t stream, const char *name) {
    STRATA_REFUSE_NULL(name);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    if (strata_place_is_ownerless(strata_place_kind(place)))
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "pinned and host memory has one stack for all streams, whatever their names");
    strata_stream_t key = strata_facade_stream_key(domain, stream);
    if (key == NULL || key == STRATA_STREAM_PER_THREAD)
        return strata_fail(STRATA_E_INVALID, 0, "default streams cannot have names; name a stream that the program created");
    if (!name || !*name) return strata_fail(STRATA_E_INVALID, 0, "a stream's name must not be empty");
    uint32_t number;
    status = strata_stream_ids_check(facade, place, stream, STRATA_STREAM_USED);
    if (status == STRATA_OK) status = strata_names_number(&facade->names, name, &number);
    if (status != STRATA_OK) return status;
    strata_named_stream_t named = {.place = place, .stream = key, .name = strata_names_find(&facade->names, number)};
    if (!named.name) return strata_fail(STRATA_E_LIMIT, 0, "the facade has %d names, the maximum", STRATA_NAMES);
    strata_facade_begin_building(facade);
    status = give_name(facade, domain, key, &named);
    strata_facade_end_building(facade);
    if (status == STRATA_OK) strata_stream_names_set(facade, (uintptr_t)key, named.name);
    return status;
}
