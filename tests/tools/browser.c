/* The page in a browser without a screen: no fault, no word on the console, and there in 2 s. Skipped where there is no Chromium. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/tools/ran.h"
#include "tests/trace/files.h"

enum { TRIES = 4, MOST_MS = 2000 };

static const char *browser(void) {
    static const char *const names[] = {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"};
    const char *named = getenv("STRATA_TEST_CHROMIUM");
    for (size_t i = 0; !named && i < sizeof names / sizeof *names; i++)
        if (access(names[i], X_OK) == 0) named = names[i];
    return named;
}

#define NEEDS_A_BROWSER()                                                                                                          \
    do {                                                                                                                           \
        if (!browser()) TEST_SKIP("no Chromium (Debian: chromium)");                                                               \
    } while (0)

static char *text_of(const char *name) {
    size_t count = 0;
    char *text = read_bytes(temporary(name), &count);
    if (text) text[count] = '\0';
    return text;
}

/* The page as it stands after its script has run; *ms: from the beginning of the load until all was drawn. */
static char *load(const char *page, long *ms) {
    char folder[512], command[4096];
    snprintf(folder, sizeof folder, "%s", temporary("."));
    snprintf(command, sizeof command,
             "cd '%s' && timeout 60 '%s' --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=profile "
             "--window-size=1280,900 --enable-logging=stderr --dump-dom \"file://$PWD/%s\" > dom.txt 2> console.txt < /dev/null",
             folder, browser(), page);
    EXPECT_EQ(system(command), 0);
    char *console CLOSED_BY(text_gone) = text_of("console.txt"), *dom = text_of("dom.txt");
    if (console && strstr(console, "CONSOLE")) FAIL_TEST("%s: the console says: %.500s", page, strstr(console, "CONSOLE"));
    const char *ready = dom ? strstr(dom, "data-ready=\"") : NULL;
    *ms = ready ? strtol(ready + strlen("data-ready=\""), NULL, 10) : -1;
    return dom;
}

static char *expect_shown(const char *page) {
    long ms = -1;
    char *dom = load(page, &ms);
    EXPECT_TRUE(dom && strstr(dom, "data-ready=\"") != NULL);
    EXPECT_TRUE(dom && !strstr(dom, "data-failed"));
    return dom;
}

TEST(browser, shows_the_figures) {
    NEEDS_A_BROWSER();
    run_well("report --device sim:h100 -o page.html %s", project_trace_path("streams-sharded-training.csv.gz"));
    char *dom CLOSED_BY(text_gone) = expect_shown("page.html");
    ASSERT_TRUE(dom != NULL);
    ran_t ran = run_well("compare --device sim:h100 --repeat 1 --strategy pytorch --strategy strata %s",
                         project_trace_path("streams-sharded-training.csv.gz"));
    char reserved[2][32];
    const char *row = strstr(ran.out, "peak_reserved_bytes");
    ASSERT_TRUE(row && sscanf(row, "peak_reserved_bytes %31[0-9.] GiB %31[0-9.]", reserved[0], reserved[1]) == 2);
    char headline[200];
    snprintf(headline, sizeof headline, "<h1>strata reserves %s&nbsp;GiB where pytorch reserves %s&nbsp;GiB (", reserved[1],
             reserved[0]);
    EXPECT_CONTAINS(dom, headline);
    EXPECT_CONTAINS(dom, "freed and waiting for other streams");
    EXPECT_CONTAINS(dom, "No request failed for memory.");
    EXPECT_CONTAINS(dom, "<th scope=\"row\">waits between calls</th>");
}

TEST(browser, shows_out_of_memory) {
    NEEDS_A_BROWSER();
    run_well("report --device sim:h100 --capacity 300MiB -o page.html %s", project_trace_path("lm-benchmark-step.csv.gz"));
    char *dom CLOSED_BY(text_gone) = expect_shown("page.html");
    ASSERT_TRUE(dom != NULL);
    EXPECT_CONTAINS(dom, "<h1>Every strategy runs out of memory; ");
    EXPECT_CONTAINS(dom, "<pre>out of memory");
}

/* One strategy, a trace without a block: the page is whole all the same. */
TEST(browser, shows_what_reserves_nothing) {
    NEEDS_A_BROWSER();
    write_text("empty.csv", "op,id,size,stream,time_us\nalloc,1,0,0,0\n");
    run_well("report --device sim:h100 --strategy system -o page.html empty.csv");
    char *dom CLOSED_BY(text_gone) = expect_shown("page.html");
    EXPECT_CONTAINS(dom, "reserves nothing of a device");
}

/* Names that would be markup, in a label and a tag. */
TEST(browser, runs_nothing_that_a_name_says) {
    NEEDS_A_BROWSER();
    write_text("hostile.csv", "op,id,size,stream,time_us,tag\n"
                              "alloc,1,1048576,0,0,</script><script>document.title='broken'</script>\n"
                              "alloc,2,104857600,0,1,<img src=x onerror=document.title='broken'>\n");
    run_well("report --device sim:h100 --capacity 32MiB --strategy system --label '<img src=x onerror=document.title=1>' "
             "--strategy strata --label '</script><script>document.title=1</script>' -o page.html hostile.csv");
    char *dom CLOSED_BY(text_gone) = expect_shown("page.html");
    ASSERT_TRUE(dom != NULL);
    EXPECT_CONTAINS(dom, "<title>hostile.csv – Strata report</title>");
    EXPECT_TRUE(strstr(dom, "<img") == NULL);
    EXPECT_CONTAINS(dom, "&lt;img src=x onerror=document.title='broken'&gt;");
}

/* The machine may be busy: the quickest of a few loads counts. */
TEST(browser, is_there_in_two_seconds) {
    NEEDS_A_BROWSER();
    if (*STRATA_SANITIZERS) TEST_SKIP("sanitizers cost time");
    FILE *file = fopen(temporary("million.csv"), "w");
    ASSERT_TRUE(file != NULL);
    fprintf(file, "op,id,size,stream,time_us\n");
    for (unsigned i = 0; i < 500000; i++) {
        fprintf(file, "alloc,%u,%u,%u,%u\n", i, 512u << i * 7u % 12, i % 3, 2 * i);
        unsigned dead = i - 3000;
        if (i < 3000) fprintf(file, "alloc,%u,512,0,%u\n", 1000000 + i, 2 * i);
        else fprintf(file, "free,%u,0,%u,%u\n", dead, dead % 3, 2 * i);
    }
    ASSERT_EQ(fclose(file), 0);
    run_well("report --device sim:h100 --strategy pytorch --strategy strata --strategy paddle -o page.html million.csv");
    long least = MOST_MS;
    for (int i = 0; i < TRIES && least >= MOST_MS; i++) {
        long ms = -1;
        char *dom CLOSED_BY(text_gone) = load("page.html", &ms);
        EXPECT_GT(ms, 0);
        if (ms > 0 && ms < least) least = ms;
    }
    printf("a page of 1,000,000 events is drawn after %ld ms\n", least);
    EXPECT_LT(least, MOST_MS);
}
