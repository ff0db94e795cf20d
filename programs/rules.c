/* Makes a program well-formed. It walks the operations in order over a model of the blocks, and adds the waits and borrows that the
 * program itself must provide. So any order that is still missing at run time is the allocator's fault. */
#include "programs/rules.h"

#include "platform/host/host_memory.h"

static torture_streams_t bit(uint32_t stream) { return torture_bit(stream); }

/* Streams may use gpu memory only on its own device, and host memory not at all. Streams of every device may use managed and
 * pinned memory. Legacy streams of other devices may not, because their handle NULL means the legacy stream of the place's own
 * device. */
static bool may_use(const block_state_t *block, uint32_t stream) {
    bool own = torture_device_of(stream) == (torture_is_ownerless(block->place) ? 0 : block->place & 1u);
    if (block->place == STRATA_TORTURE_HOST) return false;
    return own || (block->place >= STRATA_TORTURE_MANAGED && !torture_is_legacy(stream));
}

/* Returns the stream, or the corresponding stream of the block's device if the stream must not use the block. */
static uint8_t stream_for(const block_state_t *block, uint32_t stream) {
    uint32_t device = torture_is_ownerless(block->place) ? 0 : block->place & 1u;
    if (may_use(block, stream)) return (uint8_t)stream;
    return (uint8_t)(stream % TORTURE_STREAMS_EACH + device * TORTURE_STREAMS_EACH);
}

static uint8_t lowest(torture_streams_t streams) { return (uint8_t)__builtin_ctz(streams); }

/* ---- accesses ---- */

torture_streams_t rules_waits(const access_state_t *at, uint32_t stream, bool write) {
    torture_streams_t self = bit(stream), waits = at->seen & self ? 0 : at->writers & ~self;
    return write ? waits | (at->readers & ~self) : waits;
}

void rules_access(access_state_t *at, uint32_t owner, uint32_t stream, bool write) {
    torture_streams_t self = bit(stream), waits = rules_waits(at, stream, write);
    if (write) {
        at->writers = at->seen = self;
        at->readers = 0;
    } else {
        at->readers |= self;
        at->seen |= self;
    }
    if (owner == stream) at->uncovered &= ~waits;
    else at->uncovered |= self;
}

void rules_host_waited(access_state_t *at, torture_streams_t streams) {
    at->writers &= ~streams;
    at->readers &= ~streams;
    at->uncovered &= ~streams;
}

void rules_replace_stream(access_state_t *at, torture_streams_t self, torture_streams_t successor) {
    if (at->writers & self) at->writers = (at->writers & ~self) | successor;
    if (at->readers & self) at->readers = (at->readers & ~self) | successor;
    if (at->uncovered & self) at->uncovered = (at->uncovered & ~self) | successor;
}

/* ---- the blocks, graphs and pools that an operation affects ---- */

static void touch(rules_t *rules, uint32_t number) {
    torture_program_t *program = rules->program;
    if (program->touched_count == program->touched_room) {
        uint32_t room = program->touched_room ? 2 * program->touched_room : 256;
        uint32_t *more = strata_host_resize(program->touched, room, sizeof *more);
        rules->failed |= !more;
        if (!more) return;
        program->touched = more;
        program->touched_room = room;
    }
    program->touched[program->touched_count++] = number;
    rules->needs.touch_count++;
}

void rules_touch(rules_t *rules, uint32_t block) { touch(rules, TORTURE_FIRST_BLOCK + block); }
void rules_touch_graph(rules_t *rules, uint32_t graph) { touch(rules, graph); }
void rules_touch_pool(rules_t *rules, uint32_t pool) { touch(rules, STRATA_TORTURE_GRAPHS + pool); }

/* ---- operations: each rule returns false if the operation is not possible ---- */

static block_state_t *live_block_of(rules_t *rules, const torture_op_t *op) {
    block_state_t *block = op->count ? &rules->blocks[op->blocks[0]] : NULL;
    return block && block->live ? block : NULL;
}

/* Allocates in the order of a stream, or in that of a capture if the stream is captured. */
static bool allocate_on(rules_t *rules, torture_op_t *op, block_state_t *block) {
    uint8_t graph = rules->captured[op->stream];
    bool zeroed = (op->flags & STRATA_ZERO) && op->size;
    if (!rules_route(rules, op->place, op->stream, &block->pool)) return false;
    block->owner = op->stream;
    if (graph) {
        block->alloc_stream = bit(op->stream);
        block->graph = graph;
        block->inside.writers = block->inside.seen = bit(op->stream);
        if (zeroed) rules_use(rules, graph - 1u, op->blocks[0], true);
    } else {
        block->outside.writers = block->outside.seen = bit(op->stream);
    }
    if (!block->pool) return true;
    rules->needs.pool = block->pool;
    pool_state_t *pool = &rules->pools[block->pool - 1];
    if (!graph) rules->needs.waits = rules_waits(&pool->order, op->stream, false);
    if (!rules_may_wait(rules, op->stream, rules->needs.waits)) return false;
    if (!graph) rules_access(&pool->order, STRATA_TORTURE_NO_STREAM, op->stream, false);
    rules_touch_pool(rules, block->pool - 1u);
    return true;
}

static bool allocate(rules_t *rules, torture_op_t *op) {
    block_state_t *block = &rules->blocks[op->blocks[0]];
    if (block->served) return false;
    if (rules->program->devices == 1 && op->place < STRATA_TORTURE_PINNED) op->place &= ~1u & 0xffu;
    block_state_t made = {.served = true, .live = true, .place = op->place, .owner = STRATA_TORTURE_NO_STREAM, .owners = 1};
    made.size = op->size;
    if (torture_is_ownerless(op->place)) {
        if (op->stream != STRATA_TORTURE_NO_STREAM && torture_is_legacy(op->stream)) op->stream = STRATA_TORTURE_NO_STREAM;
        if (!rules_own(rules, &made, op->stream)) return false;
        made.borrowed = bit(op->stream);
    } else {
        op->stream = (uint8_t)(op->stream % TORTURE_STREAMS_EACH + (op->place & 1u) * TORTURE_STREAMS_EACH);
        if (!allocate_on(rules, op, &made)) return false;
    }
    *block = made;
    return true;
}

/* ---- uses ---- */

/* A capture must not use memory of another pool, because that is in no order with its launches. Only one capture at a time uses
 * a block. */
static bool may_capture(const rules_t *rules, uint8_t graph, const block_state_t *block) {
    bool elsewhere = block->graph && block->graph != graph && rules->graphs[block->graph - 1].life == GRAPH_CAPTURING;
    return !graph || (!elsewhere && (!block->pool || block->pool == rules->graphs[graph - 1].pool));
}

static access_state_t *inside_of(block_state_t *block, uint8_t graph) {
    if (block->graph != graph) block->inside = (access_state_t){.uncovered = 0};
    block->graph = graph;
    return &block->inside;
}

static torture_streams_t waits_for(rules_t *rules, block_state_t *block, uint32_t stream, bool write) {
    uint8_t graph = rules->captured[stream];
    if (graph) return rules_waits(inside_of(block, graph), stream, write);
    torture_streams_t waits = rules_waits(&block->outside, stream, write);
    if (!(block->outside.seen & bit(stream))) waits |= block->alloc_stream & ~bit(stream);
    return block->pool ? waits | rules_waits(&rules->pools[block->pool - 1].order, stream, false) : waits;
}

static void use(rules_t *rules, uint32_t number, uint32_t stream, bool write) {
    block_state_t *block = &rules->blocks[number];
    uint8_t graph = rules->captured[stream];
    if (graph) {
        rules_access(&block->inside, block->owner, stream, write);
        rules_use(rules, graph - 1u, number, write);
        return;
    }
    rules_access(&block->outside, block->owner, stream, write);
    block->freed_on &= ~bit(stream);
    if (block->pool) rules_access(&rules->pools[block->pool - 1].order, STRATA_TORTURE_NO_STREAM, stream, false);
}

static bool writes(const torture_op_t *op, uint8_t i) { return op->kind == STRATA_TORTURE_FILL || (op->writes >> i & 1u); }

/* Removes the blocks that the stream must not use. */
static void drop_unusable(rules_t *rules, torture_op_t *op) {
    uint8_t count = 0, written = 0;
    for (uint8_t i = 0; i < op->count; i++) {
        const block_state_t *block = &rules->blocks[op->blocks[i]];
        if (!block->live || !may_use(block, op->stream) || !may_capture(rules, rules->captured[op->stream], block)) continue;
        written |= (uint8_t)((op->writes >> i & 1u) << count);
        op->blocks[count++] = op->blocks[i];
    }
    op->count = count;
    op->writes = written;
}

static bool work(rules_t *rules, torture_op_t *op) {
    if (live_block_of(rules, op)) op->stream = stream_for(live_block_of(rules, op), op->stream);
    drop_unusable(rules, op);
    for (uint8_t i = 0; i < op->count; i++)
        rules->needs.waits |= waits_for(rules, &rules->blocks[op->blocks[i]], op->stream, writes(op, i));
    if (op->count == 0 || !rules_may_wait(rules, op->stream, rules->needs.waits)) return false;
    for (uint8_t i = 0; i < op->count; i++) use(rules, op->blocks[i], op->stream, writes(op, i));
    return true;
}

static bool host(rules_t *rules, torture_op_t *op) {
    block_state_t *block = live_block_of(rules, op);
    if (!block || block->place < STRATA_TORTURE_MANAGED) return false;
    rules->needs.syncs = block->outside.writers | (op->writes & 1u ? block->outside.readers : 0);
    if (block->pool) rules->needs.syncs |= rules->pools[block->pool - 1].order.writers;
    if (rules->needs.syncs & rules->captures) return false;
    rules_host_waited(&block->outside, rules->needs.syncs);
    return true;
}

static bool check(rules_t *rules, torture_op_t *op) { return live_block_of(rules, op) != NULL; }

/* ---- borrows ---- */

static bool borrow(rules_t *rules, torture_op_t *op) {
    block_state_t *block = live_block_of(rules, op);
    if (!block) return false;
    op->stream = stream_for(block, op->stream);
    if (!may_use(block, op->stream) || block->owner == op->stream || !rules_own(rules, block, op->stream)) return false;
    block->borrowed |= bit(op->stream);
    if (!(rules->dialect & TORTURE_USE_COVERS)) return true;
    block->outside.uncovered &= ~bit(op->stream);
    block->inside.uncovered &= ~bit(op->stream);
    return true;
}

/* A borrow may be erased only if the work is complete, or ordered before the owner's next work. */
static bool erase(rules_t *rules, torture_op_t *op) {
    block_state_t *block = live_block_of(rules, op);
    if (!block || !block->borrowed) return false;
    if (!(block->borrowed & bit(op->stream))) op->stream = lowest(block->borrowed);
    torture_streams_t self = bit(op->stream);
    if (self & rules->captures) return false;
    if (op->how == STRATA_TORTURE_COVER_OWNER && block->owner != STRATA_TORTURE_NO_STREAM && !rules->captured[block->owner]) {
        rules->needs.owner = block->owner;
        rules->needs.owner_waits = self;
        block->outside.uncovered &= ~self;
    } else {
        rules->needs.syncs = self;
        rules_host_waited(&block->outside, self);
    }
    block->borrowed &= ~self;
    block->freed_on &= ~self;
    return true;
}

static bool retain(rules_t *rules, torture_op_t *op) {
    block_state_t *block = live_block_of(rules, op);
    if (!block || block->owners > 3) return false;
    block->owners++;
    return true;
}

/* ---- frees ---- */

/* Streams with work that nothing orders before the block's next owner: work outside captures, and work in unfinished captures. */
typedef struct open_uses {
    torture_streams_t outside, inside;
} open_uses_t;

static open_uses_t open_uses(const rules_t *rules, const block_state_t *block) {
    torture_streams_t covered = rules->dialect & TORTURE_USE_COVERS ? 0 : block->borrowed;
    const graph_state_t *graph = block->graph ? &rules->graphs[block->graph - 1] : NULL;
    bool captured = graph && graph->life == GRAPH_CAPTURING && graph->pool && graph->pool == block->pool;
    return (open_uses_t){.outside = block->outside.uncovered & ~block->freed_on & ~covered,
                         .inside = captured ? block->inside.uncovered & ~covered : 0};
}

static void resolve_free_on(torture_op_t *op, const block_state_t *block, open_uses_t open) {
    torture_streams_t all = open.outside | open.inside;
    if (op->how == STRATA_TORTURE_COVER_OWNER && block->owner == STRATA_TORTURE_NO_STREAM) op->how = STRATA_TORTURE_COVER_BORROW;
    if (op->how != STRATA_TORTURE_COVER_FREE_ON) return;
    if (block->owners > 1 || !all) {
        if (!may_use(block, op->stream)) op->how = STRATA_TORTURE_COVER_BORROW;
    } else if (!(all & bit(op->stream))) {
        op->stream = lowest(all);
    }
}

/* Returns the streams for which the stream may wait. The others need borrows. */
static torture_streams_t waitable(const rules_t *rules, uint32_t stream, torture_streams_t streams) {
    torture_streams_t result = 0;
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if ((streams & bit(s)) && s != stream && rules_may_wait(rules, stream, bit(s))) result |= bit(s);
    return result;
}

static void cover(rules_t *rules, const torture_op_t *op, const block_state_t *block, open_uses_t open) {
    torture_needs_t *needs = &rules->needs;
    /* Captured work can wait only for work of its capture. Earlier work of other streams needs borrows. */
    torture_streams_t all = open.outside | open.inside;
    switch (op->how) {
    case STRATA_TORTURE_COVER_FREE_ON:
        needs->waits = waitable(rules, op->stream, rules->captured[op->stream] ? open.inside : all);
        needs->borrows = all & ~needs->waits & ~bit(op->stream);
        return;
    case STRATA_TORTURE_COVER_OWNER:
        needs->owner = block->owner;
        needs->owner_waits = waitable(rules, block->owner, rules->captured[block->owner] ? open.inside : all);
        needs->borrows = all & ~needs->owner_waits;
        return;
    case STRATA_TORTURE_COVER_HOST:
        needs->syncs = all & ~rules->captures;
        needs->borrows = all & rules->captures;
        return;
    default: needs->borrows = all; return;
    }
}

/* Makes the pools of captured borrowers and last users owners of the block. Returns false if a user is captured without a pool,
 * because then the end of its work cannot be observed. */
static bool own_by_users(rules_t *rules, block_state_t *block, torture_streams_t streams) {
    torture_streams_t all = streams | block->borrowed | bit(block->owner);
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if ((all & rules->captures & bit(s)) && !rules_capture(rules, s)->pool) return false;
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if (streams & bit(s)) (void)rules_own(rules, block, s);
    return true;
}

static void free_by_one_of_several(rules_t *rules, torture_op_t *op, block_state_t *block) {
    block->owners--;
    if (op->how == STRATA_TORTURE_COVER_FREE_ON) {
        if (!(rules->dialect & TORTURE_USE_COVERS)) block->freed_on |= bit(op->stream);
    } else {
        op->how = STRATA_TORTURE_COVER_BORROW;
    }
}

static bool free_block(rules_t *rules, torture_op_t *op) {
    block_state_t *block = live_block_of(rules, op);
    if (!block) return false;
    open_uses_t open = open_uses(rules, block);
    resolve_free_on(op, block, open);
    uint8_t last = op->how == STRATA_TORTURE_COVER_FREE_ON ? op->stream : block->owner;
    if (block->owners == 1) cover(rules, op, block, open);
    if (!own_by_users(rules, block, rules->needs.borrows | bit(last))) return false;
    if (block->size == 0 || op->how == STRATA_TORTURE_COVER_FREE_ON) op->by_pointer = false;
    if (rules->program->threads > 1) op->refused = false;
    if (rules_capture(rules, last)) rules_touch_graph(rules, rules->captured[last] - 1u);
    if (block->pool) rules_touch_pool(rules, block->pool - 1u);
    rules->needs.owned = block->owned;
    rules->needs.lent = block->borrowed | rules->needs.borrows;
    if (block->owners > 1) {
        free_by_one_of_several(rules, op, block);
        return true;
    }
    rules->needs.last = true;
    block->live = false;
    block->retained = block->owned != 0;
    rules_freed(rules, op->blocks[0]);
    return true;
}

/* ---- streams ---- */

/* Work of recorded borrowers and of free_on() is removed from `uncovered`, because the allocator must order it. */
static void move_to_successor(const rules_t *rules, block_state_t *block, torture_streams_t self, torture_streams_t successor) {
    torture_streams_t ordered = block->freed_on | (rules->dialect & TORTURE_USE_COVERS ? 0 : block->borrowed);
    if (block->outside.uncovered & self & ordered) block->outside.uncovered &= ~self;
    rules_replace_stream(&block->outside, self, successor);
    if (block->owner < TORTURE_STREAMS) block->outside.uncovered &= ~bit(block->owner);
    if (block->alloc_stream & self) block->alloc_stream = (block->alloc_stream & ~self) | successor;
}

static void forget_stream(rules_t *rules, uint32_t number, const torture_op_t *op, bool succeeds) {
    block_state_t *block = &rules->blocks[number];
    const access_state_t *out = &block->outside;
    torture_streams_t self = bit(op->stream);
    torture_streams_t known = out->writers | out->readers | out->uncovered | out->seen | block->borrowed | block->freed_on |
                              block->alloc_stream;
    if (!(block->live || block->retained) || !((known | bit(block->owner)) & self)) return;
    rules_touch(rules, number);
    if (succeeds) move_to_successor(rules, block, self, bit(op->other));
    else rules_host_waited(&block->outside, self);
    if (!succeeds) block->alloc_stream &= ~self;
    block->borrowed &= ~self;
    block->freed_on &= ~self;
    block->outside.seen &= ~self;
    if (block->owner == op->stream) block->owner = STRATA_TORTURE_NO_STREAM;
}

static void forget_in_graphs(rules_t *rules, const torture_op_t *op, bool succeeds) {
    torture_streams_t self = bit(op->stream), successor = succeeds ? bit(op->other) : 0;
    for (uint32_t p = 0; p < STRATA_TORTURE_POOLS; p++) {
        const access_state_t *order = &rules->pools[p].order;
        if ((order->writers | order->readers | order->seen) & self) rules_touch_pool(rules, p);
        rules_replace_stream(&rules->pools[p].order, self, successor);
        rules->pools[p].order.seen &= ~self;
    }
    for (uint32_t g = 0; g < STRATA_TORTURE_GRAPHS; g++) {
        graph_state_t *graph = &rules->graphs[g];
        if (!(graph->running & self)) continue;
        graph->running = (graph->running & ~self) | successor;
        rules_touch_graph(rules, g);
    }
}

static bool renew(rules_t *rules, torture_op_t *op) {
    torture_streams_t self = bit(op->stream);
    if (torture_is_legacy(op->stream) || rules_is_named(rules, op->stream)) return false;
    /* The successor must be a stream that may use the same blocks. */
    bool succeeds = op->how != STRATA_TORTURE_COVER_HOST && op->other != op->stream && !torture_is_legacy(op->other) &&
                    torture_device_of(op->other) == torture_device_of(op->stream) && !rules->captured[op->other];
    rules->needs.owner = op->other;
    rules->needs.owner_waits = succeeds ? self : 0;
    rules->needs.syncs = succeeds ? 0 : self;
    rules->needs.stream_changes = self;
    for (uint32_t i = 0; i < rules->program->blocks; i++) forget_stream(rules, i, op, succeeds);
    forget_in_graphs(rules, op, succeeds);
    return true;
}

static bool place(rules_t *rules, torture_op_t *op) {
    if (rules->program->devices == 1 && op->place < STRATA_TORTURE_PINNED) op->place &= ~1u & 0xffu;
    return true;
}

static bool synchronise(rules_t *rules, torture_op_t *op) {
    rules->needs.syncs = bit(op->stream);
    return !rules->captured[op->stream];
}

static bool inspect(rules_t *rules, torture_op_t *op) {
    if (op->count && !rules->blocks[op->blocks[0]].live) op->count = 0;
    return place(rules, op);
}

static bool pass_time(rules_t *rules, torture_op_t *op) {
    (void)rules;
    return op->us > 0;
}

static bool (*const rule_of[STRATA_TORTURE_KINDS])(rules_t *, torture_op_t *) = {[STRATA_TORTURE_ALLOCATE] = allocate,
                                                                                 [STRATA_TORTURE_WORK] = work,
                                                                                 [STRATA_TORTURE_FILL] = work,
                                                                                 [STRATA_TORTURE_HOST_ACCESS] = host,
                                                                                 [STRATA_TORTURE_CHECK] = check,
                                                                                 [STRATA_TORTURE_BORROW] = borrow,
                                                                                 [STRATA_TORTURE_ERASE] = erase,
                                                                                 [STRATA_TORTURE_RETAIN] = retain,
                                                                                 [STRATA_TORTURE_FREE] = free_block,
                                                                                 [STRATA_TORTURE_ORDER] = rules_order,
                                                                                 [STRATA_TORTURE_SYNCHRONISE] = synchronise,
                                                                                 [STRATA_TORTURE_RENEW] = renew,
                                                                                 [STRATA_TORTURE_RELEASE] = place,
                                                                                 [STRATA_TORTURE_TRIM] = place,
                                                                                 [STRATA_TORTURE_LOOK] = inspect,
                                                                                 [STRATA_TORTURE_PASS] = pass_time,
                                                                                 [STRATA_TORTURE_POOL_BEGIN] = rules_pool_begin,
                                                                                 [STRATA_TORTURE_CAPTURE] = rules_begin_capture,
                                                                                 [STRATA_TORTURE_END_CAPTURE] = rules_end_capture,
                                                                                 [STRATA_TORTURE_POOL_END] = rules_pool_end,
                                                                                 [STRATA_TORTURE_POOL_REMOVE] = rules_pool_remove,
                                                                                 [STRATA_TORTURE_LAUNCH] = rules_launch,
                                                                                 [STRATA_TORTURE_DESTROY] = rules_destroy};

/* ---- the whole ---- */

static bool names_stream(const torture_op_t *op) {
    switch (op->kind) {
    case STRATA_TORTURE_FREE: return op->how == STRATA_TORTURE_COVER_FREE_ON;
    case STRATA_TORTURE_ALLOCATE: return op->stream != STRATA_TORTURE_NO_STREAM;
    case STRATA_TORTURE_WORK:
    case STRATA_TORTURE_FILL:
    case STRATA_TORTURE_BORROW:
    case STRATA_TORTURE_ERASE:
    case STRATA_TORTURE_ORDER:
    case STRATA_TORTURE_RENEW:
    case STRATA_TORTURE_POOL_BEGIN:
    case STRATA_TORTURE_CAPTURE:
    case STRATA_TORTURE_END_CAPTURE:
    case STRATA_TORTURE_LAUNCH: return true;
    default: return false;
    }
}

/* Orders all operations that capture for one graph. */
static void note_captures(rules_t *rules) {
    uint32_t graphs = 0;
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if ((rules->needs.uses & bit(s)) && rules->captured[s]) graphs |= UINT32_C(1) << (rules->captured[s] - 1);
    for (uint32_t g = 0; g < STRATA_TORTURE_GRAPHS; g++)
        if (graphs >> g & 1u) rules_touch_graph(rules, g);
}

static void note_uses(rules_t *rules, const torture_op_t *op) {
    torture_needs_t *needs = &rules->needs;
    needs->uses = needs->waits | needs->owner_waits | needs->syncs | needs->borrows | needs->stream_changes;
    if (needs->owner_waits) needs->uses |= bit(needs->owner);
    if (names_stream(op)) needs->uses |= bit(op->stream);
    for (uint8_t i = 0; i < op->count; i++) rules_touch(rules, op->blocks[i]);
    note_captures(rules);
}

static bool is_valid_op(const torture_program_t *program, torture_op_t *op) {
    bool streams = (op->stream >= TORTURE_STREAMS || torture_device_of(op->stream) < program->devices) &&
                   (op->other >= TORTURE_STREAMS || torture_device_of(op->other) < program->devices);
    if (op->thread >= program->threads) op->thread = 0;
    return streams && op->kind < STRATA_TORTURE_KINDS &&
           (op->stream != STRATA_TORTURE_NO_STREAM || op->kind == STRATA_TORTURE_ALLOCATE);
}

static void append_op(rules_t *rules, torture_op_t op) {
    torture_program_t *program = rules->program;
    uint32_t touches = program->touched_count, uses = rules->use_count;
    if (!is_valid_op(program, &op)) return;
    rules->needs = (torture_needs_t){.touch_begin = touches};
    if (!rule_of[op.kind](rules, &op)) {
        program->touched_count = touches;
        rules->use_count = uses;
        return;
    }
    note_uses(rules, &op);
    program->ops[program->count] = op;
    program->all_needs[program->count++] = rules->needs;
}

static void free_remaining(rules_t *rules) {
    for (uint32_t i = 0; i < rules->program->blocks; i++)
        while (rules->blocks[i].live) append_op(rules, (torture_op_t){.kind = STRATA_TORTURE_FREE, .count = 1, .blocks = {i}});
}

/* Ends captures and pool begins first, then frees blocks, then ends the holders of the pools. */
static void end_remaining(rules_t *rules) {
    for (uint8_t g = 0; g < STRATA_TORTURE_GRAPHS; g++)
        append_op(rules, (torture_op_t){.kind = STRATA_TORTURE_END_CAPTURE, .graph = g});
    for (uint8_t p = 0; p < STRATA_TORTURE_POOLS; p++) append_op(rules, (torture_op_t){.kind = STRATA_TORTURE_POOL_END, .pool = p});
    free_remaining(rules);
    for (uint8_t g = 0; g < STRATA_TORTURE_GRAPHS; g++)
        append_op(rules, (torture_op_t){.kind = STRATA_TORTURE_DESTROY, .graph = g});
    for (uint8_t p = 0; p < STRATA_TORTURE_POOLS; p++)
        while (rules->pools[p].holds) append_op(rules, (torture_op_t){.kind = STRATA_TORTURE_POOL_REMOVE, .pool = p});
}

/* Returns the max number of operations. Each owner, capture and begin may need operations at the end. */
static uint32_t max_operations(const torture_program_t *program) {
    uint32_t most = program->count;
    for (uint32_t i = 0; i < program->count; i++) {
        uint8_t kind = program->ops[i].kind;
        most += kind == STRATA_TORTURE_ALLOCATE || kind == STRATA_TORTURE_RETAIN;
        if (kind == STRATA_TORTURE_CAPTURE || kind == STRATA_TORTURE_POOL_BEGIN) most += 2;
    }
    return most;
}

static uint32_t count_blocks(const torture_program_t *program) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->count; i++)
        for (uint8_t k = 0; k < program->ops[i].count; k++)
            if (program->ops[i].blocks[k] >= count) count = program->ops[i].blocks[k] + 1;
    return count;
}

static void make_well_formed(rules_t *rules) {
    torture_program_t *program = rules->program;
    uint32_t wanted = program->count;
    program->count = program->touched_count = 0;
    for (uint32_t i = 0; i < wanted; i++) append_op(rules, program->ops[i]);
    end_remaining(rules);
    rules->failed = rules->failed || !rules_threads(program);
}

bool torture_make_well_formed(torture_program_t *program, torture_dialect_t dialect) {
    rules_t rules = {.program = program, .dialect = dialect};
    program->blocks = count_blocks(program);
    rules.blocks = strata_host_new(program->blocks + 1, sizeof *rules.blocks);
    rules.failed = !rules.blocks || !torture_program_reserve(program, max_operations(program));
    if (!rules.failed) make_well_formed(&rules);
    strata_host_delete(rules.blocks);
    strata_host_delete(rules.uses);
    return !rules.failed;
}
