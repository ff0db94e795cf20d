/* Standard output that is closed, full or read no longer: nothing else is written over, and the end tells it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"

/* `strata ARGUMENTS`, with `after` after it in the shell, in the folder of the test; what the shell was told of its end. */
static int run_shell(const char *arguments, const char *after) {
    char command[4096], folder[256];
    snprintf(folder, sizeof folder, "%s", temporary("."));
    snprintf(command, sizeof command, "cd %s && { %s %s; echo $? > status.txt; } %s", folder, STRATA_COMMAND, arguments, after);
    if (system(command) != 0) return -1;
    size_t count = 0;
    char *text = read_bytes(temporary("status.txt"), &count);
    int status = text ? atoi(text) : -1;
    free(text);
    return status;
}

#define FIVE "--strategy strata --strategy paddle --strategy system --strategy pytorch --strategy tensorflow --strategy tinytorch"

/* The table is larger than what is kept before it is written, and the JSON file is open by then. */
TEST(closed, what_is_printed_goes_into_no_file) {
    write_text("t.csv", "op,id,size,stream,time_us\nalloc,1,100,0,0\nalloc,2,100,1,0\n");
    EXPECT_EQ(run_shell("compare --device sim --repeat 1 --json figures.json " FIVE " t.csv 2> errors.txt >&-", ""), 1);
    ran_t ran = run_well("merge figures.json");
    EXPECT_STREQ(ran.errors, "");
    EXPECT_EQ(run_shell("replay --device sim --repeat 1 --json figures.json --strategy strata t.csv > out.txt 2>&-", ""), 0);
    EXPECT_EQ(run_command("merge figures.json").exit_status, 0);
}

/* As `cat` and others end there: by the signal, without a word. */
TEST(closed, who_reads_no_further_hears_no_error) {
    static const char *const commands[] = {
        "layers --markdown", "import --markdown", "grammar", "fields", "explain strata", "presets"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, "%s 2> errors.txt", commands[i]);
        int status = run_shell(arguments, "| true");
        EXPECT_TRUE(status == 0 || status == 128 + SIGPIPE);
        size_t count = 1;
        free(read_bytes(temporary("errors.txt"), &count));
        EXPECT_EQ(count, 0);
    }
}
