/* What authors reach from strata/layer.h alone: caches made of the mechanism and by hand, and memory that others made. */
#include <dlfcn.h>

#include "strata/layer.h"
#include "tests/facade/support/fixture.h"
#include "tests/harness/test.h"
#include "tests/paths.h"

#define MODULES STRATA_BINARY_DIR "/modules/"

static strata_t open_text(const char *text) {
    strata_open_options_t options = {.struct_size = sizeof options,
                                     .text = text,
                                     .devices = "sim",
                                     .flags = STRATA_OPEN_ALLOW_CODE | STRATA_OPEN_IGNORE_ENVIRONMENT};
    strata_t s = 0;
    EXPECT_OK(strata_open(&options, &s));
    return s;
}

static strata_statistics_t figures_of(strata_t s, strata_place_t place) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(s, place, &figures));
    return figures;
}

/* Hits, growths, chunks and reserved bytes are counted as those of the tree's own caches. */
static void expect_figures(const char *stack) {
    strata_block_t a, b;
    strata_t s = open_text(stack);
    EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, 1000, &a));
    EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, 1000, &b));
    EXPECT_OK(strata_free(s, a.ref));
    EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, 900, &a));
    strata_statistics_t f = figures_of(s, strata_gpu(0));
    EXPECT_EQ(f.growths, 1);
    EXPECT_EQ(f.chunks, 1);
    EXPECT_EQ(f.cache_hits, 2);
    EXPECT_GE(f.reserved_bytes, 64 << 10);
    EXPECT_OK(strata_free(s, a.ref));
    EXPECT_OK(strata_free(s, b.ref));
    EXPECT_OK(strata_release(s, strata_gpu(0), NULL));
    f = figures_of(s, strata_gpu(0));
    EXPECT_EQ(f.chunks, 0);
    EXPECT_EQ(f.reserved_bytes, 0);
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
}

TEST(reach, a_cache_outside_has_every_figure) {
    expect_figures("load: [" MODULES "segregated_fit.so]\nstack: [stream_safe, segregated_fit, system]\n");
    expect_figures("load: [" MODULES "slots.so]\nstack: [stream_safe, slots, system]\n");
}

/* Nothing above it takes part in a hit: the short way serves, and says the same route. */
TEST(reach, a_cache_outside_is_hit_the_short_way) {
    char text[256];
    strata_block_t first, again;
    strata_t s = open_text("load: [" MODULES "segregated_fit.so]\nstack: [retry, stream_safe, segregated_fit, system]\n");
    EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, 5000, &first));
    EXPECT_OK(strata_free(s, first.ref));
    EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, 5000, &again));
    EXPECT_EQ(again.ptr, first.ptr);
    EXPECT_OK(strata_allocation_route(s, again.ref, text, sizeof text));
    EXPECT_STREQ(text, "retry > stream_safe > segregated_fit | system");
    EXPECT_OK(strata_free(s, again.ref));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
}

/* ---- chunks that touch ---- */

enum { ROOM = 64 << 20 };

typedef struct adjacent {
    strata_layer_t base;
    uint64_t address, used;
} adjacent_t;

static strata_status_t create(strata_layer_t *base) {
    const strata_request_t none = {.size = 0};
    return strata_layer_allocate_memory(base, &none, ROOM, 256, &((adjacent_t *)base)->address);
}

static void destroy(strata_layer_t *base) { EXPECT_OK(strata_layer_free_memory(base, ((adjacent_t *)base)->address, ROOM)); }

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    adjacent_t *self = (adjacent_t *)base;
    *record = strata_record_new(base, request, self->address + self->used, request->size);
    self->used += *record ? request->size : 0;
    return *record ? STRATA_OK : STRATA_E_LIMIT;
}

static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    (void)call;
    strata_record_delete(base, record);
}

static const strata_layer_type_t adjacent_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "adjacent",
    .doc = "cuts one piece of memory",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_EXACT_SIZE | STRATA_TRAIT_CONTIGUOUS,
    .guarded = true,
    .state_size = sizeof(adjacent_t),
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
};

TEST(reach, a_cache_outside_cuts_across_chunks_that_touch) {
    strata_block_t blocks[4], across;
    (void)strata_register_layer(&adjacent_type);
    strata_t s = open_text("load: [" MODULES "segregated_fit.so]\nstack: [segregated_fit: {chunk_size: 64KiB}, adjacent]\n");
    for (int i = 0; i < 4; i++) {
        EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, 40 << 10, &blocks[i]));
        EXPECT_OK(strata_validate(s));
    }
    for (int i = 0; i < 4; i++) {
        EXPECT_OK(strata_free(s, blocks[i].ref));
        EXPECT_OK(strata_validate(s));
    }
    uint64_t growths = figures_of(s, strata_gpu(0)).growths;
    EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, 120 << 10, &across));
    EXPECT_EQ(figures_of(s, strata_gpu(0)).growths, growths);
    EXPECT_OK(strata_free(s, across.ref));
    EXPECT_OK(strata_release(s, strata_gpu(0), NULL));
    EXPECT_EQ(figures_of(s, strata_gpu(0)).chunks, 0);
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
}

/* ---- memory that others made ---- */

static unsigned *adopted_live(void) {
    void *object = dlopen(MODULES "adopting.so", RTLD_NOW | RTLD_NOLOAD);
    unsigned *live = object ? dlsym(object, "adopted_live") : NULL;
    if (object) (void)dlclose(object);
    return live;
}

/* The memory is the deleter's once its block has been freed, by ref or by pointer, or the facade is closed by force. */
TEST(reach, adopted_memory_goes_back_to_its_deleter) {
    strata_block_t blocks[3];
    strata_t s = open_text("load: [" MODULES "adopting.so]\nstack: [system]\nplaces: {host: [adopting]}\n");
    unsigned *live = adopted_live();
    ASSERT_TRUE(live);
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_allocate(s, strata_host(), NULL, 1000, &blocks[i]));
    memset(blocks[0].ptr, 1, blocks[0].size);
    EXPECT_EQ(*live, 3);
    EXPECT_EQ(figures_of(s, strata_host()).reserved_bytes, 3 * blocks[0].size);
    EXPECT_OK(strata_free(s, blocks[0].ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(s, blocks[0].ref));
    EXPECT_OK(strata_free_pointer(s, blocks[1].ptr));
    EXPECT_EQ(*live, 1);
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(s, blocks[1].ptr));
    EXPECT_EQ(figures_of(s, strata_host()).reserved_bytes, blocks[2].size);
    EXPECT_OK(strata_close(s, STRATA_CLOSE_FORCE, NULL, NULL));
    EXPECT_EQ(*live, 0);
}

TEST(reach, adopted_memory_counts_against_the_limit) {
    strata_block_t block;
    strata_t s = open_text("load: [" MODULES "adopting.so]\nstack: [system]\nplaces: {host: [adopting]}\n");
    EXPECT_OK(strata_set_limit(s, strata_host(), 4096));
    EXPECT_OK(strata_allocate(s, strata_host(), NULL, 4096, &block));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(s, strata_host(), NULL, 64, &block));
    EXPECT_EQ(*adopted_live(), 1);
    EXPECT_OK(strata_close(s, STRATA_CLOSE_FORCE, NULL, NULL));
}

static strata_adopted_t offered;

static strata_status_t adopt_offered(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    return strata_record_adopt(self, request, &offered, record);
}

static const strata_layer_type_t offering_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "offering",
    .doc = "adopts what the test offers",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .guarded = true,
    .state_size = sizeof(strata_layer_t),
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_adopted,
    .allocate = adopt_offered,
    .free = strata_layer_free_adopted,
};

static void count_return(uint64_t address, size_t size, void *context) {
    EXPECT_EQ(address, offered.address);
    EXPECT_EQ(size, offered.size);
    ++*(unsigned *)context;
}

/* After a refusal the memory is the layer's as before, and counts as nobody's. */
TEST(reach, adopted_memory_that_is_refused_stays_where_it_is) {
    unsigned returned = 0;
    strata_block_t block;
    (void)strata_register_layer(&offering_type);
    RIG(rig, "stack:\n  - offering\n", 0);
    offered = (strata_adopted_t){UINT64_C(1) << 40, 4096, count_return, &returned};
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocate(rig.s, rig.gpu, NULL, 4097, &block));
    offered.address += 64;
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocate(rig.s, rig.gpu, NULL, 4096, &block));
    offered.address -= 64;
    block = rig_allocate(&rig, NULL, 4000);
    EXPECT_EQ((uintptr_t)block.ptr, offered.address);
    EXPECT_EQ(block.size, 4096);
    strata_slab_t *slab = &strata_stack_of(strata_ref_home(block.ref))->slab;
    uint32_t held = slab->used - slab->unused;
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_EQ(returned, 1);
    EXPECT_EQ(slab->used - slab->unused, held - 1);
    uint32_t capacity = slab->capacity, taken[8], count = 0;
    slab->capacity = slab->used;
    while (slab->unused && count < 8) taken[count++] = strata_slab_acquire(slab);
    EXPECT_STATUS(STRATA_E_LIMIT, strata_allocate(rig.s, rig.gpu, NULL, 4096, &block));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    EXPECT_EQ(returned, 1);
    while (count) strata_slab_release(slab, taken[--count]);
    slab->capacity = capacity;
    offered.deleter = NULL;
    block = rig_allocate(&rig, NULL, 4096);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 4096);
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    EXPECT_EQ(returned, 1);
}

/* ---- captures ---- */

static strata_status_t careful_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_status_t status = strata_layer_refuse_captured(self, request->stream);
    return status == STRATA_OK ? strata_below_allocate(self, request, record) : status;
}

static const strata_layer_type_t careful_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "careful",
    .doc = "works on no stream that is being captured",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_NONE,
    .passes = ~0u,
    .state_size = sizeof(strata_layer_t),
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = careful_allocate,
    .free = strata_layer_free_below,
};

TEST(reach, a_layer_outside_knows_captures) {
    (void)strata_register_layer(&careful_type);
    RIG(rig, "stack: [careful, auto_growth, system]\n", 0);
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t block;
    rig_begin_capture(&rig, stream);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_allocate(rig.s, rig.gpu, stream, 1000, &block));
    rig_end_capture(&rig, stream);
    block = rig_allocate(&rig, stream, 1000);
    EXPECT_OK(strata_free(rig.s, block.ref));
}
