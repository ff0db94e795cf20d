/* Draws random programs by their seeds. */
#include "lab/torture/draw.h"

#include "platform/host/host_memory.h"

enum { USUAL_BLOCKS = 64 };

typedef struct drawing {
    uint64_t random;
    torture_program_t *program;
    uint32_t served, most; /* blocks so far, and their max */
    uint32_t *live; /* blocks that may be live */
    uint32_t live_count;
    torture_op_t *asked; /* the request of each block */
    /* Properties of the program. */
    uint32_t streams; /* used streams of each device */
    uint64_t size; /* of all blocks; 0 for many sizes */
    uint64_t longest; /* max time of a kernel, us */
    uint32_t youngest; /* most uses are of this many youngest blocks */
    uint8_t last; /* last stream; half of the operations stay on it */
    uint32_t parts[STRATA_TORTURE_KINDS]; /* shares in `all` operations */
    uint32_t all;
    uint32_t lends, captures; /* one in this many draws is a borrow or a capture; 0 for none */
    uint32_t graphs, pools; /* so far */
    bool inside; /* in a capture: nearly all operations are on its streams and in its place */
    uint8_t captured[2], place, places[STRATA_TORTURE_POOLS]; /* `places` is by pool */
    bool one_cache; /* nearly all operations are on one stream of a GPU */
    uint32_t wanted; /* operations to draw */
} drawing_t;

static uint64_t below(drawing_t *d, uint64_t bound) {
    d->random = d->random * 6364136223846793005ull + 1442695040888963407ull;
    return (d->random >> 24) % bound;
}

static bool one_in(drawing_t *d, uint64_t n) { return below(d, n) == 0; }

static uint8_t some_stream(drawing_t *d) {
    if (d->inside && !one_in(d, 4)) return d->captured[one_in(d, 3)];
    if (d->program->count && one_in(d, 2)) return d->last;
    if (d->one_cache && !one_in(d, 16)) return TORTURE_STREAMS_EACH - 1;
    uint32_t device = (uint32_t)below(d, d->program->devices);
    /* Most work is on the streams that have no implicit order. */
    uint32_t within = (uint32_t)below(d, d->streams + 2);
    if (within >= d->streams) within = (uint32_t)below(d, 2);
    return (uint8_t)(device * TORTURE_STREAMS_EACH + TORTURE_STREAMS_EACH - 1 - within);
}

/* Half of all sizes are among a few, so that freed memory fits later requests. */
static uint64_t some_size(drawing_t *d) {
    if (d->size) return d->size;
    static const uint64_t usual[] = {512, 4096, 4096, 64 << 10, 256 << 10, 1 << 20};
    if (one_in(d, 2)) return usual[below(d, sizeof usual / sizeof *usual)];
    switch (below(d, 16)) {
    case 0: return 0;
    case 1: return (1 << 20) + below(d, 9 << 20);
    case 2:
    case 3: return (64 << 10) + below(d, 1 << 20);
    default: return 1 + below(d, 64 << 10);
    }
}

static uint8_t some_place(drawing_t *d) {
    uint64_t dice = below(d, 20);
    if (d->inside && !one_in(d, 6)) return d->place;
    if (d->one_cache && !one_in(d, 16)) return STRATA_TORTURE_GPU;
    if (dice < 13) return (uint8_t)(STRATA_TORTURE_GPU + below(d, d->program->devices));
    if (dice < 15) return (uint8_t)(STRATA_TORTURE_MANAGED + below(d, d->program->devices));
    return dice < 19 ? STRATA_TORTURE_PINNED : STRATA_TORTURE_HOST;
}

static bool names(const torture_op_t *op, uint32_t block) {
    for (uint8_t i = 0; i < op->count; i++)
        if (op->blocks[i] == block) return true;
    return false;
}

static void name_blocks(drawing_t *d, torture_op_t *op, uint32_t most) {
    uint32_t count = 1 + (uint32_t)below(d, most);
    for (uint32_t i = 0; i < count && d->live_count; i++) {
        uint32_t range = !one_in(d, 4) && d->live_count > d->youngest ? d->youngest : d->live_count;
        uint32_t block = d->live[d->live_count - 1 - below(d, range)];
        if (!names(op, block)) op->blocks[op->count++] = block;
    }
}

static void draw_allocate(drawing_t *d, torture_op_t *op) {
    static const char *const tags[] = {"weights", "activations", "workspace"};
    if (d->served == d->most) {
        op->kind = STRATA_TORTURE_PASS;
        return;
    }
    op->kind = STRATA_TORTURE_ALLOCATE;
    op->place = some_place(d);
    op->size = some_size(d);
    if (!torture_is_ownerless(op->place))
        op->stream = (uint8_t)(op->stream % TORTURE_STREAMS_EACH + (op->place & 1u) * TORTURE_STREAMS_EACH);
    else if (one_in(d, 4)) op->stream = STRATA_TORTURE_NO_STREAM;
    if (one_in(d, 5)) op->flags |= STRATA_ZERO;
    if (one_in(d, 12)) op->flags |= one_in(d, 2) ? STRATA_NO_RETRY : STRATA_NO_GROW;
    if (one_in(d, 6)) op->alignment = 1u << below(d, op->place == STRATA_TORTURE_HOST ? 7 : 9);
    if (one_in(d, 5)) op->tag = tags[below(d, sizeof tags / sizeof *tags)];
    op->count = 1;
    op->blocks[0] = d->served++;
    d->live[d->live_count++] = op->blocks[0];
    d->asked[op->blocks[0]] = *op;
}

static void forget_live(drawing_t *d, uint32_t block) {
    for (uint32_t i = 0; i < d->live_count; i++)
        if (d->live[i] == block) d->live[i] = d->live[--d->live_count];
}

/* The number of operations of each kind in 100, for a program without its own taste. */
static const uint8_t usual_parts[STRATA_TORTURE_KINDS] = {
    [STRATA_TORTURE_ALLOCATE] = 24, [STRATA_TORTURE_WORK] = 24,  [STRATA_TORTURE_FILL] = 3,        [STRATA_TORTURE_HOST_ACCESS] = 3,
    [STRATA_TORTURE_CHECK] = 2,     [STRATA_TORTURE_BORROW] = 8, [STRATA_TORTURE_ERASE] = 3,       [STRATA_TORTURE_RETAIN] = 2,
    [STRATA_TORTURE_FREE] = 18,     [STRATA_TORTURE_ORDER] = 2,  [STRATA_TORTURE_SYNCHRONISE] = 1, [STRATA_TORTURE_RENEW] = 2,
    [STRATA_TORTURE_RELEASE] = 1,   [STRATA_TORTURE_TRIM] = 1,   [STRATA_TORTURE_LOOK] = 1,        [STRATA_TORTURE_PASS] = 5,
    [STRATA_TORTURE_LAUNCH] = 2,    [STRATA_TORTURE_DESTROY] = 1};

static torture_kind_t some_kind(drawing_t *d) {
    uint64_t dice = below(d, d->all);
    for (uint32_t kind = 0; kind < STRATA_TORTURE_KINDS; kind++) {
        if (dice < d->parts[kind]) return (torture_kind_t)kind;
        dice -= d->parts[kind];
    }
    return STRATA_TORTURE_PASS;
}

/* Two of three kernels only read, so that those of several streams are unordered. */
static torture_op_t blank(drawing_t *d, torture_kind_t kind) {
    torture_op_t op = {.kind = (uint8_t)kind, .thread = (uint8_t)below(d, d->program->threads)};
    op.how = (uint8_t)below(d, STRATA_TORTURE_COVERS);
    op.us = kind == STRATA_TORTURE_PASS && !one_in(d, 8) ? 1 + (uint32_t)below(d, 60) : 1 + (uint32_t)below(d, d->longest);
    op.writes = (uint8_t)(one_in(d, 3) ? below(d, 1u << STRATA_TORTURE_NAMED) : 0);
    op.by_pointer = one_in(d, 8);
    op.graph = (uint8_t)(d->graphs ? below(d, d->graphs) : 0);
    op.pool = (uint8_t)(d->pools ? below(d, d->pools) : 0);
    return op;
}

static void draw_op(drawing_t *d, torture_op_t *op) {
    *op = blank(d, some_kind(d));
    op->stream = d->last = some_stream(d);
    op->other = some_stream(d);
    op->place = some_place(d);
    if (op->kind == STRATA_TORTURE_ALLOCATE) draw_allocate(d, op);
    else if (op->kind < STRATA_TORTURE_ORDER || op->kind == STRATA_TORTURE_LOOK)
        name_blocks(d, op, op->kind == STRATA_TORTURE_WORK ? STRATA_TORTURE_NAMED : 1);
    if (op->kind == STRATA_TORTURE_FREE && op->count && !one_in(d, 16)) forget_live(d, op->blocks[0]);
    if (op->kind == STRATA_TORTURE_TRIM) op->size = below(d, 8 << 20);
}

/* ---- borrows ---- */

static void add_op(drawing_t *d, torture_kind_t kind, uint32_t block, uint8_t stream) {
    if (d->program->count >= d->wanted) return;
    torture_op_t op = blank(d, kind);
    op.stream = stream;
    op.other = some_stream(d);
    op.count = kind != STRATA_TORTURE_PASS;
    op.blocks[0] = block;
    op.refused = kind == STRATA_TORTURE_FREE && one_in(d, 8);
    d->program->ops[d->program->count++] = op;
}

static void maybe_add_op(drawing_t *d, uint64_t n, torture_kind_t kind, uint32_t block, uint8_t stream) {
    if (one_in(d, n)) add_op(d, kind, block, stream);
}

/* Requests a freed size once more and uses it, which is the best chance to get the same memory. */
static void request_again(drawing_t *d, uint32_t block) {
    const torture_op_t *asked = &d->asked[block];
    if (d->served == d->most || d->program->count >= d->wanted) return;
    torture_op_t op = *asked;
    op.thread = (uint8_t)below(d, d->program->threads);
    op.blocks[0] = d->served++;
    d->live[d->live_count++] = op.blocks[0];
    d->asked[op.blocks[0]] = op;
    d->program->ops[d->program->count++] = op;
    if (asked->stream != STRATA_TORTURE_NO_STREAM) add_op(d, STRATA_TORTURE_WORK, op.blocks[0], asked->stream);
}

/* Other streams use a block and borrow it, before the use or after it. Then it is freed and requested again. */
static void draw_loan(drawing_t *d) {
    if (d->live_count == 0) return;
    uint32_t range = d->live_count > d->youngest ? d->youngest : d->live_count;
    uint32_t block = d->live[d->live_count - 1 - below(d, range)];
    uint8_t streams[2] = {some_stream(d), some_stream(d)};
    uint32_t count = 1 + (uint32_t)below(d, 2);
    for (uint32_t i = 0; i < count; i++) maybe_add_op(d, 2, STRATA_TORTURE_BORROW, block, streams[i]);
    for (uint32_t i = 0; i < count; i++) add_op(d, STRATA_TORTURE_WORK, block, streams[i]);
    for (uint32_t i = 0; i < count; i++) maybe_add_op(d, 3, STRATA_TORTURE_BORROW, block, streams[i]);
    maybe_add_op(d, 5, STRATA_TORTURE_ERASE, block, streams[0]);
    maybe_add_op(d, 8, STRATA_TORTURE_RENEW, block, streams[0]);
    if (one_in(d, 4)) return;
    add_op(d, STRATA_TORTURE_FREE, block, streams[0]);
    forget_live(d, block);
    maybe_add_op(d, 3, STRATA_TORTURE_PASS, block, streams[0]);
    if (!one_in(d, 4)) request_again(d, block);
}

/* ---- captures ---- */

static void add_graph_op(drawing_t *d, torture_kind_t kind, uint8_t graph, uint8_t pool) {
    if (d->program->count >= d->wanted) return;
    torture_op_t op = blank(d, kind);
    op.stream = kind == STRATA_TORTURE_LAUNCH ? some_stream(d) : d->captured[0];
    op.other = d->captured[1];
    op.place = d->place;
    op.graph = graph;
    op.pool = pool;
    d->program->ops[d->program->count++] = op;
}

static void add_others(drawing_t *d, uint32_t most) {
    for (uint64_t count = below(d, most); count > 0 && d->program->count < d->wanted; count--) {
        if (one_in(d, d->inside ? 2 : 4)) draw_loan(d);
        else draw_op(d, &d->program->ops[d->program->count++]);
    }
}

/* The other stream joins the capture, and the first stream then waits for it. */
static void add_join(drawing_t *d) {
    if (d->program->count + 2 >= d->wanted) return;
    torture_op_t op = blank(d, STRATA_TORTURE_ORDER);
    op.stream = d->captured[1];
    op.other = d->captured[0];
    d->program->ops[d->program->count++] = op;
    add_others(d, 8);
    op.stream = d->captured[0];
    op.other = d->captured[1];
    if (d->program->count < d->wanted && !one_in(d, 3)) d->program->ops[d->program->count++] = op;
}

static void choose_capture(drawing_t *d, uint8_t *graph, uint8_t *pool) {
    bool shares = d->pools == STRATA_TORTURE_POOLS || (d->pools && one_in(d, 2));
    uint8_t place = (uint8_t)((one_in(d, 6) ? STRATA_TORTURE_MANAGED : STRATA_TORTURE_GPU) + below(d, d->program->devices));
    *graph = (uint8_t)d->graphs++;
    *pool = (uint8_t)(shares ? d->pools - 1 - below(d, d->pools < 3 ? d->pools : 3) : d->pools++);
    if (!shares) d->places[*pool] = place;
    d->place = d->places[*pool];
    uint8_t first = (uint8_t)((d->place & 1u) * TORTURE_STREAMS_EACH + 2), within = (uint8_t)below(d, 2);
    d->captured[0] = (uint8_t)(first + within);
    d->captured[1] = (uint8_t)(first + 1 - within);
}

/* Captures a graph into a pool, launches it and destroys it, with all kinds of operations in between. */
static void draw_capture(drawing_t *d) {
    uint8_t graph, pool;
    if (d->graphs == STRATA_TORTURE_GRAPHS) return;
    choose_capture(d, &graph, &pool);
    bool late = one_in(d, 8);
    if (!late) add_graph_op(d, STRATA_TORTURE_POOL_BEGIN, graph, pool);
    if (one_in(d, 6)) add_others(d, 3);
    add_graph_op(d, STRATA_TORTURE_CAPTURE, graph, pool);
    d->inside = true;
    if (late) add_others(d, 3);
    if (late) add_graph_op(d, STRATA_TORTURE_POOL_BEGIN, graph, pool);
    add_others(d, 6);
    if (!one_in(d, 3)) add_join(d);
    add_others(d, 6);
    d->inside = false;
    if (one_in(d, 12)) return;
    add_graph_op(d, STRATA_TORTURE_END_CAPTURE, graph, pool);
    if (one_in(d, 6)) add_others(d, 4);
    add_graph_op(d, STRATA_TORTURE_POOL_END, graph, pool);
    if (one_in(d, 2)) add_graph_op(d, STRATA_TORTURE_POOL_REMOVE, graph, pool);
    for (uint64_t launches = below(d, 4); launches > 0; launches--) {
        add_others(d, 4);
        add_graph_op(d, STRATA_TORTURE_LAUNCH, graph, pool);
    }
    if (one_in(d, 3)) add_graph_op(d, STRATA_TORTURE_DESTROY, graph, pool);
    if (one_in(d, 3)) add_graph_op(d, STRATA_TORTURE_POOL_REMOVE, graph, pool);
}

/* ---- tastes ---- */

/* Programs differ: one borrows all the time, one never renews a stream, one has only blocks of one size.
 * Combinations that are rare in programs with a little of everything are frequent in some of these. */
static void draw_profile(drawing_t *d) {
    static const uint64_t longest[] = {60, 600, 4000};
    static const uint32_t youngest[] = {1, 2, 4, 16}, lends[] = {2, 4, 8, 64}, captures[] = {0, 5, 10, 20};
    d->lends = lends[below(d, sizeof lends / sizeof *lends)];
    d->captures = captures[below(d, sizeof captures / sizeof *captures)];
    d->streams = 1 + (uint32_t)below(d, TORTURE_STREAMS_EACH);
    d->longest = longest[below(d, sizeof longest / sizeof *longest)];
    d->youngest = youngest[below(d, sizeof youngest / sizeof *youngest)];
    d->size = one_in(d, 2) ? UINT64_C(512) << below(d, one_in(d, 8) ? 14 : 10) : 0;
    for (uint32_t kind = 0; kind < STRATA_TORTURE_KINDS; kind++) {
        bool needed = kind == STRATA_TORTURE_ALLOCATE || kind == STRATA_TORTURE_WORK || kind == STRATA_TORTURE_FREE;
        uint32_t times = needed ? 2 : (uint32_t)below(d, 4) * (uint32_t)below(d, 4);
        d->parts[kind] = usual_parts[kind] * times;
        d->all += d->parts[kind];
    }
}

/* Rare losses of a cache show only with thousands of blocks. */
static void draw_long_profile(drawing_t *d) {
    static const uint32_t parts[STRATA_TORTURE_KINDS] = {
        [STRATA_TORTURE_ALLOCATE] = 40, [STRATA_TORTURE_FREE] = 33,  [STRATA_TORTURE_WORK] = 10,
        [STRATA_TORTURE_CHECK] = 4,     [STRATA_TORTURE_BORROW] = 4, [STRATA_TORTURE_FILL] = 2,
        [STRATA_TORTURE_ORDER] = 2,     [STRATA_TORTURE_PASS] = 4,   [STRATA_TORTURE_RELEASE] = 1};
    d->one_cache = true;
    d->lends = 64;
    d->streams = 1;
    d->longest = 60;
    d->youngest = 1 + (uint32_t)below(d, d->wanted);
    for (uint32_t kind = 0; kind < STRATA_TORTURE_KINDS; kind++) d->all += d->parts[kind] = parts[kind];
}

static void draw_ops(drawing_t *d) {
    torture_program_t *program = d->program;
    while (program->count < d->wanted) {
        draw_op(d, &program->ops[program->count++]);
        if (one_in(d, d->lends)) draw_loan(d);
        if (d->captures && one_in(d, d->captures)) draw_capture(d);
    }
}

/* A third of the programs has small memory, so that requests fail and out-of-memory recovery runs. */
bool torture_draw(torture_program_t *program, uint64_t seed, uint32_t length) {
    drawing_t d = {.random = seed * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull, .program = program, .wanted = length};
    (void)below(&d, 2);
    program->seed = seed;
    program->devices = one_in(&d, 4) ? 2 : 1;
    program->threads = one_in(&d, 2) ? 1 : 2 + (uint32_t)below(&d, TORTURE_THREADS - 1);
    program->check_stream_ids = seed % 2;
    program->capacity = one_in(&d, 3) && !length ? (8 + below(&d, 56)) << 20 : 0;
    program->count = 0;
    if (length) draw_long_profile(&d);
    else draw_profile(&d);
    if (!length) d.wanted = 12 + (uint32_t)below(&d, one_in(&d, 4) ? 180 : 60);
    d.most = length ? length : USUAL_BLOCKS;
    d.live = strata_host_new(d.most, sizeof *d.live);
    d.asked = strata_host_new(d.most, sizeof *d.asked);
    bool has_room = d.live && d.asked && torture_program_reserve(program, d.wanted);
    if (has_room) draw_ops(&d);
    strata_host_delete(d.live);
    strata_host_delete(d.asked);
    return has_room;
}
