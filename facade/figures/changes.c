#include "facade/figures/changes.h"

#include <inttypes.h>

#include "facade/figures/figures.h"
#include "platform/place.h"

static void write_place(strata_statistics_t *last, strata_domain_t *domain, strata_output_t *out) {
    strata_statistics_t now;
    char place[STRATA_PLACE_LETTERS];
    strata_facade_place_figures(domain, &now);
    strata_place_text(domain->place, place);
#define WRITE_CHANGE(name, unit, kind, meaning)                                                                                    \
    if (now.name != last->name) strata_output_print(out, " %s." #name " %" PRIu64, place, now.name);
    STRATA_STATISTICS_MAP(WRITE_CHANGE)
#undef WRITE_CHANGE
    *last = now;
}

void strata_changes_write(strata_changes_t *changes, strata_facade_t *facade, strata_output_t *out) {
    uint32_t index = 0, place = 0;
    strata_domain_t *domain;
    while ((domain = strata_facade_next_domain(facade, &index)) != NULL) write_place(&changes->last[place++], domain, out);
}

/* ---- all metrics ---- */

typedef struct writing {
    strata_output_t *out;
    char place[STRATA_PLACE_LETTERS];
} writing_t;

static void write_layer(const strata_layer_figure_t *figure, void *context) {
    const writing_t *writing = context;
    if (figure->value == 0) return;
    strata_output_print(writing->out, "layer %s %s#%" PRIu32 " stream 0x%" PRIxPTR " pool %" PRIu64 " %s %" PRIu64 "\n",
                        writing->place, figure->layer, figure->number, (uintptr_t)figure->stream, figure->pool, figure->name,
                        figure->value);
}

static void write_block(const strata_snapshot_row_t *row, void *context) {
    static const char *const states[] = {"free", "live", "deferred"};
    const writing_t *writing = context;
    strata_output_print(writing->out,
                        "block %s stream 0x%" PRIxPTR " pool %" PRIu64 " chunk 0x%" PRIx64 " at 0x%" PRIxPTR
                        " %s, %zu bytes, %zu requested\n",
                        writing->place, (uintptr_t)row->stream, row->pool, row->chunk, (uintptr_t)row->block.ptr,
                        states[row->state], row->block.size, row->requested);
}

strata_status_t strata_changes_write_all(strata_t handle, strata_output_t *out) {
    strata_facade_t *facade = strata_facade_of(handle);
    uint32_t index = 0;
    strata_domain_t *domain;
    strata_status_t status = facade ? STRATA_OK : strata_last_error()->status;
    while (status == STRATA_OK && (domain = strata_facade_next_domain(facade, &index)) != NULL) {
        writing_t writing = {.out = out};
        strata_place_text(domain->place, writing.place);
        status = strata_layer_figures(handle, domain->place, write_layer, &writing);
        if (status == STRATA_OK) status = strata_snapshot(handle, domain->place, write_block, &writing);
    }
    return status;
}
