#include "tests/gpu/handles.h"

#include <dlfcn.h>
#include <string.h>

#include "tests/graphs/graphs.h"
#include "tests/mechanism/mechanism.h"

#define EXACT "stack: [stream_safe, auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]\n"

enum { LIVE = 24, STEPS = 600 };

/* ---- contents ---- */

typedef int (*copy_fn)(void *to, uint64_t from, size_t bytes);

/* The device contract has no copy: a simulated device shows its memory, the driver copies. */
static uint8_t byte_at(strata_device_t *device, uint64_t address) {
    uint8_t byte = 0;
    const uint8_t *seen = strata_device_host_view(device, address, 1);
    if (seen) return *seen;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    copy_fn copy = driver ? (copy_fn)(uintptr_t)dlsym(driver, "cuMemcpyDtoH_v2") : NULL;
    if (!copy || copy(&byte, address, 1) != 0) FAIL_TEST("memory of the device cannot be read");
    if (driver) dlclose(driver);
    return byte;
}

static void fill(rig_t *rig, const strata_block_t *block, uint8_t byte, strata_stream_t stream) {
    EXPECT_OK(strata_device_fill(rig->devices[0], (uintptr_t)block->ptr, byte, block->size, stream));
}

/* The first byte, the last one and some between. */
static void expect_filled(rig_t *rig, const strata_block_t *block, uint8_t byte) {
    enum { LOOKS = 9 };
    for (uint64_t i = 0; i < LOOKS; i++)
        EXPECT_EQ(byte_at(rig->devices[0], (uintptr_t)block->ptr + (block->size - 1) * i / (LOOKS - 1)), byte);
}

/* ---- figures ---- */

static void add_joins(const strata_layer_figure_t *figure, void *joins) {
    if (strcmp(figure->name, "joins") == 0) *(uint64_t *)joins += figure->value;
}

static uint64_t joins_of(rig_t *rig) {
    uint64_t joins = 0;
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, add_joins, &joins));
    return joins;
}

/* ---- programs ---- */

typedef struct held {
    strata_block_t blocks[LIVE];
    uint64_t bytes, most; /* now, and at most */
} held_t;

/* From 4 KiB to 16 MiB, small ones as often as large ones. */
static size_t draw_size(uint64_t *random) { return (size_t)((4096ull << random_below(random, 13)) - random_below(random, 4096)); }

static void replace(rig_t *rig, held_t *held, uint32_t at, size_t size) {
    strata_block_t *block = &held->blocks[at];
    if (block->ref) {
        expect_filled(rig, block, (uint8_t)(at + 1));
        held->bytes -= block->size;
        EXPECT_OK(strata_free(rig->s, block->ref));
    }
    *block = (strata_block_t){0};
    if (size == 0) return;
    *block = rig_allocate(rig, NULL, size);
    fill(rig, block, (uint8_t)(at + 1), NULL);
    held->bytes += block->size;
    if (held->bytes > held->most) held->most = held->bytes;
}

void handles_keep_contents_while_they_are_joined(strata_device_t *device) {
    captured_t c;
    captured_open_on(&c, EXACT, device);
    uint64_t random = 20261124;
    held_t held = {0};
    for (int i = 0; i < STEPS; i++) {
        uint32_t at = (uint32_t)random_below(&random, LIVE);
        replace(&c.rig, &held, at, draw_size(&random));
    }
    EXPECT_GT(joins_of(&c.rig), 0);
    EXPECT_LE(rig_figures(&c.rig).peak_reserved_bytes, held.most + held.most / 4);
    for (uint32_t at = 0; at < LIVE; at++) replace(&c.rig, &held, at, 0);
    captured_close(&c);
}

/* The work uses the memory by its own address while it is served again at that of a view, in stream order. */
void handles_join_beside_running_work(strata_device_t *device) {
    enum { LONG = 100 * 1000 * 1000, PIECES = 16 };
    captured_t c;
    captured_open_on(&c, EXACT, device);
    strata_block_t blocks[PIECES];
    strata_handle_t ended;
    for (int i = 0; i < PIECES; i++) blocks[i] = rig_allocate(&c.rig, c.stream, 4 * MIB);
    EXPECT_OK(strata_device_event_create(device, &ended));
    EXPECT_OK(strata_device_work(device, c.stream, LONG, NULL, 0));
    for (int i = 0; i < PIECES; i += 2) fill(&c.rig, &blocks[i], 7, c.stream);
    EXPECT_OK(strata_device_event_record(device, ended, c.stream));
    for (int i = 0; i < PIECES; i += 2) EXPECT_OK(strata_free(c.rig.s, blocks[i].ref));
    strata_block_t large = rig_allocate(&c.rig, c.stream, 20 * MIB);
    EXPECT_EQ(strata_device_event_query(device, ended), STRATA_E_NOT_READY);
    EXPECT_GT(joins_of(&c.rig), 0);
    fill(&c.rig, &large, 9, c.stream);
    EXPECT_OK(strata_stream_synchronize(c.rig.s, c.rig.gpu, c.stream));
    expect_filled(&c.rig, &large, 9);
    for (int i = 1; i < PIECES; i += 2) EXPECT_OK(strata_free(c.rig.s, blocks[i].ref));
    EXPECT_OK(strata_free(c.rig.s, large.ref));
    EXPECT_OK(strata_device_event_destroy(device, ended));
    captured_close(&c);
}

void handles_go_back_to_the_device(strata_device_t *device) {
    uint64_t before, during, after, total;
    captured_t c;
    captured_open_on(&c, EXACT, device);
    EXPECT_OK(strata_device_mem_info(device, &before, &total));
    strata_block_t block = rig_allocate(&c.rig, NULL, 256 * MIB);
    EXPECT_OK(strata_device_mem_info(device, &during, &total));
    EXPECT_LE(during + 256 * MIB, before);
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
    EXPECT_OK(strata_device_mem_info(device, &after, &total));
    EXPECT_GE(after, during + 256 * MIB);
    captured_close(&c);
}

void handles_are_fit_to_be_registered(strata_device_t *device) {
    static const size_t sizes[] = {1 << 20, 4 << 20, 25 << 20, 100 << 20};
    captured_t c;
    captured_open_on(&c, "stack: [stream_safe, auto_growth: {chunk_size: 20MiB}, vmm: {registrable: true}]\n", device);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        strata_block_t block = rig_allocate(&c.rig, NULL, sizes[i]);
        strata_registration_t registration = {0};
        EXPECT_OK(strata_register(c.rig.s, block.ref, &registration));
        EXPECT_EQ(registration.handles, 1);
        EXPECT_EQ((uintptr_t)registration.base % device->capabilities.granularity, 0);
        EXPECT_EQ(registration.base_size % device->capabilities.granularity, 0);
        EXPECT_OK(strata_unregister(c.rig.s, &registration));
        EXPECT_OK(strata_free(c.rig.s, block.ref));
    }
    captured_close(&c);
}

/* By the same process, whose blocks lie there already: it sees one memory at two addresses. */
void handles_are_imported_beside_their_block(strata_device_t *device) {
    captured_t c;
    strata_shared_t shared = {0};
    strata_imported_t there = {0};
    captured_open_on(&c, EXACT, device);
    strata_block_t block = rig_allocate(&c.rig, NULL, 5 * MIB);
    fill(&c.rig, &block, 5, NULL);
    EXPECT_OK(strata_export(c.rig.s, block.ref, &shared));
    EXPECT_OK(strata_import(c.rig.s, c.rig.gpu, &shared, &there));
    strata_shared_close(&shared);
    ASSERT_NE(there.ptr, NULL);
    EXPECT_TRUE(there.ptr != block.ptr);
    EXPECT_EQ(there.size, block.size);
    EXPECT_OK(strata_device_synchronise(device));
    EXPECT_EQ(byte_at(device, (uintptr_t)there.ptr + there.size - 1), 5);
    EXPECT_OK(strata_import_end(c.rig.s, there.id));
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    captured_close(&c);
}
