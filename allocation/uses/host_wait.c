#include "allocation/uses/host_wait.h"

#include "allocation/uses/uses.h"
#include "platform/host/host_memory.h"

void strata_host_wait_end(strata_uses_t *uses) {
    if (uses) strata_uses_destroy(uses);
    strata_host_delete(uses);
}

static strata_status_t make_uses(strata_stack_t *stack, strata_uses_t **uses) {
    *uses = strata_host_new(1, sizeof **uses);
    if (!*uses) return STRATA_E_HOST_MEMORY;
    strata_status_t status = strata_uses_init(*uses, stack, STRATA_USES_ON_HOST);
    if (status != STRATA_OK) strata_host_delete(*uses);
    return status;
}

/* They are made at the first note, with the lock open. */
static strata_status_t ensure_uses(strata_call_t *call, const strata_record_t *record) {
    strata_stack_t *server = call->stack;
    strata_uses_t *uses;
    if (server->host_uses) return STRATA_OK;
    uint32_t generation = record->generation;
    strata_opened_t opened = strata_call_unlock(call);
    strata_status_t status = make_uses(server, &uses);
    strata_call_lock(call, opened);
    if (status != STRATA_OK) return status;
    if (!server->host_uses) {
        uses->captures = server->capturing;
        server->host_uses = uses;
        uses = NULL;
    }
    opened = strata_call_unlock(call);
    strata_host_wait_end(uses);
    strata_call_lock(call, opened);
    if (record->generation == generation) return STRATA_OK;
    return strata_fail(STRATA_E_STALE, 0, "the block was freed while its borrow was noted");
}

strata_status_t strata_host_wait_note(strata_call_t *call, strata_record_t *record, strata_stream_t stream) {
    strata_status_t status = ensure_uses(call, record);
    if (status != STRATA_OK) return status;
    strata_uses_t *uses = call->stack->host_uses;
    uint32_t user = strata_uses_user(uses, stream);
    if (user == 0) return STRATA_E_LIMIT;
    status = strata_uses_note(uses, &record->borrows, user, call->purpose == STRATA_FOR_FIRST_USE);
    if (status == STRATA_OK) record->attention |= STRATA_ATTENTION_CORE;
    return status;
}

void strata_host_wait_erase(strata_call_t *call, strata_record_t *record, strata_stream_t stream) {
    strata_uses_erase(call->stack->host_uses, &record->borrows, stream);
}

bool strata_host_wait_all(strata_call_t *call, strata_record_t *record) {
    record->attention &= (uint16_t)~STRATA_ATTENTION_CORE;
    return strata_uses_free(call->stack->host_uses, record, call) == STRATA_FREED_DONE;
}

/* The lock may be open while a block goes down; what is still to go is on a list of our own. */
static void free_done(strata_stack_t *stack, uint32_t done, strata_call_t *call) {
    strata_record_t *record;
    uint64_t bytes;
    while (strata_uses_take_done(stack->host_uses, &done, &record, &bytes)) strata_below_free(record, call);
}

/* Most stacks have none, and all are asked when memory is short: then not even the lock is taken. */
void strata_host_wait_poll(strata_stack_t *stack) {
    strata_call_t call = {.stack = stack};
    if (!stack->host_uses) return;
    strata_stack_take(stack);
    call.held[strata_call_level(&call, stack)] = stack;
    strata_uses_t *uses = stack->host_uses;
    if (uses && uses->kept) free_done(stack, strata_uses_take_up(uses, &call), &call);
    (void)strata_call_unlock(&call);
}

void strata_host_wait_capture(strata_stack_t *stack, bool begins) {
    strata_call_t call = {.stack = stack};
    strata_stack_take(stack);
    call.held[strata_call_level(&call, stack)] = stack;
    stack->capturing = begins;
    if (stack->host_uses && begins) strata_uses_capture_begin(stack->host_uses);
    else if (stack->host_uses) free_done(stack, strata_uses_capture_end(stack->host_uses, &call), &call);
    (void)strata_call_unlock(&call);
}

void strata_host_wait_stream_gone(strata_stack_t *stack, strata_stream_t stream) {
    strata_call_t call = {.stack = stack};
    strata_stack_take(stack);
    call.held[strata_call_level(&call, stack)] = stack;
    if (stack->host_uses) strata_uses_stream_gone(stack->host_uses, stream, &call);
    (void)strata_call_unlock(&call);
}
