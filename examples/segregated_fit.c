/* A cache written outside Strata's tree: segregated fit. Free blocks are in lists by size, four lists for each power of two. A
 * bit for each list is set if it has blocks. A request searches the list of its own size for a block that fits. If there is none,
 * it takes the first block of the next list that has one, since all blocks there fit. Build and test it with
 *     cc -O2 -shared -fPIC segregated_fit.c $(pkg-config --cflags strata) -o libsegregated_fit.so
 *     strata conform ./libsegregated_fit.so && strata torture --layers ./libsegregated_fit.so
 *
 * A strategy beside the object: load: [./libsegregated_fit.so]
 *                               stack: [retry, stream_safe, segregated_fit: {chunk_size: 20MiB}, system]
 *
 * strata_chunked_*() handles chunks, growth, splitting and coalescing. This file is the index of free blocks. */
#include <stddef.h>
#include <strata/layer.h>

enum { UNIT = 256, UNIT_BITS = 8, LISTS = 192, WORDS = LISTS / 64 };

typedef struct options {
    uint64_t chunk_size;
} options_t;

static const strata_option_row_t option_rows[] = {
    {"chunk_size", STRATA_OPTION_SIZE, offsetof(options_t, chunk_size), "20MiB", UNIT, 1ull << 40, NULL, "smallest growth"},
    {0},
};

/* One instance for each stream, zeroed before create(). Every function runs under its stack's lock. */
typedef struct segregated_fit {
    strata_chunked_t cache; /* always first */
    uint64_t filled[WORDS]; /* bit n is set if list n has blocks */
    uint32_t first[LISTS]; /* slots; blocks are linked by bin_next and bin_prev */
    uint64_t bytes; /* in all lists */
} segregated_fit_t;

static const strata_stat_row_t figure_rows[] = {
    {"free_bytes", "bytes", offsetof(segregated_fit_t, bytes), "in the lists of free blocks"},
    {0},
};

/* The highest bit of a size is its power of two. The two bits after it select one of the four lists. */
static uint32_t list_of(uint64_t size) {
    uint32_t power = 63 - (uint32_t)__builtin_clzll(size);
    return (power - UNIT_BITS) * 4 + (uint32_t)(size >> (power - 2) & 3);
}

/* Returns the first list from `list` on that has blocks, or LISTS. */
static uint32_t next_filled(const segregated_fit_t *self, uint32_t list) {
    for (; list < LISTS; list = (list / 64 + 1) * 64) {
        uint64_t bits = self->filled[list / 64] >> list % 64;
        if (bits) return list + (uint32_t)__builtin_ctzll(bits);
    }
    return LISTS;
}

static void insert(strata_layer_t *base, strata_record_t *block) {
    segregated_fit_t *self = (segregated_fit_t *)base;
    uint32_t list = list_of(block->size), slot = strata_record_slot(base, block);
    block->bin_prev = 0;
    block->bin_next = self->first[list];
    strata_record_at(base, block->bin_next)->bin_prev = slot; /* writing to slot 0 has no effect */
    self->first[list] = slot;
    self->filled[list / 64] |= 1ull << list % 64;
    self->bytes += block->size;
}

static void take_out(strata_layer_t *base, strata_record_t *block) {
    segregated_fit_t *self = (segregated_fit_t *)base;
    uint32_t list = list_of(block->size);
    strata_record_at(base, block->bin_next)->bin_prev = block->bin_prev;
    if (block->bin_prev) strata_record_at(base, block->bin_prev)->bin_next = block->bin_next;
    else self->first[list] = block->bin_next;
    if (!self->first[list]) self->filled[list / 64] &= ~(1ull << list % 64);
    self->bytes -= block->size;
}

static strata_record_t *find(strata_layer_t *base, uint64_t size) {
    segregated_fit_t *self = (segregated_fit_t *)base;
    uint32_t list = list_of(size);
    for (uint32_t slot = self->first[list]; slot; slot = strata_record_at(base, slot)->bin_next)
        if (strata_record_at(base, slot)->size >= size) return strata_record_at(base, slot);
    list = next_filled(self, list + 1);
    return list < LISTS ? strata_record_at(base, self->first[list]) : NULL;
}

static uint64_t growth(strata_layer_t *base, uint64_t size) {
    uint64_t chunk_size = ((const options_t *)base->options)->chunk_size;
    return size > chunk_size ? size : (chunk_size + UNIT - 1) / UNIT * UNIT;
}

static strata_status_t validate(strata_layer_t *base, uint32_t blocks, uint64_t bytes) {
    segregated_fit_t *self = (segregated_fit_t *)base;
    uint32_t count = 0;
    for (uint32_t list = next_filled(self, 0); list < LISTS; list = next_filled(self, list + 1))
        for (uint32_t slot = self->first[list]; slot && count <= blocks; slot = strata_record_at(base, slot)->bin_next, count++)
            if (list_of(strata_record_at(base, slot)->size) != list)
                return strata_fail(STRATA_E_CORRUPT, 0, "segregated_fit: a block is in the list of another size");
    if (count == blocks && self->bytes == bytes) return STRATA_OK;
    return strata_fail(STRATA_E_CORRUPT, 0, "segregated_fit: a free block is in no list");
}

static const strata_chunked_policy_t policy = {.struct_size = sizeof policy,
                                               .unit = UNIT,
                                               .joins_chunks = true,
                                               .insert = insert,
                                               .remove = take_out,
                                               .find = find,
                                               .growth = growth,
                                               .validate = validate};

static strata_status_t create(strata_layer_t *base) { return strata_chunked_create(base, &policy); }

static const strata_layer_type_t segregated_fit_type = {.struct_size = sizeof(strata_layer_type_t),
                                                        .name = "segregated_fit",
                                                        .doc = "free blocks in lists by size, four for each power of two",
                                                        .state_size = sizeof(segregated_fit_t),
                                                        .options_size = sizeof(options_t),
                                                        .options = option_rows,
                                                        .stats = figure_rows,
                                                        .create = create,
                                                        STRATA_CHUNKED_OPERATIONS};

STRATA_LAYERS(&segregated_fit_type);
