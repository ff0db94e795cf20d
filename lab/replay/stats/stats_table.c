/* Prints the state of a run at a moment for people: a table for each place, one row per metric, one column per stream. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocation/call/figures.h"
#include "allocation/domain/layer.h"
#include "facade/figures/chunks.h"
#include "facade/figures/figures.h"
#include "facade/registry/facade.h"
#include "lab/replay/compare/cell.h"
#include "lab/replay/stats/stats.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"

enum { NAME_WIDTH = 34, STREAMS_ACROSS = 6, WIDTH = 14, NARROW = 12 };

/* A place, and the streams that one table shows beside the sum. Nothing else runs, so the stacks stay valid. */
typedef struct table {
    strata_output_t *out;
    const strata_run_moment_t *moment;
    strata_domain_t *domain;
    strata_stack_t **stacks;
    uint32_t count;
    size_t across; /* streams per table */
    int width; /* of a column */
} table_t;

/* ---- cells ---- */

static strata_cell_t cell_of(uint64_t value, const char *unit) {
    return strcmp(unit, "bytes") == 0 ? strata_cell_bytes(value) : strata_cell_count(value);
}

static void begin_row(const table_t *table, const char *name, strata_cell_t all) {
    strata_output_print(table->out, "  %-*s  %*s", NAME_WIDTH, name, table->width, all.text);
}

static void print_cell(const table_t *table, strata_cell_t cell) {
    strata_output_print(table->out, "  %*s", table->width, cell.text);
}

static void end_row(const table_t *table) { strata_output_print(table->out, "\n"); }

/* ---- streams ---- */

void strata_stats_stream_name(const strata_run_moment_t *moment, strata_place_t place, strata_stream_t stream,
                              char name[STRATA_STATS_NAME]) {
    const strata_timeline_t *timeline = moment->timeline;
    snprintf(name, STRATA_STATS_NAME, stream ? "0x%" PRIxPTR : "default", (uintptr_t)stream);
    for (uint32_t i = 0; i < moment->trace->stream_count; i++) {
        const strata_timeline_stream_t *own = &timeline->streams[i];
        if (own->handle != stream || timeline->machine->devices[own->device]->ordinal != strata_place_device(place)) continue;
        snprintf(name, STRATA_STATS_NAME, "stream %" PRIu64, moment->trace->streams[i].number);
        return;
    }
}

static bool was_used(strata_stack_t *stack) {
    strata_statistics_t figures;
    strata_facade_stack_figures(stack, &figures);
    return !stack->is_shared && (figures.allocations | figures.peak_reserved_bytes) != 0;
}

/* Finds the stacks that serve one stream each and were used. */
static strata_status_t find_streams(table_t *table) {
    strata_domain_t *domain = table->domain;
    table->stacks = strata_host_new(domain->stack_count + 1, sizeof(strata_stack_t *));
    if (!table->stacks) return STRATA_E_HOST_MEMORY;
    STRATA_DOMAIN_EACH(domain, stack)
        if (!stack->ownerless && was_used(stack)) table->stacks[table->count++] = stack;
    return STRATA_OK;
}

/* ---- rows ---- */

static void print_heading(const table_t *table) {
    char name[STRATA_STATS_NAME], place[STRATA_STATS_NAME];
    strata_place_t at = table->domain->place;
    strata_place_text(at, place);
    strata_output_print(table->out, "\n%-*s  %*s", NAME_WIDTH + 2, place, table->width, "all");
    for (uint32_t i = 0; i < table->count; i++) {
        strata_stats_stream_name(table->moment, at, table->stacks[i]->stream, name);
        print_cell(table, strata_cell("%s", name));
    }
    end_row(table);
}

/* Failed requests are counted for the place, not for streams. */
static bool is_of_place(const char *name) { return strcmp(name, "recoveries") == 0 || strcmp(name, "out_of_memory") == 0; }

static void print_statistics(const table_t *table) {
    strata_statistics_t all, of[STREAMS_ACROSS];
    strata_facade_place_figures(table->domain, &all);
    for (uint32_t i = 0; i < table->count; i++) strata_facade_stack_figures(table->stacks[i], &of[i]);
#define PRINT_ROW(name, unit, kind, meaning)                                                                                       \
    begin_row(table, #name, cell_of(all.name, unit));                                                                              \
    for (uint32_t i = 0; i < table->count; i++)                                                                                    \
        print_cell(table, is_of_place(#name) ? strata_cell("-") : cell_of(of[i].name, unit));                                      \
    end_row(table);
    STRATA_STATISTICS_MAP(PRINT_ROW)
#undef PRINT_ROW
}

/* Returns a layer's name. Its number follows if another layer has the same name. The pattern of its streams
 * precedes it if there is one. */
static strata_cell_t layer_name(const strata_group_t *group, uint32_t number, const char *figure) {
    const strata_plan_t *plan = group->plan;
    if (*group->name)
        return strata_cell("%.16s %.16s#%u %.24s", group->name, plan->nodes[number].name, (unsigned)plan->nodes[number].number,
                           figure);
    bool twice = false;
    for (uint32_t i = 1; i <= plan->count; i++)
        twice = twice || (i != number && strcmp(plan->nodes[i].name, plan->nodes[number].name) == 0);
    return twice ? strata_cell("%.24s#%u %.30s", plan->nodes[number].name, (unsigned)plan->nodes[number].number, figure)
                 : strata_cell("%.28s %.30s", plan->nodes[number].name, figure);
}

static uint64_t own_value(strata_layer_t *layer, uint32_t row) {
    strata_own_figure_t rows[STRATA_OWN_FIGURES];
    return strata_own_figures(layer, rows) > row ? rows[row].value : 0;
}

/* A layer that all streams share has no metrics of one stream. Neither has a layer of other streams' stacks. */
static void print_layer(const table_t *table, strata_group_t *group, uint32_t number) {
    strata_own_figure_t sums[STRATA_OWN_FIGURES];
    uint32_t count = strata_group_own_figures(group, number, sums);
    for (uint32_t row = 0; row < count; row++) {
        strata_cell_t name = layer_name(group, number, sums[row].name);
        if (table->width == NARROW) name = strata_cell_fit(name, NAME_WIDTH);
        begin_row(table, name.text, cell_of(sums[row].value, sums[row].unit));
        for (uint32_t i = 0; i < table->count; i++) {
            strata_layer_t *layer = table->stacks[i]->group == group ? table->stacks[i]->layers[number] : NULL;
            bool own = layer && layer->stack == table->stacks[i];
            print_cell(table, own ? cell_of(own_value(layer, row), sums[row].unit) : strata_cell("-"));
        }
        end_row(table);
    }
}

/* ---- blocks ---- */

static void name_stream(strata_stream_t stream, const void *context, char *name, size_t capacity) {
    const table_t *table = context;
    char own[STRATA_STATS_NAME];
    strata_stats_stream_name(table->moment, table->domain->place, stream, own);
    snprintf(name, capacity, "%s", own);
}

/* Prints strata_chunks_text() indented, with the trace's stream numbers. */
static strata_status_t print_blocks(const table_t *table) {
    size_t needed = 0;
    strata_place_t place = table->domain->place;
    strata_status_t status = strata_chunks_text_named(table->moment->facade, place, name_stream, table, NULL, 0, &needed);
    char *text = status == STRATA_OK ? strata_host_new(needed, 1) : NULL;
    if (!text) return status == STRATA_OK ? STRATA_E_HOST_MEMORY : status;
    status = strata_chunks_text_named(table->moment->facade, place, name_stream, table, text, needed, NULL);
    strata_output_print(table->out, "  chunks and blocks\n");
    for (const char *line = text; status == STRATA_OK && *line;) {
        size_t length = strcspn(line, "\n") + 1;
        strata_output_print(table->out, "  ");
        status = strata_output_write(table->out, line, length);
        line += length;
    }
    strata_host_delete(text);
    return status;
}

/* ---- places ---- */

/* Prints as many tables as the streams need. */
static void print_tables(const table_t *whole) {
    uint32_t first = 0;
    do {
        table_t table = *whole;
        table.stacks += first;
        table.count = (uint32_t)strata_min(whole->count - first, whole->across);
        first += table.count;
        print_heading(&table);
        print_statistics(&table);
        for (strata_group_t *group = NULL; (group = strata_domain_next_group(table.domain, group)) != NULL;)
            for (uint32_t number = 1; number <= group->plan->count; number++) print_layer(&table, group, number);
    } while (first < whole->count);
}

static strata_status_t print_place(table_t *table, bool blocks) {
    strata_status_t status = find_streams(table);
    if (status == STRATA_OK) print_tables(table);
    if (status == STRATA_OK && blocks) status = print_blocks(table);
    strata_host_delete(table->stacks);
    return status;
}

static bool place_was_used(strata_domain_t *domain) {
    strata_statistics_t figures;
    strata_facade_place_figures(domain, &figures);
    return (figures.allocations | figures.peak_reserved_bytes | figures.out_of_memory) != 0;
}

/* Uses two lines if one would be too long. */
static void print_title(strata_output_t *out, const strata_run_moment_t *moment, size_t width) {
    char where[512], what[512];
    const strata_figures_t *figures = &moment->result->figures;
    snprintf(where, sizeof where, "%.380s after row %zu of %zu (line %u):", strata_run_trace_name(moment->trace), moment->rows,
             moment->trace->count, (unsigned)moment->trace->events[moment->rows - 1].line);
    snprintf(what, sizeof what, "%.400s on %.60s", figures->strategy, figures->device);
    bool fits = width == 0 || strlen(where) + 1 + strlen(what) <= width;
    strata_output_print(out, "%s%s%s\n", where, fits ? " " : "\n  ", what);
}

/* Sets the columns of a table. At least one stream is shown beside the sum. */
static void set_columns(table_t *table, size_t width) {
    size_t whole = NAME_WIDTH + 2 + (size_t)(WIDTH + 2) * (STREAMS_ACROSS + 1);
    table->width = width == 0 || width >= whole ? WIDTH : NARROW;
    table->across = STREAMS_ACROSS;
    if (table->width == WIDTH) return;
    size_t room = width > NAME_WIDTH + 2 ? (width - NAME_WIDTH - 2) / (NARROW + 2) : 0;
    table->across = strata_min(STREAMS_ACROSS, strata_max(room, 2) - 1);
}

static void print_failures(const strata_stats_t *stats, uint64_t count) {
    if (count)
        strata_output_print(stats->out, "%" PRIu64 " request%s failed for lack of memory so far\n", count,
                            count == 1 ? " has" : "s have");
    if (count && stats->refused) strata_output_print(stats->out, "%s\n", stats->refused);
}

strata_status_t strata_stats_table(const strata_stats_t *stats, const strata_run_moment_t *moment) {
    print_title(stats->out, moment, stats->width);
    print_failures(stats, moment->result->figures.oom_count);
    uint32_t index = 0;
    strata_domain_t *domain;
    strata_status_t status = STRATA_OK;
    while (status == STRATA_OK && (domain = strata_facade_next_domain(strata_facade_of(moment->facade), &index)) != NULL) {
        table_t table = {.out = stats->out, .moment = moment, .domain = domain};
        set_columns(&table, stats->width);
        if (place_was_used(domain)) status = print_place(&table, stats->blocks);
    }
    return status;
}
