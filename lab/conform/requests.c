/* Checks the path of a request: it reaches the bottom of the stack unchanged. The served block is memory of
 * the right device, belongs to no other stack, and is not in use by earlier work. */
#include "lab/conform/requests.h"

#include "lab/conform/rig/source.h"

#define LONG (1000ull * 1000)

enum { BLOCKS = 32, ROUNDS = 4 };

/* Each request is larger than the ones before, so that a cache must request memory from the layer below each time. */
void the_bottom_sees_the_request(const subject_t *subject) {
    static const size_t sizes[] = {700, 3 * MIB, 24 * MIB, 65 * MIB};
    rig_t rig;
    if (!subject->test_source) return;
    subject_open(subject, 0, &rig);
    strata_stream_t streams[] = {rig_stream(&rig), NULL, rig_stream(&rig)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t s = 0; s < sizeof streams / sizeof *streams; s++) {
            strata_allocate_options_t options = {
                .struct_size = sizeof options, .size = sizes[i], .flags = i % 2 ? STRATA_NO_RETRY : 0, .tag = s ? "the tag" : NULL};
            strata_block_t block = {.ref = 0};
            test_source_expect(&(strata_request_t){
                .size = options.size, .alignment = 256, .stream = streams[s], .flags = options.flags, .tag = options.tag});
            rig_expect_served(&rig, options.size, strata_allocate_with(rig.s, rig.gpu, streams[s], &options, &block));
            EXPECT_STREQ(test_source_difference(), "");
            rig_register(&rig, block.ref);
        }
    }
    test_source_expect(NULL);
    rig_finish(&rig);
}

/* ---- bytes ---- */

typedef struct filled {
    strata_block_t block; /* ref is 0 if it was not served */
    uint8_t byte;
} filled_t;

/* The device refuses to write to addresses that are not its memory. */
static void fill(rig_t *rig, strata_device_t *device, strata_stream_t stream, size_t size, uint8_t byte, filled_t *filled) {
    *filled = (filled_t){.block = rig_allocate(rig, stream, size), .byte = byte};
    if (filled->block.ref == 0) return;
    strata_status_t status = strata_device_fill(device, (uintptr_t)filled->block.ptr, byte, filled->block.size, stream);
    if (status != STRATA_OK)
        FAIL_TEST("a block of %zu bytes at %p is not memory of its device: %s", filled->block.size, filled->block.ptr,
                  strata_last_error()->text);
}

static void expect_kept(strata_device_t *device, const filled_t *filled) {
    const uint8_t *bytes = filled->block.ref ? strata_device_host_view(device, (uintptr_t)filled->block.ptr, filled->block.size)
                                             : NULL;
    if (!bytes) return;
    size_t at = 0;
    while (at < filled->block.size && bytes[at] == filled->byte) at++;
    if (at < filled->block.size)
        FAIL_TEST("byte %zu of a live block of %zu bytes changed to %u, though the program did not write there", at,
                  filled->block.size, bytes[at]);
}

/* Runs on the second of two simulated devices with real contents. It is small, because a layer may fill a
 * chunk of nearly that size. */
void bytes_of_a_block_are_its_own(const subject_t *subject) {
    static filled_t blocks[BLOCKS];
    rig_t rig;
    if (subject->other_memory) return;
    subject_open_with(subject, &(strata_sim_options_t){.devices = 2, .capacity = 256 * MIB, .contents = true}, &rig);
    rig.gpu = strata_gpu(1);
    strata_stream_t streams[] = {rig_stream(&rig), rig_stream(&rig)};
    uint64_t random = conform_random(31);
    memset(blocks, 0, sizeof blocks);
    for (uint32_t turn = 0; turn < ROUNDS * BLOCKS && !strata_test_has_failed(); turn++) {
        filled_t *at = &blocks[conform_draw(&random) % BLOCKS];
        size_t size = 1 + (size_t)(conform_draw(&random) % (turn % 8 ? 5000 : 400000));
        expect_kept(rig.devices[1], at);
        if (at->block.ref) EXPECT_OK(strata_free(rig.s, at->block.ref));
        fill(&rig, rig.devices[1], streams[turn % 2], size, (uint8_t)(1 + turn % 250), at);
    }
    for (uint32_t i = 0; i < BLOCKS; i++) {
        expect_kept(rig.devices[1], &blocks[i]);
        if (blocks[i].block.ref) EXPECT_OK(strata_free(rig.s, blocks[i].block.ref));
    }
    rig_close(&rig);
}

/* ---- order ---- */

/* The blocks have no borrowers, so only the work of their own stream must be over. */
void other_streams_begin_after_its_work(const subject_t *subject) {
    static const size_t sizes[] = {900, 60000, 3 * MIB};
    rig_t rig;
    subject_open(subject, 0, &rig);
    strata_stream_t owner = rig_stream(&rig), other = rig_stream(&rig);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        strata_block_t freed = rig_allocate(&rig, owner, sizes[i]);
        rig_work(&rig, owner, LONG, freed.ref);
        uint64_t done = strata_sim_stream_end(rig.devices[0], owner);
        EXPECT_OK(strata_free(rig.s, freed.ref));
        strata_block_t next = rig_allocate(&rig, other, sizes[i]);
        if (rig_overlap(&freed, &next)) {
            rig_work(&rig, other, 1, 0);
            EXPECT_TRUE(strata_sim_now(rig.world) >= done || strata_sim_stream_end(rig.devices[0], other) >= done);
        }
        EXPECT_OK(strata_free(rig.s, next.ref));
    }
    rig_close(&rig);
}
