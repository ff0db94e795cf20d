/* The banks of caching: free blocks by stream. */
#include "allocation/cache/policies/caching/caching_state.h"

/* ---- banks ---- */

/* Returns true if the bank serves this stream of the calling thread. */
static bool serves(const caching_t *self, const caching_bank_t *bank, bool streams, strata_stream_t stream) {
    if (!streams) return bank->stream == 0;
    return !bank->orphaned && strata_user_is(caching_stream_at(self, bank->stream), stream);
}

/* In places without owner streams, blocks belong to no stream, and every user borrows. */
static bool has_streams(const caching_t *self) {
    strata_place_kind_t kind = strata_place_kind(self->base.domain->place);
    bool owned = kind == STRATA_PLACE_GPU || kind == STRATA_PLACE_MANAGED;
    return owned && caching_options_of(self)->streams == STRATA_CACHING_OWN_STREAMS;
}

/* The bank holds its stream's entry, so the handle there stays valid for the key. */
strata_order_key_t strata_caching_bank_key(const caching_t *self, uint32_t stream) {
    uintptr_t handle = stream ? (uintptr_t)caching_stream_at(self, stream)->stream : 0;
    return (strata_order_key_t){.first = handle, .second = stream};
}

static uint32_t find(caching_t *self, bool streams, strata_stream_t handle) {
    uint32_t stream = streams ? strata_users_find(&self->uses.users, handle) : 0;
    if (streams && stream == 0) return 0;
    strata_order_key_t key = strata_caching_bank_key(self, stream);
    return strata_order_find(&self->bank_order, &key);
}

static uint32_t make(caching_t *self, bool streams, const strata_request_t *request) {
    uint32_t node = strata_nodes_acquire(&self->banks);
    uint32_t stream = streams && node ? strata_caching_stream(self, request->stream) : 0;
    if (node == 0) strata_fail(STRATA_E_LIMIT, 0, "caching serves %u streams, the maximum", self->banks.capacity);
    if (node == 0 || (streams && stream == 0)) {
        if (node) strata_nodes_release(&self->banks, node);
        return 0;
    }
    caching_bank_t *bank = caching_bank_at(self, node);
    *bank = (caching_bank_t){.stream = stream};
    for (uint32_t kind = 0; kind < STRATA_CACHING_KINDS; kind++) self->trees[caching_code(node, kind)] = &bank->idle[kind];
    if (stream) {
        strata_user_t *user = caching_stream_at(self, stream);
        user->holds++;
        bank->next_of_stream = user->list;
        user->list = node;
    }
    strata_order_key_t key = strata_caching_bank_key(self, stream);
    strata_order_add(&self->bank_order, node, &key);
    return node;
}

uint32_t strata_caching_bank(caching_t *self, const strata_request_t *request) {
    bool streams = has_streams(self);
    uint32_t *hint = &self->hints[request->call->stack->number];
    if (*hint && serves(self, caching_bank_at(self, *hint), streams, request->stream)) return *hint;
    uint32_t node = find(self, streams, request->stream);
    if (node == 0) node = make(self, streams, request);
    /* With stable addresses no hint is kept. So no hit serves, and each request tries the place of the last
     * step. */
    if (!strata_repeats_are_on(&self->chunks.repeats)) *hint = node;
    return node;
}

bool strata_caching_bank_is_unowned(caching_t *self, const caching_bank_t *bank) {
    /* A graph may use it at its next launch. */
    if (atomic_load(&self->base.stack->group->pinned)) return false;
    return bank->orphaned && strata_users_has_passed(&self->uses.users, bank->stream);
}

void strata_caching_bank_end_if_empty(caching_t *self, uint32_t node) {
    caching_bank_t *bank = caching_bank_at(self, node);
    if (bank->segments > 0 || bank->busy > 0 || !bank->orphaned) return;
    strata_order_remove(&self->bank_order, node);
    uint32_t stream = bank->stream, *link = &caching_stream_at(self, stream)->list;
    while (*link != node) link = &caching_bank_at(self, *link)->next_of_stream;
    *link = bank->next_of_stream;
    if (bank->prev_orphan_bank) caching_bank_at(self, bank->prev_orphan_bank)->next_orphan_bank = bank->next_orphan_bank;
    else self->first_orphan = bank->next_orphan_bank;
    if (bank->next_orphan_bank) caching_bank_at(self, bank->next_orphan_bank)->prev_orphan_bank = bank->prev_orphan_bank;
    strata_nodes_release(&self->banks, node);
    strata_users_release(&self->uses.users, stream);
}

/* ---- streams of banks ---- */

void strata_caching_orphan_banks(caching_t *self, uint32_t node, strata_user_state_t state) {
    strata_users_detach(&self->uses.users, node, state);
    for (uint32_t number = caching_stream_at(self, node)->list, next; number; number = next) {
        caching_bank_t *bank = caching_bank_at(self, number);
        next = bank->next_of_stream;
        bank->orphaned = true;
        bank->prev_orphan_bank = 0;
        bank->next_orphan_bank = self->first_orphan;
        if (bank->next_orphan_bank) caching_bank_at(self, bank->next_orphan_bank)->prev_orphan_bank = number;
        self->first_orphan = number;
        strata_caching_bank_end_if_empty(self, number);
    }
}

static void abandon_thread(void *owner, uint32_t node) {
    caching_t *self = owner;
    strata_caching_orphan_banks(self, node, STRATA_USER_UNOBSERVABLE);
    self->has_abandoned = true;
}

void strata_caching_abandon_threads(caching_t *self) {
    if (!self->reaping) strata_users_reap(&self->uses.users, abandon_thread, self);
}

uint32_t strata_caching_stream(caching_t *self, strata_stream_t handle) {
    uint32_t known = strata_users_find(&self->uses.users, handle);
    if (known) return known;
    if (handle == STRATA_STREAM_PER_THREAD) strata_caching_abandon_threads(self);
    return strata_users_make(&self->uses.users, handle);
}

/* ---- streams that may use a block ---- */

uint32_t strata_caching_unavailable(strata_layer_t *base, const strata_record_t *block, uint64_t size, strata_stream_t *stream) {
    const caching_t *self = (const caching_t *)base;
    const caching_bank_t *bank = caching_bank_at(self, caching_bank_of(self, block));
    uint64_t rounded = strata_caching_round(self, size), most = caching_options_of(self)->max_split_size;
    /* Without a capture, a part of a segment would not go back either. */
    bool is_whole_segment = self->vmm ? strata_caching_has_idle_handle((caching_t *)base, block) : !block->prev && !block->next;
    bool held = self->uses.captures > 0 && is_whole_segment;
    bool other_size = caching_kind_of(self, block) != strata_caching_kind(rounded);
    bool whole = block->size >= most && rounded < most;
    *stream = bank->stream ? caching_stream_at(self, bank->stream)->stream : NULL;
    return (bank->stream ? STRATA_UNAVAILABLE_STREAM : 0u) | (held ? STRATA_UNAVAILABLE_CAPTURED : 0u) |
           (other_size ? STRATA_UNAVAILABLE_SIZES : 0u) | (whole ? STRATA_UNAVAILABLE_UNSPLIT : 0u);
}
