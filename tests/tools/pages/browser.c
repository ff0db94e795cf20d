/* The page in a browser without a screen: no fault, no word on the console, and there in 2 s. Skipped where there is no Chromium. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/tools/support/ran.h"

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

/* The page as it stands after its script has run; *ms: from the beginning of the load until all was drawn. */
static char *open_page(const char *page, long *ms) {
    char folder[512], command[4096];
    snprintf(folder, sizeof folder, "%s", temporary("."));
    snprintf(command, sizeof command,
             "cd '%s' && timeout 60 '%s' --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=profile "
             "--window-size=1280,900 --enable-logging=stderr --dump-dom \"file://$PWD/%s\" > dom.txt 2> console.txt < /dev/null",
             folder, browser(), page);
    EXPECT_EQ(system(command), 0);
    char *dom = written_text("dom.txt");
    const char *ready = dom ? strstr(dom, "data-ready=\"") : NULL;
    *ms = ready ? strtol(ready + strlen("data-ready=\""), NULL, 10) : -1;
    return dom;
}

/* Nothing is said on the console. */
static char *load(const char *page, long *ms) {
    char *dom = open_page(page, ms), *console CLOSED_BY(text_cleanup) = written_text("console.txt");
    if (console && strstr(console, "CONSOLE")) FAIL_TEST("%s: the console says: %.500s", page, strstr(console, "CONSOLE"));
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
    char *dom CLOSED_BY(text_cleanup) = expect_shown("page.html");
    ASSERT_TRUE(dom != NULL);
    ran_t ran = run_well("compare --device sim:h100 --repeat 1 --strategy pytorch --strategy strata %s",
                         project_trace_path("streams-sharded-training.csv.gz"));
    char used[2][32];
    const char *row = strstr(ran.out, "peak_device_used_bytes");
    ASSERT_TRUE(row && sscanf(row, "peak_device_used_bytes %31[0-9.] GiB %31[0-9.]", used[0], used[1]) == 2);
    char headline[200];
    snprintf(headline, sizeof headline, "<h1>strata used the least memory at equal run time: peak %s GiB, ", used[1]);
    EXPECT_CONTAINS(dom, headline);
    EXPECT_CONTAINS(dom, "<code>strata stats --device sim:h100 --strategy strata ");
    EXPECT_CONTAINS(dom, "freed but still in use by other streams");
    EXPECT_CONTAINS(dom, "No request failed for lack of memory.");
    EXPECT_CONTAINS(dom, "<th scope=\"row\">waits between calls</th>");
}

TEST(browser, shows_out_of_memory) {
    NEEDS_A_BROWSER();
    run_well("report --device sim:h100 --capacity 300MiB -o page.html %s", project_trace_path("lm-benchmark-step.csv.gz"));
    char *dom CLOSED_BY(text_cleanup) = expect_shown("page.html");
    ASSERT_TRUE(dom != NULL);
    EXPECT_CONTAINS(dom, "<h1>No strategy serves every request.</h1>");
    EXPECT_CONTAINS(dom, "<pre>out of memory");
}

/* One strategy, a trace without a block: the page is whole all the same. */
TEST(browser, shows_what_reserves_nothing) {
    NEEDS_A_BROWSER();
    write_text("empty.csv", "op,id,size,stream,time_us\nalloc,1,0,0,0\n");
    run_well("report --device sim:h100 --strategy system -o page.html empty.csv");
    char *dom CLOSED_BY(text_cleanup) = expect_shown("page.html");
    EXPECT_CONTAINS(dom, "reserves no device memory");
}

/* Names that would be markup, in a label and a tag. */
TEST(browser, runs_nothing_that_a_name_says) {
    NEEDS_A_BROWSER();
    write_text("hostile.csv", "op,id,size,stream,time_us,tag\n"
                              "alloc,1,1048576,0,0,</script><script>document.title='broken'</script>\n"
                              "alloc,2,104857600,0,1,<img src=x onerror=document.title='broken'>\n");
    run_well("report --device sim:h100 --capacity 32MiB --strategy system --label '<img src=x onerror=document.title=1>' "
             "--strategy strata --label '</script><script>document.title=1</script>' -o page.html hostile.csv");
    char *dom CLOSED_BY(text_cleanup) = expect_shown("page.html");
    ASSERT_TRUE(dom != NULL);
    EXPECT_CONTAINS(dom, "<title>hostile.csv – Strata report</title>");
    EXPECT_TRUE(strstr(dom, "<img") == NULL);
    EXPECT_CONTAINS(dom, "&lt;img src=x onerror=document.title='broken'&gt;");
}

/* ---- hands on the page ---- */

/* Each step adds its name to the title if what must hold does. Pointers that no device has cannot be captured. */
static const char hands[] =
    "<script>\n"
    "const chart = document.getElementById('memory-chart'), box = chart.getBoundingClientRect(), done = [];\n"
    "chart.setPointerCapture = () => {};\n"
    "const hold = (name, right) => done.push(right ? name : `NOT ${name}`);\n"
    "const at = (type, x, more) => chart.dispatchEvent(new PointerEvent(type, Object.assign({ bubbles: true, pointerId: 1, pointerType: 'mouse',\n"
    "  button: 0, clientX: box.left + x, clientY: box.top + 60 }, more)));\n"
    "const press = (key) => chart.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));\n"
    "const width = () => viewOf(timeline)[1] - viewOf(timeline)[0], whole = width();\n"
    "at('pointermove', 400); drawTimeline(); hold('read', /pytorch.* reserved .*iB/.test(timeline.readout.textContent));\n"
    "at('pointerdown', 300); at('pointermove', 500); at('pointerup', 500); hold('drag', width() < whole / 3 && timeline.view[0] > 0);\n"
    "let before = width(); press('+'); hold('plus', width() < before * 0.6); press('0'); hold('all', timeline.view === null);\n"
    "chart.dispatchEvent(new WheelEvent('wheel', { deltaY: -300, ctrlKey: true, clientX: box.left + 300, cancelable: true })); hold('wheel', width() < whole * 0.5);\n"
    "before = timeline.view[0]; press('PageDown'); hold('page', timeline.view[0] > before);\n"
    "chart.dispatchEvent(new MouseEvent('dblclick')); hold('twice', timeline.view === null);\n"
    "const finger = { pointerType: 'touch' }, other = { pointerType: 'touch', pointerId: 2 };\n"
    "at('pointerdown', 400, finger); at('pointerdown', 500, other); at('pointermove', 300, finger); at('pointermove', 700, other);\n"
    "at('pointerup', 300, finger); at('pointerup', 700, other); hold('pinch', Math.abs(width() / whole - 0.25) < 0.01);\n"
    "const buttons = [...document.querySelectorAll('#timeline button')], find = (text) => buttons.find((each) => each.textContent === text);\n"
    "find('pytorch').click(); hold('hide', visibleRuns().length === 1); find('pytorch').click(); find('deferred').click(); drawTimeline();\n"
    "hold('curve', memoryLines(visibleRuns()).length === 5);\n"
    "const axis = document.querySelector('#timeline select'); axis.selectedIndex = 1; axis.dispatchEvent(new Event('change')); drawTimeline();\n"
    "timeline.cursor = 4000; drawTimeline(); hold('rows', /^rows? [3-4],[0-9]+/.test(timeline.readout.textContent));\n"
    "const map = maps[1]; map.canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', cancelable: true }));\n"
    "hold('block', /requested .*allocated at row/.test(map.readout.textContent));\n"
    "document.getElementById('theme').click(); document.getElementById('theme').click(); hold('dark', document.documentElement.dataset.theme === 'dark');\n"
    "const swap = document.querySelectorAll('#difference select'); swap[0].selectedIndex = 1; swap[0].dispatchEvent(new Event('change'));\n"
    "hold('difference', state.a === 1 && document.querySelectorAll('#difference td').length === 0);\n"
    "document.title = done.join(' ');\n"
    "</script>\n";

/* The page with a script of the test's own, which its policy would not allow. */
static bool write_handled(const char *page) {
    static char rest[4 << 20];
    char *text CLOSED_BY(text_cleanup) = written_text(page);
    char *policy = text ? strstr(text, "Content-Security-Policy") : NULL, *end = text ? strstr(text, "</body>") : NULL;
    if (!policy || !end) return false;
    memcpy(policy, "X-Nothing-Is-Forbidden-", strlen("Content-Security-Policy"));
    snprintf(rest, sizeof rest, "%.*s%s%s", (int)(end - text), text, hands, end);
    return write_text("handled.html", rest) != NULL;
}

TEST(browser, answers_hands) {
    NEEDS_A_BROWSER();
    run_well("report --device sim:h100 -o page.html %s", project_trace_path("streams-sharded-training.csv.gz"));
    ASSERT_TRUE(write_handled("page.html"));
    char *dom CLOSED_BY(text_cleanup) = expect_shown("handled.html");
    const char *title = dom ? strstr(dom, "<title>") : NULL;
    ASSERT_TRUE(title != NULL);
    char said[400];
    snprintf(said, sizeof said, "%.*s", (int)strcspn(title + 7, "<"), title + 7);
    EXPECT_STREQ(said, "read drag plus all wheel page twice pinch hide curve rows block dark difference");
}

/* The page's own policy keeps a script out that is not its own. */
TEST(browser, runs_no_other_script) {
    NEEDS_A_BROWSER();
    run_well("report --device sim:h100 --strategy system -o page.html %s", project_trace_path("alexnet-training.csv.gz"));
    char *page CLOSED_BY(text_cleanup) = written_text("page.html");
    char *end = page ? strstr(page, "</body>") : NULL;
    ASSERT_TRUE(end != NULL);
    *end = '\0';
    FILE *file = fopen(temporary("other.html"), "w");
    ASSERT_TRUE(file != NULL);
    fprintf(file, "%s<script>document.title = 'other'</script></body></html>", page);
    ASSERT_EQ(fclose(file), 0);
    long ms = -1;
    char *dom CLOSED_BY(text_cleanup) = open_page("other.html", &ms);
    ASSERT_TRUE(dom != NULL);
    EXPECT_GT(ms, 0);
    EXPECT_CONTAINS(dom, "<title>alexnet-training.csv.gz – Strata report</title>");
}

/* It says after how long; 2 s are aimed at. A busy machine takes what it takes. */
TEST(browser, draws_a_million_events) {
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
    long ms = -1;
    char *dom CLOSED_BY(text_cleanup) = load("page.html", &ms);
    ASSERT_TRUE(dom != NULL);
    EXPECT_GT(ms, 0);
    EXPECT_CONTAINS(dom, "million.csv");
    printf("a page of 1,000,000 events is drawn after %ld ms\n", ms);
}
