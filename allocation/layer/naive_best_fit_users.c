/* Who used a block last. A pool of several streams hands a block that another one used only after the host has waited for all.
 *
 * A live block names its owner in bin_prev; every other stream that used it was waited for by its free. */
#include "allocation/layer/naive_best_fit.h"

static void leave_behind(naive_t *self, uint32_t node) {
    strata_users_leave(&self->users, node, STRATA_USER_LOST);
    if (strata_user_at(&self->users, node)->holds == 0) strata_users_end(&self->users, node);
}

/* Entries of exited threads' own default streams: nobody can name them any more. */
static void bury(void *self, uint32_t node) { leave_behind(self, node); }

bool strata_naive_user(naive_t *self, strata_stream_t stream, uint32_t *node) {
    *node = 0;
    if (self->one_user) return true;
    *node = strata_users_find(&self->users, stream);
    if (*node) return true;
    if (stream == STRATA_STREAM_PER_THREAD) strata_users_bury(&self->users, bury, self);
    *node = strata_users_make(&self->users, stream);
    if (*node) naive_user_at(self, *node)->count = 0;
    return *node != 0;
}

uint64_t strata_naive_mark(naive_t *self, uint32_t node) {
    if (node == 0) return 0;
    strata_user_t *user = naive_user_at(self, node);
    if (user->count <= self->buddy.several) user->count = strata_buddy_new_mark(&self->buddy);
    return user->count;
}

void strata_naive_let_go(naive_t *self, uint32_t node) {
    if (node) strata_users_let_go(&self->users, node);
}

bool strata_naive_is_used(naive_t *self, const strata_record_t *block, uint32_t node) {
    uint64_t mark = strata_buddy_mark(block);
    return mark > self->buddy.clean && mark != strata_naive_mark(self, node);
}

strata_status_t strata_naive_wait(naive_t *self, strata_call_t *call) {
    uint64_t until = strata_buddy_wait(&self->buddy);
    strata_opened_t opened = strata_call_unlock(call);
    bool done = strata_domain_wait_for_all(self->base.domain);
    strata_call_lock(call, opened);
    self->waits++;
    if (!done) return strata_last_error()->status;
    strata_buddy_waited(&self->buddy, until);
    return STRATA_OK;
}

/* Its handle may name another stream soon: what it used is from now on nobody's but after a wait. */
void strata_naive_stream_gone(strata_layer_t *base, strata_stream_t stream, strata_call_t *call) {
    naive_t *self = (naive_t *)base;
    (void)call;
    uint32_t node = self->one_user ? 0 : strata_users_find(&self->users, stream);
    if (node == 0) return;
    leave_behind(self, node);
}

strata_status_t strata_naive_validate_users(const naive_t *self) {
    uint64_t holds = 0, live = 0;
    for (uint32_t node = 1; !self->one_user && node < self->users.nodes.used; node++) {
        const strata_user_t *user = naive_user_at(self, node);
        if (user->state == STRATA_USER_UNUSED) continue;
        if (user->count > self->buddy.last)
            return strata_fail(STRATA_E_CORRUPT, 0, "%s: a stream has a mark that was never made", self->base.type->name);
        holds += user->holds;
    }
    STRATA_EACH_CHUNK(&self->chunks, number)
        STRATA_EACH_BLOCK(&self->chunks, number, slot) {
            const strata_record_t *block = naive_block(self, slot);
            live += block->state != STRATA_RECORD_FREE && block->bin_prev != 0;
        }
    if (self->one_user || holds == live + self->asking) return STRATA_OK;
    return strata_fail(STRATA_E_CORRUPT, 0, "%s: the streams do not hold the live blocks", self->base.type->name);
}
