#include "lab/tools/screen/notes.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "lab/replay/timeline/names.h"
#include "platform/text/printable.h"

void strata_notes_print(const char *path, const char *format, const strata_trace_notes_t *notes) {
    const struct {
        uint64_t count;
        const char *meaning;
    } all[] = {
#define STRATA_NOTE_ROW(name, meaning) {notes->name, meaning},
        STRATA_TRACE_NOTE_MAP(STRATA_NOTE_ROW)
#undef STRATA_NOTE_ROW
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].count) fprintf(stderr, "strata: %s (%s): %" PRIu64 " %s\n", path, format, all[i].count, all[i].meaning);
}

void strata_unmatched_print(const char *label, const strata_strategy_t *strategy, const strata_trace_t *trace) {
    const char *key;
    uint32_t at = 0;
    bool named = false;
    for (uint32_t i = 0; i < trace->stream_count && !named; i++) named = trace->streams[i].name != NULL;
    while ((key = strata_names_unmatched(strategy, trace, &at)))
        fprintf(stderr, "strata: %s: streams: \"%s\" matches no stream of %s%s\n", label, key, trace->path,
                named ? "" : ", which has no stream names (column stream_name); write the numbers of streams");
}

void strata_reading_begin(const char *path) {
    char shown[128];
    if (!isatty(STDERR_FILENO)) return;
    snprintf(shown, sizeof shown, "%s", path);
    strata_make_printable(shown, false);
    fprintf(stderr, "\r\033[Kreading %.70s", shown);
}

void strata_reading_end(void) {
    if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}
