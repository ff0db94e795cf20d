/* Profiles as files: what is written is read again, whole; what is wrong is refused with its place; docs/profile-file.md is current. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/profile/fields.h"
#include "config/profile/profile.h"
#include "tests/config/refused.h"
#include "tests/harness/owned.h"
#include "tests/paths.h"

static strata_status_t read_text(const char *text, strata_sim_profile_t *profile) {
    return strata_profile_read("p.yaml", "p", text, strlen(text), profile);
}

static void expect_wrong(const char *text, const char *said) {
    strata_sim_profile_t profile = {.name = "as it was"};
    EXPECT_SAYS(STRATA_E_STRATEGY, read_text(text, &profile), said);
    EXPECT_STREQ(profile.name, "as it was");
    EXPECT_EQ(strchr(strata_last_error()->text, '\n'), NULL);
}

static const char *own_file(const char *name, const char *text) {
    char own[64];
    snprintf(own, sizeof own, "profile-%s.yaml", name);
    return file_of(own, text);
}

/* The text of a profile; good until the next call. */
static const char *text_of(const strata_sim_profile_t *profile) {
    static char text[16384];
    const char *path = own_file("written", "");
    strata_output_t *out = NULL;
    EXPECT_OK(strata_output_open(path, &out));
    strata_profile_write(out, profile, NULL, NULL);
    EXPECT_OK(strata_output_finish(out));
    FILE *file = fopen(path, "rb");
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
    if (file) fclose(file);
    unlink(path);
    return text;
}

/* Every number is the same, every cost to the nanosecond, and to the nanosecond a GiB. */
static void expect_same(const strata_sim_profile_t *a, const strata_sim_profile_t *b) {
    for (size_t i = 0; i < STRATA_PROFILE_FIELDS; i++) {
        const strata_profile_field_t *field = &strata_profile_fields[i];
        char of_a[96], of_b[96];
        strata_profile_print(field, a, of_a, sizeof of_a);
        strata_profile_print(field, b, of_b, sizeof of_b);
        if (strcmp(of_a, of_b) != 0) FAIL_TEST("%s: %s and %s", field->name, of_a, of_b);
        if (field->number) continue;
        const strata_sim_cost_t *x = (const void *)((const char *)a + field->offset),
                                *y = (const void *)((const char *)b + field->offset);
        EXPECT_NEAR(x->fixed_ns, y->fixed_ns, 0.51);
        EXPECT_NEAR(1024 * x->per_mib_ns, 1024 * y->per_mib_ns, 0.51);
    }
}

/* ---- reading and writing ---- */

TEST(profile, what_is_built_in_is_written_and_read_again) {
    for (size_t i = 0; strata_sim_profile_name(i); i++) {
        const strata_sim_profile_t *profile = strata_sim_profile(strata_sim_profile_name(i));
        strata_sim_profile_t read;
        ASSERT_OK(read_text(text_of(profile), &read));
        EXPECT_STREQ(read.name, profile->name);
        expect_same(profile, &read);
    }
}

static uint64_t next(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *state >> 20;
}

/* A value of each kind that a field may have. */
static void draw(uint64_t *state, const strata_profile_field_t *field, strata_sim_profile_t *profile) {
    uint64_t shift = next(state) % 44, drawn = next(state) >> shift;
    char *at = (char *)profile + field->offset;
    const strata_option_row_t *row = field->number;
    if (!row) {
        *(strata_sim_cost_t *)at = (strata_sim_cost_t){(double)(drawn % 900000000000), (double)(drawn % 7919) / 16};
    } else if (row->kind == STRATA_OPTION_BOOL) {
        *(bool *)at = drawn & 1;
    } else if (row->kind == STRATA_OPTION_FRACTION) {
        *(double *)at = (double)(drawn % 1001) / 1000;
    } else if (strcmp(field->name, "mappings_max") == 0 || strcmp(field->name, "pool_chunk_bytes") == 0) {
        *(uint64_t *)at = drawn;
    } else if (strcmp(field->name, "total_bytes") == 0) {
        *(uint64_t *)at = profile->total_bytes + drawn / 2;
    }
}

TEST(profile, any_profile_is_written_and_read_again) {
    uint64_t state = 20261124;
    for (int round = 0; round < 300; round++) {
        strata_sim_profile_t profile = *strata_sim_profile("h100"), read;
        for (size_t i = 0; i < STRATA_PROFILE_FIELDS; i++) draw(&state, &strata_profile_fields[i], &profile);
        ASSERT_OK(strata_sim_profile_check(&profile));
        ASSERT_OK(read_text(text_of(&profile), &read));
        expect_same(&profile, &read);
    }
}

TEST(profile, what_a_file_does_not_say_is_as_in_what_it_extends) {
    strata_sim_profile_t profile, wanted = *strata_sim_profile("a100");
    ASSERT_OK(read_text("total_bytes: 24GiB\nmalloc: 2us + 1us/MiB\nextends: a100\n", &profile));
    wanted.total_bytes = UINT64_C(24) << 30;
    wanted.malloc = (strata_sim_cost_t){2000, 1000};
    expect_same(&profile, &wanted);
    EXPECT_STREQ(profile.name, "p");
    ASSERT_OK(read_text("extends: a100\nprofile: mine-2.0_b", &profile));
    EXPECT_STREQ(profile.name, "mine-2.0_b");
}

/* A changed memory size does not make the costs measured. */
TEST(profile, what_extends_a_modelled_card_is_modelled) {
    strata_sim_profile_t profile;
    ASSERT_OK(read_text("extends: l4\ntotal_bytes: 23034MiB\n", &profile));
    EXPECT_TRUE(profile.modelled);
    EXPECT_EQ(profile.total_bytes, UINT64_C(23034) << 20);
    ASSERT_OK(read_text("extends: h100\ntotal_bytes: 24GiB\n", &profile));
    EXPECT_FALSE(profile.modelled);
}

TEST(profile, a_cost_is_a_time_or_a_rate_or_both) {
    static const struct {
        const char *text;
        double fixed, per_mib;
    } rows[] = {{"0", 0, 0},
                {"37us", 37000, 0},
                {"0.25us", 250, 0},
                {"1ms/GiB", 0, 976.5625},
                {"1ns/MiB", 0, 1},
                {"5us+3us/MiB", 5000, 3000},
                {"3us/MiB  +  5us ", 5000, 3000},
                {"900s + 1.024s/GiB", 900e9, 1e6}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strata_sim_cost_t cost;
        EXPECT_OK(strata_cost_parse(rows[i].text, &cost));
        EXPECT_NEAR(cost.fixed_ns, rows[i].fixed, 1e-9);
        EXPECT_NEAR(cost.per_mib_ns, rows[i].per_mib, 1e-9);
    }
}

/* Whatever a file is called, its profile can be written and read. */
TEST(profile, a_name_is_made_of_any_file_s) {
    static const char *const rows[][2] = {
        {"h100", "h100"}, {"my gpu", "my_gpu"}, {"\xc3\xa4", "__"},
        {"", "_"},        {"null", "null"},     {"0123456789012345678901234567890123456789", "0123456789012345678901234567890"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strata_sim_profile_t profile, read;
        ASSERT_OK(strata_profile_read("p.yaml", rows[i][0], "extends: h100", 13, &profile));
        EXPECT_STREQ(profile.name, rows[i][1]);
        ASSERT_OK(read_text(text_of(&profile), &read));
        EXPECT_STREQ(read.name, rows[i][1]);
    }
}

/* ---- what is wrong ---- */

TEST(profile, mistakes_are_told_with_their_place) {
    static const struct {
        const char *text, *said;
    } rows[] = {
        {"- 1\n", "p.yaml:1:1: a profile must be a mapping; write keys as in \"extends: h100\""},
        {"extends: h101\n", "p.yaml:1:10: there is no profile \"h101\"; write h100"},
        {"extends: [h100]\n", "p.yaml:1:1: \"extends\" needs one value"},
        {"extends:\n", "p.yaml:1:1: \"extends\" needs one value"},
        {"extends: h100\nmallocs: 1us\n", "p.yaml:2:1: a profile has no key \"mallocs\"; write malloc"},
        {"extends: h100\nmalloc: {a: 1us}\n", "p.yaml:2:1: \"malloc\" needs one value"},
        {"extends: h100\nmalloc: 1us\nmalloc: 2us\n", "p.yaml:3:1: "},
        {"extends: h100\nmalloc: 37\n", "p.yaml:2:9: malloc: \"37\" has no unit"},
        {"extends: h100\nmalloc: 1us + 2us\n", "p.yaml:2:9: malloc: \"1us + 2us\" is not a cost; write a time"},
        {"extends: h100\nmalloc: 1us/GiB + 2us/MiB\n", "p.yaml:2:9: malloc: \"1us/GiB + 2us/MiB\" is not a cost"},
        {"extends: h100\nmalloc: 1us +\n", "p.yaml:2:9: malloc: \"1us +\" is not a cost"},
        {"extends: h100\nmalloc: + 1us\n", "p.yaml:2:9: malloc: \"+ 1us\" is not a cost"},
        {"extends: h100\nmalloc: 1us + 1us/GiB + 1us\n", "p.yaml:2:9: malloc: "},
        {"extends: h100\nmalloc: -1us\n", "p.yaml:2:9: malloc: \"-1us\" is not a time"},
        {"extends: h100\nmalloc: never\n", "p.yaml:2:9: malloc: \"never\" is too large; a call costs at most 900s"},
        {"extends: h100\nmalloc: 901s\n", "a call costs at most 900s"},
        {"extends: h100\nmalloc: 901s/MiB\n", "a call costs at most 900s"},
        {"extends: h100\nmalloc: 99999999999999999999999s\n", "p.yaml:2:9: malloc: "},
        {"extends: h100\ntotal_bytes: many\n", "p.yaml:2:14: total_bytes: \"many\" is not a size"},
        {"extends: h100\ngranule_bytes: 3KiB\n",
         "p.yaml:2:16: granule_bytes: \"3KiB\" is too small; write a value from 64KiB to 1TiB"},
        {"extends: h100\ngranule_bytes: 3MiB\n", "p.yaml:1:1: granule_bytes must be a power of two"},
        {"extends: h100\ntotal_bytes: 1MiB\n", "p.yaml:1:1: context_bytes and foreign_bytes are more than total_bytes"},
        {"extends: h100\nfree_waits: 1\n", "p.yaml:2:13: free_waits: \"1\" is neither true nor false; write true"},
        {"extends: h100\ndriver_lock_share: 1.1\n", "p.yaml:2:20: driver_lock_share: \"1.1\" is too large"},
        {"extends: h100\nprofile: a b\n", "p.yaml:2:10: \"a b\" is not a valid profile name; write 1 to 31 letters"},
        {"extends: h100\nprofile: a23456789012345678901234567890123\n", "p.yaml:2:10: "},
        {"extends: h100\nmalloc: &a 1us\nfree: *a\n", "p.yaml:3:7: "},
        {"malloc: 1us\n", "p.yaml:1:1: \"total_bytes\" is missing; write it, or extends: h100 to supply all missing keys"},
        {"", "p.yaml:1:1: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) expect_wrong(rows[i].text, rows[i].said);
}

TEST(profile, a_long_cost_is_refused) {
    static char text[8192];
    snprintf(text, sizeof text, "extends: h100\nmalloc: %04000dus\n", 1);
    expect_wrong(text, "p.yaml:2:9: malloc: ");
    snprintf(text, sizeof text, "extends: h100\nmalloc: %05000dus\n", 1);
    expect_wrong(text, "p.yaml:2:");
}

/* Cut anywhere, and with any byte changed, it ends in an error with its place, or is still right. */
TEST(profile, every_cut_and_every_changed_byte_ends) {
    static const char wrong[] = {'\0', '\t', '{', '"', '*', '\x80', '-', ':', '9', 'u'};
    char *text CLOSED_BY(text_cleanup) = strdup(text_of(strata_sim_profile("h100")));
    size_t length = strlen(text);
    strata_sim_profile_t profile;
    for (size_t i = 0; i < length; i++) {
        strata_status_t status = strata_profile_read("p.yaml", "p", text, i, &profile);
        ASSERT_TRUE(status == STRATA_OK || strncmp(strata_last_error()->text, "p.yaml:", 7) == 0);
    }
    for (size_t i = 0; i < length; i += 3)
        for (size_t j = 0; j < sizeof wrong; j++) {
            char right = text[i];
            text[i] = wrong[j];
            strata_status_t status = strata_profile_read("p.yaml", "p", text, length, &profile);
            if (status == STRATA_OK) ASSERT_OK(strata_sim_profile_check(&profile));
            else ASSERT_TRUE(status == STRATA_E_STRATEGY && strncmp(strata_last_error()->text, "p.yaml:", 7) == 0);
            text[i] = right;
        }
}

/* ---- what names devices ---- */

TEST(profile, a_file_is_told_by_its_end) {
    static const struct {
        const char *text, *path;
        int count;
    } rows[] = {{"sim:p.yaml", "p.yaml", 1},     {"sim:a/b.yml", "a/b.yml", 1},
                {"sim:p.yamlx2", "p.yaml", 2},   {"sim:h100x2.yaml", "h100x2.yaml", 1},
                {"sim:p.yamlx17", "p.yaml", 17}, {"sim:p.yamlx", "p.yaml", -1},
                {"sim:p.yamlx02", "p.yaml", -1}, {"sim:h100", NULL, 0},
                {"sim:h100x2", NULL, 0},         {"sim:.yaml", NULL, 0},
                {"gpu:p.yaml", NULL, 0},         {"p.yaml", NULL, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path;
        size_t length;
        int count;
        EXPECT_EQ(strata_device_names_file(rows[i].text, &path, &length, &count), rows[i].path != NULL);
        if (!rows[i].path) continue;
        EXPECT_TRUE(length == strlen(rows[i].path) && strncmp(path, rows[i].path, length) == 0);
        EXPECT_EQ(count, rows[i].count);
    }
}

/* A strategy that names the file, which is beside it, by its last name. */
static void strategy_naming(const char *profile_path, const char *format, char path[512]) {
    char text[200];
    const char *name = strrchr(profile_path, '/') + 1, *at = strstr(format, "%s");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - format), format, name, at + 2);
    snprintf(path, 512, "%s", own_file("names", text));
}

/* Relative to the strategy's file; what overrides it, to the working directory. */
TEST(profile, a_strategy_names_a_file_beside_it) {
    char strategy_path[512], profile_path[512], wanted[600];
    snprintf(profile_path, sizeof profile_path, "%s", own_file("beside", "extends: a100\ntotal_bytes: 7GiB\n"));
    strategy_naming(profile_path, "devices: sim:%sx3\nstack: [system]\n", strategy_path);
    strata_strategy_t *strategy = load_request(&(strata_config_request_t){.file = strategy_path});
    ASSERT_NE(strategy, NULL);
    snprintf(wanted, sizeof wanted, "sim:%sx3", profile_path);
    EXPECT_STREQ(strategy->devices, wanted);
    EXPECT_EQ(strategy->device_choice.count, 3);
    ASSERT_NE(strategy->device_choice.profile, NULL);
    EXPECT_STREQ(strategy->device_choice.profile->name, "profile-beside");
    EXPECT_EQ(strategy->device_choice.profile->total_bytes, UINT64_C(7) << 30);
    strata_strategy_delete(strategy);
    strategy = load_request(&(strata_config_request_t){.file = strategy_path, .devices = "sim:a100"});
    EXPECT_STREQ(strategy->device_choice.profile->name, "a100");
    strata_strategy_delete(strategy);
    EXPECT_SAYS(
        STRATA_E_STRATEGY,
        strata_config_load(&(strata_config_request_t){.preset = "system", .devices = "sim:nowhere/beside.yaml", .by_program = true},
                           &strategy),
        "devices: nowhere/beside.yaml: cannot read the file");
    unlink(strategy_path);
    unlink(profile_path);
}

static strata_status_t choose(const char *path, const char *count, strata_device_choice_t *choice) {
    char text[600];
    const char *shown = NULL;
    strata_arena_t *memory = strata_arena_new();
    snprintf(text, sizeof text, "sim:%s%s", path, count);
    strata_status_t status = strata_devices_choose(memory, text, NULL, STRATA_FILE_NAMED_BY_USER, choice, &shown);
    if (status == STRATA_OK) EXPECT_STREQ(shown, text);
    strata_arena_delete(memory);
    return status;
}

/* A file may stand for as many devices as a strategy may have. */
TEST(profile, a_file_stands_for_up_to_sixteen_devices) {
    static const char *const refused[] = {"x17", "x0", "x", "x02"};
    char path[512], count[16] = "";
    strata_device_choice_t choice = {.count = 0};
    snprintf(path, sizeof path, "%s", own_file("many", "extends: h100\n"));
    for (uint32_t i = 1; i <= STRATA_MODEL_DEVICES; i++) {
        if (i > 1) snprintf(count, sizeof count, "x%u", i);
        EXPECT_OK(choose(path, count, &choice));
        EXPECT_EQ(choice.count, i);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char said[100];
        snprintf(said, sizeof said, "\"%s\" is not a number of devices; write x2 to x16 after the file, or nothing", refused[i]);
        EXPECT_SAYS(STRATA_E_INVALID, choose(path, refused[i], &choice), said);
    }
    unlink(path);
}

TEST(profile, a_strategy_tells_where_its_profile_is_wrong) {
    char strategy_path[512], profile_path[512], wanted[700];
    snprintf(profile_path, sizeof profile_path, "%s", own_file("wrong", "extends: h100\nmaloc: 1us\n"));
    strategy_naming(profile_path, "stack: [system]\ndevices: {use: \"sim:%s\"}\n", strategy_path);
    strata_strategy_t *strategy = NULL;
    snprintf(wanted, sizeof wanted, "%s:2:1: a profile has no key \"maloc\"; write malloc", profile_path);
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.file = strategy_path}, &strategy), wanted);
    unlink(profile_path);
    snprintf(wanted, sizeof wanted, "%s:2:16: ", strategy_path);
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.file = strategy_path}, &strategy), wanted);
    EXPECT_CONTAINS(strata_last_error()->text, ".yaml: cannot read the file");
    unlink(strategy_path);
    expect_refused("stack: [system]\ndevices: sim:p.yamlx17\n", 2, 10, "\"x17\" is not a number of devices", "x2 to x16");
}

/* ---- the page ---- */

TEST(profile, the_page_is_current_and_its_example_is_a_profile) {
    static char page[16384], now[16384];
    FILE *file = fopen(STRATA_SOURCE_DIR "/docs/profile-file.md", "rb"), *out = tmpfile();
    ASSERT_TRUE(file != NULL && out != NULL);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    EXPECT_OK(strata_profile_page(out));
    rewind(out);
    now[fread(now, 1, sizeof now - 1, out)] = '\0';
    fclose(out);
    if (strcmp(page, now) != 0) FAIL_TEST("docs/profile-file.md is not what `strata calibrate --markdown` writes");
    char *begin = strstr(now, "```yaml\n"), *end = begin ? strstr(begin + 8, "```") : NULL;
    ASSERT_NE(end, NULL);
    *end = '\0';
    strata_sim_profile_t profile;
    EXPECT_OK(read_text(begin + 8, &profile));
    EXPECT_STREQ(profile.name, "my-gpu");
    EXPECT_NEAR(profile.event_record.fixed_ns, 300, 1e-9);
}
