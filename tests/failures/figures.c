#include "tests/failures/figures.h"

#include <stdarg.h>
#include <stdlib.h>

#include "platform/host/host_memory.h"

enum { TOLD = 10, ROOM = 2048 };

static __attribute__((__format__(__printf__, 3, 4))) void add(figures_t *figures, uint64_t value, const char *format, ...) {
    va_list arguments;
    ASSERT_LT(figures->count, figures->room);
    figure_row_t *row = &figures->rows[figures->count++];
    row->value = value;
    va_start(arguments, format);
    vsnprintf(row->name, sizeof row->name, format, arguments);
    va_end(arguments);
}

/* ---- of a place ---- */

typedef struct of_place {
    figures_t *figures;
    const char *name;
    uint64_t chunk, chunks, rows;
} of_place_t;

/* Streams are told apart by their turn, since their handles differ from rig to rig. */
static void add_layer(const strata_layer_figure_t *figure, void *context) {
    of_place_t *place = context;
    add(place->figures, figure->value, "%s %s%s%s %u %s", place->name, figure->pool ? "pool " : "",
        figure->forgotten ? "forgotten " : "", figure->layer, (unsigned)figure->number, figure->name);
}

/* Where a block lies in its chunk, but not where the chunk lies. */
static void add_block(const strata_snapshot_row_t *row, void *context) {
    of_place_t *place = context;
    if (place->rows++ == 0 || row->chunk != place->chunk) place->chunks++;
    place->chunk = row->chunk;
    add(place->figures, row->block.size, "%s block %u: size", place->name, (unsigned)place->rows);
    add(place->figures, (uintptr_t)row->block.ptr - row->chunk, "%s block %u: offset", place->name, (unsigned)place->rows);
    add(place->figures, row->requested, "%s block %u: requested", place->name, (unsigned)place->rows);
    add(place->figures, row->state, "%s block %u: state", place->name, (unsigned)place->rows);
}

static void add_place(figures_t *figures, rig_t *rig, strata_place_t place, const char *name) {
    of_place_t of = {.figures = figures, .name = name};
    strata_statistics_t all = rig_figures_in(rig, place);
#define ADD_FIELD(field, unit, kind, meaning) add(figures, all.field, "%s %s", name, #field);
    STRATA_STATISTICS_MAP(ADD_FIELD)
#undef ADD_FIELD
    EXPECT_OK(strata_layer_figures(rig->s, place, add_layer, &of));
    EXPECT_OK(strata_snapshot(rig->s, place, add_block, &of));
    add(figures, of.chunks, "%s chunks with blocks", name);
}

/* How often granules of simulated addresses are covered, for frees by pointer. Those start at 2^48. Host memory is left out: the number of
 * granules that it crosses depends on where the system places it. */
static uint64_t covered(rig_t *rig) {
    enum { FIRST_SIMULATED = 1 << (48 - STRATA_DIRECTORY_GRANULE_SHIFT) };
    const strata_directory_t *directory = rig_domain(rig)->directory;
    uint64_t covers = 0;
    for (uint32_t leaf = 1; directory && leaf < directory->used; leaf++)
        if (directory->leaves[leaf].granule >= FIRST_SIMULATED) covers += directory->leaves[leaf].covers;
    return covers;
}

/* ---- of a device ---- */

static void add_device(figures_t *figures, rig_t *rig, uint32_t number) {
    strata_sim_held_t held;
    strata_sim_figures_t used;
    strata_sim_held(rig->devices[number], &held);
    strata_sim_figures(rig->devices[number], &used);
#define ADD_HELD(member, text) add(figures, held.member, "device %u holds %s", (unsigned)number, text);
    STRATA_SIM_HELD_MAP(ADD_HELD)
#undef ADD_HELD
    add(figures, used.used_bytes, "device %u used_bytes", (unsigned)number);
}

/* ---- all of it ---- */

void figures_snapshot(figures_t *figures, rig_t *rig) {
    strata_host_live_t live = strata_host_live();
    *figures = (figures_t){.rows = malloc(ROOM * sizeof *figures->rows), .room = ROOM};
    ASSERT_TRUE(figures->rows != NULL);
    add(figures, live.allocations, "host allocations");
    add(figures, live.mapped, "host mapped");
    add(figures, covered(rig), "covers of addresses");
    add(figures, atomic_load(&rig_domain(rig)->peers), "peers of the place");
    add(figures, atomic_load(&rig_domain(rig)->quota.used), "bytes of the limit that are claimed");
    add(figures, atomic_load(&rig_domain(rig)->graph_pools), "pools of graphs");
    add(figures, atomic_load(&rig_domain(rig)->captures->pools), "pools of graphs of all places");
    add(figures, atomic_load(&rig_domain(rig)->captures->open), "pools of graphs that are begun");
    add_place(figures, rig, rig->gpu, "gpu");
    add_place(figures, rig, strata_pinned(), "pinned");
    for (uint32_t i = 0; i < rig->count; i++) add_device(figures, rig, i);
}

void figures_delete(figures_t *figures) {
    free(figures->rows);
    *figures = (figures_t){.rows = NULL};
}

static const figure_row_t *find(const figures_t *figures, const char *name, size_t near) {
    for (size_t i = 0; i < figures->count; i++) {
        const figure_row_t *row = &figures->rows[(near + i) % figures->count];
        if (strcmp(row->name, name) == 0) return row;
    }
    return NULL;
}

uint64_t figures_of(const figures_t *figures, const char *name) {
    const figure_row_t *row = find(figures, name, 0);
    if (!row) FAIL_TEST("there is no figure \"%s\"", name);
    return row ? row->value : 0;
}

static uint64_t value_of(const figures_t *figures, const char *name, size_t near) {
    const figure_row_t *row = find(figures, name, near);
    return row ? row->value : 0;
}

/* Layers and blocks that are not there have 0 of everything. */
void figures_expect_equal(const figures_t *are, const figures_t *were, figures_pass_fn passes, const void *context) {
    uint32_t told = 0;
    for (size_t i = 0; i < are->count && told < TOLD; i++) {
        const figure_row_t *row = &are->rows[i];
        if (row->value == value_of(were, row->name, i) || (passes && passes(row->name, context))) continue;
        told++;
        FAIL_TEST("%s: %llu, not %llu", row->name, (unsigned long long)row->value,
                  (unsigned long long)value_of(were, row->name, i));
    }
    for (size_t i = 0; i < were->count && told < TOLD; i++) {
        const figure_row_t *row = &were->rows[i];
        if (find(are, row->name, i) || row->value == 0 || (passes && passes(row->name, context))) continue;
        told++;
        FAIL_TEST("%s is gone, which was %llu", row->name, (unsigned long long)row->value);
    }
}
