/* Out of memory at last: the report, the observers; and the callbacks that the ladder asks. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "allocation/layer.h"
#include "allocation/option.h"
#include "facade/facade.h"
#include "platform/arithmetic.h"

/* ---- registrations ---- */

static strata_status_t add_callback(strata_t handle, strata_callback_t callback, uint32_t *id) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_status_t status = STRATA_E_LIMIT;
    strata_lock(&facade->lock);
    for (uint32_t i = 0; i < STRATA_FACADE_CALLBACKS && status != STRATA_OK; i++) {
        if (facade->callbacks[i].id != 0) continue;
        callback.id = ++facade->next_callback;
        facade->callbacks[i] = callback;
        if (id) *id = callback.id;
        status = STRATA_OK;
    }
    strata_unlock(&facade->lock);
    return status == STRATA_OK ? status : strata_fail(status, 0, "%d callbacks, the most", STRATA_FACADE_CALLBACKS);
}

strata_status_t strata_add_out_of_memory_observer(strata_t facade, strata_out_of_memory_fn observer, void *context,
                                                  uint32_t *id) {
    return add_callback(facade, (strata_callback_t){.observer = observer, .context = context}, id);
}

strata_status_t strata_add_free_memory_callback(strata_t facade, strata_free_memory_fn callback, void *context, uint32_t *id) {
    return add_callback(facade, (strata_callback_t){.free_memory = callback, .context = context}, id);
}

strata_status_t strata_remove_callback(strata_t handle, uint32_t id) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_status_t status = STRATA_E_INVALID;
    strata_lock(&facade->lock);
    for (uint32_t i = 0; i < STRATA_FACADE_CALLBACKS && id != 0; i++) {
        if (facade->callbacks[i].id != id) continue;
        facade->callbacks[i] = (strata_callback_t){0};
        status = STRATA_OK;
    }
    strata_unlock(&facade->lock);
    return status == STRATA_OK ? status : strata_fail(status, 0, "no callback has the number %u", id);
}

/* The registration with the smallest number above `after`: the order in which they were added. */
static bool next_callback(strata_facade_t *facade, uint32_t after, strata_callback_t *next) {
    next->id = 0;
    strata_lock(&facade->lock);
    for (uint32_t i = 0; i < STRATA_FACADE_CALLBACKS; i++) {
        const strata_callback_t *callback = &facade->callbacks[i];
        if (callback->id > after && (next->id == 0 || callback->id < next->id)) *next = *callback;
    }
    strata_unlock(&facade->lock);
    return next->id != 0;
}

/* A callback may call any function, and what it calls may be out of memory too: nobody is called from within a callback. */
static _Thread_local bool inside_callback;

uint64_t strata_facade_ask_callbacks(void *context, strata_place_t place, size_t size) {
    uint64_t freed = 0;
    strata_callback_t callback = {0};
    if (inside_callback) return 0;
    inside_callback = true;
    while (next_callback(context, callback.id, &callback))
        if (callback.free_memory) freed += callback.free_memory(place, size, callback.context);
    inside_callback = false;
    return freed;
}

static void tell_observers(strata_facade_t *facade, const strata_out_of_memory_t *event) {
    strata_callback_t callback = {0};
    if (inside_callback) return;
    inside_callback = true;
    while (next_callback(facade, callback.id, &callback))
        if (callback.observer) callback.observer(event, callback.context);
    inside_callback = false;
}

/* ---- the report ---- */

typedef struct text {
    char *at;
    size_t left;
} text_t;

static void say(text_t *text, const char *format, ...) STRATA_PRINTF(2, 3);
static void say(text_t *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int wrote = vsnprintf(text->at, text->left, format, arguments);
    va_end(arguments);
    size_t used = wrote < 0 ? 0u : (size_t)strata_min((size_t)wrote, text->left - 1);
    text->at += used;
    text->left -= used;
}

static void say_size(text_t *text, const char *before, uint64_t bytes) {
    char size[32];
    strata_print_size(bytes, size, sizeof size);
    say(text, "%s%s", before, size);
}

static void say_stack(text_t *text, strata_stack_t *stack) {
    strata_lock(&stack->lock);
    strata_statistics_t f = stack->figures;
    strata_unlock(&stack->lock);
    if (stack->trunk || f.reserved_bytes + f.allocated_bytes + f.deferred_bytes == 0) return;
    say(text, "\n  stream %p%s:", stack->stream, stack->orphan ? " (forgotten)" : "");
    say_size(text, " reserved ", f.reserved_bytes);
    say_size(text, ", allocated ", f.allocated_bytes);
    say_size(text, ", deferred ", f.deferred_bytes);
    say_size(text, ", idle ", strata_stack_idle_bytes(stack));
}

static void write_report(strata_domain_t *domain, strata_stream_t stream, const strata_out_of_memory_t *event, text_t *text) {
    static const char *const kinds[] = {"gpu", "managed", "pinned", "host"};
    uint64_t reserved = atomic_load(&domain->reserved_bytes);
    uint64_t held = event->device_free + reserved;
    say(text, "out of memory in %s:%u on stream %p:", kinds[strata_place_kind(domain->place)],
        (unsigned)strata_place_device(domain->place), stream);
    say_size(text, " asked ", event->size);
    say_size(text, ", free on the device ", event->device_free);
    say_size(text, " of ", event->device_total);
    say_size(text, ", reserved here ", reserved);
    say_size(text, ", taken by others ", event->device_total > held ? event->device_total - held : 0);
    STRATA_DOMAIN_EACH(domain, stack) say_stack(text, stack);
    say(text, "\n  ask for less, free something, or let the strategy share: smaller chunk_size, smaller_growth: true");
}

strata_status_t strata_facade_out_of_memory(strata_facade_t *facade, strata_stack_t *stack, strata_stream_t stream, size_t size) {
    strata_domain_t *domain = stack->domain;
    atomic_fetch_add(&domain->out_of_memory, 1);
    char report[3000];
    text_t text = {report, sizeof report};
    int64_t code = strata_last_error()->device_code;
    strata_out_of_memory_t event = {.struct_size = sizeof event, .place = domain->place, .stream = stream, .size = size,
                                    .text = report};
    if (strata_device_mem_info(domain->device, &event.device_free, &event.device_total) != STRATA_OK)
        event.device_free = event.device_total = 0;
    write_report(domain, stream, &event, &text);
    tell_observers(facade, &event);
    return strata_fail(STRATA_E_NO_MEMORY, code, "%s", report);
}
