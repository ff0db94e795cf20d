/* Makes a program lawful. It walks the operations in order over a model of the blocks, and adds the waits and borrows that the
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

torture_streams_t law_waits(const access_state_t *at, uint32_t stream, bool write) {
    torture_streams_t self = bit(stream), waits = at->seen & self ? 0 : at->writers & ~self;
    return write ? waits | (at->readers & ~self) : waits;
}

void law_access(access_state_t *at, uint32_t owner, uint32_t stream, bool write) {
    torture_streams_t self = bit(stream), waits = law_waits(at, stream, write);
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

void law_host_has_seen(access_state_t *at, torture_streams_t streams) {
    at->writers &= ~streams;
    at->readers &= ~streams;
    at->uncovered &= ~streams;
}

void law_hand_over(access_state_t *at, torture_streams_t self, torture_streams_t successor) {
    if (at->writers & self) at->writers = (at->writers & ~self) | successor;
    if (at->readers & self) at->readers = (at->readers & ~self) | successor;
    if (at->uncovered & self) at->uncovered = (at->uncovered & ~self) | successor;
}

/* ---- the blocks, graphs and pools that an operation affects ---- */

static void touch(law_t *law, uint32_t number) {
    torture_program_t *program = law->program;
    if (program->touched_count == program->touched_room) {
        uint32_t room = program->touched_room ? 2 * program->touched_room : 256;
        uint32_t *more = strata_host_resize(program->touched, room, sizeof *more);
        law->failed |= !more;
        if (!more) return;
        program->touched = more;
        program->touched_room = room;
    }
    program->touched[program->touched_count++] = number;
    law->duty.touched++;
}

void law_touch(law_t *law, uint32_t block) { touch(law, TORTURE_FIRST_BLOCK + block); }
void law_touch_graph(law_t *law, uint32_t graph) { touch(law, graph); }
void law_touch_pool(law_t *law, uint32_t pool) { touch(law, STRATA_TORTURE_GRAPHS + pool); }

/* ---- operations: each rule returns false if the operation is not possible ---- */

static block_state_t *named(law_t *law, const torture_op_t *op) {
    block_state_t *block = op->count ? &law->blocks[op->blocks[0]] : NULL;
    return block && block->live ? block : NULL;
}

/* Allocates in the order of a stream, or in that of a capture if the stream is captured. */
static bool serve_for(law_t *law, torture_op_t *op, block_state_t *block) {
    uint8_t graph = law->captured[op->stream];
    bool zeroed = (op->flags & STRATA_ZERO) && op->size;
    if (!law_route(law, op->place, op->stream, &block->pool)) return false;
    block->owner = op->stream;
    if (graph) {
        block->born = bit(op->stream);
        block->graph = graph;
        block->inside.writers = block->inside.seen = bit(op->stream);
        if (zeroed) law_use(law, graph - 1u, op->blocks[0], true);
    } else {
        block->outside.writers = block->outside.seen = bit(op->stream);
    }
    if (!block->pool) return true;
    law->duty.pool = block->pool;
    pool_state_t *pool = &law->pools[block->pool - 1];
    if (!graph) law->duty.waits = law_waits(&pool->order, op->stream, false);
    if (!law_may_wait(law, op->stream, law->duty.waits)) return false;
    if (!graph) law_access(&pool->order, STRATA_TORTURE_NO_STREAM, op->stream, false);
    law_touch_pool(law, block->pool - 1u);
    return true;
}

static bool allocate(law_t *law, torture_op_t *op) {
    block_state_t *block = &law->blocks[op->blocks[0]];
    if (block->served) return false;
    if (law->program->devices == 1 && op->place < STRATA_TORTURE_PINNED) op->place &= ~1u & 0xffu;
    block_state_t made = {.served = true, .live = true, .place = op->place, .owner = STRATA_TORTURE_NO_STREAM, .owners = 1};
    made.size = op->size;
    if (torture_is_ownerless(op->place)) {
        if (op->stream != STRATA_TORTURE_NO_STREAM && torture_is_legacy(op->stream)) op->stream = STRATA_TORTURE_NO_STREAM;
        if (!law_own(law, &made, op->stream)) return false;
        made.borrowed = bit(op->stream);
    } else {
        op->stream = (uint8_t)(op->stream % TORTURE_STREAMS_EACH + (op->place & 1u) * TORTURE_STREAMS_EACH);
        if (!serve_for(law, op, &made)) return false;
    }
    *block = made;
    return true;
}

/* ---- uses ---- */

/* A capture must not use memory of another pool, because that is in no order with its launches. Only one capture at a time uses
 * a block. */
static bool may_capture(const law_t *law, uint8_t graph, const block_state_t *block) {
    bool elsewhere = block->graph && block->graph != graph && law->graphs[block->graph - 1].life == GRAPH_CAPTURING;
    return !graph || (!elsewhere && (!block->pool || block->pool == law->graphs[graph - 1].pool));
}

static access_state_t *inside_of(block_state_t *block, uint8_t graph) {
    if (block->graph != graph) block->inside = (access_state_t){.uncovered = 0};
    block->graph = graph;
    return &block->inside;
}

static torture_streams_t waits_for(law_t *law, block_state_t *block, uint32_t stream, bool write) {
    uint8_t graph = law->captured[stream];
    if (graph) return law_waits(inside_of(block, graph), stream, write);
    torture_streams_t waits = law_waits(&block->outside, stream, write);
    if (!(block->outside.seen & bit(stream))) waits |= block->born & ~bit(stream);
    return block->pool ? waits | law_waits(&law->pools[block->pool - 1].order, stream, false) : waits;
}

static void use(law_t *law, uint32_t number, uint32_t stream, bool write) {
    block_state_t *block = &law->blocks[number];
    uint8_t graph = law->captured[stream];
    if (graph) {
        law_access(&block->inside, block->owner, stream, write);
        law_use(law, graph - 1u, number, write);
        return;
    }
    law_access(&block->outside, block->owner, stream, write);
    block->told &= ~bit(stream);
    if (block->pool) law_access(&law->pools[block->pool - 1].order, STRATA_TORTURE_NO_STREAM, stream, false);
}

static bool writes(const torture_op_t *op, uint8_t i) { return op->kind == STRATA_TORTURE_FILL || (op->writes >> i & 1u); }

/* Removes the blocks that the stream must not use. */
static void keep_usable(law_t *law, torture_op_t *op) {
    uint8_t count = 0, written = 0;
    for (uint8_t i = 0; i < op->count; i++) {
        const block_state_t *block = &law->blocks[op->blocks[i]];
        if (!block->live || !may_use(block, op->stream) || !may_capture(law, law->captured[op->stream], block)) continue;
        written |= (uint8_t)((op->writes >> i & 1u) << count);
        op->blocks[count++] = op->blocks[i];
    }
    op->count = count;
    op->writes = written;
}

static bool work(law_t *law, torture_op_t *op) {
    if (named(law, op)) op->stream = stream_for(named(law, op), op->stream);
    keep_usable(law, op);
    for (uint8_t i = 0; i < op->count; i++)
        law->duty.waits |= waits_for(law, &law->blocks[op->blocks[i]], op->stream, writes(op, i));
    if (op->count == 0 || !law_may_wait(law, op->stream, law->duty.waits)) return false;
    for (uint8_t i = 0; i < op->count; i++) use(law, op->blocks[i], op->stream, writes(op, i));
    return true;
}

static bool host(law_t *law, torture_op_t *op) {
    block_state_t *block = named(law, op);
    if (!block || block->place < STRATA_TORTURE_MANAGED) return false;
    law->duty.syncs = block->outside.writers | (op->writes & 1u ? block->outside.readers : 0);
    if (block->pool) law->duty.syncs |= law->pools[block->pool - 1].order.writers;
    if (law->duty.syncs & law->captures) return false;
    law_host_has_seen(&block->outside, law->duty.syncs);
    return true;
}

static bool check(law_t *law, torture_op_t *op) { return named(law, op) != NULL; }

/* ---- borrows ---- */

static bool borrow(law_t *law, torture_op_t *op) {
    block_state_t *block = named(law, op);
    if (!block) return false;
    op->stream = stream_for(block, op->stream);
    if (!may_use(block, op->stream) || block->owner == op->stream || !law_own(law, block, op->stream)) return false;
    block->borrowed |= bit(op->stream);
    if (!(law->dialect & TORTURE_USE_COVERS)) return true;
    block->outside.uncovered &= ~bit(op->stream);
    block->inside.uncovered &= ~bit(op->stream);
    return true;
}

/* A borrow may be erased only if the work is complete, or ordered before the owner's next work. */
static bool erase(law_t *law, torture_op_t *op) {
    block_state_t *block = named(law, op);
    if (!block || !block->borrowed) return false;
    if (!(block->borrowed & bit(op->stream))) op->stream = lowest(block->borrowed);
    torture_streams_t self = bit(op->stream);
    if (self & law->captures) return false;
    if (op->how == STRATA_TORTURE_COVER_OWNER && block->owner != STRATA_TORTURE_NO_STREAM && !law->captured[block->owner]) {
        law->duty.owner = block->owner;
        law->duty.owner_waits = self;
        block->outside.uncovered &= ~self;
    } else {
        law->duty.syncs = self;
        law_host_has_seen(&block->outside, self);
    }
    block->borrowed &= ~self;
    block->told &= ~self;
    return true;
}

static bool retain(law_t *law, torture_op_t *op) {
    block_state_t *block = named(law, op);
    if (!block || block->owners > 3) return false;
    block->owners++;
    return true;
}

/* ---- frees ---- */

/* Streams with work that nothing orders before the block's next owner: work outside captures, and work in unfinished captures. */
typedef struct open_uses {
    torture_streams_t outside, inside;
} open_uses_t;

static open_uses_t open_uses(const law_t *law, const block_state_t *block) {
    torture_streams_t covered = law->dialect & TORTURE_USE_COVERS ? 0 : block->borrowed;
    const graph_state_t *graph = block->graph ? &law->graphs[block->graph - 1] : NULL;
    bool captured = graph && graph->life == GRAPH_CAPTURING && graph->pool && graph->pool == block->pool;
    return (open_uses_t){.outside = block->outside.uncovered & ~block->told & ~covered,
                         .inside = captured ? block->inside.uncovered & ~covered : 0};
}

static void settle_free_on(torture_op_t *op, const block_state_t *block, open_uses_t open) {
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
static torture_streams_t waitable(const law_t *law, uint32_t stream, torture_streams_t streams) {
    torture_streams_t result = 0;
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if ((streams & bit(s)) && s != stream && law_may_wait(law, stream, bit(s))) result |= bit(s);
    return result;
}

static void cover(law_t *law, const torture_op_t *op, const block_state_t *block, open_uses_t open) {
    torture_duty_t *duty = &law->duty;
    /* Captured work can wait only for work of its capture. Earlier work of other streams needs borrows. */
    torture_streams_t all = open.outside | open.inside;
    switch (op->how) {
    case STRATA_TORTURE_COVER_FREE_ON:
        duty->waits = waitable(law, op->stream, law->captured[op->stream] ? open.inside : all);
        duty->borrows = all & ~duty->waits & ~bit(op->stream);
        return;
    case STRATA_TORTURE_COVER_OWNER:
        duty->owner = block->owner;
        duty->owner_waits = waitable(law, block->owner, law->captured[block->owner] ? open.inside : all);
        duty->borrows = all & ~duty->owner_waits;
        return;
    case STRATA_TORTURE_COVER_HOST:
        duty->syncs = all & ~law->captures;
        duty->borrows = all & law->captures;
        return;
    default: duty->borrows = all; return;
    }
}

/* Makes the pools of captured borrowers and last users owners of the block. Returns false if a user is captured without a pool,
 * because then the end of its work cannot be observed. */
static bool own_by_all(law_t *law, block_state_t *block, torture_streams_t streams) {
    torture_streams_t all = streams | block->borrowed | bit(block->owner);
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if ((all & law->captures & bit(s)) && !law_capture(law, s)->pool) return false;
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if (streams & bit(s)) (void)law_own(law, block, s);
    return true;
}

static void free_by_one_of_several(law_t *law, torture_op_t *op, block_state_t *block) {
    block->owners--;
    if (op->how == STRATA_TORTURE_COVER_FREE_ON) {
        if (!(law->dialect & TORTURE_USE_COVERS)) block->told |= bit(op->stream);
    } else {
        op->how = STRATA_TORTURE_COVER_BORROW;
    }
}

static bool give_back(law_t *law, torture_op_t *op) {
    block_state_t *block = named(law, op);
    if (!block) return false;
    open_uses_t open = open_uses(law, block);
    settle_free_on(op, block, open);
    uint8_t last = op->how == STRATA_TORTURE_COVER_FREE_ON ? op->stream : block->owner;
    if (block->owners == 1) cover(law, op, block, open);
    if (!own_by_all(law, block, law->duty.borrows | bit(last))) return false;
    if (block->size == 0 || op->how == STRATA_TORTURE_COVER_FREE_ON) op->by_pointer = false;
    if (law->program->threads > 1) op->refused = false;
    if (law_capture(law, last)) law_touch_graph(law, law->captured[last] - 1u);
    if (block->pool) law_touch_pool(law, block->pool - 1u);
    law->duty.owned = block->owned;
    law->duty.lent = block->borrowed | law->duty.borrows;
    if (block->owners > 1) {
        free_by_one_of_several(law, op, block);
        return true;
    }
    law->duty.last = true;
    block->live = false;
    block->kept = block->owned != 0;
    law_lose(law, op->blocks[0]);
    return true;
}

/* ---- streams ---- */

/* Work of recorded borrowers and of free_on() is removed from `uncovered`, because the allocator must order it. */
static void hand_over(const law_t *law, block_state_t *block, torture_streams_t self, torture_streams_t successor) {
    torture_streams_t told = block->told | (law->dialect & TORTURE_USE_COVERS ? 0 : block->borrowed);
    if (block->outside.uncovered & self & told) block->outside.uncovered &= ~self;
    law_hand_over(&block->outside, self, successor);
    if (block->owner < TORTURE_STREAMS) block->outside.uncovered &= ~bit(block->owner);
    if (block->born & self) block->born = (block->born & ~self) | successor;
}

static void forget(law_t *law, uint32_t number, const torture_op_t *op, bool succeeds) {
    block_state_t *block = &law->blocks[number];
    const access_state_t *out = &block->outside;
    torture_streams_t self = bit(op->stream);
    torture_streams_t known = out->writers | out->readers | out->uncovered | out->seen | block->borrowed | block->told |
                              block->born;
    if (!(block->live || block->kept) || !((known | bit(block->owner)) & self)) return;
    law_touch(law, number);
    if (succeeds) hand_over(law, block, self, bit(op->other));
    else law_host_has_seen(&block->outside, self);
    if (!succeeds) block->born &= ~self;
    block->borrowed &= ~self;
    block->told &= ~self;
    block->outside.seen &= ~self;
    if (block->owner == op->stream) block->owner = STRATA_TORTURE_NO_STREAM;
}

static void forget_in_graphs(law_t *law, const torture_op_t *op, bool succeeds) {
    torture_streams_t self = bit(op->stream), successor = succeeds ? bit(op->other) : 0;
    for (uint32_t p = 0; p < STRATA_TORTURE_POOLS; p++) {
        const access_state_t *order = &law->pools[p].order;
        if ((order->writers | order->readers | order->seen) & self) law_touch_pool(law, p);
        law_hand_over(&law->pools[p].order, self, successor);
        law->pools[p].order.seen &= ~self;
    }
    for (uint32_t g = 0; g < STRATA_TORTURE_GRAPHS; g++) {
        graph_state_t *graph = &law->graphs[g];
        if (!(graph->running & self)) continue;
        graph->running = (graph->running & ~self) | successor;
        law_touch_graph(law, g);
    }
}

static bool renew(law_t *law, torture_op_t *op) {
    torture_streams_t self = bit(op->stream);
    if (torture_is_legacy(op->stream) || law_is_named(law, op->stream)) return false;
    /* The successor must be a stream that may use the same blocks. */
    bool succeeds = op->how != STRATA_TORTURE_COVER_HOST && op->other != op->stream && !torture_is_legacy(op->other) &&
                    torture_device_of(op->other) == torture_device_of(op->stream) && !law->captured[op->other];
    law->duty.owner = op->other;
    law->duty.owner_waits = succeeds ? self : 0;
    law->duty.syncs = succeeds ? 0 : self;
    law->duty.turns = self;
    for (uint32_t i = 0; i < law->program->blocks; i++) forget(law, i, op, succeeds);
    forget_in_graphs(law, op, succeeds);
    return true;
}

static bool place(law_t *law, torture_op_t *op) {
    if (law->program->devices == 1 && op->place < STRATA_TORTURE_PINNED) op->place &= ~1u & 0xffu;
    return true;
}

static bool synchronise(law_t *law, torture_op_t *op) {
    law->duty.syncs = bit(op->stream);
    return !law->captured[op->stream];
}

static bool look(law_t *law, torture_op_t *op) {
    if (op->count && !law->blocks[op->blocks[0]].live) op->count = 0;
    return place(law, op);
}

static bool pass(law_t *law, torture_op_t *op) {
    (void)law;
    return op->us > 0;
}

static bool (*const rules[STRATA_TORTURE_KINDS])(law_t *, torture_op_t *) = {[STRATA_TORTURE_ALLOCATE] = allocate,
                                                                             [STRATA_TORTURE_WORK] = work,
                                                                             [STRATA_TORTURE_FILL] = work,
                                                                             [STRATA_TORTURE_HOST_ACCESS] = host,
                                                                             [STRATA_TORTURE_CHECK] = check,
                                                                             [STRATA_TORTURE_BORROW] = borrow,
                                                                             [STRATA_TORTURE_ERASE] = erase,
                                                                             [STRATA_TORTURE_RETAIN] = retain,
                                                                             [STRATA_TORTURE_FREE] = give_back,
                                                                             [STRATA_TORTURE_ORDER] = law_order,
                                                                             [STRATA_TORTURE_SYNCHRONISE] = synchronise,
                                                                             [STRATA_TORTURE_RENEW] = renew,
                                                                             [STRATA_TORTURE_RELEASE] = place,
                                                                             [STRATA_TORTURE_TRIM] = place,
                                                                             [STRATA_TORTURE_LOOK] = look,
                                                                             [STRATA_TORTURE_PASS] = pass,
                                                                             [STRATA_TORTURE_POOL_BEGIN] = law_pool_begin,
                                                                             [STRATA_TORTURE_CAPTURE] = law_begin_capture,
                                                                             [STRATA_TORTURE_END_CAPTURE] = law_end_capture,
                                                                             [STRATA_TORTURE_POOL_END] = law_pool_end,
                                                                             [STRATA_TORTURE_POOL_REMOVE] = law_pool_remove,
                                                                             [STRATA_TORTURE_LAUNCH] = law_launch,
                                                                             [STRATA_TORTURE_DESTROY] = law_destroy};

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
static void note_captures(law_t *law) {
    uint32_t graphs = 0;
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if ((law->duty.uses & bit(s)) && law->captured[s]) graphs |= UINT32_C(1) << (law->captured[s] - 1);
    for (uint32_t g = 0; g < STRATA_TORTURE_GRAPHS; g++)
        if (graphs >> g & 1u) law_touch_graph(law, g);
}

static void note_uses(law_t *law, const torture_op_t *op) {
    torture_duty_t *duty = &law->duty;
    duty->uses = duty->waits | duty->owner_waits | duty->syncs | duty->borrows | duty->turns;
    if (duty->owner_waits) duty->uses |= bit(duty->owner);
    if (names_stream(op)) duty->uses |= bit(op->stream);
    for (uint8_t i = 0; i < op->count; i++) law_touch(law, op->blocks[i]);
    note_captures(law);
}

static bool is_there(const torture_program_t *program, torture_op_t *op) {
    bool streams = (op->stream >= TORTURE_STREAMS || torture_device_of(op->stream) < program->devices) &&
                   (op->other >= TORTURE_STREAMS || torture_device_of(op->other) < program->devices);
    if (op->thread >= program->threads) op->thread = 0;
    return streams && op->kind < STRATA_TORTURE_KINDS &&
           (op->stream != STRATA_TORTURE_NO_STREAM || op->kind == STRATA_TORTURE_ALLOCATE);
}

static void take(law_t *law, torture_op_t op) {
    torture_program_t *program = law->program;
    uint32_t touches = program->touched_count, uses = law->use_count;
    if (!is_there(program, &op)) return;
    law->duty = (torture_duty_t){.touches = touches};
    if (!rules[op.kind](law, &op)) {
        program->touched_count = touches;
        law->use_count = uses;
        return;
    }
    note_uses(law, &op);
    program->ops[program->count] = op;
    program->duties[program->count++] = law->duty;
}

static void free_the_rest(law_t *law) {
    for (uint32_t i = 0; i < law->program->blocks; i++)
        while (law->blocks[i].live) take(law, (torture_op_t){.kind = STRATA_TORTURE_FREE, .count = 1, .blocks = {i}});
}

/* Ends captures and pool begins first, then frees blocks, then ends the holders of the pools. */
static void end_the_rest(law_t *law) {
    for (uint8_t g = 0; g < STRATA_TORTURE_GRAPHS; g++) take(law, (torture_op_t){.kind = STRATA_TORTURE_END_CAPTURE, .graph = g});
    for (uint8_t p = 0; p < STRATA_TORTURE_POOLS; p++) take(law, (torture_op_t){.kind = STRATA_TORTURE_POOL_END, .pool = p});
    free_the_rest(law);
    for (uint8_t g = 0; g < STRATA_TORTURE_GRAPHS; g++) take(law, (torture_op_t){.kind = STRATA_TORTURE_DESTROY, .graph = g});
    for (uint8_t p = 0; p < STRATA_TORTURE_POOLS; p++)
        while (law->pools[p].holds) take(law, (torture_op_t){.kind = STRATA_TORTURE_POOL_REMOVE, .pool = p});
}

/* Returns the max number of operations. Each owner, capture and begin may need operations at the end. */
static uint32_t most_operations(const torture_program_t *program) {
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

static void make_lawful(law_t *law) {
    torture_program_t *program = law->program;
    uint32_t wanted = program->count;
    program->count = program->touched_count = 0;
    for (uint32_t i = 0; i < wanted; i++) take(law, program->ops[i]);
    end_the_rest(law);
    law->failed = law->failed || !law_threads(program);
}

bool torture_law(torture_program_t *program, torture_dialect_t dialect) {
    law_t law = {.program = program, .dialect = dialect};
    program->blocks = count_blocks(program);
    law.blocks = strata_host_new(program->blocks + 1, sizeof *law.blocks);
    law.failed = !law.blocks || !torture_program_reserve(program, most_operations(program));
    if (!law.failed) make_lawful(&law);
    strata_host_delete(law.blocks);
    strata_host_delete(law.uses);
    return !law.failed;
}
