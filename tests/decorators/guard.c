/* guard: planted writes and leaks are found, with the block and who asked for it; honest programs are left alone. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "strata/log.h"
#include "tests/decorators/decorators.h"

/* What goes to standard error between begin and end. */
typedef struct heard {
    FILE *file;
    int saved;
    char text[2048];
} heard_t;

static void listen_begin(heard_t *heard) {
    heard->file = tmpfile();
    ASSERT_TRUE(heard->file);
    (void)fflush(stderr);
    heard->saved = dup(STDERR_FILENO);
    ASSERT_GE(dup2(fileno(heard->file), STDERR_FILENO), 0);
}

static void listen_end(heard_t *heard) {
    (void)fflush(stderr);
    ASSERT_GE(dup2(heard->saved, STDERR_FILENO), 0);
    (void)close(heard->saved);
    rewind(heard->file);
    heard->text[fread(heard->text, 1, sizeof heard->text - 1, heard->file)] = 0;
    (void)fclose(heard->file);
}

static void open_guarded(rig_t *rig, const char *stack) {
    decorated_open(rig, stack, NULL, &(strata_sim_options_t){.contents = true});
}

static uint8_t *bytes_of(rig_t *rig, const strata_block_t *b) {
    return strata_device_host_view(rig->devices[0], (uint64_t)(uintptr_t)b->ptr, 1);
}

static strata_block_t allocate_for(rig_t *rig, const char *tag, size_t size) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .tag = tag};
    strata_block_t block = {0};
    EXPECT_OK(strata_allocate_with(rig->s, rig->gpu, NULL, &options, &block));
    return block;
}

static uint64_t figure(rig_t *rig, const char *row) { return decorated_figure(rig_stack(rig, NULL), "guard", row); }

/* With findings the structures are told to be corrupt: rig_close() would not have that. */
static void close_corrupt(rig_t *rig, const char *what) {
    EXPECT_SAYS(STRATA_E_CORRUPT, strata_validate(rig->s), what);
    EXPECT_OK(strata_close(rig->s, STRATA_CLOSE_WAIT, NULL, NULL));
    rig_end(rig);
}

/* ---- red zones ---- */

static void one_byte_beside(const char *stack, int64_t offset, const char *where) {
    rig_t rig;
    heard_t heard;
    char at[64];
    open_guarded(&rig, stack);
    strata_block_t b = allocate_for(&rig, "conv2d", 1000);
    EXPECT_EQ(b.size, 1000);
    bytes_of(&rig, &b)[offset] = 1;
    EXPECT_OK(strata_validate(rig.s));
    listen_begin(&heard);
    EXPECT_OK(strata_free(rig.s, b.ref));
    listen_end(&heard);
    EXPECT_EQ(figure(&rig, "zones_written"), 1);
    snprintf(at, sizeof at, "first at offset %lld", (long long)offset);
    EXPECT_CONTAINS(heard.text, "guard: a block of 1000 bytes at ");
    EXPECT_CONTAINS(heard.text, "(allocation 1, of conv2d)");
    EXPECT_CONTAINS(heard.text, where);
    EXPECT_CONTAINS(heard.text, at);
    close_corrupt(&rig, where);
}

TEST(guard, finds_a_byte_written_beside_a_block) {
    static const char *const stacks[] = {"[guard, system]", "[retry, stream_safe, guard, auto_growth, system]",
                                         "[{guard: {quarantine: 0}}, stream_safe, {auto_growth: {chunk_size: 2MiB}}, system]"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        one_byte_beside(stacks[i], 1000, "written after it");
        one_byte_beside(stacks[i], 1255, "written after it");
        one_byte_beside(stacks[i], -1, "written before it");
        one_byte_beside(stacks[i], -256, "written before it");
    }
}

/* The pieces that `aligned` cuts lie inside the block that guard hands up. */
/* The zone in front is as wide as a block has to be aligned, however little was asked for. */
TEST(guard, a_zone_of_one_byte_keeps_the_alignment_of_the_place) {
    RIG_BY(rig, decorated_open(&rig, "[{guard: {red_zone: 1, quarantine: 0}}, auto_growth, system]",
                               "[{guard: {red_zone: 1, quarantine: 0}}, auto_growth, system]",
                               &(strata_sim_options_t){.contents = true}));
    static const strata_place_kind_t kinds[] = {STRATA_PLACE_GPU, STRATA_PLACE_HOST};
    static const uint64_t units[] = {256, 64};
    for (int i = 0; i < 2; i++) {
        strata_place_t place = strata_place(kinds[i], 0);
        strata_block_t first, second;
        EXPECT_OK(strata_allocate(rig.s, place, NULL, units[i], &first));
        EXPECT_OK(strata_allocate(rig.s, place, NULL, units[i], &second));
        EXPECT_EQ((uint64_t)(uintptr_t)first.ptr % units[i], 0);
        EXPECT_EQ((uint64_t)(uintptr_t)second.ptr % units[i], 0);
        RIG_FREE(&rig, first, second);
    }
}

TEST(guard, under_a_decorator_that_cuts) {
    rig_t rig;
    heard_t heard;
    open_guarded(&rig, "[{aligned: {alignment: 8KiB}}, guard, auto_growth, system]");
    strata_block_t b = allocate_for(&rig, NULL, 1000);
    EXPECT_EQ((uintptr_t)b.ptr % 8192, 0);
    memset(bytes_of(&rig, &b), 1, b.size);
    bytes_of(&rig, &b)[b.size] = 1;
    listen_begin(&heard);
    EXPECT_OK(strata_free(rig.s, b.ref));
    listen_end(&heard);
    EXPECT_EQ(figure(&rig, "zones_written"), 1);
    close_corrupt(&rig, "written after it");
}

TEST(guard, a_chunk_of_a_cache_above) {
    rig_t rig;
    heard_t heard;
    open_guarded(&rig, "[{auto_growth: {chunk_size: 1MiB}}, guard, system]");
    strata_block_t b = rig_allocate(&rig, NULL, MIB);
    bytes_of(&rig, &b)[MIB + 3] = 1;
    EXPECT_OK(strata_free(rig.s, b.ref));
    listen_begin(&heard);
    uint64_t released = 0;
    EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
    listen_end(&heard);
    EXPECT_EQ(released, MIB + 512); /* the red zones too */
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    EXPECT_CONTAINS(heard.text, "first at offset 1048579");
    close_corrupt(&rig, "written after it");
}

TEST(guard, host_memory) {
    rig_t rig;
    heard_t heard;
    strata_block_t b;
    decorated_open(&rig, "[system]", "[guard, system]", &(strata_sim_options_t){0});
    ASSERT_OK(strata_allocate(rig.s, strata_host(), NULL, 77, &b));
    EXPECT_EQ((uintptr_t)b.ptr % 64, 0);
    ((uint8_t *)b.ptr)[77] = 1;
    listen_begin(&heard);
    EXPECT_OK(strata_free(rig.s, b.ref));
    listen_end(&heard);
    EXPECT_CONTAINS(heard.text, "a block of 77 bytes");
    close_corrupt(&rig, "written after it, first at offset 77");
}

/* ---- poison and quarantine ---- */

TEST(guard, finds_a_write_after_the_free) {
    for (int closing = 0; closing < 2; closing++) {
        rig_t rig;
        heard_t heard;
        open_guarded(&rig, "[{guard: {quarantine: 4}}, auto_growth, system]");
        strata_block_t b = allocate_for(&rig, "old tensor", 5000);
        uint8_t *bytes = bytes_of(&rig, &b);
        EXPECT_OK(strata_free(rig.s, b.ref));
        EXPECT_TRUE(bytes[0] == 0xdb && bytes[4999] == 0xdb && bytes[5000] == 0xfd);
        bytes[4096] = 7;
        EXPECT_EQ(figure(&rig, "written_after_free"), 0);
        listen_begin(&heard);
        if (closing) EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
        else EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
        listen_end(&heard);
        EXPECT_CONTAINS(heard.text, "of old tensor) was written in it after its free, first at offset 4096");
        if (closing) {
            rig_end(&rig);
        } else {
            EXPECT_EQ(figure(&rig, "written_after_free"), 1);
            close_corrupt(&rig, "written in it after its free");
        }
    }
}

typedef struct teller {
    rig_t *rig;
    strata_stream_t fresh; /* of which the facade knows nothing yet */
    uint32_t told;
} teller_t;

/* As a program may whose log is a tensor. */
static void use_the_facade(strata_log_level_t level, const char *text, void *context) {
    teller_t *teller = context;
    (void)level;
    EXPECT_CONTAINS(text, "after its free");
    teller->told++;
    EXPECT_OK(strata_free(teller->rig->s, rig_allocate(teller->rig, teller->fresh, 1000).ref));
}

static void *write_after_the_free(void *context) {
    teller_t *teller = context;
    strata_block_t b = rig_allocate(teller->rig, STRATA_STREAM_PER_THREAD, 1000);
    uint8_t *bytes = bytes_of(teller->rig, &b);
    EXPECT_OK(strata_free(teller->rig->s, b.ref));
    bytes[7] = 1;
    return NULL;
}

/* The stack of an exited thread ends while another is built, which nobody else can do meanwhile. */
TEST(guard, what_it_finds_while_a_stack_is_built_is_told_when_it_is_there) {
    rig_t rig;
    teller_t teller = {.rig = &rig};
    pthread_t thread;
    open_guarded(&rig, "[{guard: {quarantine: 4}}, auto_growth, system]");
    teller.fresh = rig_stream(&rig);
    ASSERT_EQ(pthread_create(&thread, NULL, write_after_the_free, &teller), 0);
    pthread_join(thread, NULL);
    EXPECT_OK(strata_set_log(use_the_facade, &teller, STRATA_LOG_ERROR));
    strata_block_t b = rig_allocate(&rig, STRATA_STREAM_PER_THREAD, 1000);
    EXPECT_EQ(teller.told, 1);
    EXPECT_OK(strata_set_log(NULL, NULL, STRATA_LOG_WARNING));
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    rig_end(&rig);
}

TEST(guard, keeps_the_last_freed_blocks_back) {
    RIG_BY(rig, open_guarded(&rig, "[{guard: {quarantine: 3}}, auto_growth, system]"));
    void *freed[8];
    for (int i = 0; i < 8; i++) {
        strata_block_t b = rig_allocate(&rig, NULL, 1000);
        for (int back = 1; back <= 3 && back <= i; back++) EXPECT_NE(freed[i - back], b.ptr);
        freed[i] = b.ptr;
        EXPECT_OK(strata_free(rig.s, b.ref));
        EXPECT_EQ(figure(&rig, "kept"), i < 3 ? i + 1 : 3);
        EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, b.ref));
    }
    EXPECT_EQ(freed[4], freed[0]);
    EXPECT_EQ(figure(&rig, "kept_bytes"), 3 * 1536);
}

/* By pointer a double free is found until the address is served again, which the quarantine puts off. */
TEST(guard, a_double_free_by_pointer_is_found_for_longer) {
    for (int guarded = 0; guarded < 2; guarded++) {
        RIG_BY(rig, open_guarded(&rig, guarded ? "[{guard: {quarantine: 2}}, auto_growth, system]" : "[auto_growth, system]"));
        strata_block_t old = rig_allocate(&rig, NULL, 1000), other = {0};
        EXPECT_OK(strata_free_pointer(rig.s, old.ptr));
        EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig.s, old.ptr));
        other = rig_allocate(&rig, NULL, 1000);
        EXPECT_STATUS(guarded ? STRATA_E_UNKNOWN_POINTER : STRATA_OK, strata_free_pointer(rig.s, old.ptr));
        EXPECT_STATUS(guarded ? STRATA_OK : STRATA_E_STALE, strata_free(rig.s, other.ref));
    }
}

TEST(guard, gives_all_back_when_memory_is_short) {
    DECORATED(rig, "[retry, guard, {auto_growth: {reclaim: ladder}}, system]", 64 * MIB);
    for (int i = 0; i < 5; i++) {
        strata_block_t b = rig_allocate(&rig, NULL, 40 * MIB);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
    EXPECT_EQ(rig_figures(&rig).recoveries, 4);
}

/* Another stream may still use a borrowed block after the free. So it is not poisoned, and the layer below defers it. */
TEST(guard, neither_poisons_nor_keeps_a_borrowed_block) {
    RIG_BY(rig, open_guarded(&rig, "[{guard: {quarantine: 8}}, stream_safe, auto_growth, system]"));
    strata_stream_t borrower = rig_stream(&rig);
    strata_block_t b = rig_allocate(&rig, NULL, 5000);
    memset(bytes_of(&rig, &b), 9, 5000);
    rig_borrow(&rig, b.ref, borrower, 5 * 1000 * 1000);
    uint8_t *bytes = bytes_of(&rig, &b);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_GT(rig_figures(&rig).deferred_bytes, 0);
    EXPECT_EQ(figure(&rig, "kept"), 0);
    EXPECT_TRUE(bytes[0] == 9 && bytes[4999] == 9);
    rig_advance(&rig, 10 * 1000 * 1000);
}

TEST(guard, waits_for_the_owner_before_it_looks) {
    for (int synchronise = 0; synchronise < 2; synchronise++) {
        RIG_BY(rig, open_guarded(&rig, synchronise ? "[guard, auto_growth, system]"
                                                   : "[{guard: {synchronise: false}}, auto_growth, system]"));
        strata_stream_t stream = rig_stream(&rig);
        strata_block_t b = rig_allocate(&rig, stream, 1000);
        rig_work(&rig, stream, 50 * 1000 * 1000, b.ref);
        uint64_t done = strata_sim_stream_end(rig.devices[0], stream);
        EXPECT_OK(strata_free(rig.s, b.ref));
        EXPECT_EQ(strata_sim_now(rig.world) >= done, synchronise);
    }
}

/* A forgotten stream's stack ends with its last block: nothing of it is kept back. */
TEST(guard, a_forgotten_stream_leaves_nothing_in_quarantine) {
    RIG_BY(rig, open_guarded(&rig, "[stream_safe, guard, auto_growth, system]"));
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t kept = rig_allocate(&rig, stream, 1000), live = rig_allocate(&rig, stream, 1000);
    EXPECT_OK(strata_free(rig.s, kept.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, stream));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, stream));
    EXPECT_OK(strata_free(rig.s, live.ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
}

/* ---- leaks, and what cannot be seen ---- */

TEST(guard, tells_leaks_with_who_asked) {
    heard_t heard;
    char tag[] = "attention.weights";
    OPENED(rig_t, rig, rig_end, open_guarded(&rig, "[guard, auto_growth, system]"));
    strata_block_t first = allocate_for(&rig, "the first", 777);
    strata_block_t freed = allocate_for(&rig, "freed", 10);
    strata_block_t leaked = allocate_for(&rig, tag, 123456);
    memset(tag, 'x', sizeof tag - 1); /* the layer has its own copy */
    EXPECT_OK(strata_free(rig.s, freed.ref));
    EXPECT_TRUE(first.ref != 0 && leaked.ref != 0);
    listen_begin(&heard);
    EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
    listen_end(&heard);
    EXPECT_CONTAINS(heard.text, "guard: 124233 bytes in 2 blocks of gpu:0 were never freed:\n"
                                "  123456 bytes in 1 block of attention.weights, the first at 0x");
    EXPECT_CONTAINS(heard.text, " (allocation 3)\n  777 bytes in 1 block of the first, the first at 0x");
    EXPECT_LACKS(heard.text, "of freed");
}

static uint32_t lines_of(const char *text) {
    uint32_t lines = 0;
    for (; (text = strchr(text, '\n')) != NULL; text++) lines++;
    return lines;
}

/* However much is lost on however many streams: one report, the tags that hold most first. */
TEST(guard, tells_leaks_once_and_in_few_lines) {
    enum { STREAMS = 5, TAGS = 100 };
    heard_t heard;
    OPENED(rig_t, rig, rig_end, open_guarded(&rig, "[guard, auto_growth, system]"));
    for (int i = 0; i < STREAMS; i++) {
        strata_stream_t stream = rig_stream(&rig);
        for (int tag = 0; tag < TAGS; tag++) {
            char name[16];
            snprintf(name, sizeof name, "t%d", tag);
            strata_allocate_options_t options = {.struct_size = sizeof options, .size = tag == 33 ? 5000 : 100, .tag = name};
            strata_block_t block;
            EXPECT_OK(strata_allocate_with(rig.s, rig.gpu, stream, &options, &block));
        }
    }
    listen_begin(&heard);
    EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
    listen_end(&heard);
    EXPECT_CONTAINS(heard.text, "guard: 74500 bytes in 500 blocks of gpu:0 were never freed:\n"
                                "  25000 bytes in 5 blocks of t33, the first at 0x");
    EXPECT_CONTAINS(heard.text, "\n  46000 bytes in 460 blocks of other tags\n");
    EXPECT_EQ(lines_of(heard.text), 10);
}

/* To the one further down the outer one's block is in use all the same. */
TEST(guard, tells_a_leak_once_however_many_guards_are_above_it) {
    static const char *const stacks[] = {"[guard, guard, system]",
                                         "[guard, guard, guard, auto_growth, system]",
                                         "[guard, {aligned: {alignment: 4KiB}}, guard, system]",
                                         "[{guard: {report: false}}, {aligned: {alignment: 4KiB}}, guard, auto_growth, system]",
                                         "[{aligned: {alignment: 4KiB}}, guard, system]",
                                         "[guard, auto_growth, guard, system]",
                                         "[guard, guard, {thread_local: {initial: 2MiB}}, guard, system]"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        heard_t heard;
        OPENED(rig_t, rig, rig_end, open_guarded(&rig, stacks[i]));
        strata_block_t freed = allocate_for(&rig, "freed", 5000), leaked = allocate_for(&rig, "the leaked", 5000);
        EXPECT_OK(strata_free(rig.s, freed.ref));
        EXPECT_NE(leaked.ref, 0);
        listen_begin(&heard);
        EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
        listen_end(&heard);
        EXPECT_CONTAINS(heard.text, " bytes in 1 block of gpu:0 were never freed:\n");
        if (strncmp(stacks[i], "[guard", 6) == 0) EXPECT_CONTAINS(heard.text, "guard: 5000 bytes in 1 block of gpu:0");
        if (strata_test_has_failed()) FAIL_TEST("%s: %s", stacks[i], heard.text);
    }
}

TEST(guard, says_nothing_where_nothing_leaked) {
    heard_t heard;
    OPENED(rig_t, rig, rig_end,
           open_guarded(&rig, "[stream_safe, {guard: {quarantine: 8}}, {guard: {quarantine: 2}}, auto_growth, system]"));
    strata_stream_t borrower = rig_stream(&rig), gone = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, NULL, 5000), b = rig_allocate(&rig, gone, 5000), c = rig_allocate(&rig, NULL, 5000);
    listen_begin(&heard);
    rig_borrow(&rig, a.ref, borrower, 5 * 1000 * 1000);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, gone));
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_OK(strata_free(rig.s, c.ref));
    EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
    listen_end(&heard);
    EXPECT_STREQ(heard.text, "");
}

/* A free is one even if the device fails after it. */
TEST(guard, a_block_that_the_device_has_failed_is_not_called_leaked) {
    static const char *const stacks[] = {"[stream_safe, guard, auto_growth, system]",
                                         "[stream_safe, {guard: {report: false}}, guard, auto_growth, system]"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        heard_t heard;
        OPENED(rig_t, rig, rig_end, open_guarded(&rig, stacks[i]));
        strata_stream_t borrower = rig_stream(&rig);
        strata_block_t a = rig_allocate(&rig, NULL, 5000);
        rig_borrow(&rig, a.ref, borrower, 5 * 1000 * 1000);
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_DEVICE_CALLS, 1, true, STRATA_E_DEVICE));
        EXPECT_OK(strata_free(rig.s, a.ref));
        strata_sim_clear_faults(rig.devices[0]);
        EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 5000);
        listen_begin(&heard);
        EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
        listen_end(&heard);
        EXPECT_STREQ(heard.text, "");
    }
}

TEST(guard, says_once_where_it_could_not_look) {
    rig_t rig;
    heard_t heard;
    decorated_open(&rig, "[guard, auto_growth, system]", NULL, &(strata_sim_options_t){0});
    strata_block_t elsewhere = rig_allocate(&rig, rig_stream(&rig), 1000);
    EXPECT_OK(strata_free(rig.s, elsewhere.ref));
    strata_block_t b = rig_allocate(&rig, NULL, 1000);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_EQ(figure(&rig, "unseen"), 1);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_fill), 2);
    listen_begin(&heard);
    rig_close(&rig);
    listen_end(&heard);
    EXPECT_STREQ(heard.text,
                 "guard: 2 freed blocks were in memory that the host cannot read, so their red zones were not checked\n");
}

enum { ENDERS = 4, ENDED = 60 };

/* Each of its streams ends with its stack, which is counted then. */
static void *end_streams(void *context) {
    rig_t *rig = context;
    for (int i = 0; i < ENDED; i++) {
        strata_stream_t stream;
        strata_block_t block = {.ref = 0};
        EXPECT_OK(strata_stream_create(rig->s, rig->gpu, 0, &stream));
        EXPECT_OK(strata_allocate(rig->s, rig->gpu, stream, 1000, &block));
        EXPECT_OK(strata_free(rig->s, block.ref));
        EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
        EXPECT_OK(strata_stream_destroy(rig->s, rig->gpu, stream));
    }
    return NULL;
}

TEST(guard, counts_together_what_ends_at_once) {
    rig_t rig;
    heard_t heard;
    pthread_t threads[ENDERS];
    decorated_open(&rig, "[guard, auto_growth, system]", NULL, &(strata_sim_options_t){0});
    for (int i = 0; i < ENDERS; i++) ASSERT_EQ(pthread_create(&threads[i], NULL, end_streams, &rig), 0);
    for (int i = 0; i < ENDERS; i++) EXPECT_EQ(pthread_join(threads[i], NULL), 0);
    listen_begin(&heard);
    rig_close(&rig);
    listen_end(&heard);
    EXPECT_STREQ(heard.text,
                 "guard: 240 freed blocks were in memory that the host cannot read, so their red zones were not checked\n");
}

TEST(guard, silent_when_told_so) {
    rig_t rig;
    heard_t heard;
    open_guarded(&rig, "[{guard: {report: false}}, auto_growth, system]");
    strata_block_t b = rig_allocate(&rig, NULL, 1000);
    bytes_of(&rig, &b)[1000] = 1;
    listen_begin(&heard);
    EXPECT_OK(strata_free(rig.s, b.ref));
    (void)rig_allocate(&rig, NULL, 500);
    EXPECT_STATUS(STRATA_E_CORRUPT, strata_validate(rig.s));
    rig_close_by_force(&rig);
    listen_end(&heard);
    EXPECT_STREQ(heard.text, "");
}

TEST(guard, a_device_that_refuses_its_zones) {
    strata_block_t b = {.ref = 3};
    RIG_BY(rig, open_guarded(&rig, "[guard, system]"));
    for (uint64_t k = 1; k <= 2; k++) {
        EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_fill, k, false, STRATA_E_DEVICE));
        EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(rig.s, rig.gpu, NULL, 1000, &b));
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
        strata_sim_clear_faults(rig.devices[0]);
    }
    /* The free's own fill: no poison, and the free succeeds. */
    b = rig_allocate(&rig, NULL, 1000);
    EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_fill, 1, true, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig.s, b.ref));
    strata_sim_clear_faults(rig.devices[0]);
}

/* A request that finds no slot for its record leaves no trace in the layer's table either. */
TEST(guard, a_full_slab_costs_nothing) {
    strata_block_t none, b;
    RIG_BY(rig, open_guarded(&rig, "[guard, auto_growth, system]"));
    strata_slab_t *slab = &rig_stack(&rig, NULL)->slab;
    b = rig_allocate(&rig, NULL, 1000);
    EXPECT_OK(strata_free(rig.s, b.ref));
    uint32_t capacity = slab->capacity;
    uint64_t reserved = rig_figures(&rig).reserved_bytes;
    for (int i = 0; i < 3; i++) {
        slab->capacity = slab->used;
        while (strata_allocate(rig.s, rig.gpu, NULL, 1000, &none) == STRATA_OK) EXPECT_OK(strata_free(rig.s, none.ref));
        slab->capacity = capacity;
    }
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, reserved);
    EXPECT_OK(strata_validate(rig.s));
    b = rig_allocate(&rig, NULL, 1000);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

TEST(guard, validate_finds_planted_faults) {
    RIG_BY(rig, open_guarded(&rig, "[guard, auto_growth, system]"));
    strata_block_t live = rig_allocate(&rig, NULL, 1000);
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 1000).ref));
    EXPECT_EQ(figure(&rig, "kept"), 3);
    decorated_expect_corrupt(&rig, "guard", "kept", 4, "guard: the list of kept blocks is not as long as counted");
    decorated_expect_corrupt(&rig, "guard", "kept", 2, "guard: the list of kept blocks is not as long as counted");
    decorated_expect_corrupt(&rig, "guard", "live", 2, "guard: fewer blocks are live than counted");
    EXPECT_OK(strata_free(rig.s, live.ref));
}

/* ---- captures of the program ---- */

/* Launched again, the program's graph would poison whoever has the memory by then. */
TEST(guard, what_is_freed_on_a_captured_stream_is_not_poisoned_by_the_graph) {
    RIG_BY(rig, open_guarded(&rig, "[{guard: {quarantine: 0, synchronise: false}}, auto_growth, system]"));
    strata_stream_t stream = rig_stream(&rig);
    strata_handle_t graph;
    strata_block_t a = rig_allocate(&rig, stream, 4096);
    rig_begin_capture(&rig, stream);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_device_capture_end(rig.devices[0], stream, &graph));
    strata_block_t b = rig_allocate(&rig, stream, 4096);
    EXPECT_EQ(b.ptr, a.ptr);
    memset(bytes_of(&rig, &b), 7, 4096);
    EXPECT_OK(strata_device_graph_launch(rig.devices[0], graph, stream));
    EXPECT_OK(strata_device_stream_synchronise(rig.devices[0], stream));
    EXPECT_EQ(bytes_of(&rig, &b)[100], 7);
    EXPECT_OK(strata_device_graph_destroy(rig.devices[0], graph));
    EXPECT_OK(strata_free(rig.s, b.ref));
}

TEST(guard, a_block_of_a_captured_stream_has_no_zones_and_none_are_missed) {
    RIG_BY(rig, open_guarded(&rig, "[guard, auto_growth, system]"));
    strata_stream_t stream = rig_stream(&rig);
    strata_stack_t *stack;
    uint64_t pool = 0;
    EXPECT_OK(strata_graph_pool_begin(rig.s, rig.gpu, stream, &pool));
    rig_begin_capture(&rig, stream);
    strata_block_t a = rig_allocate(&rig, stream, 4096);
    ASSERT_OK(strata_facade_pool_stack(strata_facade_of(rig.s), rig.gpu, pool, stream, &stack));
    rig_end_capture(&rig, stream);
    EXPECT_OK(strata_graph_pool_end(rig.s, rig.gpu, pool));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_fill), 0);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(decorated_figure(stack, "guard", "unseen"), 1);
    EXPECT_EQ(decorated_figure(stack, "guard", "zones_written"), 0);
    EXPECT_OK(strata_graph_pool_remove(rig.s, rig.gpu, pool));
}
