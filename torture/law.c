/* What makes a program lawful: a model of its blocks, walked in the order of the operations. What a program must answer for is in
 * order by its own waits and borrows then, so that what is out of order is the allocator's fault. */
#include <string.h>

#include "torture/program.h"

/* Streams whose work on a block is of interest. A stream that the host has waited for is out of all of them. */
typedef struct block_state {
    bool served, live;
    uint8_t place, owner; /* TORTURE_NO_STREAM: none, or it is gone */
    uint64_t size;
    uint32_t owners;
    torture_streams_t writers; /* of what it holds */
    torture_streams_t readers; /* since it was written */
    torture_streams_t seen; /* have waited for the writers */
    torture_streams_t uncovered; /* not the owner's; nothing orders them before it */
    torture_streams_t borrowed;
    torture_streams_t told; /* by strata_free_on() of one of several owners, and not used since */
} block_state_t;

typedef struct law {
    torture_program_t *program;
    torture_dialect_t dialect;
    block_state_t blocks[TORTURE_BLOCKS];
} law_t;

static torture_streams_t bit(uint32_t stream) { return stream < TORTURE_STREAMS ? UINT32_C(1) << stream : 0; }

/* Memory of a GPU is its device's, that of the host place the host's. Managed and pinned memory is for all: but NULL, which means
 * the legacy stream of the place's own device there. */
static bool may_use(const block_state_t *block, uint32_t stream) {
    bool own = torture_device_of(stream) == (torture_is_ownerless(block->place) ? 0 : block->place & 1u);
    if (block->place == TORTURE_HOST_PLACE) return false;
    return own || (block->place >= TORTURE_MANAGED && !torture_is_legacy(stream));
}

/* The stream, or its like of the device whose streams use the block. */
static uint8_t stream_for(const block_state_t *block, uint32_t stream) {
    uint32_t device = torture_is_ownerless(block->place) ? 0 : block->place & 1u;
    if (may_use(block, stream)) return (uint8_t)stream;
    return (uint8_t)(stream % TORTURE_STREAMS_EACH + device * TORTURE_STREAMS_EACH);
}

static uint8_t lowest(torture_streams_t streams) { return (uint8_t)__builtin_ctz(streams); }

/* ---- accesses ---- */

/* Kernels that read beside each other are in no order; everything else is. */
static torture_streams_t access_by(block_state_t *block, uint32_t stream, bool write) {
    torture_streams_t self = bit(stream), waits = block->seen & self ? 0 : block->writers & ~self;
    if (write) {
        waits |= block->readers & ~self;
        block->writers = block->seen = self;
        block->readers = 0;
    } else {
        block->readers |= self;
        block->seen |= self;
    }
    block->told &= ~self;
    if (block->owner == stream) block->uncovered &= ~waits;
    else block->uncovered |= self;
    return waits;
}

static void host_has_seen(block_state_t *block, torture_streams_t streams) {
    block->writers &= ~streams;
    block->readers &= ~streams;
    block->uncovered &= ~streams;
}

/* ---- operations: false, it cannot be done ---- */

static block_state_t *named(law_t *law, const torture_op_t *op) {
    block_state_t *block = op->count ? &law->blocks[op->blocks[0]] : NULL;
    return block && block->live ? block : NULL;
}

static bool allocate(law_t *law, torture_op_t *op) {
    block_state_t *block = &law->blocks[op->blocks[0]];
    if (block->served) return false;
    if (law->program->devices == 1 && op->place < TORTURE_PINNED) op->place &= ~1u & 0xffu;
    *block = (block_state_t){.served = true, .live = true, .place = op->place, .owner = TORTURE_NO_STREAM, .owners = 1};
    block->size = op->size;
    if (torture_is_ownerless(op->place)) {
        if (op->stream != TORTURE_NO_STREAM && torture_is_legacy(op->stream)) op->stream = TORTURE_NO_STREAM;
        block->borrowed = bit(op->stream);
        return true;
    }
    op->stream = (uint8_t)(op->stream % TORTURE_STREAMS_EACH + (op->place & 1u) * TORTURE_STREAMS_EACH);
    block->owner = op->stream;
    block->writers = block->seen = bit(op->stream);
    return true;
}

static bool work(law_t *law, torture_op_t *op) {
    uint8_t count = 0, writes = 0;
    if (named(law, op)) op->stream = stream_for(named(law, op), op->stream);
    for (uint8_t i = 0; i < op->count; i++) {
        const block_state_t *block = &law->blocks[op->blocks[i]];
        if (!block->live || !may_use(block, op->stream)) continue;
        writes |= (uint8_t)((op->writes >> i & 1u) << count);
        op->blocks[count++] = op->blocks[i];
    }
    if (count == 0) return false;
    op->count = count;
    op->writes = writes;
    for (uint8_t i = 0; i < count; i++)
        op->waits |= access_by(&law->blocks[op->blocks[i]], op->stream, op->kind == TORTURE_FILL || writes >> i & 1u);
    return true;
}

static bool host(law_t *law, torture_op_t *op) {
    block_state_t *block = named(law, op);
    if (!block || block->place < TORTURE_MANAGED) return false;
    op->syncs = block->writers | (op->writes & 1u ? block->readers : 0);
    host_has_seen(block, op->syncs);
    return true;
}

static bool check(law_t *law, torture_op_t *op) { return named(law, op) != NULL; }

static bool borrow(law_t *law, torture_op_t *op) {
    block_state_t *block = named(law, op);
    if (!block) return false;
    op->stream = stream_for(block, op->stream);
    if (!may_use(block, op->stream) || block->owner == op->stream) return false;
    block->borrowed |= bit(op->stream);
    if (law->dialect == TORTURE_USE_COVERS) block->uncovered &= ~bit(op->stream);
    return true;
}

/* Whoever takes a borrow back knows the work to be over, or the owner to be behind it. */
static bool erase(law_t *law, torture_op_t *op) {
    block_state_t *block = named(law, op);
    if (!block || !block->borrowed) return false;
    if (!(block->borrowed & bit(op->stream))) op->stream = lowest(block->borrowed);
    torture_streams_t self = bit(op->stream);
    if (op->how == TORTURE_COVER_OWNER && block->owner != TORTURE_NO_STREAM) {
        op->owner = block->owner;
        op->owner_waits = self;
        block->uncovered &= ~self;
    } else {
        op->syncs = self;
        host_has_seen(block, self);
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

static void free_by_one_of_several(law_t *law, torture_op_t *op, block_state_t *block) {
    block->owners--;
    if (op->how == TORTURE_COVER_FREE_ON && may_use(block, op->stream)) {
        if (law->dialect == TORTURE_FREE_COVERS) block->told |= bit(op->stream);
    } else {
        op->how = TORTURE_COVER_BORROW;
    }
}

static void cover(torture_op_t *op, const block_state_t *block, torture_streams_t open) {
    if (op->how == TORTURE_COVER_FREE_ON && !open && !may_use(block, op->stream)) op->how = TORTURE_COVER_BORROW;
    if (op->how == TORTURE_COVER_OWNER && block->owner == TORTURE_NO_STREAM) op->how = TORTURE_COVER_BORROW;
    switch (op->how) {
    case TORTURE_COVER_FREE_ON:
        if (open && !(open & bit(op->stream))) op->stream = lowest(open);
        op->waits = open & ~bit(op->stream);
        return;
    case TORTURE_COVER_OWNER:
        op->owner = block->owner;
        op->owner_waits = open;
        return;
    case TORTURE_COVER_HOST: op->syncs = open; return;
    default: op->borrows = open; return;
    }
}

static bool give_back(law_t *law, torture_op_t *op) {
    block_state_t *block = named(law, op);
    if (!block) return false;
    if (block->size == 0 || op->how == TORTURE_COVER_FREE_ON) op->by_pointer = false;
    if (law->program->threads > 1) op->refused = false;
    if (block->owners > 1) {
        free_by_one_of_several(law, op, block);
        return true;
    }
    torture_streams_t open = block->uncovered & ~block->told;
    if (law->dialect == TORTURE_FREE_COVERS) open &= ~block->borrowed;
    cover(op, block, open);
    op->last = true;
    block->live = false;
    return true;
}

static bool order(law_t *law, torture_op_t *op) {
    (void)law;
    if (op->stream == op->other) return false;
    op->waits = bit(op->other);
    return true;
}

/* What is known of the stream's work is known of its successor's from now on. The allocator answers for what it was told of. */
static void hand_over(const law_t *law, block_state_t *block, torture_streams_t self, torture_streams_t successor) {
    torture_streams_t told = block->told | (law->dialect == TORTURE_FREE_COVERS ? block->borrowed : 0);
    if (block->writers & self) block->writers = (block->writers & ~self) | successor;
    if (block->readers & self) block->readers = (block->readers & ~self) | successor;
    if (block->uncovered & self & ~told) block->uncovered |= successor;
    block->uncovered &= ~self;
    if (block->owner < TORTURE_STREAMS) block->uncovered &= ~bit(block->owner);
}

static bool renew(law_t *law, torture_op_t *op) {
    torture_streams_t self = bit(op->stream);
    if (torture_is_legacy(op->stream)) return false;
    /* One that may use whatever the stream may. */
    bool succeeds = op->how != TORTURE_COVER_HOST && op->other != op->stream && !torture_is_legacy(op->other) &&
                    torture_device_of(op->other) == torture_device_of(op->stream);
    op->owner = op->other;
    op->owner_waits = succeeds ? self : 0;
    op->syncs = succeeds ? 0 : self;
    for (uint32_t i = 0; i < TORTURE_BLOCKS; i++) {
        block_state_t *block = &law->blocks[i];
        torture_streams_t known = block->writers | block->readers | block->uncovered | block->borrowed | block->told | block->seen;
        if (!block->live || !((known | bit(block->owner)) & self)) continue;
        op->touches |= UINT64_C(1) << i;
        if (succeeds) hand_over(law, block, self, bit(op->other));
        else host_has_seen(block, self);
        block->borrowed &= ~self;
        block->told &= ~self;
        block->seen &= ~self;
        if (block->owner == op->stream) block->owner = TORTURE_NO_STREAM;
    }
    return true;
}

static bool place(law_t *law, torture_op_t *op) {
    if (law->program->devices == 1 && op->place < TORTURE_PINNED) op->place &= ~1u & 0xffu;
    return true;
}

static bool synchronise(law_t *law, torture_op_t *op) {
    (void)law;
    op->syncs = bit(op->stream);
    return true;
}

static bool look(law_t *law, torture_op_t *op) {
    if (op->count && !law->blocks[op->blocks[0]].live) op->count = 0;
    return place(law, op);
}

static bool pass(law_t *law, torture_op_t *op) {
    (void)law;
    return op->us > 0;
}

static bool (*const rules[TORTURE_KINDS])(law_t *, torture_op_t *) = {[TORTURE_ALLOCATE] = allocate,
                                                                      [TORTURE_WORK] = work,
                                                                      [TORTURE_FILL] = work,
                                                                      [TORTURE_HOST] = host,
                                                                      [TORTURE_CHECK] = check,
                                                                      [TORTURE_BORROW] = borrow,
                                                                      [TORTURE_ERASE] = erase,
                                                                      [TORTURE_RETAIN] = retain,
                                                                      [TORTURE_FREE] = give_back,
                                                                      [TORTURE_ORDER] = order,
                                                                      [TORTURE_SYNCHRONISE] = synchronise,
                                                                      [TORTURE_RENEW] = renew,
                                                                      [TORTURE_RELEASE] = place,
                                                                      [TORTURE_TRIM] = place,
                                                                      [TORTURE_LOOK] = look,
                                                                      [TORTURE_PASS] = pass};

/* ---- which operations must be over before which ---- */

static bool names_stream(const torture_op_t *op) {
    switch (op->kind) {
    case TORTURE_FREE: return op->how == TORTURE_COVER_FREE_ON;
    case TORTURE_ALLOCATE: return op->stream != TORTURE_NO_STREAM;
    case TORTURE_WORK:
    case TORTURE_FILL:
    case TORTURE_BORROW:
    case TORTURE_ERASE:
    case TORTURE_ORDER:
    case TORTURE_RENEW: return true;
    default: return false;
    }
}

static void note_uses(torture_op_t *op) {
    op->uses = op->waits | op->owner_waits | op->syncs | op->borrows;
    if (op->owner_waits) op->uses |= bit(op->owner);
    if (names_stream(op)) op->uses |= bit(op->stream);
    for (uint8_t i = 0; i < op->count; i++) op->touches |= UINT64_C(1) << op->blocks[i];
}

typedef struct place_in_thread {
    uint8_t thread;
    uint16_t number; /* from 1; 0: there is none */
} place_in_thread_t;

typedef struct order_state {
    uint16_t done[TORTURE_THREADS];
    place_in_thread_t block[TORTURE_BLOCKS]; /* the last operation on it */
    place_in_thread_t renewed[TORTURE_STREAMS];
    uint16_t used[TORTURE_STREAMS][TORTURE_THREADS];
} order_state_t;

static void be_behind(torture_op_t *op, const place_in_thread_t *before) {
    if (op->need[before->thread] < before->number) op->need[before->thread] = before->number;
}

static void order_op(order_state_t *state, torture_op_t *op) {
    place_in_thread_t self = {.thread = op->thread, .number = ++state->done[op->thread]};
    for (uint32_t i = 0; i < TORTURE_BLOCKS; i++) {
        if (!(op->touches >> i & 1u)) continue;
        be_behind(op, &state->block[i]);
        state->block[i] = self;
    }
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++) {
        if (!(op->uses & bit(s))) continue;
        be_behind(op, &state->renewed[s]);
        state->used[s][op->thread] = self.number;
    }
    if (op->kind != TORTURE_RENEW) return;
    for (uint8_t t = 0; t < TORTURE_THREADS; t++) {
        uint16_t number = (uint16_t)(state->used[op->stream][t] - (t == op->thread));
        be_behind(op, &(place_in_thread_t){.thread = t, .number = number});
    }
    state->renewed[op->stream] = self;
}

/* ---- the whole ---- */

static bool is_there(const torture_program_t *program, torture_op_t *op) {
    bool streams = (op->stream >= TORTURE_STREAMS || torture_device_of(op->stream) < program->devices) &&
                   (op->other >= TORTURE_STREAMS || torture_device_of(op->other) < program->devices);
    if (op->thread >= program->threads) op->thread = 0;
    return streams && op->kind < TORTURE_KINDS && (op->stream != TORTURE_NO_STREAM || op->kind == TORTURE_ALLOCATE);
}

static void forget_additions(torture_op_t *op) {
    op->waits = op->owner_waits = op->syncs = op->borrows = op->uses = 0;
    op->touches = 0;
    op->owner = 0;
    op->last = false;
    memset(op->need, 0, sizeof op->need);
}

static void take(law_t *law, const torture_op_t *wanted) {
    torture_program_t *program = law->program;
    torture_op_t op = *wanted;
    if (!is_there(program, &op)) return;
    forget_additions(&op);
    if (!rules[op.kind](law, &op)) return;
    note_uses(&op);
    program->ops[program->count++] = op;
}

static void free_the_rest(law_t *law) {
    for (uint32_t i = 0; i < TORTURE_BLOCKS; i++)
        while (law->blocks[i].live && law->program->count < TORTURE_OPERATIONS)
            take(law, &(torture_op_t){.kind = TORTURE_FREE, .count = 1, .blocks = {(uint8_t)i}});
}

void torture_law(torture_program_t *program, torture_dialect_t dialect) {
    /* Room for what is freed at the end: each block up to four times. */
    law_t law = {.program = program, .dialect = dialect};
    uint32_t wanted = program->count;
    program->count = 0;
    for (uint32_t i = 0; i < wanted; i++) {
        torture_op_t op = program->ops[i];
        take(&law, &op);
    }
    free_the_rest(&law);
    order_state_t order_of = {.done = {0}};
    for (uint32_t i = 0; i < program->count; i++) order_op(&order_of, &program->ops[i]);
}
