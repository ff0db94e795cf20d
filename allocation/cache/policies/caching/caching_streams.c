/* The streams of caching: owners of banks, borrowers, and the uses that freed blocks wait for. A block is free
 * for reuse when its last use is done. Uses are polled at every request, with one query for each stream that
 * any block waits for. */
#include "allocation/cache/policies/caching/caching_state.h"

/* ---- borrows: a live block lists them in own_uses, because `borrows` belongs to a layer above ---- */

bool strata_caching_is_borrowed(const strata_layer_t *base, const strata_record_t *block) {
    return !caching_ignores_streams((const caching_t *)base) && block->own_uses != 0;
}

strata_status_t strata_caching_record_stream(strata_layer_t *base, strata_record_t *block, strata_stream_t stream,
                                             strata_call_t *call) {
    caching_t *self = (caching_t *)base;
    if (caching_ignores_streams(self))
        return strata_fail(STRATA_E_UNSUPPORTED, 0,
                           "caching ignores borrows with streams: "
                           "ignored");
    bool entered = strata_call_enter(call, base);
    uint32_t user = strata_caching_stream(self, stream);
    strata_status_t status = user ? STRATA_OK : STRATA_E_LIMIT;
    /* The stream that owns the block needs no event for it. */
    if (user && user != caching_bank_at(self, caching_bank_of(self, block))->stream)
        status = strata_uses_note(&self->uses, &block->own_uses, user, call->purpose == STRATA_FOR_FIRST_USE);
    strata_call_exit(call, base, entered);
    return status;
}

strata_status_t strata_caching_erase_stream(strata_layer_t *base, strata_record_t *block, strata_stream_t stream,
                                            strata_call_t *call) {
    caching_t *self = (caching_t *)base;
    /* No borrows are recorded then. */
    if (caching_ignores_streams(self)) return STRATA_OK;
    bool entered = strata_call_enter(call, base);
    strata_uses_erase(&self->uses, &block->own_uses, stream);
    strata_call_exit(call, base, entered);
    return STRATA_OK;
}

/* ---- without streams ---- */

void strata_caching_begin_use(caching_t *self, strata_record_t *block, strata_stream_t stream) {
    block->user = strata_last_users_of(&self->last, stream);
    strata_last_users_hold(&self->last, block->user);
}

/* ---- completed uses ---- */

static uint64_t put_done_back(caching_t *self, uint32_t done) {
    strata_record_t *block;
    uint64_t bytes, freed = 0;
    for (; strata_uses_pop_done(&self->uses, &done, &block, &bytes); freed += bytes) strata_caching_free_block(self, block);
    return freed;
}

uint64_t strata_caching_poll_uses(caching_t *self, strata_call_t *call) {
    bool asks = self->uses.first_awaited || self->uses.joining;
    if (self->uses.kept) (void)put_done_back(self, strata_uses_resume_kept(&self->uses, call));
    return asks ? put_done_back(self, strata_uses_poll(&self->uses)) : 0;
}

void strata_caching_wait_for_uses(caching_t *self, strata_call_t *call) {
    self->waits_for_all++;
    (void)put_done_back(self, strata_uses_wait(&self->uses, call));
}

void strata_caching_poll(strata_layer_t *base, strata_call_t *call, strata_pending_t *pending) {
    caching_t *self = (caching_t *)base;
    pending->freed_bytes += strata_caching_poll_uses(self, call);
    strata_uses_add_pending(&self->uses, pending);
}

void strata_caching_waits(strata_layer_t *base, strata_wait_fn wait, void *context) {
    strata_uses_each_wait(&((caching_t *)base)->uses, wait, context);
}

/* ---- destroyed streams, captures ---- */

static void stream_destroyed(caching_t *self, strata_stream_t handle, strata_call_t *call) {
    if (caching_ignores_streams(self)) {
        strata_last_users_stream_destroyed(&self->last, self->base.domain, handle, call);
        return;
    }
    uint32_t node = strata_users_find(&self->uses.users, handle);
    if (node == 0) return;
    caching_stream_at(self, node)->holds++;
    bool completion_known = strata_uses_mark_end(&self->uses, node, call);
    /* The lock was open, so another thread may have forgotten the stream already. */
    if (caching_stream_at(self, node)->state == STRATA_USER_NAMED)
        strata_caching_orphan_banks(self, node, completion_known ? STRATA_USER_DESTROYED : STRATA_USER_UNOBSERVABLE);
    strata_uses_detach(&self->uses, node, completion_known, call);
}

bool strata_caching_reap_threads(caching_t *self, strata_call_t *call) {
    if (self->reaping || caching_ignores_streams(self)) return false;
    strata_caching_abandon_threads(self);
    /* It is also set if an earlier wait has failed. */
    if (!self->has_abandoned) return false;
    self->reaping = true;
    strata_unlocked_t opened = strata_call_unlock(call);
    bool done = strata_domain_wait_for_all(self->base.domain);
    strata_call_lock(call, opened);
    for (uint32_t node = 0; done && (node = strata_users_next_exited_thread(&self->uses.users, node)) != 0;)
        caching_stream_at(self, node)->state = STRATA_USER_DESTROYED;
    self->has_abandoned = !done;
    self->reaping = false;
    return done;
}

void strata_caching_notify(strata_layer_t *base, strata_notice_t *notice, strata_call_t *call) {
    caching_t *self = (caching_t *)base;
    switch (notice->kind) {
    case STRATA_NOTICE_STREAM_DESTROYED: stream_destroyed(self, notice->stream, call); break;
    case STRATA_NOTICE_CAPTURE_BEGIN: strata_uses_capture_begin(&self->uses); break;
    case STRATA_NOTICE_CAPTURE_END: (void)put_done_back(self, strata_uses_capture_end(&self->uses, call)); break;
    case STRATA_NOTICE_STEP: strata_repeats_step(&self->chunks.repeats); break;
    case STRATA_NOTICE_FIGURES: strata_caching_figures(self); break;
    default: break;
    }
}
