/* The out-of-memory report: what it tells, and that it stays short. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/facade/support/fixture.h"

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

/* The report as it stands now, with names for what only this run can know. */
static const char *report_of(strata_stream_t one, strata_stream_t two) {
    static char text[8192];
    char name[32];
    snprintf(text, sizeof text, "%s", strata_last_error()->text);
    EXPECT_STREQ(text, heard);
    snprintf(name, sizeof name, "stream %p", one);
    replace(text, name, "stream ONE");
    snprintf(name, sizeof name, "stream %p", two);
    replace(text, name, "stream TWO");
    return text;
}

/* The first lines are the cause and what helps. */
static const char *figures_in(const char *text) {
    const char *figures = strstr(text, "\n  requested ");
    EXPECT_NE(figures, NULL);
    return figures ? figures : "";
}

/* A time of at most three digits that count. */
static void expect_few_digits(const char *time) {
    char digits[32] = "";
    size_t count = 0;
    for (; (*time >= '0' && *time <= '9') || *time == '.'; time++)
        if (*time != '.' && count + 1 < sizeof digits && (count || *time != '0')) digits[count++] = *time;
    while (count && digits[count - 1] == '0') count--;
    EXPECT_LE(count, 3);
}

TEST_BY(facade_report, says_who_holds_what_and_what_was_tried,
        rig_open(rig, "paddle", (const char *const[]){"retry.timeout=1ms"}, 1, 256 * MIB, 1)) {
    strata_stream_t one = rig_stream(rig), two = rig_stream(rig);
    EXPECT_OK(strata_add_out_of_memory_observer(rig->s, hear, NULL, NULL));
    (void)rig_allocate_tagged(rig, one, 60 * MIB, "weights");
    (void)rig_allocate(rig, NULL, 30 * MIB);
    EXPECT_OK(strata_annotate(rig->s, "conv1"));
    EXPECT_OK(strata_step(rig->s));
    (void)rig_allocate(rig, one, 4 * MIB);
    EXPECT_OK(strata_step(rig->s));
    EXPECT_OK(strata_step(rig->s));
    (void)rig_allocate_tagged(rig, one, 6 * MIB, NULL);
    (void)rig_allocate_tagged(rig, one, 2 * MIB, "scratch");
    EXPECT_OK(strata_annotate(rig->s, NULL));
    strata_block_t lent = rig_allocate(rig, one, 50 * MIB), idle = rig_allocate(rig, NULL, 40 * MIB);
    EXPECT_OK(strata_free(rig->s, idle.ref));
    rig_work(rig, two, 1000ull * 1000 * 1000, lent.ref);
    EXPECT_OK(strata_free_on(rig->s, lent.ref, two));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, two, 200 * MIB));
    const char *text = report_of(one, two), *figures = figures_in(text);
    EXPECT_CONTAINS(text, "out of memory in gpu:0 on stream TWO: full: requested 200MiB, 104MiB left; live blocks hold 102MiB\n  "
                          "try: ");
    EXPECT_CONTAINS(figures,
                    "requested 200MiB, free on the device 104MiB of 756MiB, reserved here 152MiB, used by others 500MiB\n"
                    "  allocated 102MiB, deferred 50MiB, idle 0, largest free block 0\n"
                    "  stream NULL: reserved 30MiB, allocated 30MiB, deferred 0\n"
                    "  stream ONE: reserved 122MiB, allocated 72MiB, deferred 50MiB\n"
                    "  deferred frees: 50MiB wait for stream TWO\n"
                    "  live blocks: 60MiB in 1 block by weights (step 0); 30MiB in 1 block by an unnamed owner; 10MiB in 2 blocks "
                    "by conv1 (steps 1 to 3); 2MiB in 1 block by scratch of conv1 (step 3)\n");
    EXPECT_CONTAINS(figures,
                    "\n  tried: polling reclaimed 0, waiting first 0, releasing 40MiB, callbacks 0, smaller growth nothing; it "
                    "took ");
    expect_few_digits(strstr(figures, "it took ") + strlen("it took "));
}

/* What lies on the same device as managed memory is the facade's own. */
TEST_RIG(facade_report, managed_memory_is_not_taken_by_others, 256 * MIB,
         "stack: [system]\nplaces: {managed: [system: {prefetch: device}]}\n") {
    (void)rig_allocate_in(rig, strata_managed(0), NULL, 64 * MIB);
    (void)rig_allocate(rig, NULL, 100 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 300 * MIB));
    EXPECT_CONTAINS(strata_last_error()->text, "free on the device 92MiB of 756MiB, reserved here 100MiB, used by others 500MiB\n");
}

/* A preset's chunks in small pieces, and a request that is larger than any. */
TEST_BY(facade_report, says_which_option_may_help,
        rig_open(rig, "strata-malloc",
                 (const char *const[]){"auto_growth.chunk_size=64MiB", "auto_growth.smaller_growth=false", "retry.timeout=0"}, 3,
                 136 * MIB, 1)) {
    EXPECT_OK(strata_add_out_of_memory_observer(rig->s, hear, NULL, NULL));
    strata_block_t blocks[32], none;
    for (int i = 0; i < 32; i++) blocks[i] = rig_allocate(rig, NULL, 4 * MIB);
    for (int i = 0; i < 32; i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 6 * MIB));
    const char *text = report_of((void *)~0ull, (void *)~0ull);
    EXPECT_CONTAINS(text, ": chunk: requested 6MiB; the device has 8MiB free, but the cache needs a chunk of 64MiB\n  try: set "
                          "auto_growth.smaller_growth: true, to grow by the request alone\n"
                          "  or: lower auto_growth.chunk_size (now 64MiB)\n");
    EXPECT_CONTAINS(text, "\n  stream NULL: reserved 128MiB, allocated 64MiB, deferred 0, idle 64MiB in auto_growth\n");
    EXPECT_CONTAINS(text, "\n  tried: polling reclaimed 0, waiting first 0, releasing 0, callbacks 0, smaller growth nothing");
    strata_allocate_options_t once = {.struct_size = sizeof once, .size = 6 * MIB, .flags = STRATA_NO_RETRY};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig->s, rig->gpu, NULL, &once, &none));
    EXPECT_CONTAINS(heard, "\n  nothing was tried: the request forbids it");
}

/* A callback that meets out-of-memory itself does not overwrite what the request outside tried. */
static uint64_t fail_inside(strata_place_t place, size_t size, void *context) {
    rig_t *rig = context;
    strata_block_t none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, place, NULL, 2 * size, &none));
    return 12345;
}

TEST_RIG(facade_report, what_callbacks_gave_is_told, 64 * MIB, "strata") {
    EXPECT_OK(strata_add_out_of_memory_observer(rig->s, hear, NULL, NULL));
    EXPECT_OK(strata_add_free_memory_callback(rig->s, fail_inside, rig, NULL));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 100 * MIB));
    EXPECT_CONTAINS(heard, "requested 100MiB");
    EXPECT_CONTAINS(heard, "callbacks 12.05KiB");
}

/* Many streams, owners and long names: the report is cut where it would be a list, and never in the middle. */
TEST_RIG(facade_report, stays_short, 4096 * MIB, "strata") {
    enum { STREAMS = 40 };
    EXPECT_OK(strata_add_out_of_memory_observer(rig->s, hear, NULL, NULL));
    strata_stream_t streams[STREAMS];
    strata_block_t none;
    for (int i = 0; i < STREAMS; i++) {
        char tag[200];
        snprintf(tag, sizeof tag, "%0190d", i);
        streams[i] = rig_stream(rig);
        tag[120] = (char)('A' + i % 26);
        tag[119] = (char)('a' + i / 26);
        (void)rig_allocate_tagged(rig, streams[i], ((size_t)i + 1) * MIB, tag);
        strata_block_t lent = rig_allocate(rig, streams[i], 1 * MIB);
        rig_work(rig, i ? streams[i - 1] : NULL, 10ull * 1000 * 1000 * 1000, lent.ref);
        EXPECT_OK(strata_free_on(rig->s, lent.ref, i ? streams[i - 1] : NULL));
    }
    strata_allocate_options_t once = {.struct_size = sizeof once, .size = 8192 * MIB, .flags = STRATA_NO_RETRY};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig->s, rig->gpu, NULL, &once, &none));
    EXPECT_CONTAINS(heard, "\n  and 30 more streams\n");
    EXPECT_CONTAINS(heard, ", for others 36MiB\n");
    EXPECT_CONTAINS(heard, "; by other owners 630MiB\n");
    EXPECT_CONTAINS(heard, "\n  try: ");
    EXPECT_LT(strlen(heard), 3900);
}

/* What each layer counts for itself, over all streams; what is 0 is left out. */
TEST_RIG(facade_report, says_what_layers_count, 0,
         "version: 1\nstrategy: counted\ndevices: sim\nstack:\n  - stat\n  - auto_growth: {chunk_size: 8MiB}\n"
         "  - stat: {name: chunks}\n  - fault: {above: 100MiB}\n  - limit: {bytes: 50MiB}\n  - system\n") {
    strata_stream_t one = rig_stream(rig);
    EXPECT_OK(strata_add_out_of_memory_observer(rig->s, hear, NULL, NULL));
    (void)rig_allocate(rig, NULL, 30 * MIB);
    (void)rig_allocate(rig, one, 6 * MIB);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, one, 6 * MIB).ref));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 40 * MIB));
    EXPECT_CONTAINS(heard, "allocated 6MiB, deferred 0, idle 2MiB in auto_growth\n"
                           "  layer stat: current_bytes 36MiB, peak_bytes 42MiB, live 2, served 3\n"
                           "  layer chunks: current_bytes 38MiB, peak_bytes 46MiB, live 2, served 3\n"
                           "  layer fault: requests 7\n"
                           "  layer limit: limit_bytes 50MiB, used_bytes 38MiB, peak_bytes 46MiB, refused 4\n"
                           "  live blocks: ");
}

/* Of many the largest are told, and the others in one. */
TEST(facade_report, many_owners_and_many_layers_stay_short) {
    enum { OWNERS = 200 };
    char text[700];
    int length = snprintf(text, sizeof text, "strategy: many\nstack:\n");
    for (int i = 1; i <= 3; i++) length += snprintf(text + length, sizeof text - (size_t)length, "  - stat: {name: s%d}\n", i);
    length += snprintf(text + length, sizeof text - (size_t)length, "  - auto_growth: {chunk_size: 0}\n");
    for (int i = 1; i <= 6; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "  - limit: {bytes: %dGiB, name: l%d}\n", i, i);
    snprintf(text + length, sizeof text - (size_t)length, "  - system\n");
    RIG(rig, text, 0);
    EXPECT_OK(strata_add_out_of_memory_observer(rig.s, hear, NULL, NULL));
    for (int i = 0; i < OWNERS; i++) {
        char tag[32];
        snprintf(tag, sizeof tag, "owner %d", i);
        (void)rig_allocate_tagged(&rig, NULL, i < 2 ? 8 * MIB : MIB, tag);
    }
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, 2 * GIB));
    EXPECT_CONTAINS(heard, "\n  layer l3: ");
    EXPECT_LACKS(heard, "layer l4");
    EXPECT_CONTAINS(heard, "\n  and 3 more layers\n");
    /* 16 MiB of two and 3 MiB of three are told of 214 MiB. */
    EXPECT_CONTAINS(heard, "\n  live blocks: 8MiB in 1 block by owner ");
    EXPECT_CONTAINS(heard, "; by other owners 195MiB\n");
}

/* What would have been enough is freed and in use for longer than the request waits, in whichever way it does. */
TEST(facade_report, a_wait_that_was_too_short_is_told) {
    for (int first = 0; first < 2; first++) {
        const char *const set[] = {"retry.timeout=2ms", first ? "retry.wait_first=true" : "retry.wait_first=false"};
        RIG_BY(rig, rig_open(&rig, "strata", set, 2, 64 * MIB, 1));
        strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
        (void)rig_free_deferred(&rig, owner, borrower, 40 * MIB, 100 * 1000 * 1000);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&rig, owner, 40 * MIB));
        const char *text = strata_last_error()->text;
        EXPECT_CONTAINS(text, first ? ", smaller growth nothing; it took "
                                    : ", smaller growth nothing, waiting for other frees nothing; it took ");
        EXPECT_CONTAINS(
            text, ": waiting: requested 40MiB; 40MiB are freed but still in use by other streams\n  try: raise retry.timeout (now "
                  "2ms)");
    }
}

/* What fails otherwise is told as what it is, and to no observer. */
TEST_RIG(facade_report, is_made_of_no_other_failure, 64 * MIB, "strata-malloc") {
    (void)rig_allocate(rig, NULL, MIB);
    heard[0] = '\0';
    EXPECT_OK(strata_add_out_of_memory_observer(rig->s, hear, NULL, NULL));
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_malloc, 1, true, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, rig_try(rig, NULL, 40 * MIB));
    EXPECT_LACKS(strata_last_error()->text, "out of memory");
    strata_sim_clear_faults(rig->devices[0]);
    strata_slab_t *slab = &rig_stack(rig, NULL)->slab;
    uint32_t capacity = slab->capacity;
    slab->capacity = slab->used;
    EXPECT_SAYS(STRATA_E_LIMIT, rig_try(rig, NULL, 40 * MIB), "maximum");
    slab->capacity = capacity;
    EXPECT_STREQ(heard, "");
    EXPECT_EQ(rig_figures(rig).out_of_memory, 0);
}

/* ---- while other threads are at work ---- */

enum { WORKERS = 3, REPORTS = 40, SLOTS = 8 };

typedef struct work {
    rig_t *rig;
    strata_stream_t stream;
    _Atomic bool *over;
    uint64_t seed;
} work_t;

static void *come_and_go(void *context) {
    work_t *work = context;
    strata_block_t blocks[SLOTS] = {{.ref = 0}};
    for (uint64_t i = 0; !atomic_load(work->over); i++) {
        strata_block_t *block = &blocks[(work->seed = work->seed * 6364136223846793005ull + 1) >> 33 & (SLOTS - 1)];
        strata_allocate_options_t options = {.struct_size = sizeof options,
                                             .size = (work->seed >> 40 & 7) * MIB + 512,
                                             .flags = STRATA_NO_RETRY | STRATA_NO_REPORT,
                                             .tag = "worker"};
        if (block->ref) EXPECT_OK(strata_free(work->rig->s, block->ref));
        if (strata_allocate_with(work->rig->s, work->rig->gpu, work->stream, &options, block) != STRATA_OK) block->ref = 0;
    }
    for (int i = 0; i < SLOTS; i++)
        if (blocks[i].ref) EXPECT_OK(strata_free(work->rig->s, blocks[i].ref));
    return NULL;
}

/* Every size in a text, in bytes, is one that a device of `most` bytes can have. */
static void expect_sane_sizes(const char *text, double most) {
    static const char *const units[] = {"KiB", "MiB", "GiB"};
    for (const char *minus = text; (minus = strchr(minus, '-')) != NULL; minus++) EXPECT_FALSE(minus[1] >= '0' && minus[1] <= '9');
    for (const char *at = text; *at; at++) {
        char number[40];
        size_t length = 0;
        if (strncmp(at, "next", 4) == 0)
            at += strcspn(at, "0123456789"), at += strspn(at, "0123456789,."); /* what doubles, and is no memory */
        if (strncmp(at, "0x", 2) == 0) at += strspn(at, "0123456789abcdefx"); /* an address */
        if (*at < '0' || *at > '9') continue;
        for (; (*at >= '0' && *at <= '9') || *at == '.' || (*at == ',' && at[1] != ' '); at++)
            if (*at != ',' && length < sizeof number - 1) number[length++] = *at;
        number[length] = '\0';
        double value = atof(number);
        for (int u = 0; u < 3; u++)
            if (strncmp(at, units[u], 3) == 0) value *= (double)(1ull << 10 * (u + 1));
        if (value > most) FAIL_TEST("%s of %s", number, text);
        if (!*at) return;
    }
}

TEST_RIG(facade_report, stays_sane_while_other_threads_are_at_work, 96 * MIB,
         "strategy: a\nstack: [retry: {timeout: 1ms}, stream_safe, auto_growth, system]\n", "pytorch",
         "strategy: b\nstack: [bfc, limit: {bytes: 90MiB}, system]\n") {
    _Atomic bool over = false;
    pthread_t threads[WORKERS];
    work_t work[WORKERS];
    for (int t = 0; t < WORKERS; t++) {
        work[t] = (work_t){.rig = rig, .stream = rig_stream(rig), .over = &over, .seed = (uint64_t)t + 1};
        EXPECT_EQ(pthread_create(&threads[t], NULL, come_and_go, &work[t]), 0);
    }
    for (int n = 0; n < REPORTS; n++) {
        strata_allocate_options_t options = {.struct_size = sizeof options, .size = 95 * MIB, .flags = n % 2 ? STRATA_NO_RETRY : 0};
        strata_block_t block;
        if (strata_allocate_with(rig->s, rig->gpu, NULL, &options, &block) == STRATA_OK) EXPECT_OK(strata_free(rig->s, block.ref));
        else expect_sane_sizes(strchr(strata_last_error()->text, ':') + 4, 2.0 * GIB);
    }
    atomic_store(&over, true);
    for (int t = 0; t < WORKERS; t++) pthread_join(threads[t], NULL);
}

/* ---- and turned off ---- */

static strata_out_of_memory_t last_event;

static void note_event(const strata_out_of_memory_t *event, void *context) {
    hear(event, context);
    last_event = *event;
}

TEST_RIG_WAYS(facade_report, is_short_where_the_request_or_the_strategy_wants_none, by_strategy, 2, 64 * MIB,
              by_strategy ? "strategy: short\nreport: short\nstack: [auto_growth, system]\n" : "strata") {
    EXPECT_OK(strata_add_out_of_memory_observer(rig->s, note_event, NULL, NULL));
    strata_allocate_options_t options = {
        .struct_size = sizeof options, .size = 100 * MIB, .flags = by_strategy ? 0 : STRATA_NO_REPORT};
    strata_block_t none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig->s, rig->gpu, NULL, &options, &none));
    EXPECT_STREQ(strata_last_error()->text, heard);
    EXPECT_EQ(strchr(heard, '\n'), NULL);
    EXPECT_CONTAINS(heard, "out of memory in gpu:0 on stream NULL: requested 100MiB, 64MiB free on the device; ");
    EXPECT_EQ(last_event.cause, STRATA_CAUSE_UNKNOWN);
    EXPECT_EQ(last_event.size, 100 * MIB);
    EXPECT_EQ(rig_figures(rig).out_of_memory, 1);
}

/* What the device has free is left out, and the request fails as ever. */
TEST_RIG(facade_report, is_short_without_the_devices_figures_if_it_refuses_them, 64 * MIB, "strata") {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 100 * MIB, .flags = STRATA_NO_REPORT};
    strata_block_t none;
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_mem_info, 1, true, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig->s, rig->gpu, NULL, &options, &none));
    strata_sim_clear_faults(rig->devices[0]);
    EXPECT_CONTAINS(strata_last_error()->text, "out of memory in gpu:0 on stream NULL: requested 100MiB; ");
}

/* ---- the request's tag and operator ---- */

typedef struct asked {
    char tag[64], operator_name[64];
    uint64_t step;
} asked_t;

static void note_who_asked(const strata_out_of_memory_t *event, void *context) {
    asked_t *asked = context;
    snprintf(asked->tag, sizeof asked->tag, "%s", event->tag);
    snprintf(asked->operator_name, sizeof asked->operator_name, "%s", event->operator_name);
    asked->step = event->step;
}

/* They are in the full and the one-line text, in the log and in the struct. */
TEST_BY(facade_report, names_who_asked_for_what_was_refused, rig_open(rig, "strata", NULL, 0, 64 * MIB, 1)) {
    static const struct {
        const char *tag, *operator_name, *text;
        uint32_t flags;
        bool steps;
    } rows[] = {{NULL, NULL, "on stream NULL: ", 0, false},
                {"weights", NULL, "on stream NULL for weights: ", 0, false},
                {NULL, "conv1", "on stream NULL for conv1 in step 1: ", 0, true},
                {"weights", "conv2", "on stream NULL for weights of conv2 in step 2: ", STRATA_NO_REPORT, true},
                {NULL, NULL, "on stream NULL: ", STRATA_NO_REPORT, false}};
    asked_t asked;
    uint64_t step = 0;
    EXPECT_OK(strata_add_out_of_memory_observer(rig->s, note_who_asked, &asked, NULL));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strata_allocate_options_t options = {
            .struct_size = sizeof options, .size = 128 * MIB, .tag = rows[i].tag, .flags = rows[i].flags | STRATA_NO_RETRY};
        strata_block_t block;
        if (rows[i].steps) EXPECT_OK(strata_step(rig->s));
        step += rows[i].steps;
        EXPECT_OK(strata_annotate(rig->s, rows[i].operator_name));
        EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_allocate_with(rig->s, rig->gpu, NULL, &options, &block), rows[i].text);
        EXPECT_STREQ(asked.tag, rows[i].tag ? rows[i].tag : "");
        EXPECT_STREQ(asked.operator_name, rows[i].operator_name ? rows[i].operator_name : "");
        EXPECT_EQ(asked.step, step);
    }
    EXPECT_OK(strata_annotate(rig->s, NULL));
}
