/* Contents of paused memory. An entry belongs to a handle by its number, which is unique. The entry is
 * removed once the handle is destroyed or has its memory again. */
#include <stdlib.h>
#include <unistd.h>

#include "facade/pause/pause.h"
#include "platform/host/file.h"
#include "platform/host/host_memory.h"

/* ---- files ---- */

strata_kept_file_t *strata_kept_file_make(const char *directory) {
    strata_kept_file_t *file = strata_host_new(1, sizeof *file);
    if (!file) return NULL;
    file->users = 1;
    if (strata_file_scratch(directory, &file->descriptor) == STRATA_OK) return file;
    (void)strata_fail_context("strata_pause");
    strata_host_delete(file);
    return NULL;
}

void strata_kept_file_release(strata_kept_file_t *file) {
    if (--file->users > 0) return;
    close(file->descriptor);
    strata_host_delete(file);
}

/* ---- the list ---- */

static struct strata_pauses *list_of(strata_facade_t *facade) {
    if (!facade->pauses) facade->pauses = strata_host_new(1, sizeof *facade->pauses);
    return facade->pauses;
}

size_t strata_kept_count(const strata_facade_t *facade) { return facade->pauses ? facade->pauses->count : 0; }

strata_kept_t *strata_kept_at(const strata_facade_t *facade, size_t index) { return &facade->pauses->kept[index]; }

strata_kept_t *strata_kept_add(strata_facade_t *facade, strata_layer_t *source, const strata_held_t *handle) {
    struct strata_pauses *list = list_of(facade);
    if (!list) return NULL;
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        strata_kept_t *more = strata_host_resize(list->kept, room, sizeof *more);
        if (!more) return NULL;
        list->kept = more;
        list->room = room;
    }
    strata_kept_t *kept = &list->kept[list->count++];
    *kept = (strata_kept_t){.source = source, .address = handle->address, .number = handle->number, .size = handle->size};
    return kept;
}

static int by_number(const void *a, const void *b) {
    const strata_kept_t *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

const strata_kept_t *strata_kept_of(const strata_facade_t *facade, const strata_held_t *handle) {
    const strata_kept_t wanted = {.number = handle->number};
    size_t count = strata_kept_count(facade);
    return count ? bsearch(&wanted, facade->pauses->kept, count, sizeof wanted, by_number) : NULL;
}

static void drop(const strata_facade_t *facade, const strata_kept_t *kept) {
    if (kept->pinned.ref) (void)strata_free(facade->handle, kept->pinned.ref);
    if (kept->file) strata_kept_file_release(kept->file);
}

void strata_kept_drop_from(strata_facade_t *facade, size_t first) {
    while (strata_kept_count(facade) > first) drop(facade, &facade->pauses->kept[--facade->pauses->count]);
}

static bool is_paused(const strata_kept_t *kept) {
    const strata_handles_t *handles = kept->source->type->handles;
    return handles->pausing->is_paused(kept->source, kept->address, kept->number);
}

void strata_kept_prune(strata_facade_t *facade) {
    size_t left = 0, count = strata_kept_count(facade);
    for (size_t i = 0; i < count; i++) {
        strata_kept_t kept = facade->pauses->kept[i];
        if (is_paused(&kept)) facade->pauses->kept[left++] = kept;
        else drop(facade, &kept);
    }
    if (!facade->pauses) return;
    facade->pauses->count = left;
    if (left > 1) qsort(facade->pauses->kept, left, sizeof *facade->pauses->kept, by_number);
}

void strata_pauses_forget(strata_facade_t *facade) {
    strata_kept_drop_from(facade, 0);
    if (facade->pauses) strata_host_delete(facade->pauses->kept);
    strata_host_delete(facade->pauses);
    facade->pauses = NULL;
}
