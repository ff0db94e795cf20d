/* The locks of a call, and the ways down and back up. */
#include <stdio.h>
#include <string.h>

#include "allocation/layer.h"

strata_opened_t strata_path_unlock(strata_path_t *path) {
    strata_opened_t opened = {{path->held[0], path->held[1]}};
    path->held[0] = path->held[1] = NULL;
    if (opened.held[1]) strata_unlock(&opened.held[1]->lock);
    if (opened.held[0]) strata_unlock(&opened.held[0]->lock);
    return opened;
}

void strata_path_lock(strata_path_t *path, strata_opened_t opened) {
    for (int i = 0; i < 2; i++) {
        if (!opened.held[i]) continue;
        strata_lock(&opened.held[i]->lock);
        path->held[i] = opened.held[i];
    }
}

/* A thread's trunk is below the stacks that share it; to what its own cache asks below it is the upper one. */
int strata_path_level(const strata_path_t *path, const strata_stack_t *stack) {
    return stack->trunk && !(stack->of_thread && stack == path->stack) ? 1 : 0;
}

bool strata_path_enter(strata_path_t *path, const strata_layer_t *layer) {
    strata_stack_t *stack = layer->stack;
    int level = strata_path_level(path, stack);
    if (!layer->type->guarded || path->held[level] == stack) return false;
    strata_lock(&stack->lock);
    path->held[level] = stack;
    return true;
}

void strata_path_leave(strata_path_t *path, const strata_layer_t *layer, bool entered) {
    if (!entered) return;
    path->held[strata_path_level(path, layer->stack)] = NULL;
    strata_unlock(&layer->stack->lock);
}

/* The trunk of all threads ends with its domain. */
static void change_inside(strata_path_t *path, strata_stack_t *home, uint32_t by) {
    path->stack->inside += by;
    if (home == path->stack || !home->of_thread) return;
    bool held = path->held[0] == home || path->held[1] == home;
    if (!held) strata_lock(&home->lock);
    home->inside += by;
    if (!held) strata_unlock(&home->lock);
}

strata_stack_t *strata_path_stay(strata_path_t *path, const strata_record_t *record) {
    strata_stack_t *home = strata_stack_of(record->home);
    change_inside(path, home, 1);
    return home;
}

void strata_path_stayed(strata_path_t *path, strata_stack_t *home) {
    change_inside(path, home, UINT32_MAX);
}

void strata_path_wait(strata_path_t *path, strata_stack_t *stack, strata_condition_t *condition, uint64_t timeout_ns) {
    int own = strata_path_level(path, stack);
    strata_stack_t *other = path->held[1 - own];
    /* A branch's lock comes before a trunk's: to take it again, the trunk's has to be open too. */
    if (!other) {
        strata_condition_wait(condition, &stack->lock, timeout_ns);
        return;
    }
    strata_unlock(&other->lock);
    strata_condition_wait(condition, &stack->lock, timeout_ns);
    path->held[1 - own] = other;
    strata_opened_t opened = {{path->held[0], path->held[1]}};
    strata_unlock(&stack->lock);
    path->held[0] = path->held[1] = NULL;
    strata_path_lock(path, opened);
}

strata_status_t strata_layer_allocate(strata_layer_t *layer, const strata_request_t *request, strata_record_t **record) {
    bool entered = strata_path_enter(request->path, layer);
    strata_status_t status = layer->type->allocate(layer, request, record);
    if (status == STRATA_OK) strata_record_push(*record, layer);
    else if (layer->type->gives & STRATA_TRAIT_WAITS) request->path->climbed_for = true;
    strata_path_leave(request->path, layer, entered);
    return status;
}

/* The cache below, if a cache made the record, reads its states under this lock. */
static void set_state(const strata_path_t *path, strata_record_t *record, strata_record_state_t state) {
    strata_stack_t *home = strata_stack_of(record->home);
    bool held = path->held[0] == home || path->held[1] == home;
    if (!held) strata_lock(&home->lock);
    record->state = (uint8_t)state;
    if (!held) strata_unlock(&home->lock);
}

/* A layer may have filled the memory on the stream of the request. What a forgotten stream left is served to any other next, in no
 * order behind that; where nothing tells when the fill is over, all that the stack has is nobody's. What has no owner stream the host
 * fills. */
static void wait_for_guest(strata_path_t *path) {
    strata_opened_t opened = strata_path_unlock(path);
    if (!strata_domain_wait_for(path->stack->domain, *path->guest) && path->stack->orphan) {
        strata_lock(&path->stack->lock);
        path->stack->stranded = true;
        strata_unlock(&path->stack->lock);
    }
    strata_path_lock(path, opened);
}

/* Given back behind a failure above, it never had a ref to end: whoever keeps or defers it holds nobody's block. */
static void undo(strata_path_t *path, strata_record_t *record) {
    if (path->guest) wait_for_guest(path);
    set_state(path, record, STRATA_RECORD_DEFERRED);
}

void strata_below_free(strata_record_t *record, strata_path_t *path) {
    strata_stack_t *server = strata_stack_of(record->stack);
    strata_layer_t *layer = server->layers[record->path & 0xff];
    record->path >>= 8;
    if (record->state == STRATA_RECORD_LIVE) undo(path, record);
    bool entered = strata_path_enter(path, layer);
    layer->type->free(layer, record, path);
    strata_path_leave(path, layer, entered);
}

void strata_below_undo(strata_record_t *record, strata_path_t *path) {
    const strata_error_t reason = *strata_last_error();
    strata_below_free(record, path);
    (void)strata_fail_again(&reason);
}

strata_status_t strata_chunk_allocate(strata_layer_t *self, uint64_t size, const strata_request_t *request,
                                      strata_record_t **chunk) {
    strata_path_t path = {.stack = self->stack, .for_chunk = true};
    strata_request_t below = *request;
    below.size = size;
    below.path = &path;
    strata_status_t status = strata_layer_allocate(self->below[0], &below, chunk);
    if (status == STRATA_OK) set_state(&path, *chunk, STRATA_RECORD_CHUNK);
    return status;
}

void strata_chunk_free(strata_record_t *chunk) {
    strata_path_t path = {.stack = strata_stack_of(chunk->stack)};
    set_state(&path, chunk, STRATA_RECORD_DEFERRED);
    strata_below_free(chunk, &path);
}

strata_record_t *strata_record_new(strata_layer_t *self, const strata_request_t *request, uint64_t ptr, uint64_t size) {
    strata_slab_t *slab = &self->stack->slab;
    uint32_t slot = strata_slab_take(slab);
    if (slot == 0) {
        strata_fail(STRATA_E_LIMIT, 0, "a stack holds %u blocks, its most", slab->capacity);
        return NULL;
    }
    strata_record_t *record = strata_slab_record(slab, slot);
    record->ptr = ptr;
    record->size = size;
    record->path = 0;
    record->stack = request->path->stack->number;
    record->attention = 0;
    record->prev = record->next = record->bin_prev = record->bin_next = record->chunk = 0;
    record->slack = (uint32_t)(size - request->size);
    record->state = STRATA_RECORD_LIVE;
    record->pool = 0;
    record->borrows = 0;
    return record;
}

void strata_record_delete(strata_layer_t *self, strata_record_t *record) {
    strata_slab_give(&self->stack->slab, strata_slab_slot(&self->stack->slab, record));
}

uint64_t strata_record_withdraw(strata_layer_t *self, strata_record_t *record) {
    strata_lock(&self->stack->lock);
    uint64_t size = record->size;
    record->size = 0;
    strata_unlock(&self->stack->lock);
    return size;
}

void strata_layer_wants_allocate(strata_layer_t *self, bool wants) {
    uint16_t *bits = &self->stack->attention_allocate;
    *bits = (uint16_t)(wants ? *bits | self->attention : *bits & ~self->attention);
}

void strata_path_text(const strata_stack_t *stack, uint64_t path, char *text, size_t capacity) {
    size_t length = 0;
    if (capacity > 0) text[0] = 0;
    for (; path != 0 && length < capacity; path >>= 8) {
        const char *name = stack->layers[path & 0xff]->type->name;
        int wrote = snprintf(text + length, capacity - length, "%s%s", length ? " > " : "", name);
        length += wrote > 0 ? (size_t)wrote : 0;
    }
}

void strata_record_describe(const strata_stack_t *server, const strata_record_t *record, char *text, size_t capacity) {
    if (capacity == 0) return;
    strata_path_text(server, record->path, text, capacity);
    for (const strata_record_t *inner = record; (inner = strata_record_inner(inner)) != NULL; record = inner) {
        size_t upper = strlen(text);
        if (upper + 4 > capacity) return;
        memcpy(text + upper, " > ", 4);
        strata_path_text(server, inner->path, text + upper + 3, capacity - upper - 3);
    }
    strata_layer_t *layer = strata_record_maker(server, record);
    const strata_record_t *chunk = layer && layer->type->chunk_of ? layer->type->chunk_of(layer, record) : NULL;
    size_t length = strlen(text);
    if (!chunk || length + 3 >= capacity) return;
    memcpy(text + length, " | ", 4);
    const strata_stack_t *below = strata_stack_of(chunk->stack);
    strata_path_text(below, chunk->path, text + length + 3, capacity - length - 3);
}
