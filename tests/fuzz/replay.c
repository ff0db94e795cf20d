/* Every target over its seeds and over what was once found to break it, by any compiler. */
#include <dirent.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/paths.h"

enum { MOST_BYTES = 1 << 20 };

static void run_file(const char *path, void (*target)(const uint8_t *, size_t)) {
    static uint8_t bytes[MOST_BYTES];
    FILE *file = fopen(path, "rbe");
    ASSERT_NE(file, NULL);
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    /* A copy of its own size, so that a look after the end is one after a heap block. */
    uint8_t *copy = malloc(count + !count);
    ASSERT_NE(copy, NULL);
    memcpy(copy, bytes, count);
    fprintf(stderr, "%s\n", path); /* what was run last, when a target aborts */
    target(copy, count);
    free(copy);
}

/* Answers how many files the folder has. */
static size_t run_folder(const char *folder, void (*target)(const uint8_t *, size_t)) {
    char path[600];
    size_t count = 0;
    DIR *files = opendir(folder);
    if (!files) return 0;
    for (struct dirent *entry = readdir(files); entry; entry = readdir(files)) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "README.md") == 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        run_file(path, target);
        count++;
    }
    closedir(files);
    return count;
}

#define REPLAY(name, meaning)                                                                                                      \
    TEST(fuzzed, name) {                                                                                                           \
        EXPECT_GT(run_folder(STRATA_SOURCE_DIR "/tests/fuzz/seeds/" #name, fuzz_##name), 1);                                       \
        fuzz_##name(NULL, 0);                                                                                                      \
    }
FUZZ_TARGET_MAP(REPLAY)

TEST(fuzzed, strategy_over_the_presets) { EXPECT_GT(run_folder(STRATA_SOURCE_DIR "/strategy/presets", fuzz_strategy), 3); }

/* What stands in such a strategy may be any path. */
TEST(fuzzed, a_strategy_that_names_a_file_is_served_to_nobody) {
    static const char *const strategies[] = {
        "stack: [bfc: {memory_debug: true, memory_limit: 1MiB, memory_dump: \"%s/map\"}, system]\n",
        "stack: [trace: {path: \"%s/trace.csv\"}, system]\n",
        "stack: [fallback: {stacks: [[bfc: {memory_limit: 1MiB, memory_dump: \"%s/map\"}, system], [limit, system]]}]\n",
        "stack: [system]\nplaces: {host: [trace: {path: \"%s/trace.csv\"}, system]}\n",
        "devices: {use: sim, gpu:1: {stack: [trace: {path: \"%s/trace.csv\"}, system]}}\nstack: [system]\n",
        "stack: [system]\npools: {weights: [trace: {path: \"%s/trace.csv\"}, system]}\n"};
    char folder[256], written[300], text[600];
    glob_t found;
    snprintf(folder, sizeof folder, "%s", temporary("named"));
    ASSERT_EQ(mkdir(folder, 0700), 0);
    snprintf(written, sizeof written, "%s/*", folder);
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        snprintf(text, sizeof text, strategies[i], folder);
        fuzz_strategy((const uint8_t *)text, strlen(text));
        EXPECT_EQ(glob(written, 0, NULL, &found), GLOB_NOMATCH);
    }
    EXPECT_EQ(rmdir(folder), 0);
}
