/* The device calls that may be made under a lock are those that the contract names, in words and in the table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/device.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/house/house.h"

#define SENTENCE "**Only these device calls are allowed under a lock: take an event from the pool, "

/* "record, query, stream_wait": what the page lists after the event pool, which makes no device call under a lock. */
static void named_by(const char *page, char *names, size_t capacity) {
    const char *at = strstr(page, SENTENCE);
    names[0] = '\0';
    if (at) snprintf(names, capacity, "%.*s", (int)strcspn(at + strlen(SENTENCE), "."), at + strlen(SENTENCE));
}

static void quick_of_the_table(char *names, size_t capacity) {
    static const struct {
        const char *name;
        bool quick;
    } calls[] = {
#define ROW(name, quick, shown) {#name, quick},
        STRATA_DEVICE_CALL_MAP(ROW)
#undef ROW
    };
    size_t length = 0;
    names[0] = '\0';
    for (size_t i = 0; i < sizeof calls / sizeof *calls && length < capacity; i++) {
        if (!calls[i].quick) continue;
        const char *name = starts_with(calls[i].name, "event_") ? calls[i].name + strlen("event_") : calls[i].name;
        length += (size_t)snprintf(names + length, capacity - length, "%s%s", length ? ", " : "", name);
    }
}

TEST(house, quick_calls_are_those_of_the_contract) {
    char said[200], marked[2000];
    char *page CLOSED_BY(text_cleanup) = tree_read("docs/contracts.md");
    ASSERT_TRUE(page);
    named_by(page, said, sizeof said);
    quick_of_the_table(marked, sizeof marked);
    EXPECT_STREQ(said, "record, query, stream_wait, capture_status, capture_follows");
    EXPECT_STREQ(marked, said);
}
