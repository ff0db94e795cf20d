#include "tests/checker/copied_uses.h"

#include "tests/checker/mutant_safe.h"

#include <pthread.h>
#include <string.h>

#include "allocation/graphs/graphs.h"
#include "platform/device.h"
#include "tests/harness/test.h"

static mutation_t chosen;

/* ---- what the layer calls, bent ---- */

/* Stacks of several threads share what follows. */
static pthread_mutex_t notes = PTHREAD_MUTEX_INITIALIZER;
static strata_handle_t first_event;
static uint64_t passed_at; /* when the last event was seen to have passed */

/* For some events another one is asked: that of the free before. */
enum { OTHERS = 256 };
static struct { strata_handle_t event, other; } others[OTHERS];
static uint32_t records;
static strata_handle_t previous_event;

static uint32_t place_of(strata_handle_t event) {
    uint32_t place = 0;
    while (place < OTHERS - 1 && others[place].event && others[place].event != event) place++;
    return place;
}

/* The event that is recorded in its place. */
static strata_handle_t note_record(strata_handle_t event) {
    pthread_mutex_lock(&notes);
    if (!first_event) first_event = event;
    uint32_t place = place_of(event);
    others[place].event = event;
    others[place].other = ++records % 2 == 0 ? previous_event : event;
    previous_event = event;
    strata_handle_t recorded = chosen == MUTATION_ONE_EVENT ? first_event : event;
    pthread_mutex_unlock(&notes);
    return recorded;
}

static strata_status_t bent_record(strata_domain_t *domain, strata_handle_t event, strata_stream_t stream, strata_stream_t owner) {
    if (chosen == MUTATION_NO_EVENT) return STRATA_OK;
    event = note_record(event);
    return strata_domain_record_event(domain, event, chosen == MUTATION_WRONG_STREAM ? owner : stream);
}

/* The event that is asked in its place. */
static strata_handle_t asked_for(strata_handle_t event) {
    pthread_mutex_lock(&notes);
    uint32_t place = place_of(event);
    bool known = chosen == MUTATION_COVERS_TOO_LITTLE && others[place].event == event;
    bool first = chosen == MUTATION_ONE_EVENT || chosen == MUTATION_WRONG_EVENT;
    strata_handle_t asked = first ? first_event : known ? others[place].other : event;
    pthread_mutex_unlock(&notes);
    return asked;
}

static bool passed_just_now(uint64_t now) {
    pthread_mutex_lock(&notes);
    bool just_now = now - passed_at < 10000;
    pthread_mutex_unlock(&notes);
    return just_now;
}

static void note_passed(uint64_t now) {
    pthread_mutex_lock(&notes);
    passed_at = now;
    pthread_mutex_unlock(&notes);
}

static strata_status_t bent_query(strata_device_t *device, strata_handle_t event) {
    uint64_t now = device->clock->now(device->clock);
    if (chosen == MUTATION_NO_POLL) return STRATA_OK;
    if (chosen == MUTATION_ONE_OF_TWO && passed_just_now(now)) return STRATA_OK;
    strata_status_t status = strata_device_event_query(device, asked_for(event));
    if (status == STRATA_OK) note_passed(now);
    return chosen == MUTATION_EVENT_IN_CAPTURE && status == STRATA_E_CAPTURE ? STRATA_OK : status;
}

static bool bent_wait_for(strata_domain_t *domain, strata_stream_t stream) {
    return chosen == MUTATION_NO_WAIT || strata_domain_wait_for(domain, stream);
}

static bool bent_any_open(void) { return chosen != MUTATION_EVENT_IN_CAPTURE && strata_captures_any_open(); }

/* ---- the copy ---- */

#define strata_stream_safe_type                       copied_type
#define strata_stream_safe_on_host                    copied_on_host
#define strata_domain_record_event(domain, event, on) bent_record(domain, event, on, uses->stack->stream)
#define strata_device_event_query(device, event)      bent_query(device, event)
#define strata_domain_wait_for(domain, stream)        bent_wait_for(domain, stream)
#define strata_captures_any_open()                    bent_any_open()
#include "allocation/layers/decorators/stream_safe.c"
#include "allocation/uses/check.c"
#include "allocation/uses/ends.c"
#include "allocation/uses/uses.c"
#include "allocation/uses/waiting.c"
#undef strata_domain_record_event
#undef strata_device_event_query
#undef strata_domain_wait_for
#undef strata_captures_any_open

/* ---- its operations, bent ---- */

static void drop_all(strata_layer_t *base, strata_record_t *record) {
    strata_uses_drop_all(&((stream_safe_t *)base)->uses, &record->borrows);
}

static strata_status_t bent_record_stream(strata_layer_t *base, strata_record_t *record, strata_stream_t stream,
                                          strata_call_t *call) {
    if (chosen == MUTATION_NO_BORROW) return STRATA_OK;
    if (chosen == MUTATION_OWNER_FORGOTTEN && call->purpose == STRATA_FOR_FIRST_USE) return STRATA_OK;
    if (chosen == MUTATION_FORGETS_SECOND && record->borrows) return STRATA_OK;
    if (chosen == MUTATION_FORGETS_FIRST) drop_all(base, record);
    return record_stream(base, record, stream, call);
}

static strata_status_t bent_erase_stream(strata_layer_t *base, strata_record_t *record, strata_stream_t stream,
                                         strata_call_t *call) {
    if (chosen == MUTATION_ERASES_ALL) drop_all(base, record);
    return erase_stream(base, record, stream, call);
}

static void bent_notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call) {
    strata_users_t *users = &((stream_safe_t *)base)->uses.users;
    bool gone = notice->kind == STRATA_NOTICE_STREAM_DESTROYED;
    uint32_t user = gone ? strata_users_find(users, notice->stream) : 0;
    if (gone && chosen == MUTATION_GONE_FORGOTTEN && user) strata_users_detach(users, user, STRATA_USER_DESTROYED);
    if (gone || chosen != MUTATION_EVENT_IN_CAPTURE) notify(base, notice, call);
}

static void bent_free(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    strata_uses_t *uses = &((stream_safe_t *)base)->uses;
    if (chosen == MUTATION_FREES_AT_ONCE) drop_all(base, record);
    while (chosen == MUTATION_LAST_ALONE && record->borrows && strata_use_at(uses, record->borrows)->next)
        drop(uses, &record->borrows);
    free_record(base, record, call);
}

/* ---- choosing ---- */

static void register_once(void) {
    static strata_layer_type_t type;
    if (type.name) return;
    type = copied_type;
    type.name = "mutant_safe";
    type.record_stream = bent_record_stream;
    type.erase_stream = bent_erase_stream;
    type.free = bent_free;
    type.notify = bent_notify;
    EXPECT_OK(strata_register_layer(&type));
}

const char *mutation_what(mutation_t mutation) {
    static const char *const what[] = {
#define MUTATION_WHAT(name, what) what,
        MUTATION_MAP(MUTATION_WHAT)
#undef MUTATION_WHAT
    };
    return what[mutation];
}

void mutant_choose(mutation_t mutation) {
    register_once();
    chosen = mutation;
    first_event = previous_event = NULL;
    memset(others, 0, sizeof others);
    records = 0;
    passed_at = 0;
}
