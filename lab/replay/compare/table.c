/* Prints the results as tables for people: one row per field, one column per run, one table below the other for each trace. */
#include <math.h>
#include <string.h>

#include "config/words.h"
#include "lab/replay/compare/cell.h"
#include "lab/replay/run/figures.h"
#include "platform/arithmetic.h"

enum { NAME_WIDTH = 24, NARROWEST = 16, LIMIT = 64 };

/* ---- one figure as text ------------------------------------------------------------------------------------------------ */

static strata_cell_t show_TEXT(const char *value) { return strata_cell("%s", value ? value : ""); }

static strata_cell_t show_OPTIONS(strata_figure_options_t options) {
    return options.count > 1 ? strata_cell("%s, +%zu", options.set[0], options.count - 1)
                             : strata_cell("%s", options.count ? options.set[0] : "-");
}

static strata_cell_t show_COUNT(uint64_t value) {
    return value == STRATA_FIGURE_NULL ? strata_cell("-") : strata_cell_count(value);
}

static strata_cell_t show_BYTES(uint64_t value) {
    return value == STRATA_FIGURE_NULL ? strata_cell("-") : strata_cell_bytes(value);
}

static strata_cell_t show_US(uint64_t value) {
    if (value == STRATA_FIGURE_NULL) return strata_cell("-");
    return value % 1000 == 0 ? strata_cell("%llu ms", (unsigned long long)value / 1000)
                             : strata_cell("%llu us", (unsigned long long)value);
}

static strata_cell_t show_MS(double value) {
    return isfinite(value) ? strata_cell("%.*f ms", value < 10 ? 3 : 1, value) : strata_cell("-");
}

static strata_cell_t show_PART(double value) { return isfinite(value) ? strata_cell("%.1f %%", value * 100) : strata_cell("-"); }

static strata_cell_t show_FLAG(bool value) { return strata_cell(value ? "yes" : "no"); }

static strata_cell_t show_CALLS(strata_figure_calls_t calls) {
    uint64_t sum = 0;
    for (int i = 0; i < STRATA_DEVICE_CALLS; i++)
        if (strata_device_call_shown((strata_device_call_t)i)) sum += calls.made[i];
    return strata_cell_count(sum);
}

static strata_cell_t show_SPREAD(strata_figure_spread_t spread) {
    if (spread.count == 0) return strata_cell("-");
    return strata_cell("%.1f (%.1f .. %.1f) ns", spread.median, spread.min, spread.max);
}

/* A row that is computed from two fields. */
static strata_cell_t show_ratio(const strata_figures_t *run) {
    if (run->peak_requested_bytes == 0) return strata_cell("-");
    return strata_cell("%.4f x", (double)run->peak_reserved_bytes / (double)run->peak_requested_bytes);
}

/* ---- rows and columns -------------------------------------------------------------------------------------------------- */

typedef struct table {
    FILE *out;
    const strata_figures_t *runs;
    size_t count;
    size_t width; /* of a column */
    bool cut; /* cut wider cells */
    const strata_cell_t *labels; /* of these runs, no wider than a column */
    bool searched; /* show the row of the minimum capacity even if none was found */
} table_t;

/* `wide` is true if some cell of the row is wider than the column. */
static strata_cell_t fit(const table_t *table, bool wide, strata_cell_t cell) {
    return table->cut && wide ? strata_cell_fit(strata_cell_brief(cell), table->width) : cell;
}

#define ROW(table, name, cell_of_run)                                                                                              \
    do {                                                                                                                           \
        bool wide = false;                                                                                                         \
        fprintf((table)->out, "  %-*s", NAME_WIDTH, name);                                                                         \
        for (size_t i = 0; i < 2 * (table)->count; i++) {                                                                          \
            const strata_figures_t *run = &(table)->runs[i % (table)->count];                                                      \
            strata_cell_t cell = cell_of_run;                                                                                      \
            wide = wide || strlen(cell.text) > (table)->width;                                                                     \
            if (i < (table)->count) continue;                                                                                      \
            cell = fit(table, wide, cell);                                                                                         \
            fprintf((table)->out, "  %*s", (int)(table)->width, cell.text);                                                        \
        }                                                                                                                          \
        fputc('\n', (table)->out);                                                                                                 \
    } while (0)

static size_t widest(const strata_figures_t *runs, size_t count) {
    size_t width = 12;
    for (size_t i = 0; i < count; i++) {
#define STRATA_FIGURE_WIDTH(kind, name, unit, meaning)                                                                             \
    if (strlen(show_##kind(runs[i].name).text) > width && strcmp(#name, "trace") != 0)                                             \
        width = strlen(show_##kind(runs[i].name).text);
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
        ROW(table, name, strata_cell_count(run->device_calls.made[call]));
    }
}

static bool is(const char *name, const char *wanted) { return strcmp(name, wanted) == 0; }

/* Returns false for a row that is left out: one without any value, or one that is printed elsewhere. */
static bool wanted(const table_t *table, const char *name) {
    bool searched = table->searched, checked = false, repeated = false, stumbles = false, pinned = false, host = false;
    for (size_t i = 0; i < table->count; i++) {
        searched = searched || table->runs[i].smallest_device_bytes != STRATA_FIGURE_NULL;
        pinned = pinned || table->runs[i].pinned_requested_bytes != STRATA_FIGURE_NULL;
        host = host || table->runs[i].host_requested_bytes != STRATA_FIGURE_NULL;
        checked = checked || table->runs[i].hazards != STRATA_FIGURE_NULL;
        stumbles = stumbles || table->runs[i].host_jitter != STRATA_FIGURE_NULL;
        repeated = repeated || table->runs[i].pointer_changes != STRATA_FIGURE_NULL;
    }
    if (is(name, "pointer_changes")) return repeated;
    if (is(name, "host_jitter")) return stumbles;
    if (is(name, "smallest_device_bytes")) return searched;
    if (is(name, "pinned_requested_bytes") || is(name, "pinned_reserved_bytes")) return pinned;
    if (is(name, "host_requested_bytes") || is(name, "host_reserved_bytes")) return host;
    return is(name, "hazards") ? checked : !is(name, "trace") && !is(name, "label");
}

static void rows(const table_t *table) {
    ROW(table, "label", table->labels[run - table->runs]);
#define STRATA_FIGURE_SHOW(kind, name, unit, meaning)                                                                              \
    if (wanted(table, #name)) ROW(table, #name, show_##kind(run->name));                                                           \
    if (is(#name, "peak_reserved_bytes")) ROW(table, "  over requested", show_ratio(run));                                         \
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
                "  modelled: figures of that column rest on a model of the driver's pools, which are undocumented, or of a\n"
                "  card without measurements (docs/profiles.md).\n");
}

/* Prints below the tables which strategies have no column because another column has their figures. */
static void put_same(FILE *out, const strata_figures_t *runs, size_t count, const size_t *stands_for, size_t width) {
    enum { INDENT = 2, ONE_LINE = 10000 };
    for (size_t i = 0; i < count; i++) {
        char text[LIMIT * (STRATA_CELL_BYTES + 2)];
        size_t length = 0;
        for (size_t k = 0; k < count; k++) {
            if (k == i || stands_for[k] != i) continue;
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", length ? ", " : "",
                                       show_TEXT(runs[k].label).text);
        }
        if (length == 0) continue;
        fprintf(out, "%*s", INDENT, "");
        char whole[sizeof text + 2 * STRATA_CELL_BYTES];
        snprintf(whole, sizeof whole, "%s also covers %s: their stacks are equal for this trace.", show_TEXT(runs[i].label).text,
                 text);
        strata_print_wrapped(out, whole, INDENT, width ? width : ONE_LINE);
    }
}

/* Prints the runs of one trace in as many tables as the width needs. No later table has narrower columns than the first. */
static void tables(FILE *out, const strata_figures_t *runs, size_t count, const strata_table_view_t *view) {
    size_t width = view->width;
    strata_cell_t labels[LIMIT];
    size_t room = width > NAME_WIDTH + 2 ? width - NAME_WIDTH - 2 : 0, across = count, natural = widest(runs, count);
    table_t table = {.out = out, .width = natural, .searched = view->searched};
    count = count < LIMIT ? count : LIMIT;
    for (size_t i = 0; i < count; i++) labels[i] = show_TEXT(runs[i].label);
    if (width > 0 && count * (natural + 2) > room) {
        across = strata_max(1, strata_min(count, room / (NARROWEST + 2)));
        table.width = strata_min(natural, strata_max(NARROWEST, room / across - 2));
        table.cut = true;
        strata_cells_fit_distinct(labels, count, table.width);
    }
    for (size_t first = 0; first < count; first += across) {
        if (first) fputc('\n', out);
        table.runs = runs + first;
        table.labels = labels + first;
        table.count = strata_min(across, count - first);
        one_table(&table);
    }
}

/* Lists the runs with a column: those that represent themselves. */
static size_t distinct(const strata_figures_t *runs, size_t count, const size_t *stands_for, strata_figures_t *shown) {
    size_t kept = 0;
    for (size_t i = 0; i < count && kept < LIMIT; i++)
        if (!stands_for || stands_for[i] == i) shown[kept++] = runs[i];
    return kept;
}

void strata_figures_table(FILE *out, const strata_figures_t *runs, size_t count, const strata_table_view_t *view) {
    strata_figures_t shown[LIMIT];
    for (size_t first = 0; first < count; first += view->columns) {
        const size_t *stands_for = view->stands_for ? view->stands_for + first : NULL;
        if (first) fputc('\n', out);
        tables(out, shown, distinct(runs + first, view->columns, stands_for, shown), view);
        if (stands_for) put_same(out, runs + first, view->columns, stands_for, view->width);
    }
}
