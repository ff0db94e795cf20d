/* A comparison as JSON, as `strata merge` reads it. What is skipped over lies within the text. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/harness/owned.h"
#include "trace/text/json_scan.h"

typedef struct bounds {
    const char *begin, *end;
    size_t members, depth;
} bounds_t;

static const char *member(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    bounds_t *bounds = context;
    bounds->members++;
    FUZZ_EXPECT(value.length > 0 && value.at >= bounds->begin && value.at + value.length <= bounds->end);
    FUZZ_EXPECT(name.length == 0 || (name.at >= bounds->begin && name.at + name.length <= bounds->end));
    (void)strata_json_is(name, "runs");
    if (bounds->depth == 3) return NULL;
    bounds->depth++;
    strata_json_scan_t scan = {.begin = value.at};
    FUZZ_EXPECT(strata_json_value(&scan, value.at, member, bounds) == value.at + value.length);
    bounds->depth--;
    return NULL;
}

void fuzz_report(const uint8_t *bytes, size_t count) {
    char *text CLOSED_BY(text_cleanup) = fuzz_text(bytes, count);
    strata_json_scan_t scan = {.begin = text};
    bounds_t bounds = {.begin = text, .end = text + strlen(text)};
    const char *end = strata_json_value(&scan, text, member, &bounds);
    if (end) {
        FUZZ_EXPECT(end > text && end <= bounds.end);
    } else {
        FUZZ_EXPECT(scan.error && scan.at >= text && scan.at <= bounds.end);
        FUZZ_EXPECT(strata_json_line(&scan) >= 1);
    }
}
