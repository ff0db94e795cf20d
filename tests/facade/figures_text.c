/* The figures as JSON and for Prometheus. */
#include <stdio.h>

#include "tests/facade/fixture.h"

static char text[65536];

TEST(facade_figures, json_has_every_figure_of_every_place_and_stream) {
    rig_t rig;
    rig_open(&rig, "strata", NULL, 0, 0, 2);
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, NULL, 1000), b = rig_allocate(&rig, stream, 5000);
    size_t needed = 0, again = 0;
    EXPECT_OK(strata_statistics_json(rig.s, text, sizeof text, &needed));
    EXPECT_EQ(needed, strlen(text) + 1);
    EXPECT_TRUE(strncmp(text, "{\"places\": [\n  {\"place\": \"gpu:0\", \"total\": {\"requested_bytes\": 6000, "
                              "\"allocated_bytes\": 6144, ", 88) == 0);
    static const char *const parts[] = {"{\"place\": \"gpu:1\", ", "{\"place\": \"managed:0\", ", "{\"place\": \"pinned\", ",
                                        "{\"place\": \"host\", ",
                                        "{\"stream\": \"0x0\", \"thread\": 0, \"forgotten\": false, \"requested_bytes\": 1000, "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) EXPECT_CONTAINS(text, parts[i]);
    char own[128];
    snprintf(own, sizeof own, "{\"stream\": \"0x%" PRIxPTR "\", \"thread\": 0, \"forgotten\": false, \"requested_bytes\": 5000, ",
             (uintptr_t)stream);
    EXPECT_CONTAINS(text, own);
#define EXPECT_FIELD(name, unit, meaning) EXPECT_CONTAINS(text, "\"" #name "\": ");
    STRATA_STATISTICS_MAP(EXPECT_FIELD)
#undef EXPECT_FIELD
    EXPECT_STREQ(text + needed - 4, "]}\n");
    /* A short buffer gets the beginning, and the length of it all. */
    char few[20];
    EXPECT_OK(strata_statistics_json(rig.s, few, sizeof few, &again));
    EXPECT_EQ(again, needed);
    EXPECT_STREQ(few, "{\"places\": [\n  {\"pl");
    EXPECT_OK(strata_statistics_json(rig.s, NULL, 0, &again));
    EXPECT_EQ(again, needed);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_free(rig.s, b.ref));
    rig_close(&rig);
}

TEST(facade_figures, prometheus_tells_counters_from_gauges) {
    rig_t rig;
    rig_open(&rig, "strata", NULL, 0, 0, 1);
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 1000).ref));
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    size_t needed = 0;
    EXPECT_OK(strata_statistics_prometheus(rig.s, text, sizeof text, &needed));
    EXPECT_EQ(needed, strlen(text) + 1);
    EXPECT_CONTAINS(text, "# HELP strata_requested_bytes what the callers asked for, of live allocations (bytes)\n"
                          "# TYPE strata_requested_bytes gauge\nstrata_requested_bytes{place=\"gpu:0\"} 1000\n"
                          "strata_requested_bytes{place=\"managed:0\"} 0\nstrata_requested_bytes{place=\"pinned\"} 0\n"
                          "strata_requested_bytes{place=\"host\"} 0\n");
    EXPECT_CONTAINS(text, "# TYPE strata_allocations_total counter\nstrata_allocations_total{place=\"gpu:0\"} 4\n");
    EXPECT_CONTAINS(text, "# TYPE strata_live_allocations gauge\nstrata_live_allocations{place=\"gpu:0\"} 1\n");
    EXPECT_CONTAINS(text, "strata_reserved_bytes{place=\"gpu:0\"} 20971520\n");
    /* Nine of the table's figures only grow. */
    int counters = 0;
    for (const char *at = text; (at = strstr(at, " counter\n")) != NULL; at++) counters++;
    EXPECT_EQ(counters, 9);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_t closed = rig.s;
    rig_close(&rig);
    EXPECT_STATUS(STRATA_E_STALE, strata_statistics_json(closed, text, sizeof text, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_statistics_prometheus(closed, text, sizeof text, NULL));
}
