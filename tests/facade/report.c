/* The out-of-memory report, word by word. */
#include <stdio.h>

#include "tests/facade/fixture.h"

static strata_block_t allocate_for(rig_t *rig, strata_stream_t stream, const char *tag, size_t size) {
    strata_block_t block = {0};
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .tag = tag};
    EXPECT_OK(strata_allocate_with(rig->s, rig->gpu, stream, &options, &block));
    return block;
}

static char heard[4096];

static void hear(const strata_out_of_memory_t *event, void *context) {
    (void)context;
    snprintf(heard, sizeof heard, "%s", event->text);
}

/* What only this run can know stands in the text as a word: the streams' handles and how long the ladder took. */
static void replace(char *text, const char *from, const char *to) {
    char rest[4096];
    char *at;
    while (*from && (at = strstr(text, from)) != NULL) {
        snprintf(rest, sizeof rest, "%s", at + strlen(from));
        sprintf(at, "%s%s", to, rest);
    }
}

static void expect_report(strata_stream_t one, strata_stream_t two, const char *wanted) {
    static char text[8192];
    char name[32], *took, *end;
    snprintf(text, sizeof text, "%s", strata_last_error()->text);
    EXPECT_STREQ(text, heard);
    snprintf(name, sizeof name, "stream %p", one);
    replace(text, name, "stream ONE");
    snprintf(name, sizeof name, "stream %p", two);
    replace(text, name, "stream TWO");
    replace(text, "stream (nil)", "stream NULL");
    if ((took = strstr(text, "; it took ")) != NULL && (end = strchr(took, '\n')) != NULL) memmove(took, end, strlen(end) + 1);
    EXPECT_STREQ(text, wanted);
}

TEST(facade_report, says_who_holds_what_and_what_was_tried) {
    static const char *const set[] = {"retry.timeout=1ms"};
    rig_t rig;
    rig_open(&rig, "paddle", set, 1, 256 * MIB, 1);
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    EXPECT_OK(strata_add_out_of_memory_observer(rig.s, hear, NULL, NULL));
    strata_block_t weights = allocate_for(&rig, one, "weights", 60 * MIB), unnamed = rig_allocate(&rig, NULL, 30 * MIB);
    EXPECT_OK(strata_annotate(rig.s, "conv1"));
    EXPECT_OK(strata_step(rig.s));
    strata_block_t a = rig_allocate(&rig, one, 4 * MIB);
    EXPECT_OK(strata_step(rig.s));
    EXPECT_OK(strata_step(rig.s));
    strata_block_t b = allocate_for(&rig, one, NULL, 6 * MIB), scratch = allocate_for(&rig, one, "scratch", 2 * MIB);
    EXPECT_OK(strata_annotate(rig.s, NULL));
    strata_block_t lent = rig_allocate(&rig, one, 50 * MIB), idle = rig_allocate(&rig, NULL, 40 * MIB);
    EXPECT_OK(strata_free(rig.s, idle.ref));
    rig_work(&rig, two, 1000ull * 1000 * 1000, lent.ref);
    EXPECT_OK(strata_free_on(rig.s, lent.ref, two));
    strata_block_t none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, two, 200 * MIB, &none));
    expect_report(one, two,
                  "out of memory in gpu:0 on stream TWO: asked 200MiB, free on the device 104MiB of 756MiB, reserved here 152MiB, taken "
                  "by others 500MiB\n"
                  "  allocated 102MiB, deferred 50MiB, idle 0, largest free block 0\n"
                  "  stream NULL: reserved 30MiB, allocated 30MiB, deferred 0\n"
                  "  stream ONE: reserved 122MiB, allocated 72MiB, deferred 50MiB\n"
                  "  deferred frees: 50MiB wait for stream TWO\n"
                  "  live blocks: 60MiB in 1 block by weights (step 0); 30MiB in 1 block by nobody named; 10MiB in 2 blocks by conv1 "
                  "(steps 1 to 3); 2MiB in 1 block by scratch of conv1 (step 3)\n"
                  "  tried: polling gave 0, waiting first 0, releasing 40MiB, callbacks 0, smaller growth nothing\n"
                  "  may help: to end what else uses the device");
    strata_block_t live[] = {weights, unnamed, a, b, scratch};
    for (int i = 0; i < 5; i++) EXPECT_OK(strata_free(rig.s, live[i].ref));
    rig_close(&rig);
}

/* A preset's chunks in small pieces, and a request that is larger than any. */
TEST(facade_report, says_which_option_may_help) {
    static const char *const set[] = {"auto_growth.chunk_size=64MiB", "auto_growth.smaller_growth=false", "retry.timeout=0"};
    rig_t rig;
    rig_open(&rig, "strata", set, 3, 136 * MIB, 1);
    EXPECT_OK(strata_add_out_of_memory_observer(rig.s, hear, NULL, NULL));
    strata_block_t blocks[32], none;
    for (int i = 0; i < 32; i++) blocks[i] = rig_allocate(&rig, NULL, 4 * MIB);
    for (int i = 0; i < 32; i += 2) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 6 * MIB, &none));
    expect_report((void *)~0ull, (void *)~0ull,
                  "out of memory in gpu:0 on stream NULL: asked 6MiB, free on the device 8MiB of 636MiB, reserved here 128MiB, taken "
                  "by others 500MiB\n"
                  "  allocated 64MiB, deferred 0, idle 64MiB, largest free block 4MiB\n"
                  "  stream NULL: reserved 128MiB, allocated 64MiB, deferred 0, idle 64MiB in auto_growth\n"
                  "  live blocks: 64MiB in 16 blocks by nobody named\n"
                  "  tried: polling gave 0, waiting first 0, releasing 0, callbacks 0, smaller growth nothing\n"
                  "  may help: auto_growth.smaller_growth: true, since the device has what was asked\n"
                  "  may help: a smaller auto_growth.chunk_size (now 64MiB), so that chunks become idle as a whole\n"
                  "  may help: to end what else uses the device");
    strata_allocate_options_t once = {.struct_size = sizeof once, .size = 900 * MIB, .flags = STRATA_NO_RETRY};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig.s, rig.gpu, NULL, &once, &none));
    EXPECT_CONTAINS(heard, "\n  nothing was tried: the request forbids it\n"
                           "  may help: the request without STRATA_NO_RETRY and STRATA_NO_GROW");
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 900 * MIB, &none));
    EXPECT_CONTAINS(heard, "\n  may help: to ask for less, or to free something");
    for (int i = 1; i < 32; i += 2) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    rig_close(&rig);
}

/* A callback that meets out-of-memory itself does not overwrite what the request outside tried. */
static uint64_t fail_inside(strata_place_t place, size_t size, void *context) {
    rig_t *rig = context;
    strata_block_t none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, place, NULL, 2 * size, &none));
    return 12345;
}

TEST(facade_report, what_callbacks_gave_is_told) {
    rig_t rig;
    rig_open(&rig, "strata", NULL, 0, 64 * MIB, 1);
    EXPECT_OK(strata_add_out_of_memory_observer(rig.s, hear, NULL, NULL));
    EXPECT_OK(strata_add_free_memory_callback(rig.s, fail_inside, &rig, NULL));
    strata_block_t none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 100 * MIB, &none));
    EXPECT_CONTAINS(heard, "asked 100MiB");
    EXPECT_CONTAINS(heard, "callbacks 12345");
    rig_close(&rig);
}

/* Many streams, owners and long names: the report is cut where it would be a list, and never in the middle. */
TEST(facade_report, stays_short) {
    enum { STREAMS = 40 };
    rig_t rig;
    rig_open(&rig, "strata", NULL, 0, 4096 * MIB, 1);
    EXPECT_OK(strata_add_out_of_memory_observer(rig.s, hear, NULL, NULL));
    strata_stream_t streams[STREAMS];
    strata_block_t blocks[STREAMS], lent[STREAMS], none;
    for (int i = 0; i < STREAMS; i++) {
        char tag[200];
        snprintf(tag, sizeof tag, "%0190d", i);
        streams[i] = rig_stream(&rig);
        tag[120] = (char)('A' + i % 26);
        tag[119] = (char)('a' + i / 26);
        blocks[i] = allocate_for(&rig, streams[i], tag, ((size_t)i + 1) * MIB);
        lent[i] = rig_allocate(&rig, streams[i], 1 * MIB);
        rig_work(&rig, i ? streams[i - 1] : NULL, 10ull * 1000 * 1000 * 1000, lent[i].ref);
        EXPECT_OK(strata_free_on(rig.s, lent[i].ref, i ? streams[i - 1] : NULL));
    }
    strata_allocate_options_t once = {.struct_size = sizeof once, .size = 8192 * MIB, .flags = STRATA_NO_RETRY};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig.s, rig.gpu, NULL, &once, &none));
    EXPECT_CONTAINS(heard, "\n  and 30 streams more\n");
    EXPECT_CONTAINS(heard, ", for others 36MiB\n");
    EXPECT_CONTAINS(heard, "; by others 630MiB\n");
    EXPECT_CONTAINS(heard, "  may help: ");
    EXPECT_LT(strlen(heard), 3900);
    for (int i = 0; i < STREAMS; i++) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    rig_close(&rig);
}

TEST(facade_report, says_that_a_limit_is_reached) {
    rig_t rig;
    rig_open(&rig, "version: 1\nstrategy: limited\ndevices: sim\nstack:\n  - stream_safe\n  - auto_growth\n"
                   "  - limit: {bytes: 50MiB}\n  - system\n", NULL, 0, 0, 1);
    EXPECT_OK(strata_add_out_of_memory_observer(rig.s, hear, NULL, NULL));
    strata_block_t a = rig_allocate(&rig, NULL, 30 * MIB), none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 40 * MIB, &none));
    EXPECT_CONTAINS(heard, "\n  limit: at most 50MiB, of which 30MiB are used\n");
    EXPECT_CONTAINS(heard, "\n  may help: a higher bound in limit");
    EXPECT_OK(strata_free(rig.s, a.ref));
    rig_close(&rig);
}

/* What each layer counts for itself, over all streams; what is 0 is left out. */
TEST(facade_report, says_what_layers_count) {
    rig_t rig;
    rig_open(&rig, "version: 1\nstrategy: counted\ndevices: sim\nstack:\n  - stat\n  - auto_growth: {chunk_size: 8MiB}\n"
                   "  - stat: {name: chunks}\n  - fault: {above: 100MiB}\n  - limit: {bytes: 50MiB}\n  - system\n",
             NULL, 0, 0, 1);
    strata_stream_t one = rig_stream(&rig);
    EXPECT_OK(strata_add_out_of_memory_observer(rig.s, hear, NULL, NULL));
    strata_block_t a = rig_allocate(&rig, NULL, 30 * MIB), b = rig_allocate(&rig, one, 6 * MIB), none;
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, one, 6 * MIB).ref));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 40 * MIB, &none));
    EXPECT_CONTAINS(heard, "allocated 6MiB, deferred 0, idle 2MiB in auto_growth\n"
                           "  layer stat: current_bytes 36MiB, peak_bytes 42MiB, live 2, served 3\n"
                           "  layer chunks: current_bytes 38MiB, peak_bytes 46MiB, live 2, served 3\n"
                           "  layer fault: requests 7\n"
                           "  layer limit: limit_bytes 50MiB, used_bytes 38MiB, peak_bytes 46MiB, refused 4\n"
                           "  live blocks: ");
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_free(rig.s, b.ref));
    rig_close(&rig);
}

/* Of many the largest are told, and the others in one. */
TEST(facade_report, many_owners_and_many_layers_stay_short) {
    enum { OWNERS = 200 };
    static strata_block_t blocks[OWNERS];
    rig_t rig;
    char text[700];
    int length = snprintf(text, sizeof text, "strategy: many\nstack:\n");
    for (int i = 1; i <= 3; i++) length += snprintf(text + length, sizeof text - (size_t)length, "  - stat: {name: s%d}\n", i);
    length += snprintf(text + length, sizeof text - (size_t)length, "  - auto_growth: {chunk_size: 0}\n");
    for (int i = 1; i <= 6; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "  - limit: {bytes: %dGiB, name: l%d}\n", i, i);
    snprintf(text + length, sizeof text - (size_t)length, "  - system\n");
    rig_open(&rig, text, NULL, 0, 0, 1);
    EXPECT_OK(strata_add_out_of_memory_observer(rig.s, hear, NULL, NULL));
    for (int i = 0; i < OWNERS; i++) {
        char tag[32];
        snprintf(tag, sizeof tag, "owner %d", i);
        blocks[i] = allocate_for(&rig, NULL, tag, i < 2 ? 8 * MIB : MIB);
    }
    strata_block_t none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 2 * GIB, &none));
    EXPECT_CONTAINS(heard, "\n  layer l3: ");
    EXPECT_TRUE(strstr(heard, "layer l4") == NULL);
    EXPECT_CONTAINS(heard, "\n  and 3 layers more\n");
    /* 16 MiB of two and 3 MiB of three are told of 214 MiB. */
    EXPECT_CONTAINS(heard, "\n  live blocks: 8MiB in 1 block by owner ");
    EXPECT_CONTAINS(heard, "; by others 195MiB\n");
    for (int i = 0; i < OWNERS; i++) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
    rig_close(&rig);
}

/* What would have been enough is freed and in use for longer than the request waits, in whichever way it does. */
TEST(facade_report, a_wait_that_was_too_short_is_told) {
    for (int first = 0; first < 2; first++) {
        const char *const set[] = {"retry.timeout=2ms", first ? "retry.wait_first=true" : "retry.wait_first=false"};
        rig_t rig;
        strata_block_t none;
        rig_open(&rig, "strata", set, 2, 64 * MIB, 1);
        strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
        strata_block_t a = rig_allocate(&rig, owner, 40 * MIB);
        EXPECT_OK(strata_record_stream(rig.s, a.ref, borrower));
        rig_work(&rig, borrower, 100 * 1000 * 1000, a.ref);
        EXPECT_OK(strata_free(rig.s, a.ref));
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, owner, 40 * MIB, &none));
        const char *text = strata_last_error()->text;
        EXPECT_CONTAINS(text, first ? ", smaller growth nothing; it took "
                                    : ", smaller growth nothing, waiting for other frees nothing; it took ");
        EXPECT_CONTAINS(text, "may help: a longer retry.timeout (now 2ms), since 40MiB are freed and wait for other streams");
        rig_close(&rig);
    }
}
