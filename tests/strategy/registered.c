/* Layers that register at run time: what is refused, and what an older or newer header's struct means. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocation/call/figures.h"
#include "tests/strategy/fakes.h"

static strata_status_t create(strata_layer_t *self) {
    (void)self;
    return STRATA_OK;
}

static void destroy(strata_layer_t *self) { (void)self; }

static void give(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self;
    strata_below_free(record, call);
}

static strata_layer_type_t good(const char *name) {
    return (strata_layer_type_t){.struct_size = sizeof(strata_layer_type_t),
                                 .name = name,
                                 .doc = "a fake",
                                 .role = STRATA_DECORATOR,
                                 .scope = STRATA_SCOPE_STREAM,
                                 .state_size = sizeof(strata_layer_t),
                                 .create = create,
                                 .destroy = destroy,
                                 .allocate = strata_layer_allocate,
                                 .free = give};
}

static void expect_refused(const strata_layer_type_t *type, strata_status_t status, const char *why) {
    EXPECT_SAYS(status, strata_register_layer(type), why);
    if (type->name) EXPECT_TRUE(strata_layer_find(type->name) == NULL || strata_layer_find(type->name) == strata_layer_at(0));
}

TEST(registered, a_layer_is_found_by_name_and_by_index) {
    size_t before = 0;
    while (strata_layer_at(before)) before++;
    strata_layer_type_t type = good("registered_one");
    EXPECT_OK(strata_register_layer(&type));
    const strata_layer_type_t *found = strata_layer_find("registered_one");
    ASSERT_TRUE(found);
    EXPECT_EQ(found, strata_layer_at(before));
    EXPECT_EQ(strata_layer_at(before + 1), NULL);
    EXPECT_TRUE(found != &type && found->free == give);
}

TEST(registered, a_name_is_given_once) {
    strata_layer_type_t type = good("registered_twice"), own = good("registered_twice");
    own.name = strata_layer_at(0)->name;
    expect_refused(&own, STRATA_E_INVALID, "already");
    EXPECT_OK(strata_register_layer(&type));
    EXPECT_SAYS(STRATA_E_INVALID, strata_register_layer(&type), "registered_twice");
    const strata_layer_type_t *list[] = {&type};
    EXPECT_OK(strata_layers_register(list, 1, true));
}

TEST(registered, several_are_registered_together_or_not_at_all) {
    strata_layer_type_t a = good("together_a"), b = good("together_a");
    const strata_layer_type_t *list[] = {&a, &b};
    EXPECT_STATUS(STRATA_E_INVALID, strata_layers_register(list, 2, false));
    EXPECT_EQ(strata_layer_find("together_a"), NULL);
    b.name = "together_b";
    EXPECT_OK(strata_layers_register(list, 2, false));
    EXPECT_NE(strata_layer_find("together_b"), NULL);
}

TEST(registered, of_thread_scope_are_caches_alone) {
    static const strata_role_t roles[] = {STRATA_SOURCE, STRATA_DECORATOR, STRATA_ROUTER};
    for (size_t i = 0; i < 3; i++) {
        strata_layer_type_t type = good("of_a_thread");
        type.scope = STRATA_SCOPE_THREAD;
        type.role = roles[i];
        expect_refused(&type, STRATA_E_INVALID, "only a cache may have thread scope");
    }
}

TEST(registered, mandatory_operations_are_wanted) {
    strata_layer_type_t type = good("incomplete");
    type.create = NULL;
    expect_refused(&type, STRATA_E_INVALID, "no create");
    type = good("incomplete");
    type.destroy = NULL;
    expect_refused(&type, STRATA_E_INVALID, "no destroy");
    type = good("incomplete");
    type.allocate = NULL;
    expect_refused(&type, STRATA_E_INVALID, "no allocate");
    type = good("incomplete");
    type.free = NULL;
    expect_refused(&type, STRATA_E_INVALID, "no free");
    type = good("incomplete");
    type.struct_size = offsetof(strata_layer_type_t, free);
    expect_refused(&type, STRATA_E_INVALID, "struct_size");
    type = good("incomplete");
    type.state_size = sizeof(strata_layer_t) - 1;
    expect_refused(&type, STRATA_E_INVALID, "state_size");
    EXPECT_STATUS(STRATA_E_INVALID, strata_register_layer(NULL));
}

TEST(registered, roles_scopes_and_sizes_are_known_ones) {
    strata_layer_type_t type = good("shapeless");
    type.role = (strata_role_t)(STRATA_ROUTER + 1);
    expect_refused(&type, STRATA_E_INVALID, "invalid role or scope");
    type = good("shapeless");
    type.scope = (strata_scope_t)(STRATA_SCOPE_DEVICE + 1);
    expect_refused(&type, STRATA_E_INVALID, "invalid role or scope");
    type = good("shapeless");
    type.options_size = (1u << 16) + 1;
    expect_refused(&type, STRATA_E_INVALID, "options_size is 65537");
    type = good("shapeless");
    type.state_size = (1u << 20) + 1;
    expect_refused(&type, STRATA_E_INVALID, "state_size is 1048577");
}

static void take_notice(strata_layer_t *self, strata_notice_t *notice, strata_call_t *call) {
    (void)self, (void)notice, (void)call;
}

TEST(registered, notices_are_of_known_kinds_and_reach_the_layer) {
    strata_layer_type_t type = good("deaf");
    type.notices = 1u << STRATA_NOTICE_STEP;
    expect_refused(&type, STRATA_E_INVALID, "set notify");
    type = good("early");
    type.notices = 1u << STRATA_NOTICE_KINDS;
    type.notify = take_notice;
    expect_refused(&type, STRATA_E_INVALID, "bits of the");
    type = good("ready");
    type.notices = 1u << (STRATA_NOTICE_KINDS - 1);
    type.notify = take_notice;
    EXPECT_OK(strata_register_layer(&type));
}

TEST(registered, names_are_words_of_their_own) {
    static const char *const wrong[] = {"",       "1st", "a b",
                                        "a.b",    "a:b", "stack",
                                        "pinned", "gpu", "a2345678901234567890123456789012345678901234567890123456789012345"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        strata_layer_type_t type = good(wrong[i]);
        expect_refused(&type, STRATA_E_INVALID, "name");
    }
    strata_layer_type_t type = good(NULL);
    expect_refused(&type, STRATA_E_INVALID, "name");
}

/* Built with a header that had no `validate` and `check` yet: the bytes after its struct are not the layer's. */
TEST(registered, an_older_struct_gets_the_defaults) {
    size_t older = offsetof(strata_layer_type_t, validate);
    strata_layer_type_t *type = malloc(older);
    ASSERT_TRUE(type);
    strata_layer_type_t whole = good("older");
    whole.struct_size = older;
    memcpy(type, &whole, older);
    EXPECT_OK(strata_register_layer(type));
    free(type);
    const strata_layer_type_t *found = strata_layer_find("older");
    ASSERT_TRUE(found);
    EXPECT_TRUE(!found->validate && !found->check && found->free == give);
    EXPECT_EQ(found->struct_size, sizeof *found);
}

TEST(registered, an_unknown_tail_must_be_zero) {
    struct {
        strata_layer_type_t type;
        uint64_t newer[2];
    } longer = {.type = good("longer")};
    longer.type.struct_size = sizeof longer;
    longer.newer[1] = 1;
    expect_refused(&longer.type, STRATA_E_UNSUPPORTED, "newer Strata");
    longer.newer[1] = 0;
    EXPECT_OK(strata_register_layer(&longer.type));
    longer.type.name = "endless";
    longer.type.struct_size = SIZE_MAX;
    expect_refused(&longer.type, STRATA_E_INVALID, "struct_size");
}

static void expect_option_refused(strata_option_row_t row, const char *why) {
    const strata_option_row_t rows[] = {row, {0}};
    strata_layer_type_t type = good("optional");
    type.options = rows;
    type.options_size = 8;
    expect_refused(&type, STRATA_E_INVALID, why);
}

TEST(registered, option_rows_fit_their_struct) {
    const strata_option_row_t row = {"limit", STRATA_OPTION_SIZE, 0, "1MiB", 0, 0, NULL, "a limit"};
    strata_option_row_t wrong = row;
    wrong.offset = 8;
    expect_option_refused(wrong, "outside the");
    wrong = row;
    wrong.offset = UINT32_MAX;
    expect_option_refused(wrong, "outside the");
    wrong = row;
    wrong.name = "name";
    expect_option_refused(wrong, "name");
    wrong = row;
    wrong.default_text = "1MB";
    expect_option_refused(wrong, "default of limit");
    wrong = row;
    wrong.kind = STRATA_OPTION_CHOICE;
    expect_option_refused(wrong, "no choices");
    wrong.choices = "a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q|r|s|t|u|v|w|x|y|z|0|1|2|3|4|5|6";
    expect_option_refused(wrong, "more than 32 choices");
    wrong = row;
    wrong.doc = NULL;
    expect_option_refused(wrong, "no doc");
    wrong = row;
    wrong.kind = STRATA_OPTION_TEXT; /* longer than the struct */
    expect_option_refused(wrong, "outside the");
    wrong.kind = (strata_option_kind_t)(STRATA_OPTION_TEXT + 1);
    expect_option_refused(wrong, "outside the");
    const strata_stat_row_t stats[] = {{"seen", "count", sizeof(strata_layer_t), "what it saw"}, {0}};
    strata_layer_type_t type = good("figured");
    type.stats = stats;
    expect_refused(&type, STRATA_E_INVALID, "figure 1");
}

/* Tables without an end are told from long ones by their length. */
TEST(registered, tables_of_rows_end) {
    static char names[STRATA_STAT_ROWS + 2][16];
    strata_option_row_t options[STRATA_STAT_ROWS + 2] = {{0}};
    strata_stat_row_t stats[STRATA_STAT_ROWS + 2] = {{0}};
    for (size_t i = 0; i < STRATA_STAT_ROWS + 1; i++) {
        snprintf(names[i], sizeof names[i], "row_%zu", i);
        options[i] = (strata_option_row_t){names[i], STRATA_OPTION_SIZE, 0, "1MiB", 0, 0, NULL, "one of many"};
        stats[i] = (strata_stat_row_t){names[i], "count", sizeof(strata_layer_t), "one of many"};
    }
    strata_layer_type_t type = good("rows_of_options");
    type.options = options;
    type.options_size = 8;
    expect_refused(&type, STRATA_E_INVALID, "or no terminating row");
    options[STRATA_STAT_ROWS].name = NULL;
    EXPECT_OK(strata_register_layer(&type));
    type = good("rows_of_figures");
    type.stats = stats;
    type.state_size = sizeof(strata_layer_t) + 8;
    expect_refused(&type, STRATA_E_INVALID, "figure 257");
    stats[STRATA_STAT_ROWS].name = NULL;
    EXPECT_OK(strata_register_layer(&type));
}

static void *register_many(void *context) {
    static strata_layer_type_t types[4][8];
    static char names[4][8][32];
    size_t thread = (size_t)(uintptr_t)context;
    for (size_t i = 0; i < 8; i++) {
        snprintf(names[thread][i], sizeof names[thread][i], "thread_%zu_%zu", thread, i);
        types[thread][i] = good(names[thread][i]);
        if (strata_register_layer(&types[thread][i]) != STRATA_OK) return "refused";
        if (!strata_layer_find(names[thread][i])) return "lost";
    }
    return NULL;
}

TEST(registered, threads_register_at_once) {
    pthread_t threads[4];
    size_t before = 0, after = 0;
    while (strata_layer_at(before)) before++;
    for (size_t i = 0; i < 4; i++) ASSERT_EQ(pthread_create(&threads[i], NULL, register_many, (void *)(uintptr_t)i), 0);
    for (size_t i = 0; i < 4; i++) {
        void *wrong = NULL;
        EXPECT_EQ(pthread_join(threads[i], &wrong), 0);
        EXPECT_EQ(wrong, NULL);
    }
    while (strata_layer_at(after)) after++;
    EXPECT_EQ(after - before, 32);
}
