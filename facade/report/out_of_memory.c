/* Ends a request that is out of memory by calling the observers. Also calls the callbacks that may free memory. */
#include "facade/registry/inside.h"
#include "facade/report/report.h"
#include "platform/arguments.h"

#include <stdio.h>

#include "allocation/report/log.h"
#include "facade/figures/amounts.h"
#include "facade/report/facts.h"

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
    return status == STRATA_OK ? status : strata_fail(status, 0, "%d callbacks, the maximum", STRATA_FACADE_CALLBACKS);
}

strata_status_t strata_add_out_of_memory_observer(strata_t facade, strata_out_of_memory_fn observer, void *context, uint32_t *id) {
    STRATA_REFUSE_NULL(observer);
    return add_callback(facade, (strata_callback_t){.observer = observer, .context = context}, id);
}

strata_status_t strata_add_free_memory_callback(strata_t facade, strata_free_memory_fn callback, void *context, uint32_t *id) {
    STRATA_REFUSE_NULL(callback);
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
    return status == STRATA_OK ? status : strata_fail(status, 0, "there is no callback %u", id);
}

/* Returns the registration with the smallest number above `after`, which is the order in which they were added. */
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

/* A callback may call any function, which may itself run out of memory. So no callback is called from
 * within another one. */
static _Thread_local bool inside_callback;

uint64_t strata_facade_run_callbacks(void *context, strata_place_t place, size_t size) {
    uint64_t freed = 0;
    strata_callback_t callback = {0};
    strata_inside_t frame;
    if (inside_callback) return 0;
    inside_callback = true;
    strata_inside_begin(&frame, ((const strata_facade_t *)context)->handle);
    while (next_callback(context, callback.id, &callback))
        if (callback.free_memory) freed += callback.free_memory(place, size, callback.context);
    strata_inside_end(&frame);
    inside_callback = false;
    return freed;
}

static void notify_observers(strata_facade_t *facade, const strata_out_of_memory_t *event) {
    strata_callback_t callback = {0};
    strata_inside_t frame;
    if (inside_callback) return;
    inside_callback = true;
    strata_inside_begin(&frame, facade->handle);
    while (next_callback(facade, callback.id, &callback))
        if (callback.observer) callback.observer(event, callback.context);
    strata_inside_end(&frame);
    inside_callback = false;
}

/* Writes one line without a survey. */
static void write_short(const strata_refused_t *refused, const strata_out_of_memory_t *event, char *line, size_t capacity) {
    strata_text_t text = {.text = line, .capacity = capacity};
    strata_report_write_context(refused, &text);
    STRATA_APPEND_AMOUNTS(&text, ": requested %", event->size);
    if (event->device_total > 0) STRATA_APPEND_AMOUNTS(&text, ", % free on the device", event->device_free);
    strata_text_append(&text, "; %s", refused->reason);
}

/* Runs before the observers, because they may end the program. */
static void notify_layers(strata_domain_t *domain) {
    strata_notice_t notice = {.struct_size = sizeof notice, .kind = STRATA_NOTICE_OUT_OF_MEMORY};
    strata_domain_notify(domain, &notice);
}

strata_status_t strata_facade_out_of_memory(strata_facade_t *facade, strata_stack_t *stack, const strata_request_t *request) {
    strata_domain_t *domain = stack->domain;
    char report[STRATA_REPORT_BYTES], reason[STRATA_FACT_REASON];
    snprintf(reason, sizeof reason, "%.*s", STRATA_FACT_REASON - 1, strata_last_error()->text);
    const strata_refused_t refused = {.stack = stack,
                                      .stream = request->stream,
                                      .size = request->size,
                                      .flags = request->flags,
                                      .reason = reason,
                                      .device_code = strata_last_error()->device_code,
                                      .tag = request->tag ? request->tag : "",
                                      .operator_name = request->operator_name ? request->operator_name : "",
                                      .step = atomic_load(&facade->step),
                                      .outcome = request->outcome};
    strata_out_of_memory_t event = {.struct_size = sizeof event,
                                    .place = domain->place,
                                    .stream = request->stream,
                                    .size = request->size,
                                    .text = report,
                                    .tag = refused.tag,
                                    .operator_name = refused.operator_name,
                                    .step = refused.step};
    atomic_fetch_add(&stack->group->out_of_memory, 1);
    if (strata_device_mem_info(domain->device, &event.device_free, &event.device_total) != STRATA_OK)
        event.device_free = event.device_total = 0;
    bool is_short = facade->strategy->short_report || (request->flags & STRATA_NO_REPORT);
    if (is_short || facade->reports_unread) write_short(&refused, &event, report, sizeof report);
    else strata_report_write(facade, &refused, &event, report, sizeof report);
    if (!is_short) notify_layers(domain);
    notify_observers(facade, &event);
    if (!is_short) strata_log_report_error(STRATA_LOG_WARNING, report);
    return strata_fail(STRATA_E_NO_MEMORY, refused.device_code, "%s", report);
}
