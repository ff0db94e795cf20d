/* What makes a program lawful: a model of its blocks, walked in the order of the operations. What a program must answer for is in
 * order by its own waits and borrows then, so that what is out of order is the allocator's fault. */
#include "platform/host/host_memory.h"
#include "programs/program.h"

/* Streams whose work on a block is of interest. A stream that the host has waited for is out of all of them. */
typedef struct block_state {
    bool served, live;
    uint8_t place, owner; /* STRATA_TORTURE_NO_STREAM: none, or it is gone */
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
    block_state_t *blocks; /* program->blocks of them */
    torture_duty_t duty; /* of the operation under way */
    bool failed; /* the host has no memory */
} law_t;

static torture_streams_t bit(uint32_t stream) { return stream < TORTURE_STREAMS ? UINT32_C(1) << stream : 0; }

/* Memory of a GPU is its device's, that of the host place the host's. Managed and pinned memory is for all: but NULL, which means
 * the legacy stream of the place's own device there. */
static bool may_use(const block_state_t *block, uint32_t stream) {
    bool own = torture_device_of(stream) == (torture_is_ownerless(block->place) ? 0 : block->place & 1u);
    if (block->place == STRATA_TORTURE_HOST) return false;
    return own || (block->place >= STRATA_TORTURE_MANAGED && !torture_is_legacy(stream));
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

/* The operation under way concerns a block. */
static void touch(law_t *law, uint32_t block) {
    torture_program_t *program = law->program;
    if (program->touched_count == program->touched_room) {
        uint32_t room = program->touched_room ? 2 * program->touched_room : 256;
        uint32_t *more = strata_host_resize(program->touched, room, sizeof *more);
        law->failed |= !more;
        if (!more) return;
        program->touched = more;
        program->touched_room = room;
    }
    program->touched[program->touched_count++] = block;
    law->duty.touched++;
}

static block_state_t *named(law_t *law, const torture_op_t *op) {
    block_state_t *block = op->count ? &law->blocks[op->blocks[0]] : NULL;
    return block && block->live ? block : NULL;
}

static bool allocate(law_t *law, torture_op_t *op) {
    block_state_t *block = &law->blocks[op->blocks[0]];
    if (block->served) return false;
    if (law->program->devices == 1 && op->place < STRATA_TORTURE_PINNED) op->place &= ~1u & 0xffu;
    *block = (block_state_t){.served = true, .live = true, .place = op->place, .owner = STRATA_TORTURE_NO_STREAM, .owners = 1};
    block->size = op->size;
    if (torture_is_ownerless(op->place)) {
        if (op->stream != STRATA_TORTURE_NO_STREAM && torture_is_legacy(op->stream)) op->stream = STRATA_TORTURE_NO_STREAM;
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
        law->duty.waits |= access_by(&law->blocks[op->blocks[i]], op->stream, op->kind == STRATA_TORTURE_FILL || writes >> i & 1u);
    return true;
}

static bool host(law_t *law, torture_op_t *op) {
    block_state_t *block = named(law, op);
    if (!block || block->place < STRATA_TORTURE_MANAGED) return false;
    law->duty.syncs = block->writers | (op->writes & 1u ? block->readers : 0);
    host_has_seen(block, law->duty.syncs);
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

/* Whoever takes a borrow back knows the work to be over, or the owner to be after it. */
static bool erase(law_t *law, torture_op_t *op) {
    block_state_t *block = named(law, op);
    if (!block || !block->borrowed) return false;
    if (!(block->borrowed & bit(op->stream))) op->stream = lowest(block->borrowed);
    torture_streams_t self = bit(op->stream);
    if (op->how == STRATA_TORTURE_COVER_OWNER && block->owner != STRATA_TORTURE_NO_STREAM) {
        law->duty.owner = block->owner;
        law->duty.owner_waits = self;
        block->uncovered &= ~self;
    } else {
        law->duty.syncs = self;
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
    if (op->how == STRATA_TORTURE_COVER_FREE_ON && may_use(block, op->stream)) {
        if (law->dialect == TORTURE_FREE_COVERS) block->told |= bit(op->stream);
    } else {
        op->how = STRATA_TORTURE_COVER_BORROW;
    }
}

static void cover(law_t *law, torture_op_t *op, const block_state_t *block, torture_streams_t open) {
    if (op->how == STRATA_TORTURE_COVER_FREE_ON && !open && !may_use(block, op->stream)) op->how = STRATA_TORTURE_COVER_BORROW;
    if (op->how == STRATA_TORTURE_COVER_OWNER && block->owner == STRATA_TORTURE_NO_STREAM) op->how = STRATA_TORTURE_COVER_BORROW;
    switch (op->how) {
    case STRATA_TORTURE_COVER_FREE_ON:
        if (open && !(open & bit(op->stream))) op->stream = lowest(open);
        law->duty.waits = open & ~bit(op->stream);
        return;
    case STRATA_TORTURE_COVER_OWNER:
        law->duty.owner = block->owner;
        law->duty.owner_waits = open;
        return;
    case STRATA_TORTURE_COVER_HOST: law->duty.syncs = open; return;
    default: law->duty.borrows = open; return;
    }
}

static bool give_back(law_t *law, torture_op_t *op) {
    block_state_t *block = named(law, op);
    if (!block) return false;
    if (block->size == 0 || op->how == STRATA_TORTURE_COVER_FREE_ON) op->by_pointer = false;
    if (law->program->threads > 1) op->refused = false;
    if (block->owners > 1) {
        free_by_one_of_several(law, op, block);
        return true;
    }
    torture_streams_t open = block->uncovered & ~block->told;
    if (law->dialect == TORTURE_FREE_COVERS) open &= ~block->borrowed;
    cover(law, op, block, open);
    law->duty.last = true;
    block->live = false;
    return true;
}

static bool order(law_t *law, torture_op_t *op) {
    if (op->stream == op->other) return false;
    law->duty.waits = bit(op->other);
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
    bool succeeds = op->how != STRATA_TORTURE_COVER_HOST && op->other != op->stream && !torture_is_legacy(op->other) &&
                    torture_device_of(op->other) == torture_device_of(op->stream);
    law->duty.owner = op->other;
    law->duty.owner_waits = succeeds ? self : 0;
    law->duty.syncs = succeeds ? 0 : self;
    for (uint32_t i = 0; i < law->program->blocks; i++) {
        block_state_t *block = &law->blocks[i];
        torture_streams_t known = block->writers | block->readers | block->uncovered | block->borrowed | block->told | block->seen;
        if (!block->live || !((known | bit(block->owner)) & self)) continue;
        touch(law, i);
        if (succeeds) hand_over(law, block, self, bit(op->other));
        else host_has_seen(block, self);
        block->borrowed &= ~self;
        block->told &= ~self;
        block->seen &= ~self;
        if (block->owner == op->stream) block->owner = STRATA_TORTURE_NO_STREAM;
    }
    return true;
}

static bool place(law_t *law, torture_op_t *op) {
    if (law->program->devices == 1 && op->place < STRATA_TORTURE_PINNED) op->place &= ~1u & 0xffu;
    return true;
}

static bool synchronise(law_t *law, torture_op_t *op) {
    law->duty.syncs = bit(op->stream);
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

static bool (*const rules[STRATA_TORTURE_KINDS])(law_t *, torture_op_t *) = {[STRATA_TORTURE_ALLOCATE] = allocate,
                                                                             [STRATA_TORTURE_WORK] = work,
                                                                             [STRATA_TORTURE_FILL] = work,
                                                                             [STRATA_TORTURE_HOST_ACCESS] = host,
                                                                             [STRATA_TORTURE_CHECK] = check,
                                                                             [STRATA_TORTURE_BORROW] = borrow,
                                                                             [STRATA_TORTURE_ERASE] = erase,
                                                                             [STRATA_TORTURE_RETAIN] = retain,
                                                                             [STRATA_TORTURE_FREE] = give_back,
                                                                             [STRATA_TORTURE_ORDER] = order,
                                                                             [STRATA_TORTURE_SYNCHRONISE] = synchronise,
                                                                             [STRATA_TORTURE_RENEW] = renew,
                                                                             [STRATA_TORTURE_RELEASE] = place,
                                                                             [STRATA_TORTURE_TRIM] = place,
                                                                             [STRATA_TORTURE_LOOK] = look,
                                                                             [STRATA_TORTURE_PASS] = pass};

/* ---- which operations must be over before which ---- */

static bool names_stream(const torture_op_t *op) {
    switch (op->kind) {
    case STRATA_TORTURE_FREE: return op->how == STRATA_TORTURE_COVER_FREE_ON;
    case STRATA_TORTURE_ALLOCATE: return op->stream != STRATA_TORTURE_NO_STREAM;
    case STRATA_TORTURE_WORK:
    case STRATA_TORTURE_FILL:
    case STRATA_TORTURE_BORROW:
    case STRATA_TORTURE_ERASE:
    case STRATA_TORTURE_ORDER:
    case STRATA_TORTURE_RENEW: return true;
    default: return false;
    }
}

static void note_uses(law_t *law, const torture_op_t *op) {
    torture_duty_t *duty = &law->duty;
    duty->uses = duty->waits | duty->owner_waits | duty->syncs | duty->borrows;
    if (duty->owner_waits) duty->uses |= bit(duty->owner);
    if (names_stream(op)) duty->uses |= bit(op->stream);
    for (uint8_t i = 0; i < op->count; i++) touch(law, op->blocks[i]);
}

typedef struct place_in_thread {
    uint8_t thread;
    uint32_t number; /* from 1; 0: there is none */
} place_in_thread_t;

typedef struct order_state {
    uint32_t done[TORTURE_THREADS];
    place_in_thread_t *block; /* the last operation on each */
    place_in_thread_t renewed[TORTURE_STREAMS];
    uint32_t used[TORTURE_STREAMS][TORTURE_THREADS];
} order_state_t;

static void be_after(torture_duty_t *duty, const place_in_thread_t *before) {
    if (duty->need[before->thread] < before->number) duty->need[before->thread] = before->number;
}

static void order_op(order_state_t *state, const torture_program_t *program, uint32_t number) {
    const torture_op_t *op = &program->ops[number];
    torture_duty_t *duty = &program->duties[number];
    place_in_thread_t self = {.thread = op->thread, .number = ++state->done[op->thread]};
    for (uint32_t i = 0; i < duty->touched; i++) {
        place_in_thread_t *last = &state->block[program->touched[duty->touches + i]];
        if (last->thread == self.thread && last->number == self.number) continue; /* named twice */
        be_after(duty, last);
        *last = self;
    }
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++) {
        if (!(duty->uses & bit(s))) continue;
        be_after(duty, &state->renewed[s]);
        state->used[s][op->thread] = self.number;
    }
    if (op->kind != STRATA_TORTURE_RENEW) return;
    for (uint8_t t = 0; t < TORTURE_THREADS; t++)
        be_after(duty, &(place_in_thread_t){.thread = t, .number = state->used[op->stream][t] - (t == op->thread)});
    state->renewed[op->stream] = self;
}

/* ---- the whole ---- */

static bool is_there(const torture_program_t *program, torture_op_t *op) {
    bool streams = (op->stream >= TORTURE_STREAMS || torture_device_of(op->stream) < program->devices) &&
                   (op->other >= TORTURE_STREAMS || torture_device_of(op->other) < program->devices);
    if (op->thread >= program->threads) op->thread = 0;
    return streams && op->kind < STRATA_TORTURE_KINDS &&
           (op->stream != STRATA_TORTURE_NO_STREAM || op->kind == STRATA_TORTURE_ALLOCATE);
}

static void take(law_t *law, torture_op_t op) {
    torture_program_t *program = law->program;
    uint32_t touches = program->touched_count;
    if (!is_there(program, &op)) return;
    law->duty = (torture_duty_t){.touches = touches};
    if (!rules[op.kind](law, &op)) {
        program->touched_count = touches;
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

/* Each owner that comes in may have to be freed at the end. */
static uint32_t most_operations(const torture_program_t *program) {
    uint32_t most = program->count;
    for (uint32_t i = 0; i < program->count; i++)
        most += program->ops[i].kind == STRATA_TORTURE_ALLOCATE || program->ops[i].kind == STRATA_TORTURE_RETAIN;
    return most;
}

static uint32_t count_blocks(const torture_program_t *program) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->count; i++)
        for (uint8_t k = 0; k < program->ops[i].count; k++)
            if (program->ops[i].blocks[k] >= count) count = program->ops[i].blocks[k] + 1;
    return count;
}

static void make_lawful(law_t *law, order_state_t *state) {
    torture_program_t *program = law->program;
    uint32_t wanted = program->count;
    program->count = program->touched_count = 0;
    for (uint32_t i = 0; i < wanted; i++) take(law, program->ops[i]);
    free_the_rest(law);
    for (uint32_t i = 0; i < program->count && !law->failed; i++) order_op(state, program, i);
}

bool torture_law(torture_program_t *program, torture_dialect_t dialect) {
    law_t law = {.program = program, .dialect = dialect};
    order_state_t state = {.done = {0}};
    program->blocks = count_blocks(program);
    law.blocks = strata_host_new(program->blocks + 1, sizeof *law.blocks);
    state.block = strata_host_new(program->blocks + 1, sizeof *state.block);
    law.failed = !law.blocks || !state.block || !torture_program_reserve(program, most_operations(program));
    if (!law.failed) make_lawful(&law, &state);
    strata_host_delete(law.blocks);
    strata_host_delete(state.block);
    return !law.failed;
}
