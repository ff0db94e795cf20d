/* What is told of memory never tells what is in it: every text, struct and file that the library makes of a program whose memory
 * is full of one pattern is searched for that pattern. */
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab/replay/timeline/target.h"
#include "tests/facade/support/fixture.h"
#include "tests/harness/files.h"

enum { PATTERN = 8, PART = 4, GATHERED = 1 << 22, BLOCKS = 24, PLACES = 4 };

static const uint8_t pattern[PATTERN] = {0xd3, 0x5a, 0xc7, 0x9e, 0xb1, 0x6f, 0x8d, 0xe4};

typedef struct gathered {
    char bytes[GATHERED];
    size_t length;
} gathered_t;

static gathered_t all;

static void gather(const void *bytes, size_t count) {
    if (count > sizeof all.bytes - all.length) FAIL_TEST("%zu bytes more are too many", count);
    else all.length += (memcpy(all.bytes + all.length, bytes, count), count);
}

static void gather_text(const char *text) { gather(text, strlen(text) + 1); }

/* ---- finding it ---- */

static bool has_bytes(const void *bytes, size_t count) { return memmem(all.bytes, all.length, bytes, count) != NULL; }

/* Letters alone, so that neither case nor what stands between the pairs matters. */
static bool has_hex(const uint8_t part[PART], const char *digits) {
    char wanted[2 * PART + 1];
    for (int i = 0; i < PART; i++) sprintf(wanted + 2 * i, "%02x", part[i]);
    return strstr(digits, wanted) != NULL;
}

static char *hex_digits(void) {
    char *digits = malloc(all.length + 1);
    size_t length = 0;
    for (size_t i = 0; digits && i < all.length; i++) {
        bool prefix = all.bytes[i] == '0' && i + 1 < all.length && all.bytes[i + 1] == 'x';
        if (prefix) i++;
        else if (isxdigit((unsigned char)all.bytes[i])) digits[length++] = (char)tolower((unsigned char)all.bytes[i]);
    }
    if (digits) digits[length] = '\0';
    return digits;
}

static bool has_decimal(const uint8_t part[PART]) {
    uint32_t little, big;
    char text[5][32];
    memcpy(&little, part, PART);
    big = __builtin_bswap32(little);
    snprintf(text[0], sizeof text[0], "%u", little);
    snprintf(text[1], sizeof text[1], "%u", big);
    snprintf(text[2], sizeof text[2], "%d", (int32_t)little);
    snprintf(text[3], sizeof text[3], "%d", (int32_t)big);
    snprintf(text[4], sizeof text[4], "%u, %u, %u", part[0], part[1], part[2]);
    for (int i = 0; i < 5; i++)
        if (has_bytes(text[i], strlen(text[i]))) return true;
    return false;
}

/* In which of its forms four bytes of it stand in what was gathered; NULL: in none. */
static const char *found_as(void) {
    const char *found = NULL;
    char *digits = hex_digits();
    for (int at = 0; at < PATTERN && !found; at++) {
        uint8_t part[PART], back[PART];
        for (int i = 0; i < PART; i++) back[PART - 1 - i] = part[i] = pattern[(at + i) % PATTERN];
        if (has_bytes(part, PART) || has_bytes(back, PART)) found = "bytes";
        else if (!digits || has_hex(part, digits) || has_hex(back, digits)) found = "hex";
        else if (has_decimal(part)) found = "decimal";
    }
    free(digits);
    return found;
}

TEST(contents, the_search_finds_what_is_planted) {
    static const char *const planted[] = {"at c79eb16f", "C7 9E B1 6F",      "0x6fb19ec7", "0xd3, 0x5a, 0xc7, 0x9e",
                                          "=3545941918", "is 211, 90, 199, "};
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        all.length = 0;
        gather_text("nothing but 0x7f00 and 123456 here");
        EXPECT_EQ(found_as(), NULL);
        gather_text(planted[i]);
        if (!found_as()) FAIL_TEST("\"%s\" is not found", planted[i]);
    }
    all.length = 0;
    gather(pattern + 2, 4);
    EXPECT_STREQ(found_as(), "bytes");
}

TEST(contents, a_replay_on_simulated_devices_has_none) {
    static const char *const names[] = {"sim", "sim:h100", "sim:a100"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        strata_target_t target = {.capacity = GIB};
        strata_machine_t machine;
        ASSERT_OK(strata_target_parse(names[i], &target));
        ASSERT_OK(strata_machine_open(&target, 1, &machine));
        EXPECT_TRUE(!machine.devices[0]->capabilities.contents);
        strata_machine_close(&machine);
    }
}

/* ---- everything that is told ---- */

typedef struct scene {
    rig_t rig;
    strata_place_t places[PLACES];
    strata_block_t blocks[BLOCKS];
    FILE *errors;
    int saved;
} scene_t;

static void told_row(const strata_snapshot_row_t *row, void *context) {
    (void)context;
    gather(row, sizeof *row);
}

static void told_figure(const strata_layer_figure_t *figure, void *context) {
    (void)context;
    gather(figure, sizeof *figure);
}

static void told_failure(const strata_out_of_memory_t *event, void *context) {
    (void)context;
    gather(event, sizeof *event);
    gather_text(event->text);
}

static void told_leak(const strata_leak_t *leak, void *context) {
    (void)context;
    gather(leak, sizeof *leak);
    gather_text(leak->tag);
    gather_text(leak->operator_name);
    gather_text(leak->pool);
}

static void write_pattern(scene_t *scene, const strata_block_t *block, size_t more) {
    uint8_t *bytes = strata_device_host_view(scene->rig.devices[0], (uint64_t)(uintptr_t)block->ptr, block->size + more);
    for (size_t i = 0; bytes && i < block->size + more; i++) bytes[i] = pattern[i % PATTERN];
}

static void fill_memory(scene_t *scene) {
    strata_stream_t other = rig_stream(&scene->rig);
    EXPECT_OK(strata_annotate(scene->rig.s, "matmul"));
    for (int i = 0; i < BLOCKS; i++) {
        strata_allocate_options_t options = {.struct_size = sizeof options, .size = 1000u << (i % 6), .tag = "weights"};
        EXPECT_OK(strata_allocate_with(scene->rig.s, scene->places[i % PLACES], NULL, &options, &scene->blocks[i]));
        write_pattern(scene, &scene->blocks[i], 0);
        strata_ref_t ref = scene->blocks[i].ref;
        if (i % 5 == 1 && strata_record_stream(scene->rig.s, ref, other) == STRATA_OK && i % PLACES == 0)
            rig_work(&scene->rig, other, 50000000, ref);
    }
    for (int i = 0; i < BLOCKS; i += 3) EXPECT_OK(strata_free(scene->rig.s, scene->blocks[i].ref));
    for (int i = 0; i < BLOCKS; i += 3) (void)strata_free(scene->rig.s, scene->blocks[i].ref);
    gather_text(strata_last_error()->text);
    (void)strata_free_pointer(scene->rig.s, scene->blocks[0].ptr);
    gather_text(strata_last_error()->text);
}

static void ask_texts(scene_t *scene) {
    static char text[1 << 18];
    size_t needed;
    EXPECT_OK(strata_statistics_json(scene->rig.s, text, sizeof text, &needed));
    gather_text(text);
    EXPECT_OK(strata_statistics_prometheus(scene->rig.s, text, sizeof text, &needed));
    gather_text(text);
    EXPECT_OK(strata_explain(scene->rig.s, text, sizeof text, &needed));
    gather_text(text);
    for (int i = 0; i < PLACES; i++) {
        strata_statistics_t figures = {.struct_size = sizeof figures};
        strata_block_t none;
        EXPECT_OK(strata_chunks_text(scene->rig.s, scene->places[i], text, sizeof text, &needed));
        gather_text(text);
        EXPECT_OK(strata_snapshot(scene->rig.s, scene->places[i], told_row, NULL));
        EXPECT_OK(strata_layer_figures(scene->rig.s, scene->places[i], told_figure, NULL));
        EXPECT_OK(strata_statistics_all(scene->rig.s, scene->places[i], &figures));
        gather(&figures, sizeof figures);
        if (strata_allocate(scene->rig.s, scene->places[i], NULL, (size_t)1 << 46, &none) != STRATA_OK)
            gather_text(strata_last_error()->text);
    }
}

/* Behind their ends and after their frees, for a guard to find. */
static void write_wrongly(scene_t *scene) {
    for (int i = 0; i < BLOCKS; i++) {
        bool freed = i % 3 == 0;
        if (i % PLACES == 0) write_pattern(scene, &scene->blocks[i], freed ? 0 : 16);
    }
    if (strata_free(scene->rig.s, scene->blocks[4].ref) != STRATA_OK || strata_validate(scene->rig.s) != STRATA_OK)
        gather_text(strata_last_error()->text);
}

static void gather_files(const char *of) {
    glob_t found;
    if (glob(of, 0, NULL, &found) != 0) return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        size_t count = 0;
        char *bytes = read_bytes(found.gl_pathv[i], &count);
        gather(bytes, count);
        free(bytes);
        (void)unlink(found.gl_pathv[i]);
    }
    globfree(&found);
}

static void listen_to_errors(scene_t *scene) {
    scene->errors = tmpfile();
    ASSERT_TRUE(scene->errors);
    (void)fflush(stderr);
    scene->saved = dup(STDERR_FILENO);
    ASSERT_GE(dup2(fileno(scene->errors), STDERR_FILENO), 0);
}

static void gather_errors(scene_t *scene) {
    static char text[1 << 16];
    (void)fflush(stderr);
    ASSERT_GE(dup2(scene->saved, STDERR_FILENO), 0);
    (void)close(scene->saved);
    rewind(scene->errors);
    gather(text, fread(text, 1, sizeof text, scene->errors));
    (void)fclose(scene->errors);
}

/* Gathers all that a strategy tells; how much that was. */
static size_t tell_all(const char *text, bool guarded) {
    static const strata_place_kind_t kinds[PLACES] = {STRATA_PLACE_GPU, STRATA_PLACE_MANAGED, STRATA_PLACE_PINNED,
                                                      STRATA_PLACE_HOST};
    static scene_t scene;
    uint32_t id;
    scene = (scene_t){0};
    all.length = 0;
    rig_open_on(&scene.rig, rig_strategy(text, NULL, 0), &(strata_sim_options_t){.contents = true, .capacity = 512 * MIB}, 0);
    scene.rig.borrowed_strategy = false;
    for (int i = 0; i < PLACES; i++) scene.places[i] = strata_place(kinds[i], 0);
    listen_to_errors(&scene);
    EXPECT_OK(strata_add_out_of_memory_observer(scene.rig.s, told_failure, NULL, &id));
    fill_memory(&scene);
    ask_texts(&scene);
    if (guarded) write_wrongly(&scene);
    EXPECT_OK(strata_close(scene.rig.s, STRATA_CLOSE_FORCE, told_leak, NULL));
    gather_errors(&scene);
    rig_end(&scene.rig);
    return all.length;
}

static void expect_untold(const char *what) {
    const char *form = found_as();
    if (form) FAIL_TEST("%s: what is in memory is told, as %s", what, form);
}

TEST(contents, no_preset_tells_them) {
    for (size_t i = 0; strata_preset_name(i); i++) {
        EXPECT_GT(tell_all(strata_preset_name(i), false), 10000);
        expect_untold(strata_preset_name(i));
    }
}

TEST(contents, no_layer_tells_them_in_reports_or_files) {
    char text[2048], files[300], tail[700];
    snprintf(files, sizeof files, "%s", temporary("told"));
    snprintf(tail, sizeof tail,
             "places:\n  managed: [stream_safe, guard: {quarantine: 3}, caching, system]\n"
             "  pinned: [trace: {path: \"%s-b.csv\"}, guard, stream_safe, scrub, buffered, system]\n"
             "  host: [guard, fill: {byte: 211}, auto_growth, system]\n",
             files);
    snprintf(text, sizeof text,
             "version: 1\nstack: [retry: {timeout: 1ms}, trace: {path: \"%s-a.csv\"}, guard: {quarantine: 4}, stat, "
             "bfc: {memory_debug: true, memory_limit: 4MiB, memory_dump: \"%s-map\"}, limit: {bytes: 64MiB}, system]\n%s",
             files, files, tail);
    EXPECT_GT(tell_all(text, true), 10000);
    EXPECT_NE(memmem(all.bytes, all.length, "was written", 11), NULL);
    EXPECT_NE(memmem(all.bytes, all.length, "memory map in ", 14), NULL);
    EXPECT_NE(memmem(all.bytes, all.length, "were never freed", 16), NULL);
    size_t told = all.length;
    snprintf(tail, sizeof tail, "%s-*", files);
    gather_files(tail);
    EXPECT_GT(all.length, told + 1000);
    expect_untold("the layers");
}
