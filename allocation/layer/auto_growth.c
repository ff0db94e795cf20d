/* auto_growth: best fit over chunks got from below, one chunk more whenever nothing fits.
 *
 * The rules are those of Paddle's auto_growth_best_fit (v1, 2025-01): a request takes the high end of the smallest free block
 * that fits, by (size, address); the remainder, however small, stays low; freed blocks merge with free neighbours of their
 * chunk; a chunk is max(request, chunk_size). What the peer lacks is an option, off by default.
 *
 * The remainder and the merged block keep the lower block's slot: so the first slot of a chunk never changes.
 */

#include "allocation/layer.h"
#include "allocation/mechanism/bins.h"
#include "allocation/mechanism/tree.h"
#include "allocation/patience.h"
#include "platform/arithmetic.h"

#define HOT inline __attribute__((always_inline))
#define COLD __attribute__((noinline))

enum { ORDER_ADDRESS, ORDER_ANY };
enum { RECLAIM_OWN, RECLAIM_LADDER };
enum { CHUNKS = 1 << 20 };

typedef struct auto_growth_options {
    uint64_t chunk_size;
    uint64_t alignment;
    uint32_t order;
    uint32_t reclaim;
    bool free_idle_chunk;
    bool free_when_no_cache_hit;
    bool smaller_growth;
} auto_growth_options_t;

static const strata_option_row_t options[] = {
    {"chunk_size", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, chunk_size), "0", 0, 1ull << 44, NULL,
     "the least that is asked from below; 0: the rounded request"},
    {"alignment", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, alignment), "256", 64, 1ull << 21, NULL,
     "blocks begin at, and sizes are rounded to, multiples of this power of two"},
    {"order", STRATA_OPTION_CHOICE, offsetof(auto_growth_options_t, order), "address", 0, 0, "address|any",
     "among free blocks: `address`: exactly the smallest, then the lowest; `any`: a near smallest one, much faster"},
    {"reclaim", STRATA_OPTION_CHOICE, offsetof(auto_growth_options_t, reclaim), "own", 0, 0, "own|ladder",
     "when the layer below is out of memory: `own`: free the idle chunks of this stack and ask once more; `ladder`: leave it to "
     "the domain's ladder"},
    {"free_idle_chunk", STRATA_OPTION_BOOL, offsetof(auto_growth_options_t, free_idle_chunk), "false", 0, 0, NULL,
     "give a chunk back as soon as nothing in it is used"},
    {"free_when_no_cache_hit", STRATA_OPTION_BOOL, offsetof(auto_growth_options_t, free_when_no_cache_hit), "false", 0, 0, NULL,
     "give all idle chunks back before growing"},
    {"smaller_growth", STRATA_OPTION_BOOL, offsetof(auto_growth_options_t, smaller_growth), "false", 0, 0, NULL,
     "on out-of-memory grow by the rounded request alone when a whole chunk cannot be had"},
    {0},
};

typedef struct chunk {
    strata_record_t *below; /* the record of the layer below */
    uint64_t base, size;
    uint32_t first;         /* slot of the block at the base */
    uint32_t next, prev;    /* chunks of the layer, in order of making */
    uint32_t unused;
} chunk_t;

typedef struct auto_growth {
    strata_layer_t base;
    uint64_t unit;       /* alignment */
    uint64_t used_bytes; /* of the chunks, what is not in the index */
    bool by_address;
    bool gives_idle_back; /* free_idle_chunk */
    bool growing;         /* a thread is asking below with the lock open; others that miss wait for it */
    uint32_t waiting;
    strata_bins_t bins;
    strata_condition_t grown;
    strata_tree_t tree;
    strata_nodes_t chunks;
    uint32_t first_chunk, last_chunk;
} auto_growth_t;

static strata_slab_t *slab_of(auto_growth_t *self) {
    return &self->base.stack->slab;
}

static chunk_t *chunk_at(auto_growth_t *self, uint32_t number) {
    return strata_node(&self->chunks, number);
}

static const auto_growth_options_t *options_of(const auto_growth_t *self) {
    return self->base.options;
}

/* ---- the index of free blocks ----
 *
 * `by_address` is self->by_address; a caller that knows it leaves only one of the two to the compiler. What the hot
 * path is made of is therefore inlined by force. */

static inline void index_insert(auto_growth_t *self, uint32_t slot, bool by_address) {
    if (by_address) strata_tree_insert(&self->tree, slab_of(self), slot);
    else strata_bins_insert(&self->bins, slab_of(self), slot);
}

static inline void index_remove(auto_growth_t *self, uint32_t slot, bool by_address) {
    if (by_address) strata_tree_remove(&self->tree, slab_of(self), slot);
    else strata_bins_remove(&self->bins, slab_of(self), slot);
}

static inline uint32_t index_find(auto_growth_t *self, uint64_t size, bool by_address) {
    return by_address ? strata_tree_find(&self->tree, slab_of(self), size)
                      : strata_bins_find(&self->bins, slab_of(self), size);
}

/* A free block in the index becomes `size` bytes long. */
static inline void index_resize(auto_growth_t *self, uint32_t slot, uint64_t size, bool by_address) {
    if (by_address) {
        strata_tree_remove(&self->tree, slab_of(self), slot);
        strata_slab_record(slab_of(self), slot)->size = size;
        strata_tree_insert(&self->tree, slab_of(self), slot);
    } else {
        strata_bins_resize(&self->bins, slab_of(self), slot, size);
    }
}

/* ---- hit ---- */

/* Cuts the high end off the free block `low`: the piece's record, or NULL if the slab is full. */
static inline strata_record_t *split(auto_growth_t *self, uint32_t low, uint64_t size, bool by_address) {
    strata_slab_t *slab = slab_of(self);
    strata_record_t *rest = strata_slab_record(slab, low);
    uint32_t next = rest->next;
    uint32_t slot = strata_slab_take(slab);
    if (__builtin_expect(slot == 0, 0)) return NULL;
    strata_record_t *piece = strata_slab_record(slab, slot);
    uint64_t left = rest->size - size;
    piece->ptr = rest->ptr + left;
    piece->size = size;
    piece->stack = slab->home;
    piece->prev = low;
    piece->next = next;
    piece->chunk = rest->chunk;
    strata_slab_record(slab, next)->prev = slot;
    rest->next = slot;
    index_resize(self, low, left, by_address);
    return piece;
}

/* Record fields that a hit hands out: an empty decorator stack, nothing borrowed. */
static inline void hand_out(strata_record_t *block, uint64_t slack) {
    block->path = 0;
    block->attention = 0;
    block->slack = (uint32_t)slack;
    block->borrows = 0;
    block->pool = 0;
    block->state = STRATA_RECORD_LIVE;
}

/* Serves `rounded` bytes from the free block `slot`; NULL if the slab is full. */
static HOT strata_record_t *serve_from(auto_growth_t *self, uint32_t slot, uint64_t rounded, uint64_t size, bool by_address) {
    strata_record_t *block = strata_slab_record(slab_of(self), slot);
    if (block->size == rounded) {
        index_remove(self, slot, by_address);
    } else {
        block = split(self, slot, rounded, by_address);
        if (__builtin_expect(!block, 0)) return NULL;
    }
    self->used_bytes += rounded;
    self->base.stack->figures.cache_hits++;
    hand_out(block, rounded - size);
    return block;
}

static inline uint64_t rounded_size(const auto_growth_t *self, size_t size) {
    return (size + self->unit - 1) & ~(self->unit - 1);
}

static COLD strata_record_t *hit_by_address(auto_growth_t *self, size_t size) {
    uint64_t rounded = rounded_size(self, size);
    uint32_t slot = index_find(self, rounded, true);
    return slot ? serve_from(self, slot, rounded, size, true) : NULL;
}

static strata_record_t *hit(strata_layer_t *base, size_t size, size_t alignment) {
    auto_growth_t *self = (auto_growth_t *)base;
    if (__builtin_expect(alignment > self->unit, 0)) return NULL;
    if (self->by_address) return hit_by_address(self, size);
    uint64_t rounded = rounded_size(self, size);
    uint32_t slot = index_find(self, rounded, false);
    return __builtin_expect(slot != 0, 1) ? serve_from(self, slot, rounded, size, false) : NULL;
}

/* Before growing, the bin that a hit searches in part is searched whole. */
static strata_record_t *hit_any(auto_growth_t *self, uint64_t rounded, uint64_t size) {
    uint32_t slot = self->by_address ? index_find(self, rounded, true)
                                     : strata_bins_find_any(&self->bins, slab_of(self), rounded);
    return slot ? serve_from(self, slot, rounded, size, self->by_address) : NULL;
}

/* ---- free ---- */

/* The slot's generations are used up: the block moves to another slot. Without one it stays out of use until its chunk goes. */
static COLD uint32_t move_to_new_slot(auto_growth_t *self, uint32_t old_slot) {
    strata_slab_t *slab = slab_of(self);
    uint32_t slot = strata_slab_take(slab);
    if (slot == 0) return 0;
    strata_record_t *old = strata_slab_record(slab, old_slot), *fresh = strata_slab_record(slab, slot);
    uint32_t generation = fresh->generation;
    *fresh = *old;
    fresh->generation = generation;
    strata_slab_record(slab, old->prev)->next = slot;
    strata_slab_record(slab, old->next)->prev = slot;
    if (chunk_at(self, old->chunk)->first == old_slot) chunk_at(self, old->chunk)->first = slot;
    strata_slab_retire(slab, old_slot);
    return slot;
}

/* A block that did not merge with the one below it comes into the index; its slot, 0 if it is lost to a used-up one. */
static HOT uint32_t stand_alone(auto_growth_t *self, strata_record_t *block, uint32_t slot, bool by_address) {
    if (__builtin_expect(block->generation >= STRATA_GENERATION_LAST, 0)) {
        uint32_t fresh = move_to_new_slot(self, slot);
        if (fresh == 0) {
            block->state = STRATA_RECORD_DEFERRED;
            self->used_bytes += block->size;
            return 0;
        }
        slot = fresh;
        block = strata_slab_record(slab_of(self), slot);
    }
    block->slack = 0;
    index_insert(self, slot, by_address);
    block->state = STRATA_RECORD_FREE;
    return slot;
}

/* Puts a block back and merges it with its free neighbours; the slot of the free block that has it now, 0 if it is lost to a
 * used-up slot. The sentinel in slot 0 is never free, so that missing neighbours need no question. */
static HOT uint32_t put_back(auto_growth_t *self, strata_record_t *block, bool by_address) {
    strata_slab_t *slab = slab_of(self);
    uint32_t slot = strata_slab_slot(slab, block), low = block->prev, high = block->next;
    strata_record_t *next = strata_slab_record(slab, high), *prev = strata_slab_record(slab, low);
    uint64_t size = block->size;
    /* Among many blocks each of these is a cache miss: they are under way together. */
    __builtin_prefetch(prev);
    strata_bins_prefetch(slab, next);
    strata_bins_prefetch(slab, prev);
    self->used_bytes -= size;
    if (next->state == STRATA_RECORD_FREE) {
        uint32_t gone = high;
        size += next->size;
        high = next->next;
        index_remove(self, gone, by_address);
        block->size = size;
        block->next = high;
        strata_slab_record(slab, high)->prev = slot;
        strata_slab_give(slab, gone);
    }
    if (prev->state != STRATA_RECORD_FREE) return stand_alone(self, block, slot, by_address);
    prev->next = high;
    strata_slab_record(slab, high)->prev = low;
    index_resize(self, low, prev->size + size, by_address);
    strata_slab_give(slab, slot);
    return low;
}

static COLD uint32_t put_back_by_address(auto_growth_t *self, strata_record_t *block) {
    return put_back(self, block, true);
}

static bool quick_free(strata_layer_t *base, strata_record_t *block) {
    auto_growth_t *self = (auto_growth_t *)base;
    if (__builtin_expect(self->gives_idle_back, 0)) return false;
    if (self->by_address) (void)put_back_by_address(self, block);
    else (void)put_back(self, block, false);
    return true;
}

/* ---- chunks ---- */

static uint64_t idle_bytes(strata_layer_t *base) {
    auto_growth_t *self = (auto_growth_t *)base;
    return base->stack->figures.reserved_bytes - self->used_bytes;
}

static bool is_idle(auto_growth_t *self, const chunk_t *chunk) {
    const strata_record_t *block = strata_slab_record(slab_of(self), chunk->first);
    return block->state == STRATA_RECORD_FREE && block->size == chunk->size;
}

static void list_chunk(auto_growth_t *self, uint32_t number) {
    chunk_t *chunk = chunk_at(self, number);
    chunk->prev = self->last_chunk;
    chunk->next = 0;
    if (self->last_chunk) chunk_at(self, self->last_chunk)->next = number;
    else self->first_chunk = number;
    self->last_chunk = number;
}

/* Takes a chunk out of the layer; its record is the caller's to give back once the lock is open. */
static strata_record_t *unlist_chunk(auto_growth_t *self, uint32_t number) {
    chunk_t *chunk = chunk_at(self, number);
    if (chunk->prev) chunk_at(self, chunk->prev)->next = chunk->next;
    else self->first_chunk = chunk->next;
    if (chunk->next) chunk_at(self, chunk->next)->prev = chunk->prev;
    else self->last_chunk = chunk->prev;
    strata_record_t *below = chunk->below;
    strata_statistics_t *f = &self->base.stack->figures;
    f->chunks--;
    f->reserved_bytes -= chunk->size;
    strata_nodes_give(&self->chunks, number);
    return below;
}

/* An idle chunk leaves with its one block. */
static strata_record_t *detach_idle(auto_growth_t *self, uint32_t number) {
    uint32_t slot = chunk_at(self, number)->first;
    index_remove(self, slot, self->by_address);
    strata_slab_give(slab_of(self), slot);
    return unlist_chunk(self, number);
}

/* The device free is made with the locks open; the bytes. */
static uint64_t give_back_idle(auto_growth_t *self, uint32_t number, strata_path_t *path) {
    uint64_t size = chunk_at(self, number)->size;
    strata_record_t *below = detach_idle(self, number);
    strata_opened_t opened = strata_path_unlock(path);
    strata_chunk_free(below);
    strata_path_lock(path, opened);
    return size;
}

/* Gives every idle chunk back, one at a time: the list is read again. */
static uint64_t release(strata_layer_t *base, strata_path_t *path) {
    auto_growth_t *self = (auto_growth_t *)base;
    uint64_t released = 0;
    for (uint32_t number = self->first_chunk; number;) {
        if (!is_idle(self, chunk_at(self, number))) {
            number = chunk_at(self, number)->next;
            continue;
        }
        released += give_back_idle(self, number, path);
        number = self->first_chunk;
    }
    return released;
}

/* The largest idle chunk, the oldest among equals; 0: none. */
static uint32_t largest_idle(auto_growth_t *self) {
    uint32_t largest = 0;
    for (uint32_t number = self->first_chunk; number; number = chunk_at(self, number)->next)
        if (is_idle(self, chunk_at(self, number)) && (!largest || chunk_at(self, number)->size > chunk_at(self, largest)->size))
            largest = number;
    return largest;
}

static uint64_t trim(strata_layer_t *base, uint64_t keep, strata_path_t *path) {
    auto_growth_t *self = (auto_growth_t *)base;
    uint64_t released = 0;
    for (uint32_t number; idle_bytes(base) > keep && (number = largest_idle(self)) != 0;)
        released += give_back_idle(self, number, path);
    return released;
}

static void free_block(strata_layer_t *base, strata_record_t *block, strata_path_t *path) {
    auto_growth_t *self = (auto_growth_t *)base;
    uint32_t number = block->chunk;
    uint32_t slot = put_back(self, block, self->by_address);
    if (slot == 0 || !self->gives_idle_back || !is_idle(self, chunk_at(self, number))) return;
    (void)give_back_idle(self, number, path);
}

/* ---- growth ---- */

/* A chunk that came from below becomes one free block. The lock is held; false: no slot or node is left (E_LIMIT). */
static bool publish(auto_growth_t *self, strata_record_t *below) {
    strata_slab_t *slab = slab_of(self);
    uint32_t number = strata_nodes_take(&self->chunks), slot = number ? strata_slab_take(slab) : 0;
    if (slot == 0) {
        if (number) strata_nodes_give(&self->chunks, number);
        strata_fail(STRATA_E_LIMIT, 0, "a stack holds %u chunks or %u blocks, its most", self->chunks.capacity, slab->capacity);
        return false;
    }
    *chunk_at(self, number) = (chunk_t){.below = below, .base = below->ptr, .size = below->size, .first = slot};
    list_chunk(self, number);
    strata_record_t *block = strata_slab_record(slab, slot);
    *block = (strata_record_t){.ptr = below->ptr, .size = below->size, .generation = block->generation, .home = slab->home,
                               .stack = slab->home, .chunk = number, .state = STRATA_RECORD_FREE};
    index_insert(self, slot, self->by_address);
    strata_statistics_t *f = &self->base.stack->figures;
    f->growths++;
    f->chunks++;
    f->reserved_bytes += below->size;
    if (f->reserved_bytes > f->peak_reserved_bytes) f->peak_reserved_bytes = f->reserved_bytes;
    return true;
}

/* Asks below for a chunk, with the locks open, and publishes it. */
static strata_status_t grow(auto_growth_t *self, uint64_t size, const strata_request_t *request) {
    strata_record_t *below;
    strata_opened_t opened = strata_path_unlock(request->path);
    strata_request_t chunk = *request;
    chunk.alignment = strata_max(self->unit, request->alignment);
    strata_status_t status = strata_chunk_allocate(&self->base, size, &chunk, &below);
    if (status == STRATA_OK && (below->ptr & (self->unit - 1)) != 0) {
        strata_chunk_free(below);
        status = strata_fail(STRATA_E_UNSUPPORTED, 0, "the layer below gives chunks at smaller multiples than %llu bytes",
                             (unsigned long long)self->unit);
    }
    strata_path_lock(request->path, opened);
    if (status != STRATA_OK || publish(self, below)) return status;
    opened = strata_path_unlock(request->path);
    strata_chunk_free(below);
    strata_path_lock(request->path, opened);
    return STRATA_E_LIMIT;
}

/* What a miss asks from below, or 0 when the request allows no growth of that kind. */
static uint64_t growth_size(const auto_growth_t *self, uint64_t rounded, uint32_t flags) {
    const auto_growth_options_t *o = options_of(self);
    if (flags & STRATA_NO_GROW) return 0;
    uint64_t chunk_size = strata_round_down(o->chunk_size + self->unit - 1, self->unit);
    uint64_t full = strata_max(rounded, chunk_size);
    if (!(flags & STRATA_SMALL_GROWTH)) return full;
    /* The small size is worth a call only where it is smaller than what was refused before. */
    return o->smaller_growth && rounded < full ? rounded : 0;
}

static strata_status_t grow_as_the_options_say(auto_growth_t *self, uint64_t size, const strata_request_t *request) {
    const auto_growth_options_t *o = options_of(self);
    if (o->free_when_no_cache_hit) (void)release(&self->base, request->path);
    strata_status_t status = grow(self, size, request);
    if (status != STRATA_E_NO_MEMORY || o->free_when_no_cache_hit || o->reclaim != RECLAIM_OWN) return status;
    (void)release(&self->base, request->path);
    return grow(self, size, request);
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    auto_growth_t *self = (auto_growth_t *)base;
    uint64_t rounded;
    bool grown = false;
    if (request->alignment > self->unit)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "auto_growth serves alignments up to %llu", (unsigned long long)self->unit);
    if (!strata_round_up(request->size, self->unit, &rounded)) return strata_fail(STRATA_E_INVALID, 0, "the size is too large");
    while ((*record = hit_any(self, rounded, request->size)) == NULL) {
        uint64_t size = growth_size(self, rounded, request->flags);
        if (size == 0)
            return strata_fail(STRATA_E_NO_MEMORY, 0, "no free block of %llu bytes, and no growth is allowed",
                               (unsigned long long)rounded);
        if (self->growing) {
            self->waiting++;
            strata_path_wait(request->path, base->stack, &self->grown, UINT64_MAX);
            self->waiting--;
            continue;
        }
        if (strata_patience_holds_back(request->path, base->stack, size))
            return strata_fail(STRATA_E_NO_MEMORY, 0, "growth by %llu bytes waits for memory that is freed already",
                               (unsigned long long)size);
        if (self->growing) continue;
        self->growing = true;
        strata_status_t status = grow_as_the_options_say(self, size, request);
        self->growing = false;
        if (self->waiting) strata_condition_broadcast(&self->grown);
        if (status != STRATA_OK) return status;
        grown = true;
    }
    if (grown) base->stack->figures.cache_hits--;
    return STRATA_OK;
}

/* ---- life ---- */

static strata_status_t check(const void *options_given, strata_place_kind_t place, const char **option) {
    const auto_growth_options_t *o = options_given;
    unsigned least = place == STRATA_PLACE_HOST ? 64 : 256;
    if (strata_is_power_of_two(o->alignment) && o->alignment >= least) return STRATA_OK;
    *option = "alignment";
    return strata_fail(STRATA_E_STRATEGY, 0, "%llu is no alignment that this place can be served with; write a power of two of at "
                       "least %u", (unsigned long long)o->alignment, least);
}

static strata_status_t create(strata_layer_t *base) {
    auto_growth_t *self = (auto_growth_t *)base;
    const auto_growth_options_t *o = base->options;
    self->unit = o->alignment;
    self->by_address = o->order == ORDER_ADDRESS;
    self->gives_idle_back = o->free_idle_chunk;
    strata_bins_init(&self->bins, (uint32_t)__builtin_ctzll(self->unit));
    strata_condition_init(&self->grown);
    strata_status_t status = strata_nodes_init(&self->chunks, sizeof(chunk_t), CHUNKS);
    if (status != STRATA_OK) strata_condition_destroy(&self->grown);
    return status;
}

/* Every chunk goes back, whatever is still live in it. */
static void destroy(strata_layer_t *base) {
    auto_growth_t *self = (auto_growth_t *)base;
    while (self->first_chunk) strata_chunk_free(unlist_chunk(self, self->first_chunk));
    strata_condition_destroy(&self->grown);
    strata_nodes_destroy(&self->chunks);
}

static const strata_record_t *chunk_of(strata_layer_t *base, const strata_record_t *block) {
    return chunk_at((auto_growth_t *)base, block->chunk)->below;
}

static void walk(strata_layer_t *base, strata_walk_fn block, void *context) {
    auto_growth_t *self = (auto_growth_t *)base;
    for (uint32_t number = self->first_chunk; number; number = chunk_at(self, number)->next)
        for (uint32_t slot = chunk_at(self, number)->first; slot; slot = strata_slab_record(slab_of(self), slot)->next)
            block(strata_slab_record(slab_of(self), slot), context);
}

static const strata_record_t *find_block(strata_layer_t *base, uint64_t address) {
    auto_growth_t *self = (auto_growth_t *)base;
    uint32_t number = self->first_chunk;
    while (number && address - chunk_at(self, number)->base >= chunk_at(self, number)->size) number = chunk_at(self, number)->next;
    if (!number) return NULL;
    const strata_record_t *block = strata_slab_record(slab_of(self), chunk_at(self, number)->first);
    while (address - block->ptr >= block->size) block = strata_slab_record(slab_of(self), block->next);
    return block;
}

/* ---- validate ---- */

static strata_status_t corrupt(const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "auto_growth: %s (slot %u)", what, slot);
}

typedef struct tally {
    uint64_t free_bytes, chunk_bytes;
    uint32_t free_blocks, chunks;
} tally_t;

/* The blocks of a chunk lie one behind the other from its base to its end, no two free ones side by side. */
static strata_status_t validate_chunk(auto_growth_t *self, uint32_t number, tally_t *tally) {
    strata_slab_t *slab = slab_of(self);
    const chunk_t *chunk = chunk_at(self, number);
    uint64_t at = chunk->base;
    uint32_t previous = 0;
    bool was_free = false;
    for (uint32_t slot = chunk->first; slot; slot = strata_slab_record(slab, slot)->next) {
        if (slot >= slab->used) return corrupt("a link leads out of the slab", previous);
        const strata_record_t *block = strata_slab_record(slab, slot);
        if (block->ptr != at) return corrupt("a block does not begin where the one before it ends", slot);
        if (block->prev != previous) return corrupt("a block's link back is wrong", slot);
        if (block->chunk != number) return corrupt("a block names another chunk", slot);
        if (block->size == 0 || block->size > chunk->base + chunk->size - at) return corrupt("a block's size is wrong", slot);
        if (block->state == STRATA_RECORD_UNUSED) return corrupt("an unused slot is linked", slot);
        bool is_free = block->state == STRATA_RECORD_FREE;
        if (is_free && was_free) return corrupt("two free blocks were not merged", slot);
        tally->free_bytes += is_free ? block->size : 0;
        tally->free_blocks += is_free;
        at += block->size;
        was_free = is_free;
        previous = slot;
    }
    if (at != chunk->base + chunk->size) return corrupt("the blocks do not fill their chunk", previous);
    tally->chunk_bytes += chunk->size;
    tally->chunks++;
    return STRATA_OK;
}

static strata_status_t validate(strata_layer_t *base) {
    auto_growth_t *self = (auto_growth_t *)base;
    tally_t tally = {0};
    for (uint32_t number = self->first_chunk; number; number = chunk_at(self, number)->next) {
        if (tally.chunks >= CHUNKS) return corrupt("the list of chunks is a circle", 0);
        strata_status_t status = validate_chunk(self, number, &tally);
        if (status != STRATA_OK) return status;
    }
    const strata_statistics_t *f = &base->stack->figures;
    if (tally.chunks != f->chunks || tally.chunk_bytes != f->reserved_bytes) return corrupt("the sum of chunks is wrong", 0);
    if (tally.free_bytes != idle_bytes(base)) return corrupt("the sum of free blocks is wrong", 0);
    if (!self->by_address) return strata_bins_validate(&self->bins, slab_of(self), tally.free_blocks, tally.free_bytes);
    if (tally.free_blocks != self->tree.count || tally.free_bytes != self->tree.bytes)
        return corrupt("the sum of the tree is wrong", 0);
    return strata_tree_validate(&self->tree, slab_of(self));
}

const strata_layer_type_t strata_auto_growth_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "auto_growth",
    .doc = "best fit over chunks, one more chunk whenever nothing fits (Paddle's auto_growth_best_fit)",
    .role = STRATA_CACHE,
    .scope = STRATA_SCOPE_STREAM,
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SUB_ALLOCATES | STRATA_TRAIT_SINGLE_STREAM,
    .guarded = true,
    .state_size = sizeof(auto_growth_t),
    .options_size = sizeof(auto_growth_options_t),
    .options = options,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_block,
    .hit = hit,
    .quick_free = quick_free,
    .release = release,
    .trim = trim,
    .find = find_block,
    .walk = walk,
    .chunk_of = chunk_of,
    .idle_bytes = idle_bytes,
    .validate = validate,
    .check = check,
};
