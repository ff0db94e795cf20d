/* Writes bfc's part of the report of a failed request: bins, regions, the largest blocks and a drawing, in the
 * peer's terms. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "allocation/cache/policies/bfc/bfc_debug.h"
#include "allocation/options/option.h"

enum { SHOWN_SIZES = 6, SHOWN_BLOCKS = 4, SHOWN_ACTIONS = 8, LINE = 320 };

static void write_line(const strata_report_sink_t *sink, const char *format, ...) STRATA_PRINTF(2, 3);
static void write_line(const strata_report_sink_t *sink, const char *format, ...) {
    char line[LINE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    sink->write(sink, line);
}

typedef struct text {
    char text[32];
} text_t;

static text_t size_text(uint64_t bytes) {
    text_t text;
    strata_print_size(bytes, text.text, sizeof text.text);
    return text;
}

#define SIZE(bytes) size_text(bytes).text

/* Blocks in use of one size. */
typedef struct same_size {
    uint64_t size;
    uint32_t count;
} same_size_t;

/* Copied under the lock, and reported without it. */
typedef struct summary {
    char drawn[STRATA_BFC_DRAWN + 1];
    bfc_bin_t bins[STRATA_BFC_BINS];
    same_size_t sizes[SHOWN_SIZES]; /* the largest first */
    bfc_row_t blocks[SHOWN_BLOCKS]; /* the largest in use */
    uint64_t actions[SHOWN_ACTIONS], first_action;
    uint32_t action_count;
    uint64_t limit, used, reserved, next_region, largest;
    uint32_t regions;
    double fragmentation;
} summary_t;

static void keep_if_large(const bfc_t *self, const strata_report_sink_t *sink, uint32_t slot, summary_t *summary) {
    uint64_t size = bfc_block(self, slot)->size;
    if (size <= summary->blocks[SHOWN_BLOCKS - 1].size) return;
    uint32_t at = SHOWN_BLOCKS - 1;
    for (; at > 0 && summary->blocks[at - 1].size < size; at--) summary->blocks[at] = summary->blocks[at - 1];
    strata_bfc_read_row(self, sink, slot, &summary->blocks[at]);
}

/* Finds the largest sizes in use, with one pass for each. */
static void find_sizes(const bfc_t *self, summary_t *summary) {
    uint64_t above = UINT64_MAX;
    for (uint32_t i = 0; i < SHOWN_SIZES; i++) {
        same_size_t *largest = &summary->sizes[i];
        STRATA_EACH_CHUNK(&self->chunks, node)
            STRATA_EACH_BLOCK(&self->chunks, node, slot) {
                const strata_record_t *block = bfc_block(self, slot);
                if (block->state == STRATA_RECORD_FREE || block->size >= above || block->size < largest->size) continue;
                if (block->size > largest->size) *largest = (same_size_t){.size = block->size};
                largest->count++;
            }
        if (largest->count == 0) return;
        above = largest->size;
    }
}

static void summarize(bfc_t *self, const strata_report_sink_t *sink, summary_t *summary) {
    strata_bfc_draw(self, summary->drawn);
    strata_bfc_sum_bins(self, summary->bins);
    find_sizes(self, summary);
    STRATA_EACH_CHUNK(&self->chunks, node)
        STRATA_EACH_BLOCK(&self->chunks, node, slot)
            if (!bfc_is_free(self, slot)) keep_if_large(self, sink, slot, summary);
    if (self->history) {
        summary->action_count = self->actions < SHOWN_ACTIONS ? (uint32_t)self->actions : SHOWN_ACTIONS;
        summary->first_action = self->actions - summary->action_count + 1;
        for (uint32_t i = 0; i < summary->action_count; i++)
            summary->actions[i] = self->history[(summary->first_action + i) % STRATA_BFC_HISTORY];
    }
    summary->limit = self->limit;
    summary->used = self->used_bytes;
    summary->reserved = self->chunks.bytes;
    summary->next_region = self->next_region;
    summary->largest = strata_tree_largest(&self->idle, bfc_slab(self));
    summary->regions = self->chunks.count;
    summary->fragmentation = strata_bfc_fragmentation(self);
}

static void say_bins(const strata_report_sink_t *sink, const summary_t *summary) {
    for (uint32_t b = 0; b < STRATA_BFC_BINS; b++) {
        const bfc_bin_t *bin = &summary->bins[b];
        if (bin->chunks == 0) continue;
        write_line(sink,
                   "\n    Bin (%s): Total Chunks: %u, Chunks in use: %u. %s allocated for chunks. %s in use in bin. %s "
                   "client-requested in use in bin.",
                   SIZE(256ull << b), bin->chunks, bin->chunks_in_use, SIZE(bin->bytes), SIZE(bin->bytes_in_use),
                   SIZE(bin->requested_in_use));
    }
    uint64_t rounded = (sink->size + STRATA_BFC_UNIT - 1) & ~(uint64_t)(STRATA_BFC_UNIT - 1);
    write_line(sink, "\n    Bin for %s was %s", SIZE(sink->size), SIZE(256ull << bfc_bin_of(rounded)));
}

static void say_seen(const strata_report_sink_t *sink, const summary_t *summary) {
    write_line(sink, "\n  %s: limit %s, in use %s of %s in %u regions, next region %s, largest free block %s, fragmentation %.3f",
               sink->layer, SIZE(summary->limit), SIZE(summary->used), SIZE(summary->reserved), summary->regions,
               SIZE(summary->next_region), SIZE(summary->largest), summary->fragmentation);
    write_line(sink, "\n    %s", summary->drawn);
    say_bins(sink, summary);
    for (uint32_t i = 0; i < SHOWN_SIZES && summary->sizes[i].count; i++)
        write_line(sink, "%s%u Chunks of size %s totalling %s", i ? ", " : "\n    in use: ", summary->sizes[i].count,
                   SIZE(summary->sizes[i].size), SIZE(summary->sizes[i].size * summary->sizes[i].count));
    for (uint32_t i = 0; i < SHOWN_BLOCKS && summary->blocks[i].size; i++) {
        const bfc_row_t *row = &summary->blocks[i];
        write_line(sink, "\n    InUse at 0x%llx of size %s", (unsigned long long)row->address, SIZE(row->size));
        if (*row->operator_name) write_line(sink, " by op %s step %llu", row->operator_name, (unsigned long long)row->step);
        if (row->action)
            write_line(sink, " action_count %llu allocation %llu", (unsigned long long)row->action, (unsigned long long)row->id);
    }
    for (uint32_t i = 0; i < summary->action_count; i++) {
        if (i == 0) write_line(sink, "\n    in use after action %llu: ", (unsigned long long)summary->first_action);
        write_line(sink, "%s%s", i ? ", " : "", SIZE(summary->actions[i]));
    }
}

void strata_bfc_print(bfc_t *self, const strata_report_sink_t *sink) {
    summary_t summary = {.regions = 0};
    strata_stack_lock_own(self->base.stack);
    summarize(self, sink, &summary);
    strata_unlock(&self->base.stack->lock);
    say_seen(sink, &summary);
    if (strcmp(bfc_options_of(self)->memory_dump, "none") != 0) strata_bfc_dump(self, sink);
}
