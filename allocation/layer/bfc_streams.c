/* The streams of bfc. As in the peer a block belongs to no stream. Here its mark tells which stream used it last, and at
 * which of all frees: another stream gets it after a wait of the host, which is for everything that is free then. A borrow is
 * unknown to the layer: the core waits for it before the free. */
#include "allocation/layer/bfc.h"

/* The name of a destroyed stream is one of its holders, until no mark that counts bears it. */
static void let_go_if_waited(bfc_t *self, uint32_t node) {
    strata_user_t *user = strata_user_at(&self->users, node);
    if (user->state != STRATA_USER_GONE || user->count > self->waited) return;
    user->state = STRATA_USER_LOST;
    strata_users_let_go(&self->users, node);
}

/* Nobody takes the name as long as marks bear it: those of the frees so far, until the host has waited for them. */
static void leave_behind(bfc_t *self, uint32_t node) {
    strata_users_leave(&self->users, node, STRATA_USER_GONE);
    strata_user_at(&self->users, node)->count = self->frees;
    let_go_if_waited(self, node);
}

static void bury(void *self, uint32_t node) { leave_behind(self, node); }

uint32_t strata_bfc_user(bfc_t *self, const strata_request_t *request) {
    uint32_t *hint = &self->hints[request->call->stack->number];
    strata_stream_t stream = request->stream == STRATA_STREAM_LEGACY ? NULL : request->stream;
    if (*hint) {
        const strata_user_t *user = strata_user_at(&self->users, *hint);
        if (user->stream == stream && strata_user_is_nameable(user)) return *hint;
    }
    uint32_t node = strata_users_find(&self->users, request->stream);
    if (node == 0 && request->stream == STRATA_STREAM_PER_THREAD) strata_users_bury(&self->users, bury, self);
    if (node == 0 && (node = strata_users_make(&self->users, request->stream)) != 0) strata_user_at(&self->users, node)->holds = 1;
    *hint = node;
    return node;
}

bool strata_bfc_is_in_use(const bfc_t *self, const strata_record_t *block, uint32_t user) {
    if (strata_mark_count(block) <= self->waited) return false;
    return user == 0 || strata_mark_stream(block) != user;
}

bool strata_bfc_wait_for_users(bfc_t *self, strata_call_t *call) {
    uint64_t frees = self->frees;
    strata_opened_t opened = strata_call_unlock(call);
    bool done = strata_domain_wait_for_all(self->base.domain);
    strata_call_lock(call, opened);
    if (!done || frees <= self->waited) return done;
    self->waited = frees;
    for (uint32_t node = 1; node < self->users.nodes.used; node++) let_go_if_waited(self, node);
    return true;
}

/* The handle may soon be another stream's. */
void strata_bfc_stream_gone(strata_layer_t *base, strata_stream_t stream, strata_call_t *call) {
    bfc_t *self = (bfc_t *)base;
    uint32_t node = strata_users_find(&self->users, stream);
    (void)call;
    if (node) leave_behind(self, node);
}

void strata_bfc_capture_begin(strata_layer_t *base, uint64_t pool, strata_call_t *call) {
    (void)pool;
    (void)call;
    ((bfc_t *)base)->captures++;
}

void strata_bfc_capture_end(strata_layer_t *base, uint64_t pool, strata_call_t *call) {
    (void)pool;
    (void)call;
    ((bfc_t *)base)->captures--;
}
