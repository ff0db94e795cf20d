#include <math.h>
#include <string.h>

#include "lab/replay/compare/json.h"
#include "lab/replay/run/figures.h"
#include "platform/text/printable.h"

/* Control characters have at most three bytes. */
static unsigned code_of(const unsigned char *byte, size_t length) {
    if (length == 2) return (byte[0] & 0x1fu) << 6 | (byte[1] & 0x3fu);
    return (byte[0] & 0xfu) << 12 | (byte[1] & 0x3fu) << 6 | (byte[2] & 0x3fu);
}

static void put_string(strata_output_t *out, const char *text, size_t count) {
    strata_output_write(out, "\"", 1);
    for (const char *end = text + count; text < end;) {
        size_t length = strata_utf8_length(text);
        if (length == 0 || text + length > end) {
            strata_output_print(out, "\\ufffd");
            text++;
            continue;
        }
        if (*text == '<') {
            strata_output_print(out, "\\u003c");
        } else if (*text == '"' || *text == '\\') {
            strata_output_print(out, "\\%c", *text);
        } else if ((unsigned char)*text < ' ' || *text == 0x7f) {
            strata_output_print(out, "\\u%04x", (unsigned)*text);
        } else if (strata_printable_length(text) == 0) {
            strata_output_print(out, "\\u%04x", code_of((const unsigned char *)text, length));
        } else {
            strata_output_write(out, text, length);
        }
        text += length;
    }
    strata_output_write(out, "\"", 1);
}

void strata_json_text(strata_output_t *out, const char *text) { put_string(out, text ? text : "", text ? strlen(text) : 0); }

static void put_TEXT(strata_output_t *out, const char *value) { strata_json_text(out, value); }

/* If a path was set twice, the last value counts. */
static bool set_again(const strata_figure_options_t *options, size_t index, size_t length) {
    for (size_t i = index + 1; i < options->count; i++)
        if (strncmp(options->set[i], options->set[index], length + 1) == 0) return true;
    return false;
}

static void put_OPTIONS(strata_output_t *out, strata_figure_options_t options) {
    const char *comma = "";
    strata_output_print(out, "{");
    for (size_t i = 0; i < options.count; i++) {
        const char *set = options.set[i];
        size_t length = strcspn(set, "=");
        if (set_again(&options, i, length)) continue;
        strata_output_print(out, "%s", comma);
        put_string(out, set, length);
        strata_output_print(out, ": ");
        put_TEXT(out, set[length] ? set + length + 1 : "");
        comma = ", ";
    }
    strata_output_print(out, "}");
}

static void put_COUNT(strata_output_t *out, uint64_t value) {
    if (value == STRATA_FIGURE_NULL) {
        strata_output_print(out, "null");
    } else {
        strata_output_print(out, "%llu", (unsigned long long)value);
    }
}

static void put_BYTES(strata_output_t *out, uint64_t value) { put_COUNT(out, value); }

static void put_US(strata_output_t *out, uint64_t value) { put_COUNT(out, value); }

static void put_decimals(strata_output_t *out, double value, int decimals) {
    if (isfinite(value)) {
        strata_output_print(out, "%.*f", decimals, value);
    } else {
        strata_output_print(out, "null");
    }
}

static void put_MS(strata_output_t *out, double value) { put_decimals(out, value, 6); }

static void put_PART(strata_output_t *out, double value) { put_decimals(out, value, 6); }

static void put_FLAG(strata_output_t *out, bool value) { strata_output_print(out, value ? "true" : "false"); }

static void put_CALLS(strata_output_t *out, strata_figure_calls_t calls) {
    const char *comma = "";
    strata_output_print(out, "{");
    for (int i = 0; i < STRATA_DEVICE_CALLS; i++) {
        if (!strata_device_call_shown((strata_device_call_t)i)) continue;
        strata_output_print(out, "%s\"%s\": ", comma, strata_device_call_name((strata_device_call_t)i));
        put_COUNT(out, calls.made[i]);
        comma = ", ";
    }
    strata_output_print(out, "}");
}

static void put_SPREAD(strata_output_t *out, strata_figure_spread_t spread) {
    if (spread.count == 0) {
        strata_output_print(out, "null");
        return;
    }
    strata_output_print(out, "{\"min\": ");
    put_decimals(out, spread.min, 3);
    strata_output_print(out, ", \"median\": ");
    put_decimals(out, spread.median, 3);
    strata_output_print(out, ", \"max\": ");
    put_decimals(out, spread.max, 3);
    strata_output_print(out, "}");
}

static void put_run(strata_output_t *out, const strata_figures_t *run) {
    const char *comma = "";
    strata_output_print(out, "{");
#define STRATA_FIGURE_PUT(kind, name, unit, meaning)                                                                               \
    strata_output_print(out, "%s\n    \"" #name "\": ", comma);                                                                    \
    put_##kind(out, run->name);                                                                                                    \
    comma = ",";
    STRATA_FIGURE_MAP(STRATA_FIGURE_PUT)
#undef STRATA_FIGURE_PUT
    strata_output_print(out, "\n  }");
}

strata_status_t strata_figures_json(strata_output_t *out, const strata_figures_t *runs, size_t count) {
    strata_output_print(out, "[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) strata_output_print(out, ", ");
        put_run(out, &runs[i]);
    }
    return strata_output_print(out, "]");
}
