#include "planning/placement/online.h"

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

/* An address range, free or in use. All ranges are adjacent, from 0 to the top. Free ones are nodes of a
 * treap ordered by (size, offset). Number 0 means none. */
typedef struct piece {
    uint64_t offset, size;
    uint32_t before, after; /* neighbors by address */
    uint32_t left, right;
    bool free;
} piece_t;

typedef struct online {
    piece_t *pieces;
    uint32_t used, unused; /* number ever used; head of the list of unused ones, linked by `after` */
    uint32_t root, last;
    uint64_t top;
} online_t;

/* ---- the treap ---- */

/* Returns a pseudo-random priority, which keeps the treap balanced. */
static uint32_t priority(uint32_t piece) {
    uint32_t x = piece * 0x9e3779b9u;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    return x ^ x >> 13;
}

static bool is_before(const piece_t *a, const piece_t *b) { return a->size != b->size ? a->size < b->size : a->offset < b->offset; }

static uint32_t merge(piece_t *pieces, uint32_t a, uint32_t b) {
    if (!a || !b) return a ? a : b;
    if (priority(a) > priority(b)) {
        pieces[a].right = merge(pieces, pieces[a].right, b);
        return a;
    }
    pieces[b].left = merge(pieces, a, pieces[b].left);
    return b;
}

static void split(piece_t *pieces, uint32_t root, const piece_t *at, uint32_t *less, uint32_t *rest) {
    if (!root) {
        *less = *rest = 0;
    } else if (is_before(&pieces[root], at)) {
        split(pieces, pieces[root].right, at, &pieces[root].right, rest);
        *less = root;
    } else {
        split(pieces, pieces[root].left, at, less, &pieces[root].left);
        *rest = root;
    }
}

static void add_free(online_t *o, uint32_t piece) {
    piece_t *pieces = o->pieces;
    uint32_t *link = &o->root;
    while (*link && priority(*link) > priority(piece))
        link = is_before(&pieces[piece], &pieces[*link]) ? &pieces[*link].left : &pieces[*link].right;
    split(pieces, *link, &pieces[piece], &pieces[piece].left, &pieces[piece].right);
    *link = piece;
    pieces[piece].free = true;
}

static void remove_free(online_t *o, uint32_t piece) {
    piece_t *pieces = o->pieces;
    uint32_t *link = &o->root;
    while (*link != piece) link = is_before(&pieces[piece], &pieces[*link]) ? &pieces[*link].left : &pieces[*link].right;
    *link = merge(pieces, pieces[piece].left, pieces[piece].right);
    pieces[piece].left = pieces[piece].right = 0;
    pieces[piece].free = false;
}

static uint32_t smallest_fit(const online_t *o, uint64_t size) {
    uint32_t found = 0;
    for (uint32_t at = o->root; at;) {
        if (o->pieces[at].size >= size) {
            found = at;
            at = o->pieces[at].left;
        } else {
            at = o->pieces[at].right;
        }
    }
    return found;
}

/* ---- pieces ---- */

static uint32_t new_piece(online_t *o, uint64_t offset, uint64_t size, uint32_t before) {
    uint32_t piece = o->unused;
    if (piece) o->unused = o->pieces[piece].after;
    else piece = ++o->used;
    uint32_t after = before ? o->pieces[before].after : 0;
    o->pieces[piece] = (piece_t){.offset = offset, .size = size, .before = before, .after = after};
    if (before) o->pieces[before].after = piece;
    if (after) o->pieces[after].before = piece;
    else o->last = piece;
    return piece;
}

/* Coalesces `next` into `piece`. */
static void coalesce(online_t *o, uint32_t piece, uint32_t next) {
    piece_t *p = &o->pieces[piece], *n = &o->pieces[next];
    p->size += n->size;
    p->after = n->after;
    if (p->after) o->pieces[p->after].before = piece;
    else o->last = piece;
    n->after = o->unused;
    o->unused = next;
}

/* Splits the bytes beyond `size` off a piece in use, as a free piece. */
static void split_off(online_t *o, uint32_t piece, uint64_t size) {
    piece_t *p = &o->pieces[piece];
    if (p->size == size) return;
    uint32_t rest = new_piece(o, p->offset + size, p->size - size, piece);
    o->pieces[piece].size = size;
    add_free(o, rest);
}

/* Serves a piece at the top, and extends a free piece that ends there. */
static uint32_t grow(online_t *o, uint64_t size) {
    uint32_t last = o->last;
    if (last && o->pieces[last].free) {
        remove_free(o, last);
        o->top += size - o->pieces[last].size;
        o->pieces[last].size = size;
        return last;
    }
    uint32_t piece = new_piece(o, o->top, size, last);
    o->top += size;
    return piece;
}

static uint32_t allocate_piece(online_t *o, uint64_t size, uint64_t alignment, uint64_t unit) {
    uint64_t room = size + alignment - unit;
    uint32_t piece = smallest_fit(o, room);
    if (piece) remove_free(o, piece);
    else piece = grow(o, room);
    uint64_t ahead = strata_align_up(o->pieces[piece].offset, alignment) - o->pieces[piece].offset;
    if (ahead) {
        uint32_t front = piece;
        piece = new_piece(o, o->pieces[front].offset + ahead, o->pieces[front].size - ahead, front);
        o->pieces[front].size = ahead;
        add_free(o, front);
    }
    split_off(o, piece, size);
    return piece;
}

static void free_piece(online_t *o, uint32_t piece) {
    uint32_t before = o->pieces[piece].before, after = o->pieces[piece].after;
    if (after && o->pieces[after].free) {
        remove_free(o, after);
        coalesce(o, piece, after);
    }
    if (before && o->pieces[before].free) {
        remove_free(o, before);
        coalesce(o, before, piece);
        piece = before;
    }
    add_free(o, piece);
}

/* ---- the program ---- */

/* Sorts begins and ends by time; ends at a moment precede begins. */
static void order_events(const strata_problem_t *p, bool backwards, strata_keyed_t *events) {
    for (uint32_t i = 0; i < p->item_count; i++) {
        uint32_t lower = backwards ? p->moments - p->items[i].upper : p->items[i].lower;
        uint32_t upper = backwards ? p->moments - p->items[i].lower : p->items[i].upper;
        events[2 * (size_t)i] = (strata_keyed_t){2 * (uint64_t)lower + 1, i};
        events[2 * (size_t)i + 1] = (strata_keyed_t){2 * (uint64_t)upper, i};
    }
    strata_sort_keyed(events, events + 2 * (size_t)p->item_count, 2 * (size_t)p->item_count);
}

strata_status_t strata_online_place(const strata_problem_t *p, bool backwards, uint64_t *offsets, uint64_t *peak) {
    strata_status_t status = STRATA_E_HOST_MEMORY;
    size_t count = p->item_count;
    online_t online = {.pieces = strata_host_new(3 * count + 1, sizeof *online.pieces)};
    strata_keyed_t *events = strata_host_new(4 * count + 1, sizeof *events);
    uint32_t *piece_of = strata_host_new(count + 1, sizeof *piece_of);
    if (!online.pieces || !events || !piece_of) goto out;
    order_events(p, backwards, events);
    for (size_t e = 0; e < 2 * count; e++) {
        uint32_t i = events[e].value;
        if (events[e].key % 2 == 0) {
            free_piece(&online, piece_of[i]);
            continue;
        }
        piece_of[i] = allocate_piece(&online, p->items[i].size, p->items[i].alignment, p->unit);
        offsets[i] = online.pieces[piece_of[i]].offset;
    }
    *peak = online.top;
    status = STRATA_OK;
out:
    strata_host_delete(piece_of);
    strata_host_delete(events);
    strata_host_delete(online.pieces);
    return status;
}
