/* Returns chunks to the layer below: all that may go, or the largest first. */
#include "allocation/cache/chunks.h"

uint64_t strata_chunks_give_back(strata_chunks_t *self, const strata_detached_t *detached, strata_call_t *call) {
    if (detached->first == 0) return 0;
    strata_unlocked_t opened = strata_call_unlock(call);
    for (uint32_t number = detached->first; number; number = strata_chunk_at(self, number)->chain)
        for (uint32_t part = number; part; part = strata_chunk_at(self, part)->part)
            strata_chunk_free(strata_chunk_at(self, part)->below);
    strata_call_lock(call, opened);
    for (uint32_t number = detached->first, chain; number; number = chain) {
        chain = strata_chunk_at(self, number)->chain;
        for (uint32_t part; number; number = part) {
            part = strata_chunk_at(self, number)->part;
            strata_nodes_release(&self->nodes, number);
        }
    }
    return detached->bytes;
}

/* ---- which may go ---- */

static bool may_release(const strata_chunks_t *self, const strata_chunk_t *chunk) {
    if (strata_chunks_are_pinned(self)) return false;
    return self->policy->may_release ? self->policy->may_release(&self->base, chunk) : strata_chunk_is_idle(&self->base, chunk);
}

static bool is_in_use(const strata_chunks_t *self, const strata_chunk_t *chunk) {
    return self->ordered && self->policy->is_in_use(&self->base, chunk);
}

bool strata_chunks_may_release(const strata_chunks_t *self, const strata_chunk_t *chunk) {
    return may_release(self, chunk) && !is_in_use(self, chunk);
}

void strata_chunks_wait_for_users(strata_chunks_t *self, strata_call_t *call) {
    STRATA_EACH_CHUNK(self, number) {
        const strata_chunk_t *chunk = strata_chunk_at(self, number);
        if (!may_release(self, chunk) || !is_in_use(self, chunk)) continue;
        self->policy->wait(&self->base, call);
        return;
    }
}

/* ---- release and trim ---- */

uint64_t strata_chunks_release(strata_layer_t *base, strata_call_t *call) {
    strata_chunks_t *self = (strata_chunks_t *)base;
    strata_detached_t detached = {0};
    strata_chunks_wait_for_users(self, call);
    for (uint32_t number = self->first, next; number; number = next) {
        next = strata_chunk_at(self, number)->next;
        if (strata_chunks_may_release(self, strata_chunk_at(self, number))) strata_chunks_detach(self, number, &detached);
    }
    return strata_chunks_give_back(self, &detached, call);
}

/* Merges two chains that are sorted largest first. Among equals, those of `a` precede. */
static uint32_t merge(const strata_chunks_t *self, uint32_t a, uint32_t b) {
    uint32_t first = 0, *end = &first;
    while (a && b) {
        uint32_t *larger = strata_chunk_at(self, b)->size > strata_chunk_at(self, a)->size ? &b : &a;
        *end = *larger;
        end = &strata_chunk_at(self, *larger)->chain;
        *larger = *end;
    }
    *end = a ? a : b;
    return first;
}

/* Removes the first `count` (at least 1) from a chain, and returns them as a chain sorted largest first. */
static uint32_t sort(const strata_chunks_t *self, uint32_t *chain, uint32_t count) {
    if (count > 1) {
        uint32_t half = sort(self, chain, count / 2);
        return merge(self, half, sort(self, chain, count - count / 2));
    }
    uint32_t number = *chain;
    *chain = strata_chunk_at(self, number)->chain;
    strata_chunk_at(self, number)->chain = 0;
    return number;
}

/* Returns a chain of all chunks that may go, sorted largest first. */
static uint32_t largest_first(const strata_chunks_t *self) {
    uint32_t chain = 0, count = 0;
    for (uint32_t number = self->last; number; number = strata_chunk_at(self, number)->prev) {
        strata_chunk_t *chunk = strata_chunk_at(self, number);
        if (!strata_chunks_may_release(self, chunk)) continue;
        chunk->chain = chain;
        chain = number;
        count++;
    }
    return count ? sort(self, &chain, count) : 0;
}

uint64_t strata_chunks_trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    strata_chunks_t *self = (strata_chunks_t *)base;
    strata_detached_t detached = {0};
    if (base->type->idle_bytes(base) <= keep) return 0;
    strata_chunks_wait_for_users(self, call);
    for (uint32_t number = largest_first(self), chain; number && base->type->idle_bytes(base) > keep; number = chain) {
        chain = strata_chunk_at(self, number)->chain;
        strata_chunks_detach(self, number, &detached);
    }
    return strata_chunks_give_back(self, &detached, call);
}
