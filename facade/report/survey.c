#include "facade/report/survey.h"

#include <stdlib.h>
#include <string.h>

#include "allocation/call/blocks.h"
#include "allocation/domain/paused.h"
#include "platform/arithmetic.h"

/* Returns the owner of a note, added if there is room. */
static strata_owner_t *owner_of(strata_survey_t *survey, const strata_note_t *note) {
    uint32_t at = (note->tag * 31u + note->operator_name) % STRATA_SURVEY_OWNERS;
    for (uint32_t i = 0; i < STRATA_SURVEY_OWNERS; i++, at = (at + 1) % STRATA_SURVEY_OWNERS) {
        strata_owner_t *owner = &survey->owners[at];
        if (owner->blocks == 0) *owner = (strata_owner_t){.note = *note, .last_step = note->step};
        if (owner->note.tag == note->tag && owner->note.operator_name == note->operator_name) return owner;
    }
    return &survey->other_owners;
}

/* ---- free memory, chunk by chunk ---- */

/* The current chunk of the walk. */
typedef struct chunk {
    const strata_layer_t *layer; /* NULL for none */
    uint32_t number;
    uint64_t used, free, largest;
    uint64_t deferred, run; /* deferred bytes; and the bytes of the last consecutive blocks that are free or deferred */
    strata_idle_why_t why; /* reason of its largest free block */
} chunk_t;

typedef struct survey_walk {
    strata_survey_t *survey;
    const strata_survey_for_t *whom;
    chunk_t chunk;
} survey_walk_t;

static void finish_chunk(survey_walk_t *walk) {
    const chunk_t *chunk = &walk->chunk;
    strata_idle_t *idle = &walk->survey->idle_by[chunk->why];
    if (chunk->layer && chunk->deferred > 0 && chunk->used == chunk->deferred)
        walk->survey->later_whole += chunk->free + chunk->deferred;
    if (chunk->layer && chunk->free > 0 && chunk->used == 0) idle->whole += chunk->free;
    if (chunk->layer && chunk->free > 0 && chunk->used > 0) {
        idle->chunks++;
        idle->held += chunk->used - chunk->deferred;
    }
    walk->chunk = (chunk_t){.layer = NULL};
}

/* Counts a block that is free, or will be after its last use and once its count is passed. */
static void count_in_run(survey_walk_t *walk, const strata_record_t *block, strata_idle_why_t why) {
    chunk_t *chunk = &walk->chunk;
    if (block->prev == 0) chunk->run = 0;
    bool will_serve = why == STRATA_IDLE_OWN || why == STRATA_IDLE_COUNTED || why == STRATA_IDLE_ORPHAN;
    chunk->run = will_serve ? chunk->run + block->size : 0;
    walk->survey->later_run = strata_max(walk->survey->later_run, chunk->run);
}

/* Other processes use the block, and nothing shows when they stop. */
static bool is_in_limbo(const strata_record_t *block) {
    return block->state == STRATA_RECORD_DEFERRED && (block->attention & STRATA_ATTENTION_NOTES);
}

static void count_in_use(survey_walk_t *walk, strata_stack_t *stack, strata_layer_t *layer, const strata_record_t *block) {
    chunk_t *chunk = &walk->chunk;
    chunk->used += block->size;
    if (block->state != STRATA_RECORD_DEFERRED || is_in_limbo(block)) {
        chunk->run = 0;
        return;
    }
    chunk->deferred += block->size;
    walk->survey->deferred_here += block->size;
    count_in_run(walk, block, strata_idle_why(walk->whom, stack, layer, block));
}

static void count_in_chunk(survey_walk_t *walk, strata_stack_t *stack, strata_layer_t *layer, const strata_record_t *block) {
    chunk_t *chunk = &walk->chunk;
    if (chunk->layer != layer || chunk->number != block->chunk) finish_chunk(walk);
    chunk->layer = layer;
    chunk->number = block->chunk;
    if (block->state != STRATA_RECORD_FREE) {
        count_in_use(walk, stack, layer, block);
        return;
    }
    strata_idle_why_t why = strata_idle_why(walk->whom, stack, layer, block);
    strata_idle_t *idle = &walk->survey->idle_by[why];
    count_in_run(walk, block, why);
    idle->bytes += block->size;
    idle->largest = strata_max(idle->largest, block->size);
    walk->survey->largest_free = strata_max(walk->survey->largest_free, block->size);
    chunk->free += block->size;
    if (block->size > chunk->largest) chunk->why = why;
    chunk->largest = strata_max(chunk->largest, block->size);
}

/* Returns the reason that follows from the owner of the block's stack. */
static strata_idle_why_t why_of_stack(const strata_stack_t *asked, const strata_stack_t *stack) {
    if (stack->group != asked->group && atomic_load(&stack->group->pinned)) return STRATA_IDLE_CAPTURED;
    if (stack->group->pool != asked->group->pool) return stack->group->keeps ? STRATA_IDLE_KEPT : STRATA_IDLE_POOL;
    if (stack->of_thread && stack->of_thread != asked->of_thread) return STRATA_IDLE_THREAD;
    if (stack->forgotten.orphan && !strata_forgotten_is_over(&stack->forgotten)) return STRATA_IDLE_ORPHAN;
    bool shared = stack == asked || stack == asked->thread_shared || stack->is_shared || stack->forgotten.orphan;
    return stack->group == asked->group && shared ? STRATA_IDLE_OWN : STRATA_IDLE_STREAM;
}

static strata_stream_t key_of(strata_stream_t stream) { return stream == STRATA_STREAM_LEGACY ? NULL : stream; }

strata_idle_why_t strata_idle_why(const strata_survey_for_t *whom, strata_stack_t *stack, strata_layer_t *layer,
                                  const strata_record_t *block) {
    strata_stream_t stream = NULL;
    bool tells = layer && STRATA_LAYER_HAS(layer->type, unavailable);
    uint32_t unavailable = tells ? layer->type->unavailable(layer, block, whom->size, &stream) : 0;
    if (unavailable & STRATA_UNAVAILABLE_CAPTURED) return STRATA_IDLE_CAPTURED;
    if (unavailable & STRATA_UNAVAILABLE_COUNTED) return STRATA_IDLE_COUNTED;
    strata_idle_why_t why = why_of_stack(whom->stack, stack);
    if (why != STRATA_IDLE_OWN) return why;
    if ((unavailable & STRATA_UNAVAILABLE_STREAM) && key_of(stream) != key_of(whom->stream)) return STRATA_IDLE_STREAM;
    if (unavailable & STRATA_UNAVAILABLE_SIZES) return STRATA_IDLE_SIZES;
    return unavailable & STRATA_UNAVAILABLE_UNSPLIT ? STRATA_IDLE_UNSPLIT : STRATA_IDLE_OWN;
}

/* ---- blocks ---- */

static void count_block(strata_stack_t *stack, strata_layer_t *layer, const strata_record_t *block, void *context) {
    static const strata_note_t nothing = {.tag = 0};
    survey_walk_t *walk = context;
    strata_survey_t *survey = walk->survey;
    if (layer) count_in_chunk(walk, stack, layer, block);
    if (is_in_limbo(block)) {
        survey->limbo += block->size;
        survey->limbo_blocks++;
    }
    if (block->state != STRATA_RECORD_LIVE) return;
    const strata_record_notes_t *notes = strata_record_notes_of(block);
    const strata_note_t *note = notes ? &notes->note : &nothing;
    strata_owner_t *owner = owner_of(survey, note);
    if (note->step < owner->note.step) owner->note.step = note->step;
    if (note->step > owner->last_step) owner->last_step = note->step;
    owner->bytes += block->size;
    owner->blocks++;
}

static void count_wait(strata_stream_t stream, bool destroyed, uint64_t bytes, void *context) {
    strata_survey_t *survey = context;
    uint32_t at = 0;
    while (at < survey->awaited_count && (survey->awaited[at].stream != stream || survey->awaited[at].destroyed != destroyed)) at++;
    if (at == STRATA_SURVEY_WAITS) {
        survey->awaited_more += bytes;
        return;
    }
    strata_awaited_t *awaited = &survey->awaited[at];
    if (at == survey->awaited_count) {
        *awaited = (strata_awaited_t){.stream = stream, .destroyed = destroyed};
        survey->awaited_count++;
    }
    awaited->bytes += bytes;
}

static int order(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

/* Sorts by bytes, descending. Ties go to the owner that was named first. */
static int by_bytes(const void *a, const void *b) {
    const strata_owner_t *first = a, *second = b;
    int bytes = order(second->bytes, first->bytes), tag = order(first->note.tag, second->note.tag);
    if (bytes) return bytes;
    return tag ? tag : order(first->note.operator_name, second->note.operator_name);
}

static void count_stack(strata_stack_t *stack, survey_walk_t *walk) {
    strata_survey_t *survey = walk->survey;
    survey->allocated += stack->figures.allocated_bytes;
    survey->deferred += stack->figures.deferred_bytes;
    strata_stack_each_block(stack, count_block, walk);
    finish_chunk(walk);
    if (!stack->open) return;
    STRATA_EACH_OWN_LAYER(stack, layer)
        if (STRATA_LAYER_HAS(layer->type, waits)) layer->type->waits(layer, count_wait, survey);
}

/* Leaves out paused memory, which has no physical memory. Holds every lock, because a block of the shared
 * stack is annotated and borrowed under the lock of the stack that serves it. */
void strata_survey_make(strata_domain_t *domain, const strata_survey_for_t *whom, strata_survey_t *survey) {
    memset(survey, 0, sizeof *survey);
    survey_walk_t walk = {.survey = survey, .whom = whom};
    STRATA_DOMAIN_EACH(domain, stack)
        if (!strata_group_is_paused(stack->group)) survey->idle += strata_stack_idle_bytes(stack);
    strata_domain_lock_stacks(domain);
    for (strata_stack_t *stack = domain->first_stack; stack; stack = stack->links.next)
        if (!strata_group_is_paused(stack->group)) count_stack(stack, &walk);
    strata_domain_unlock_stacks(domain);
    qsort(survey->owners, STRATA_SURVEY_OWNERS, sizeof *survey->owners, by_bytes);
}
