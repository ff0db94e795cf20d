/* The table for people: a row a field, a column a run; traces one below the other. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "replay/figures.h"

enum { CELL_BYTES = 64, NAME_WIDTH = 24 };

typedef struct cell {
    char text[CELL_BYTES];
} cell_t;

/* ---- one figure as text ------------------------------------------------------------------------------------------------ */

static cell_t text_of(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));
static cell_t text_of(const char *format, ...) {
    cell_t cell;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cell.text, sizeof cell.text, format, arguments);
    va_end(arguments);
    return cell;
}

/* 48663 as "48,663". */
static cell_t grouped(uint64_t value) {
    char digits[24];
    cell_t cell;
    size_t length = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)value), to = 0;
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) cell.text[to++] = ',';
        cell.text[to++] = digits[i];
    }
    cell.text[to] = '\0';
    return cell;
}

static cell_t show_TEXT(const char *value) {
    return text_of("%s", value ? value : "");
}

static cell_t show_OPTIONS(strata_figure_options_t options) {
    return options.count > 1 ? text_of("%s, +%zu", options.set[0], options.count - 1)
                             : text_of("%s", options.count ? options.set[0] : "-");
}

static cell_t show_COUNT(uint64_t value) {
    return value == STRATA_FIGURE_NULL ? text_of("-") : grouped(value);
}

static cell_t show_BYTES(uint64_t value) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (value == STRATA_FIGURE_NULL) return text_of("-");
    double scaled = (double)value;
    size_t unit = 0;
    for (; scaled >= 1024 && unit < 6; unit++) scaled /= 1024;
    return unit == 0 ? text_of("%.0f B", scaled) : text_of("%.*f %s", scaled < 100 ? 2 : 1, scaled, units[unit]);
}

static cell_t show_US(uint64_t value) {
    if (value == STRATA_FIGURE_NULL) return text_of("-");
    return value % 1000 == 0 ? text_of("%llu ms", (unsigned long long)value / 1000)
                             : text_of("%llu us", (unsigned long long)value);
}

static cell_t show_MS(double value) {
    return isfinite(value) ? text_of("%.*f ms", value < 10 ? 3 : 1, value) : text_of("-");
}

static cell_t show_PART(double value) {
    return isfinite(value) ? text_of("%.1f %%", value * 100) : text_of("-");
}

static cell_t show_FLAG(bool value) {
    return text_of(value ? "yes" : "no");
}

static cell_t show_CALLS(strata_figure_calls_t calls) {
    uint64_t sum = 0;
    for (int i = 0; i < STRATA_DEVICE_CALLS; i++)
        if (strata_device_call_shown((strata_device_call_t)i)) sum += calls.made[i];
    return grouped(sum);
}

static cell_t show_SPREAD(strata_figure_spread_t spread) {
    if (spread.count == 0) return text_of("-");
    return text_of("%.1f (%.1f .. %.1f) ns", spread.median, spread.min, spread.max);
}

/* Rows that are made of two fields, or of a part of one. */
static cell_t show_ratio(const strata_figures_t *run) {
    if (run->peak_requested_bytes == 0) return text_of("-");
    return text_of("%.4f x", (double)run->peak_reserved_bytes / (double)run->peak_requested_bytes);
}

/* ---- rows and columns -------------------------------------------------------------------------------------------------- */

typedef struct table {
    FILE *out;
    const strata_figures_t *runs;
    size_t count;
    int width; /* of a column */
} table_t;

#define ROW(table, name, cell_of_run)                                        \
    do {                                                                     \
        fprintf((table)->out, "  %-*s", NAME_WIDTH, name);                   \
        for (size_t i = 0; i < (table)->count; i++) {                        \
            const strata_figures_t *run = &(table)->runs[i];                 \
            fprintf((table)->out, "  %*s", (table)->width, (cell_of_run).text); \
        }                                                                    \
        fputc('\n', (table)->out);                                           \
    } while (0)

static int widest(const strata_figures_t *runs, size_t count) {
    int width = 12;
    for (size_t i = 0; i < count; i++) {
#define STRATA_FIGURE_WIDTH(kind, name, unit, meaning)                                                        \
    if ((int)strlen(show_##kind(runs[i].name).text) > width && strcmp(#name, "trace") != 0)                   \
        width = (int)strlen(show_##kind(runs[i].name).text);
        STRATA_FIGURE_MAP(STRATA_FIGURE_WIDTH)
#undef STRATA_FIGURE_WIDTH
    }
    return width;
}

/* Device calls that some run made, one row each. */
static void call_rows(const table_t *table) {
    for (int call = 0; call < STRATA_DEVICE_CALLS; call++) {
        uint64_t most = 0;
        char name[64];
        for (size_t i = 0; i < table->count; i++)
            if (table->runs[i].device_calls.made[call] > most) most = table->runs[i].device_calls.made[call];
        if (most == 0 || !strata_device_call_shown((strata_device_call_t)call)) continue;
        snprintf(name, sizeof name, "  %s", strata_device_call_name((strata_device_call_t)call));
        ROW(table, name, grouped(run->device_calls.made[call]));
    }
}

static bool is(const char *name, const char *wanted) {
    return strcmp(name, wanted) == 0;
}

/* A row that nobody asked for is left out. */
static bool wanted(const table_t *table, const char *name) {
    bool searched = false, checked = false;
    for (size_t i = 0; i < table->count; i++) {
        searched = searched || table->runs[i].smallest_device_bytes != STRATA_FIGURE_NULL;
        checked = checked || table->runs[i].hazards != STRATA_FIGURE_NULL;
    }
    if (is(name, "smallest_device_bytes")) return searched;
    return is(name, "hazards") ? checked : !is(name, "trace");
}

static void rows(const table_t *table) {
#define STRATA_FIGURE_SHOW(kind, name, unit, meaning)                          \
    if (wanted(table, #name)) ROW(table, #name, show_##kind(run->name));        \
    if (is(#name, "peak_reserved_bytes")) ROW(table, "  over requested", show_ratio(run)); \
    if (is(#name, "device_calls")) call_rows(table);
    STRATA_FIGURE_MAP(STRATA_FIGURE_SHOW)
#undef STRATA_FIGURE_SHOW
}

static void one_table(const table_t *table) {
    bool modelled = false;
    fprintf(table->out, "%s\n", table->runs[0].trace);
    rows(table);
    for (size_t i = 0; i < table->count; i++) modelled = modelled || table->runs[i].modelled;
    if (modelled)
        fprintf(table->out,
                "  modelled: figures of that column rest on a model of the driver's pools, which nobody documents.\n");
}

void strata_figures_table(FILE *out, const strata_figures_t *runs, size_t count, size_t columns) {
    for (size_t first = 0; first < count; first += columns) {
        table_t table = {.out = out, .runs = runs + first, .count = columns, .width = widest(runs + first, columns)};
        if (first) fputc('\n', out);
        one_table(&table);
    }
}
