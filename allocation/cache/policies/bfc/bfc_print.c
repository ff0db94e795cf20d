/* Writes bfc's part of the report of a failed request: bins, regions, the largest blocks and a drawing, in the
 * peer's terms. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "allocation/cache/policies/bfc/bfc_debug.h"
#include "allocation/options/option.h"

enum { SHOWN_SIZES = 6, SHOWN_BLOCKS = 4, SHOWN_ACTIONS = 8, LINE = 320 };

static void say(const strata_telling_t *telling, const char *format, ...) STRATA_PRINTF(2, 3);
static void say(const strata_telling_t *telling, const char *format, ...) {
    char line[LINE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    telling->say(telling, line);
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
typedef struct seen {
    char drawn[STRATA_BFC_DRAWN + 1];
    bfc_bin_t bins[STRATA_BFC_BINS];
    same_size_t sizes[SHOWN_SIZES]; /* the largest first */
    bfc_row_t blocks[SHOWN_BLOCKS]; /* the largest in use */
    uint64_t actions[SHOWN_ACTIONS], first_action;
    uint32_t action_count;
    uint64_t limit, used, reserved, next_region, largest;
    uint32_t regions;
    double fragmentation;
} seen_t;

static void keep_if_large(const bfc_t *self, const strata_telling_t *telling, uint32_t slot, seen_t *seen) {
    uint64_t size = bfc_block(self, slot)->size;
    if (size <= seen->blocks[SHOWN_BLOCKS - 1].size) return;
    uint32_t at = SHOWN_BLOCKS - 1;
    for (; at > 0 && seen->blocks[at - 1].size < size; at--) seen->blocks[at] = seen->blocks[at - 1];
    strata_bfc_read_row(self, telling, slot, &seen->blocks[at]);
}

/* Finds the largest sizes in use, with one pass for each. */
static void find_sizes(const bfc_t *self, seen_t *seen) {
    uint64_t above = UINT64_MAX;
    for (uint32_t i = 0; i < SHOWN_SIZES; i++) {
        same_size_t *largest = &seen->sizes[i];
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

static void see(bfc_t *self, const strata_telling_t *telling, seen_t *seen) {
    strata_bfc_draw(self, seen->drawn);
    strata_bfc_sum_bins(self, seen->bins);
    find_sizes(self, seen);
    STRATA_EACH_CHUNK(&self->chunks, node)
        STRATA_EACH_BLOCK(&self->chunks, node, slot)
            if (!bfc_is_free(self, slot)) keep_if_large(self, telling, slot, seen);
    if (self->history) {
        seen->action_count = self->actions < SHOWN_ACTIONS ? (uint32_t)self->actions : SHOWN_ACTIONS;
        seen->first_action = self->actions - seen->action_count + 1;
        for (uint32_t i = 0; i < seen->action_count; i++)
            seen->actions[i] = self->history[(seen->first_action + i) % STRATA_BFC_HISTORY];
    }
    seen->limit = self->limit;
    seen->used = self->used_bytes;
    seen->reserved = self->chunks.bytes;
    seen->next_region = self->next_region;
    seen->largest = strata_tree_largest(&self->idle, bfc_slab(self));
    seen->regions = self->chunks.count;
    seen->fragmentation = strata_bfc_fragmentation(self);
}

static void say_bins(const strata_telling_t *telling, const seen_t *seen) {
    for (uint32_t b = 0; b < STRATA_BFC_BINS; b++) {
        const bfc_bin_t *bin = &seen->bins[b];
        if (bin->chunks == 0) continue;
        say(telling,
            "\n    Bin (%s): Total Chunks: %u, Chunks in use: %u. %s allocated for chunks. %s in use in bin. %s "
            "client-requested in use in bin.",
            SIZE(256ull << b), bin->chunks, bin->chunks_in_use, SIZE(bin->bytes), SIZE(bin->bytes_in_use),
            SIZE(bin->requested_in_use));
    }
    uint64_t rounded = (telling->size + STRATA_BFC_UNIT - 1) & ~(uint64_t)(STRATA_BFC_UNIT - 1);
    say(telling, "\n    Bin for %s was %s", SIZE(telling->size), SIZE(256ull << bfc_bin_of(rounded)));
}

static void say_block(const strata_telling_t *telling, const bfc_row_t *row) {
    say(telling, "\n    InUse at 0x%llx of size %s", (unsigned long long)row->address, SIZE(row->size));
    if (*row->operator_name) say(telling, " by op %s step %llu", row->operator_name, (unsigned long long)row->step);
    if (row->action)
        say(telling, " action_count %llu allocation %llu", (unsigned long long)row->action, (unsigned long long)row->id);
}

static void say_actions(const strata_telling_t *telling, const seen_t *seen) {
    for (uint32_t i = 0; i < seen->action_count; i++) {
        if (i == 0) say(telling, "\n    in use after action %llu: ", (unsigned long long)seen->first_action);
        say(telling, "%s%s", i ? ", " : "", SIZE(seen->actions[i]));
    }
}

static void say_seen(const strata_telling_t *telling, const seen_t *seen) {
    say(telling, "\n  %s: limit %s, in use %s of %s in %u regions, next region %s, largest free block %s, fragmentation %.3f",
        telling->layer, SIZE(seen->limit), SIZE(seen->used), SIZE(seen->reserved), seen->regions, SIZE(seen->next_region),
        SIZE(seen->largest), seen->fragmentation);
    say(telling, "\n    %s", seen->drawn);
    say_bins(telling, seen);
    for (uint32_t i = 0; i < SHOWN_SIZES && seen->sizes[i].count; i++)
        say(telling, "%s%u Chunks of size %s totalling %s", i ? ", " : "\n    in use: ", seen->sizes[i].count,
            SIZE(seen->sizes[i].size), SIZE(seen->sizes[i].size * seen->sizes[i].count));
    for (uint32_t i = 0; i < SHOWN_BLOCKS && seen->blocks[i].size; i++) say_block(telling, &seen->blocks[i]);
    say_actions(telling, seen);
}

void strata_bfc_print(bfc_t *self, const strata_telling_t *telling) {
    seen_t seen = {.regions = 0};
    strata_stack_take(self->base.stack);
    see(self, telling, &seen);
    strata_unlock(&self->base.stack->lock);
    say_seen(telling, &seen);
    if (strcmp(bfc_options_of(self)->memory_dump, "none") != 0) strata_bfc_dump(self, telling);
}
