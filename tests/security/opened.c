/* What is read: the files that are named, and nothing else; whatever stands there, nothing waits for another process. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/config.h"
#include "platform/ranges/ranges.h"
#include "strata/strata.h"
#include "strategy/registry/code.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/security/noted.h"
#include "tests/tools/support/ran.h"
#include "trace/trace.h"

enum { PATIENCE = 60 }; /* seconds; a test that waits for a pipe is ended by its alarm */

static strata_status_t load_file(const char *path, bool environment) {
    strata_strategy_t *strategy = NULL;
    strata_status_t status = strata_config_load(&(strata_config_request_t){.file = path, .environment = environment}, &strategy);
    if (status == STRATA_OK) strata_strategy_delete(strategy);
    return status;
}

static const char *kept(const char *path) {
    static char paths[16][300];
    static unsigned next;
    return strcpy(paths[next++ % 16], path);
}

static const char *pipe_at(const char *name) {
    const char *path = kept(temporary(name));
    (void)unlink(path);
    EXPECT_EQ(mkfifo(path, 0600), 0);
    return path;
}

static void expect_notes(const char *wanted) {
    const char *notes = note_end();
    EXPECT_STREQ(notes, wanted);
}

/* ---- what is named and nothing else ---- */

#define MENTIONS                                                                                                                   \
    "description: /etc/passwd\nstack: [retry, trace: {path: none}, stream_safe, auto_growth: {chunk_size: 1MiB}, system]\n"

TEST(opened, a_strategy_opens_itself_and_what_it_extends) {
    char wanted[900];
    const char *base = kept(write_text("base.yaml", "extends: pytorch\n" MENTIONS));
    const char *path = kept(write_text("derived.yaml", "extends: ./base.yaml\n" MENTIONS));
    note_begin();
    EXPECT_OK(load_file(path, false));
    snprintf(wanted, sizeof wanted, "open %s\nopen %.*s./base.yaml\n", path, (int)(strrchr(base, '/') + 1 - base), base);
    expect_notes(wanted);
}

/* And the profile that its `devices:` names, which is read and no more. */
TEST(opened, a_strategy_opens_the_profile_that_it_names) {
    char wanted[900];
    const char *profile = kept(write_text("own-gpu.yaml", "extends: h100\n"));
    const char *path = kept(write_text("profiled.yaml", "devices: sim:own-gpu.yamlx2\nstack: [system]\n"));
    note_begin();
    EXPECT_OK(load_file(path, false));
    snprintf(wanted, sizeof wanted, "open %s\nopen %s\n", path, profile);
    expect_notes(wanted);
}

TEST(opened, a_preset_and_a_text_open_nothing) {
    static const char *const presets[] = {"strata", "paddle", "pytorch"};
    for (int i = 0; i < 3; i++) {
        strata_strategy_t *strategy = NULL;
        note_begin();
        EXPECT_OK(strata_config_load(&(strata_config_request_t){.preset = presets[i]}, &strategy));
        strata_strategy_delete(strategy);
        EXPECT_OK(strata_config_load(&(strata_config_request_t){.text = MENTIONS}, &strategy));
        strata_strategy_delete(strategy);
        expect_notes("");
    }
}

/* Two variables, and none where the caller says so; those of a framework where its name asks for them. */
TEST(opened, the_environment_is_asked_for_what_is_documented) {
    const char *path = kept(write_text("plain.yaml", MENTIONS));
    note_begin();
    EXPECT_OK(load_file(path, false));
    EXPECT_LACKS(note_end(), "ask ");
    note_begin();
    strata_strategy_t *strategy = NULL;
    EXPECT_OK(strata_config_load(&(strata_config_request_t){.environment = true}, &strategy));
    strata_strategy_delete(strategy);
    expect_notes("ask STRATA_STRATEGY\nask STRATA_SET\n");
    note_begin();
    EXPECT_OK(strata_config_load(&(strata_config_request_t){.preset = "import:pytorch"}, &strategy));
    strata_strategy_delete(strategy);
    EXPECT_CONTAINS(note_end(), "ask PYTORCH_CUDA_ALLOC_CONF\n");
}

TEST(opened, a_simulated_facade_opens_and_loads_nothing) {
    strata_t s;
    strata_block_t block;
    strata_open_options_t options = {
        .struct_size = sizeof options, .text = MENTIONS, .devices = "sim", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    note_begin();
    ASSERT_OK(strata_open(&options, &s));
    EXPECT_OK(strata_allocate(s, strata_gpu(0), NULL, 1 << 20, &block));
    EXPECT_OK(strata_free(s, block.ref));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
    /* NVTX asks for its tool where its headers were there; nothing is loaded where there is none. */
    expect_notes(strata_ranges_are_built() ? "ask NVTX_INJECTION64_PATH\n" : "");
}

TEST(opened, a_trace_opens_itself_alone) {
    char wanted[300];
    strata_trace_t *trace = NULL;
    const char *path = kept(
        write_text("mentions.csv", "op,id,size,stream,time_us,tag,x_file\nalloc,1,4096,0,0,/etc/passwd,/etc/shadow\n"));
    note_begin();
    EXPECT_OK(strata_trace_load(path, &trace));
    strata_trace_delete(trace);
    snprintf(wanted, sizeof wanted, "open %s\n", path);
    expect_notes(wanted);
}

TEST(opened, code_is_loaded_where_it_is_allowed_and_from_the_path_named) {
    char text[900], wanted[900];
    const char *object = STRATA_BINARY_DIR "/modules/my_layer.so";
    snprintf(text, sizeof text, "load: [%s]\nstack: [my_quota, system]\n", object);
    const char *path = kept(write_text("loads.yaml", text));
    strata_strategy_t *strategy = NULL;
    note_begin();
    EXPECT_STATUS(STRATA_E_STRATEGY, load_file(path, false));
    EXPECT_LACKS(note_end(), "load ");
    note_begin();
    EXPECT_OK(strata_config_load(&(strata_config_request_t){.file = path, .allow_code = true}, &strategy));
    strata_strategy_delete(strategy);
    snprintf(wanted, sizeof wanted, "open %s\nload %s\n", path, object);
    expect_notes(wanted);
}

/* A bare name is a file beside the strategy's, never one of the loader's folders. */
TEST(opened, a_bare_name_is_looked_for_beside_the_file_alone) {
    char wanted[900];
    const char *path = kept(write_text("bare.yaml", "load: [libm.so.6]\nstack: [system]\n"));
    strata_strategy_t *strategy = NULL;
    note_begin();
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.file = path, .allow_code = true}, &strategy));
    snprintf(wanted, sizeof wanted, "open %s\nload %.*s/libm.so.6\n", path, (int)(strrchr(path, '/') - path), path);
    expect_notes(wanted);
    note_begin();
    EXPECT_STATUS(STRATA_E_IO, strata_code_load("libm.so.6", NULL));
    expect_notes("load ./libm.so.6\n");
}

/* ---- what is no file ---- */

TEST(opened, a_pipe_without_a_writer_is_empty_and_not_waited_for) {
    const char *path = pipe_at("silent.yaml");
    strata_trace_t *trace = NULL;
    (void)alarm(PATIENCE);
    EXPECT_SAYS(STRATA_E_STRATEGY, load_file(path, false), "silent.yaml:1:1: the file is empty");
    EXPECT_STATUS(STRATA_E_FORMAT, strata_trace_load(path, &trace));
    EXPECT_SAYS(STRATA_E_IO, strata_code_load(path, NULL), "it is not a regular file");
    (void)alarm(0);
}

/* What a shell's <(command) gives. */
TEST(opened, a_pipe_with_a_writer_is_read_as_it_writes) {
    static const char text[] = "stack: [retry, sytem]\n";
    int ends[2], status;
    char path[64];
    ASSERT_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        bool good = true;
        for (size_t i = 0; text[i] && good; i++) good = write(ends[1], text + i, 1) == 1;
        _exit(good ? 0 : 1);
    }
    (void)close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    (void)alarm(PATIENCE);
    EXPECT_SAYS(STRATA_E_STRATEGY, load_file(path, false), ":1:16: there is no layer \"sytem\"");
    EXPECT_TRUE(waitpid(child, &status, 0) == child && status == 0);
    (void)alarm(0);
    (void)close(ends[0]);
}

/* A file that names others may come from anybody; opening a device may do something. */
TEST(opened, what_a_file_names_is_a_regular_file) {
    (void)pipe_at("beside.yaml");
    const char *folder = kept(temporary("folder.yaml"));
    ASSERT_EQ(mkdir(folder, 0700), 0);
    static const char *const named[] = {"extends: ./beside.yaml",
                                        "extends: ./folder.yaml",
                                        "extends: /dev/zero",
                                        "extends: /dev/tty",
                                        "devices: sim:./beside.yaml",
                                        "devices: sim:./folder.yaml",
                                        "devices: sim:/dev/../dev/zero.yaml"};
    (void)alarm(PATIENCE);
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        char text[200];
        snprintf(text, sizeof text, "%s\n", named[i]);
        const char *path = kept(write_text("names.yaml", text));
        note_begin();
        EXPECT_STATUS(STRATA_E_STRATEGY, load_file(path, false));
        snprintf(text, sizeof text, "open %s\n", path);
        expect_notes(text);
        EXPECT_CONTAINS(strata_last_error()->text, "names.yaml:1:10: ");
    }
    (void)alarm(0);
    EXPECT_EQ(rmdir(folder), 0);
}

TEST(opened, hostile_paths_are_errors_with_their_place) {
    static char text[8000];
    static const char *const paths[] = {"../../../../../../../../no/such.yaml", "/no/such.yaml", "\"a\\nb.yaml\"", "./", "..", "."};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        snprintf(text, sizeof text, "extends: %s\n", paths[i]);
        EXPECT_SAYS(STRATA_E_STRATEGY, load_file(kept(write_text("hostile.yaml", text)), false), "hostile.yaml:1:10: ");
        EXPECT_EQ(strchr(strata_last_error()->text, '\n'), NULL);
    }
    for (size_t length = 255; length <= 4096; length = 2 * length + 1) {
        snprintf(text, sizeof text, "extends: ./%0*d.yaml\n", (int)length - 7, 0);
        EXPECT_SAYS(STRATA_E_STRATEGY, load_file(kept(write_text("long.yaml", text)), false), "long.yaml:1:10: ");
    }
}

static void expect_ends(const char *arguments) {
    ran_t ran = run_command("timeout %d -- %s", PATIENCE, arguments);
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_GT(strlen(ran.errors), 10);
}

TEST(opened, every_command_ends_where_a_pipe_or_folder_is_given) {
    (void)pipe_at("given");
    ASSERT_EQ(mkdir(temporary("given.d"), 0700), 0);
    static const char *const commands[] = {"check ./%s",
                                           "explain ./%s",
                                           "diff ./%s strata",
                                           "compare --device sim --strategy ./%s x.csv",
                                           "compare --device sim --strategy system ./%s",
                                           "stats --device sim --strategy system ./%s",
                                           "merge ./%s",
                                           "conform ./%s",
                                           "layers --load ./%s",
                                           "torture --programs 1 --strategy ./%s",
                                           "torture --programs 1 --layers ./%s"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        static const char *const given[] = {"given", "given.d"};
        for (int j = 0; j < 2; j++) {
            char arguments[300], *at = strstr(strcpy(arguments, commands[i]), "%s");
            char rest[200];
            strcpy(rest, at + 2);
            sprintf(at, "%s%s", given[j], rest);
            expect_ends(arguments);
        }
    }
    EXPECT_EQ(rmdir(temporary("given.d")), 0);
}
