#include "facade/streams/annotate.h"

#include "allocation/domain/layer.h"
#include "allocation/report/log.h"
#include "allocation/stack/threads.h"
#include "facade/registry/lookup.h"

typedef struct annotation {
    strata_t facade;
    uint32_t operator_name; /* 0 for none */
} annotation_t;

static _Thread_local annotation_t annotations[STRATA_ANNOTATED_FACADES];

uint32_t strata_annotation(const strata_facade_t *facade) {
    strata_t handle = facade->handle;
    for (int i = 0; i < STRATA_ANNOTATED_FACADES; i++)
        if (annotations[i].facade == handle) return annotations[i].operator_name;
    return 0;
}

/* Returns the thread's slot for a facade, or else a slot that is unused or belongs to a closed facade. */
static annotation_t *room_for(strata_t handle) {
    annotation_t *room = NULL;
    for (int i = 0; i < STRATA_ANNOTATED_FACADES; i++) {
        annotation_t *each = &annotations[i];
        if (each->facade == handle) return each;
        if (!room && (each->operator_name == 0 || !strata_facade_is_open(each->facade))) room = each;
    }
    return room;
}

void strata_annotation_refresh(void) {
    bool inside = false;
    for (int i = 0; i < STRATA_ANNOTATED_FACADES; i++)
        inside = inside || (annotations[i].operator_name != 0 && strata_facade_is_open(annotations[i].facade));
    (void)strata_threads_self();
    strata_threads_set_plain(!inside);
}

strata_status_t strata_annotate(strata_t handle, const char *operator_name) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    uint32_t number;
    strata_status_t status = strata_names_number(&facade->names, operator_name, &number);
    if (status != STRATA_OK) return status;
    annotation_t *room = room_for(handle);
    if (!room && number == 0) return STRATA_OK;
    if (!room)
        return strata_fail(STRATA_E_LIMIT, 0, "the thread is inside operators of %d facades, the maximum",
                           STRATA_ANNOTATED_FACADES);
    *room = (annotation_t){.facade = handle, .operator_name = number};
    strata_annotation_refresh();
    /* Hits of an annotated thread are not remembered. */
    if (number != 0) strata_lookup_forget_own(handle);
    return STRATA_OK;
}

strata_status_t strata_step(strata_t handle) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    atomic_fetch_add(&facade->step, 1);
    strata_notice_t notice = {.struct_size = sizeof notice, .kind = STRATA_NOTICE_STEP};
    uint32_t index = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL)
        STRATA_DOMAIN_EACH(domain, stack) strata_stack_notify(stack, &notice);
    strata_log_flush();
    return STRATA_OK;
}
