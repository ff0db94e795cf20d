/* The segments of caching: how they come, how blocks go back into them, and which of them are given back when. */
#include "allocation/layer/caching.h"
#include "platform/arithmetic.h"

/* ---- blocks ---- */

static strata_tree_t *tree_of(const caching_t *self, const strata_record_t *block) {
    return &caching_bank_at(self, caching_bank_of(self, block))->idle[caching_kind_of(self, block)];
}

void strata_caching_index(caching_t *self, uint32_t slot) {
    strata_tree_insert(tree_of(self, caching_block(self, slot)), caching_slab(self), slot);
}

void strata_caching_unindex(caching_t *self, uint32_t slot) {
    strata_tree_remove(tree_of(self, caching_block(self, slot)), caching_slab(self), slot);
}

/* A slot whose generations are used up; 0: no other is left, and the block stays out of use until its segment goes. */
static uint32_t leave_slot(caching_t *self, uint32_t slot) {
    caching_segment_t *segment = caching_segment_at(self, caching_block(self, slot)->chunk);
    uint32_t fresh = strata_pieces_move(caching_slab(self), slot);
    if (fresh && segment->first == slot) segment->first = fresh;
    return fresh;
}

/* Without streams the mark tells who used the block last, and when; else since when the block is idle. */
static void mark_freed(caching_t *self, strata_record_t *block) {
    if (caching_ignores_streams(self)) strata_mark(block, ++self->frees, strata_caching_end_use(self, block));
    else strata_mark(block, self->searches, 0);
}

void strata_caching_put_back(caching_t *self, strata_record_t *block) {
    strata_slab_t *slab = caching_slab(self);
    uint32_t slot = strata_slab_slot(slab, block);
    uint64_t size = block->size;
    bool no_streams = caching_ignores_streams(self);
    mark_freed(self, block);
    if (strata_slab_is_idle(slab, block->next)) {
        strata_caching_unindex(self, block->next);
        if (no_streams) strata_mark_merge(block, caching_block(self, block->next), self->waited);
        strata_pieces_join(slab, slot);
    }
    if (strata_slab_is_idle(slab, block->prev)) {
        uint32_t low = block->prev;
        strata_caching_unindex(self, low);
        if (no_streams) strata_mark_merge(block, caching_block(self, low), self->waited);
        strata_mark(caching_block(self, low), strata_mark_count(block), strata_mark_stream(block));
        strata_pieces_join(slab, low);
        slot = low;
    } else if (block->generation >= STRATA_GENERATION_LAST && (slot = leave_slot(self, slot)) == 0) {
        block->state = STRATA_RECORD_DEFERRED;
        self->used_bytes += block->size - size; /* with the neighbour that it took */
        return;
    }
    self->used_bytes -= size;
    caching_block(self, slot)->state = STRATA_RECORD_FREE;
    strata_caching_index(self, slot);
}

/* ---- segments ---- */

static void list(caching_t *self, uint32_t node) {
    caching_segment_t *segment = caching_segment_at(self, node);
    segment->next = 0;
    segment->prev = self->last_segment;
    if (self->last_segment) caching_segment_at(self, self->last_segment)->next = node;
    else self->first_segment = node;
    self->last_segment = node;
}

static void unlist(caching_t *self, uint32_t node) {
    const caching_segment_t *segment = caching_segment_at(self, node);
    if (segment->prev) caching_segment_at(self, segment->prev)->next = segment->next;
    else self->first_segment = segment->next;
    if (segment->next) caching_segment_at(self, segment->next)->prev = segment->prev;
    else self->last_segment = segment->prev;
}

uint32_t strata_caching_publish(caching_t *self, strata_record_t *below, uint32_t bank, uint32_t kind) {
    strata_slab_t *slab = caching_slab(self);
    uint32_t node = strata_nodes_take(&self->segments);
    uint32_t slot = node ? strata_pieces_begin(slab, node, below->ptr, below->size) : 0;
    if (slot == 0) {
        if (node) strata_nodes_give(&self->segments, node);
        strata_fail(STRATA_E_LIMIT, 0, "caching holds %u segments or %u blocks, its most", self->segments.capacity, slab->capacity);
        return 0;
    }
    *caching_segment_at(self, node) = (caching_segment_t){
        .below = below, .base = below->ptr, .size = below->size, .first = slot, .bank = bank, .kind = kind};
    strata_slab_record(slab, slot)->pool = caching_code(bank, kind);
    list(self, node);
    strata_statistics_t *f = &self->base.stack->figures;
    f->growths++;
    f->chunks++;
    f->reserved_bytes += strata_record_reserved(below);
    if (f->reserved_bytes > f->peak_reserved_bytes) f->peak_reserved_bytes = f->reserved_bytes;
    self->segment_count++;
    self->segment_bytes += below->size;
    caching_bank_at(self, bank)->segments++;
    return slot;
}

/* Takes an idle segment out of the layer by its one block, which is in the index. */
static strata_record_t *detach(caching_t *self, uint32_t slot) {
    uint32_t node = caching_block(self, slot)->chunk;
    const caching_segment_t *segment = caching_segment_at(self, node);
    strata_record_t *below = segment->below;
    uint32_t bank = segment->bank;
    strata_statistics_t *f = &self->base.stack->figures;
    strata_caching_unindex(self, slot);
    strata_slab_give(caching_slab(self), slot);
    unlist(self, node);
    f->chunks--;
    f->reserved_bytes -= strata_record_reserved(below);
    self->segment_count--;
    self->segment_bytes -= segment->size;
    self->asked_bytes -= segment->size;
    strata_nodes_give(&self->segments, node);
    caching_bank_at(self, bank)->segments--;
    strata_caching_bank_settle(self, bank);
    return below;
}

/* The lock is open for the call below; the bytes. */
static uint64_t give_back(caching_t *self, uint32_t slot, strata_call_t *call) {
    uint64_t size = caching_block(self, slot)->size;
    strata_record_t *below = detach(self, slot);
    strata_opened_t opened = strata_call_unlock(call);
    strata_chunk_free(below);
    strata_call_lock(call, opened);
    return size;
}

/* Whatever is still live: of the destroy, with no lock held. */
void strata_caching_give_all_back(caching_t *self) {
    while (self->first_segment) {
        uint32_t node = self->first_segment;
        unlist(self, node);
        strata_chunk_free(caching_segment_at(self, node)->below);
    }
}

/* ---- segments that may go ---- */

/* Where the layer below frees in the order of the stream that asked, the uses by others must be over. */
static bool is_used_yet(const caching_t *self, const strata_record_t *block) {
    return self->ordered_below && strata_mark_count(block) > self->waited;
}

static bool may_go(const caching_t *self, const strata_record_t *block) {
    return !caching_is_split(block) && !is_used_yet(self, block);
}

static bool has_used_yet(const caching_t *self, const strata_tree_t *tree) {
    const strata_record_t *block;
    uint64_t size = 0, ptr = 0;
    for (uint32_t slot; (slot = strata_tree_after(tree, caching_slab(self), size, ptr)) != 0;
         size = block->size, ptr = block->ptr) {
        block = caching_block(self, slot);
        if (!caching_is_split(block) && is_used_yet(self, block)) return true;
    }
    return false;
}

/* The lock may be open meanwhile. What is in use all the same stays. */
static void wait_if_need_be(caching_t *self, strata_call_t *call) {
    bool used = false;
    if (!self->ordered_below) return;
    for (uint32_t node = caching_first_bank(self); node && !used; node = caching_next_bank(self, node))
        for (uint32_t kind = 0; kind < STRATA_CACHING_KINDS && !used; kind++)
            used = has_used_yet(self, &caching_bank_at(self, node)->idle[kind]);
    if (used) (void)strata_caching_wait_for_users(self, call);
}

/* ---- idle segments in order of stream, size, address ---- */

/* Where a walk of one pool's idle blocks of a kind stands. The lock may be open between two steps: the place is named by
 * value. */
typedef struct cursor {
    uint64_t pool;
    uint32_t kind;
    bool begun;
    uintptr_t handle;
    uint32_t stream;
    uint64_t size, ptr;
} cursor_t;

static uintptr_t handle_of(const caching_t *self, const caching_bank_t *bank) {
    return bank->stream ? (uintptr_t)caching_stream_at(self, bank->stream)->user.stream : 0;
}

/* Whether the walk has left the bank behind: -1; stands in it: 0; has not come to it: 1. */
static int side_of(const caching_t *self, const caching_bank_t *bank, const cursor_t *cursor) {
    if (!cursor->begun) return 1;
    uintptr_t handle = handle_of(self, bank);
    if (handle != cursor->handle) return handle < cursor->handle ? -1 : 1;
    return bank->stream == cursor->stream ? 0 : bank->stream < cursor->stream ? -1 : 1;
}

/* The next block that may go, 0: none. */
static uint32_t next_idle(const caching_t *self, cursor_t *cursor) {
    for (uint32_t node = caching_first_bank(self); node; node = caching_next_bank(self, node)) {
        const caching_bank_t *bank = caching_bank_at(self, node);
        int side = bank->pool == cursor->pool ? side_of(self, bank, cursor) : -1;
        if (side < 0) continue;
        if (side > 0) cursor->size = cursor->ptr = 0;
        cursor->begun = true;
        cursor->handle = handle_of(self, bank);
        cursor->stream = bank->stream;
        const strata_tree_t *tree = &bank->idle[cursor->kind];
        for (uint32_t slot; (slot = strata_tree_after(tree, caching_slab(self), cursor->size, cursor->ptr)) != 0;) {
            cursor->size = caching_block(self, slot)->size;
            cursor->ptr = caching_block(self, slot)->ptr;
            if (may_go(self, caching_block(self, slot))) return slot;
        }
    }
    return 0;
}

static uint64_t release_kind(caching_t *self, uint64_t pool, uint32_t kind, strata_call_t *call) {
    cursor_t cursor = {.pool = pool, .kind = kind};
    uint64_t released = 0;
    for (uint32_t slot; strata_caching_pool_is_free(self, pool) && (slot = next_idle(self, &cursor)) != 0;)
        released += give_back(self, slot, call);
    return released;
}

/* The smallest pool above `pool`, 0: none. */
static uint64_t next_pool(const caching_t *self, uint64_t pool) {
    for (uint32_t node = caching_first_bank(self); node; node = caching_next_bank(self, node))
        if (caching_bank_at(self, node)->pool > pool) return caching_bank_at(self, node)->pool;
    return 0;
}

uint64_t strata_caching_release_all(caching_t *self, strata_call_t *call) {
    if (self->captures > 0) return 0;
    wait_if_need_be(self, call);
    uint64_t released = release_kind(self, 0, STRATA_CACHING_LARGE, call);
    released += release_kind(self, 0, STRATA_CACHING_SMALL, call);
    for (uint64_t pool = 0; (pool = next_pool(self, pool)) != 0;) {
        released += release_kind(self, pool, STRATA_CACHING_SMALL, call);
        released += release_kind(self, pool, STRATA_CACHING_LARGE, call);
    }
    return released;
}

/* The largest unsplit block that may go, the first of the walk among equals; 0: none. */
static uint32_t largest_idle(const caching_t *self) {
    uint32_t largest = 0;
    for (uint32_t node = caching_first_bank(self); node; node = caching_next_bank(self, node)) {
        const caching_bank_t *bank = caching_bank_at(self, node);
        if (!strata_caching_pool_is_free(self, bank->pool)) continue;
        for (uint32_t kind = 0; kind < STRATA_CACHING_KINDS; kind++) {
            uint32_t slot = strata_tree_before(&bank->idle[kind], caching_slab(self), UINT64_MAX, UINT64_MAX);
            while (slot && !may_go(self, caching_block(self, slot)))
                slot = strata_tree_before(&bank->idle[kind], caching_slab(self), caching_block(self, slot)->size,
                                          caching_block(self, slot)->ptr);
            if (slot && (!largest || caching_block(self, slot)->size > caching_block(self, largest)->size)) largest = slot;
        }
    }
    return largest;
}

uint64_t strata_caching_trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    caching_t *self = (caching_t *)base;
    uint64_t released = 0;
    if (self->captures == 0 && caching_idle(self) > keep) wait_if_need_be(self, call);
    for (uint32_t slot; self->captures == 0 && caching_idle(self) > keep && (slot = largest_idle(self)) != 0;)
        released += give_back(self, slot, call);
    return released;
}

/* ---- out of memory ---- */

/* One block that is enough goes alone; else those that may not be split go, the largest first, until they are enough
 * together. */
bool strata_caching_release_oversize(caching_t *self, uint32_t bank, uint32_t kind, uint64_t rounded, strata_call_t *call) {
    strata_slab_t *slab = caching_slab(self);
    const strata_tree_t *tree = &caching_bank_at(self, bank)->idle[kind];
    uint64_t least = caching_options_of(self)->max_split_size, key = strata_max(rounded, least), released = 0;
    uint64_t size = UINT64_MAX, ptr = UINT64_MAX;
    wait_if_need_be(self, call);
    uint32_t slot = strata_tree_find(tree, slab, key);
    if (slot && may_go(self, caching_block(self, slot))) {
        (void)give_back(self, slot, call);
        return true;
    }
    while (released < key && (slot = strata_tree_before(tree, slab, size, ptr)) != 0) {
        size = caching_block(self, slot)->size;
        if (size < least) break;
        ptr = caching_block(self, slot)->ptr;
        if (may_go(self, caching_block(self, slot))) released += give_back(self, slot, call);
    }
    return released >= key;
}

typedef struct ages {
    double sum;
    uint32_t count;
} ages_t;

static uint64_t age_of(const caching_t *self, const strata_record_t *block) {
    return (self->searches - strata_mark_count(block)) & ((1ull << 48) - 1);
}

static ages_t sum_ages(const caching_t *self) {
    ages_t ages = {.count = 0};
    cursor_t cursor = {.kind = STRATA_CACHING_LARGE};
    for (uint32_t slot; (slot = next_idle(self, &cursor)) != 0; ages.count++)
        ages.sum += (double)age_of(self, caching_block(self, slot));
    return ages;
}

void strata_caching_collect(caching_t *self, strata_call_t *call) {
    if (self->asked_bytes <= self->collect_above) return;
    uint64_t target = self->asked_bytes - self->collect_above, collected = 0;
    ages_t ages = sum_ages(self);
    for (bool some = true; some && collected < target && ages.count > 0;) {
        double mean = ages.sum / ages.count;
        cursor_t cursor = {.kind = STRATA_CACHING_LARGE};
        some = false;
        for (uint32_t slot; (slot = next_idle(self, &cursor)) != 0;) {
            uint64_t age = age_of(self, caching_block(self, slot));
            if ((double)age < mean) continue;
            some = true;
            ages.sum -= (double)age;
            ages.count -= ages.count > 0;
            collected += give_back(self, slot, call);
        }
    }
    self->collected_bytes += collected;
}
