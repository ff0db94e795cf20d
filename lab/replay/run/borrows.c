#include "lab/replay/run/borrows.h"

#include <string.h>

#include "platform/host/host_memory.h"

strata_status_t strata_borrows_begin(strata_borrows_t *borrows, size_t lifetimes) {
    *borrows = (strata_borrows_t){.unused = STRATA_BORROWS_END};
    borrows->first = strata_host_new(lifetimes + 1, sizeof *borrows->first);
    return borrows->first ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

strata_status_t strata_borrows_grow(strata_borrows_t *borrows, size_t lifetimes, size_t more) {
    uint32_t *grown = strata_host_resize(borrows->first, more, sizeof *grown);
    if (!grown) return STRATA_E_HOST_MEMORY;
    memset(grown + lifetimes, 0, (more - lifetimes) * sizeof *grown);
    borrows->first = grown;
    return STRATA_OK;
}

void strata_borrows_end(strata_borrows_t *borrows) {
    strata_host_delete(borrows->first);
    strata_host_delete(borrows->all);
    *borrows = (strata_borrows_t){0};
}

/* Returns the link that points to the stream's entry, or to the end of the list. */
static uint32_t *link_of(strata_borrows_t *borrows, uint32_t lifetime, uint32_t stream) {
    uint32_t *link = &borrows->first[lifetime];
    while (*link != STRATA_BORROWS_END && borrows->all[*link].stream != stream) link = &borrows->all[*link].next;
    return link;
}

static strata_status_t new_entry(strata_borrows_t *borrows, uint32_t *entry) {
    if (borrows->unused != STRATA_BORROWS_END) {
        *entry = borrows->unused;
        borrows->unused = borrows->all[*entry].next;
        return STRATA_OK;
    }
    if (borrows->count == borrows->capacity) {
        uint32_t capacity = borrows->capacity ? borrows->capacity * 2 : 64;
        strata_borrow_t *grown = strata_host_resize(borrows->all, capacity, sizeof *grown);
        if (!grown) return STRATA_E_HOST_MEMORY;
        borrows->all = grown;
        borrows->capacity = capacity;
        if (borrows->count == STRATA_BORROWS_END) borrows->count++;
    }
    *entry = borrows->count++;
    return STRATA_OK;
}

strata_status_t strata_borrows_add(strata_borrows_t *borrows, uint32_t lifetime, uint32_t stream, bool *added) {
    uint32_t entry;
    *added = *link_of(borrows, lifetime, stream) == STRATA_BORROWS_END;
    if (!*added) return STRATA_OK;
    strata_status_t status = new_entry(borrows, &entry);
    if (status != STRATA_OK) return status;
    borrows->all[entry] = (strata_borrow_t){.stream = stream, .next = borrows->first[lifetime]};
    borrows->first[lifetime] = entry;
    return STRATA_OK;
}

static void unlink_entry(strata_borrows_t *borrows, uint32_t *link) {
    uint32_t entry = *link;
    *link = borrows->all[entry].next;
    borrows->all[entry].next = borrows->unused;
    borrows->unused = entry;
}

bool strata_borrows_remove(strata_borrows_t *borrows, uint32_t lifetime, uint32_t stream) {
    uint32_t *link = link_of(borrows, lifetime, stream);
    if (*link == STRATA_BORROWS_END) return false;
    unlink_entry(borrows, link);
    return true;
}

bool strata_borrows_pop(strata_borrows_t *borrows, uint32_t lifetime, uint32_t *stream) {
    uint32_t *link = &borrows->first[lifetime];
    if (*link == STRATA_BORROWS_END) return false;
    *stream = borrows->all[*link].stream;
    unlink_entry(borrows, link);
    return true;
}
