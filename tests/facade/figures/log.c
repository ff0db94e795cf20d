/* What the library says while it works: to whom, at which level, and when. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "allocation/report/log.h"
#include "platform/host/host_memory.h"
#include "tests/facade/pools/pooled.h"

enum { MOST_HEARD = 64 };

typedef struct heard {
    rig_t *rig;
    uint32_t count;
    strata_log_level_t levels[MOST_HEARD];
    char texts[MOST_HEARD][160];
    strata_status_t closed, changed;
    bool allocates;
} heard_t;

static void hear(strata_log_level_t level, const char *text, void *context) {
    heard_t *heard = context;
    if (heard->count == MOST_HEARD) return;
    heard->levels[heard->count] = level;
    snprintf(heard->texts[heard->count++], sizeof heard->texts[0], "%s", text);
    if (!heard->allocates) return;
    strata_block_t block;
    EXPECT_OK(strata_allocate(heard->rig->s, heard->rig->gpu, rig_stream(heard->rig), 30 * MIB, &block));
    EXPECT_OK(strata_free(heard->rig->s, block.ref));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(heard->rig->s, heard->rig->gpu, NULL, 2 * GIB, &block));
    heard->closed = strata_close(heard->rig->s, STRATA_CLOSE_FORCE, NULL, NULL);
    heard->changed = strata_change_strategy(
        heard->rig->s, &(strata_open_options_t){.struct_size = sizeof(strata_open_options_t), .preset = "pytorch"});
}

static bool has(const heard_t *heard, strata_log_level_t level, const char *words) {
    for (uint32_t i = 0; i < heard->count; i++)
        if (heard->levels[i] == level && strstr(heard->texts[i], words)) return true;
    return false;
}

/* As at the start. */
static void end_log(void) { EXPECT_OK(strata_set_log(NULL, NULL, STRATA_LOG_WARNING)); }

TEST(facade_log, tells_growths_releases_and_ladders_at_their_levels) {
    for (int most = STRATA_LOG_NOTHING; most <= STRATA_LOG_DEBUG; most++) {
        RIG(rig, "strategy: told\nstack: [auto_growth: {chunk_size: 8MiB}, system]\n", 64 * MIB);
        heard_t heard = {.rig = &rig};
        EXPECT_OK(strata_set_log(hear, &heard, (strata_log_level_t)most));
        EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 8 * MIB).ref));
        EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
        EXPECT_SAYS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, 100 * MIB), "out of memory");
        EXPECT_EQ(has(&heard, STRATA_LOG_INFO, "gpu:0: got 8MiB from the device, 8MiB reserved"), most >= STRATA_LOG_INFO);
        EXPECT_EQ(has(&heard, STRATA_LOG_INFO, "gpu:0: gave 8MiB back to the device, 0 reserved"), most >= STRATA_LOG_INFO);
        EXPECT_EQ(has(&heard, STRATA_LOG_INFO, "gpu:0: ran out-of-memory recovery for 100MiB, 0 reserved"),
                  most >= STRATA_LOG_INFO);
        EXPECT_EQ(has(&heard, STRATA_LOG_DEBUG, "recovery: releasing reclaimed 0"), most >= STRATA_LOG_DEBUG);
        EXPECT_EQ(has(&heard, STRATA_LOG_WARNING, "out of memory in gpu:0"), most >= STRATA_LOG_WARNING);
        EXPECT_EQ(heard.count == 0, most < STRATA_LOG_WARNING);
        end_log();
    }
}

/* What a ladder waited for is told apart from what it released. */
TEST_BY(facade_log, tells_what_a_ladder_waited_for,
        rig_open(rig, "strata", (const char *const[]){"retry.wait_first=true"}, 1, 64 * MIB, 1)) {
    heard_t heard = {.rig = rig};
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    (void)rig_free_deferred(rig, owner, borrower, 40 * MIB, 1000 * 1000);
    EXPECT_OK(strata_set_log(hear, &heard, STRATA_LOG_DEBUG));
    (void)rig_allocate(rig, owner, 40 * MIB);
    end_log();
    EXPECT_TRUE(has(&heard, STRATA_LOG_DEBUG, "recovery: waiting reclaimed 40MiB"));
    EXPECT_FALSE(has(&heard, STRATA_LOG_DEBUG, "recovery: releasing reclaimed 40MiB"));
}

TEST_RIG(facade_log, what_a_call_gave_back_is_told_before_it_returns, 64 * MIB,
         "strategy: told\nstack: [auto_growth: {chunk_size: 8MiB}, system]\npools: {p: {}}\n") {
    uint64_t pool;
    heard_t heard = {.rig = rig};
    strata_stream_t stream = rig_stream(rig);
    EXPECT_OK(strata_pool(rig->s, "p", &pool));
    RIG_FREE(rig, get_from(rig, pool, NULL, 8 * MIB), rig_allocate(rig, NULL, 8 * MIB), rig_allocate(rig, stream, 8 * MIB));
    EXPECT_OK(strata_set_log(hear, &heard, STRATA_LOG_INFO));
    EXPECT_OK(strata_release_pool(rig->s, rig->gpu, pool, NULL));
    EXPECT_EQ(heard.count, 1);
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 8 * MIB));
    EXPECT_EQ(heard.count, 2);
    EXPECT_OK(strata_change_strategy(rig->s,
                                     &(strata_open_options_t){.struct_size = sizeof(strata_open_options_t), .preset = "pytorch"}));
    EXPECT_EQ(heard.count, 3);
    EXPECT_TRUE(has(&heard, STRATA_LOG_INFO, "gave 8MiB back to the device, 0 reserved"));
    EXPECT_TRUE(has(&heard, STRATA_LOG_INFO, "gave 8MiB back to the device, 16MiB reserved"));
    EXPECT_TRUE(has(&heard, STRATA_LOG_INFO, "gave 8MiB back to the device, 8MiB reserved"));
    end_log();
}

TEST_RIG(facade_log, its_function_may_call_any_other_but_ends_nothing, GIB, "strata") {
    heard_t heard = {.rig = rig, .allocates = true};
    EXPECT_OK(strata_set_log(hear, &heard, STRATA_LOG_DEBUG));
    (void)rig_allocate(rig, NULL, 20 * MIB);
    EXPECT_EQ(heard.count, 1); /* what the function does itself is told to nobody */
    EXPECT_STATUS(STRATA_E_BUSY, heard.closed);
    EXPECT_STATUS(STRATA_E_BUSY, heard.changed);
    end_log();
}

/* On standard error instead: it is not lost. */
TEST(facade_log, what_cannot_be_held_for_its_function_is_told_at_once) {
    heard_t heard = {.count = 0};
    char text[64] = "";
    FILE *said = tmpfile();
    int kept = dup(STDERR_FILENO);
    ASSERT_TRUE(said != NULL && kept >= 0);
    EXPECT_OK(strata_set_log(hear, &heard, STRATA_LOG_WARNING));
    ASSERT_GE(dup2(fileno(said), STDERR_FILENO), 0);
    strata_log_hold();
    strata_host_fail_at(1, 0);
    strata_log_report(STRATA_LOG_WARNING, "no room for this");
    strata_host_fail_at(0, 0);
    strata_log_unhold();
    strata_log_flush();
    (void)dup2(kept, STDERR_FILENO);
    (void)close(kept);
    rewind(said);
    EXPECT_NE(fgets(text, sizeof text, said), NULL);
    EXPECT_STREQ(text, "no room for this\n");
    EXPECT_EQ(heard.count, 0);
    fclose(said);
    end_log();
}

TEST_RIG(facade_log, a_hit_says_nothing_and_an_unknown_level_is_refused, GIB, "strata") {
    heard_t heard = {.rig = rig};
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, MIB).ref));
    EXPECT_OK(strata_set_log(hear, &heard, STRATA_LOG_DEBUG));
    EXPECT_STATUS(STRATA_E_INVALID, strata_set_log(NULL, NULL, (strata_log_level_t)5));
    EXPECT_STATUS(STRATA_E_INVALID, strata_set_log(NULL, NULL, (strata_log_level_t)-1));
    for (int i = 0; i < 100; i++) EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, MIB).ref));
    EXPECT_EQ(heard.count, 0);
    end_log();
}

TEST(facade_log, tells_what_an_import_cannot_say) {
    heard_t heard = {.count = 0};
    strata_t s;
    setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments_reserve:0.5", 1);
    EXPECT_OK(strata_set_log(hear, &heard, STRATA_LOG_WARNING));
    strata_open_options_t options = {.struct_size = sizeof options, .preset = "import:pytorch", .devices = "sim"};
    strata_status_t status = strata_open(&options, &s);
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    end_log();
    EXPECT_OK(status);
    EXPECT_TRUE(has(&heard, STRATA_LOG_WARNING, "expandable_segments"));
    if (status == STRATA_OK) EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
}

/* More than is kept of one call: the first are told, and how many more there were. */
TEST_RIG(facade_log, of_many_messages_of_one_call_the_first_are_told, GIB,
         "strategy: many\nstack: [auto_growth: {chunk_size: 0}, system]\n") {
    heard_t heard = {.rig = rig};
    strata_block_t blocks[12];
    for (int i = 0; i < 12; i++) blocks[i] = rig_allocate(rig, NULL, 2 * MIB);
    for (int i = 0; i < 12; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    EXPECT_OK(strata_set_log(hear, &heard, STRATA_LOG_INFO));
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(heard.count, 9);
    EXPECT_TRUE(has(&heard, STRATA_LOG_INFO, "and 4 more messages of the same call"));
    end_log();
}

/* ---- threads ---- */

enum { THREADS = 3 };
static _Atomic uint32_t told[2];

static void count(strata_log_level_t level, const char *text, void *context) {
    (void)level, (void)text;
    atomic_fetch_add((_Atomic uint32_t *)context, 1);
}

static void *grow_and_shrink(void *context) {
    rig_t *rig = context;
    for (int i = 0; i < 50; i++) {
        strata_block_t block;
        EXPECT_OK(strata_allocate(rig->s, rig->gpu, NULL, 3 * MIB, &block));
        EXPECT_OK(strata_free(rig->s, block.ref));
        EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    }
    return NULL;
}

TEST_RIG(facade_log, may_be_set_anew_while_others_speak, GIB, "strategy: told\nstack: [system]\n") {
    pthread_t threads[THREADS];
    EXPECT_OK(strata_set_log(count, &told[0], STRATA_LOG_INFO));
    for (int t = 0; t < THREADS; t++) EXPECT_EQ(pthread_create(&threads[t], NULL, grow_and_shrink, rig), 0);
    for (int i = 0; i < 100; i++) EXPECT_OK(strata_set_log(count, &told[i % 2], i % 3 ? STRATA_LOG_INFO : STRATA_LOG_NOTHING));
    EXPECT_OK(strata_set_log(count, &told[1], STRATA_LOG_INFO));
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    EXPECT_LE(atomic_load(&told[0]) + atomic_load(&told[1]), THREADS * 100);
    end_log();
}
