#include "lab/conform/rig/source.h"

#include <stdio.h>
#include <string.h>

static _Atomic uint64_t calls, live, fail_at;
static _Atomic bool fail_onward;
static _Atomic strata_status_t fail_status;

void test_source_fail(uint64_t k, bool onward, strata_status_t status) {
    fail_at = k ? calls + k : 0;
    fail_onward = onward;
    fail_status = status;
}

uint64_t test_source_calls(void) { return calls; }

uint64_t test_source_live(void) { return live; }

/* ---- the expected request ---- */

static strata_request_t wanted;
static bool is_watching;
static char difference[160];

void test_source_expect(const strata_request_t *request) {
    is_watching = request != NULL;
    if (request) wanted = *request;
    difference[0] = 0;
}

const char *test_source_difference(void) { return difference; }

static void note_difference(const char *what, uint64_t is, uint64_t should) {
    if (difference[0]) return;
    snprintf(difference, sizeof difference, "the request that reached the bottom has %s %#llx; the program's request had %#llx",
             what, (unsigned long long)is, (unsigned long long)should);
}

static void compare_request(const strata_request_t *is) {
    if (!is_watching) return;
    bool tagged = wanted.tag ? is->tag && strcmp(is->tag, wanted.tag) == 0 : is->tag == NULL;
    if (is->stream != wanted.stream) note_difference("the stream", (uintptr_t)is->stream, (uintptr_t)wanted.stream);
    if (is->size < wanted.size) note_difference("the size", is->size, wanted.size);
    if (is->alignment < wanted.alignment) note_difference("the alignment", is->alignment, wanted.alignment);
    if (wanted.flags & ~is->flags & STRATA_NO_RETRY) note_difference("the flags", is->flags, wanted.flags);
    if (!tagged) note_difference("the tag", is->tag != NULL, wanted.tag != NULL);
}

/* ---- the layer ---- */

static strata_status_t source_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    uint64_t address;
    if (request->flags & STRATA_NO_GROW) return strata_fail(STRATA_E_NO_MEMORY, 0, "the test source caches no memory");
    uint64_t call = ++calls;
    compare_request(request);
    if (fail_at != 0 && (call == fail_at || (fail_onward && call > fail_at)))
        return strata_fail(fail_status, 0, "the test source fails its call %llu", (unsigned long long)call);
    strata_unlocked_t opened = strata_call_unlock(request->call);
    strata_status_t status = strata_layer_allocate_memory(self, request, request->size, request->alignment, &address);
    strata_call_lock(request->call, opened);
    if (status != STRATA_OK) return status;
    *record = strata_record_new(self, request, address, request->size);
    live += *record != NULL;
    if (*record) return STRATA_OK;
    opened = strata_call_unlock(request->call);
    (void)strata_layer_free_memory(self, address, request->size);
    strata_call_lock(request->call, opened);
    return STRATA_E_LIMIT;
}

static void source_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    (void)strata_layer_free_memory(self, record->ptr, strata_record_withdraw(self, record));
    strata_call_lock(call, opened);
    strata_record_delete(self, record);
    live--;
}

static void release_left(const strata_record_t *record, void *self) {
    (void)strata_layer_free_memory(self, record->ptr, record->size);
    live--;
}

static void source_destroy(strata_layer_t *self) { strata_layer_each_remaining(self, release_left, self); }

const strata_layer_type_t test_source_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "test_source",
    .doc = "a source that fails on demand",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_EXACT_SIZE,
    .guarded = true,
    .state_size = sizeof(strata_layer_t),
    .create = strata_layer_create_nothing,
    .destroy = source_destroy,
    .allocate = source_allocate,
    .free = source_free,
};
