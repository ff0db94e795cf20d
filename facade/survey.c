#include "facade/survey.h"

#include <stdlib.h>
#include <string.h>

#include "allocation/blocks.h"

/* The owner of a note, made if there is room for it. */
static strata_owner_t *owner_of(strata_survey_t *survey, const strata_note_t *note) {
    uint32_t at = (note->tag * 31u + note->operator_name) % STRATA_SURVEY_OWNERS;
    for (uint32_t i = 0; i < STRATA_SURVEY_OWNERS; i++, at = (at + 1) % STRATA_SURVEY_OWNERS) {
        strata_owner_t *owner = &survey->owners[at];
        if (owner->blocks == 0) *owner = (strata_owner_t){.note = *note, .last_step = note->step};
        if (owner->note.tag == note->tag && owner->note.operator_name == note->operator_name) return owner;
    }
    return &survey->other_owners;
}

static void count_block(strata_stack_t *stack, strata_layer_t *layer, const strata_record_t *block, void *context) {
    static const strata_note_t nothing = {.tag = 0};
    strata_survey_t *survey = context;
    (void)stack;
    (void)layer;
    if (block->state == STRATA_RECORD_FREE && block->size > survey->largest_free) survey->largest_free = block->size;
    if (block->state != STRATA_RECORD_LIVE) return;
    const strata_side_t *side = strata_side_of(block);
    const strata_note_t *note = side ? &side->note : &nothing;
    strata_owner_t *owner = owner_of(survey, note);
    if (note->step < owner->note.step) owner->note.step = note->step;
    if (note->step > owner->last_step) owner->last_step = note->step;
    owner->bytes += block->size;
    owner->blocks++;
}

static void count_wait(strata_stream_t stream, bool gone, uint64_t bytes, void *context) {
    strata_survey_t *survey = context;
    uint32_t at = 0;
    while (at < survey->awaited_count && (survey->awaited[at].stream != stream || survey->awaited[at].gone != gone)) at++;
    if (at == STRATA_SURVEY_WAITS) {
        survey->awaited_more += bytes;
        return;
    }
    strata_awaited_t *awaited = &survey->awaited[at];
    if (at == survey->awaited_count) {
        *awaited = (strata_awaited_t){.stream = stream, .gone = gone};
        survey->awaited_count++;
    }
    awaited->bytes += bytes;
}

static int by_bytes(const void *a, const void *b) {
    const strata_owner_t *first = a, *second = b;
    if (first->bytes != second->bytes) return first->bytes > second->bytes ? -1 : 1;
    return first->note.tag != second->note.tag ? (first->note.tag < second->note.tag ? -1 : 1)
                                               : (first->note.operator_name > second->note.operator_name) -
                                                     (first->note.operator_name < second->note.operator_name);
}

static void count_stack(strata_stack_t *stack, strata_survey_t *survey) {
    survey->allocated += stack->figures.allocated_bytes;
    survey->deferred += stack->figures.deferred_bytes;
    strata_stack_each_block(stack, count_block, survey);
    if (!stack->open) return;
    STRATA_EACH_OWN_LAYER(stack, layer)
        if (STRATA_LAYER_HAS(layer->type, waits)) layer->type->waits(layer, count_wait, survey);
}

/* With every lock, as a block of the trunk is noted and borrowed under the lock of the stack that serves it. */
void strata_survey_make(strata_domain_t *domain, strata_survey_t *survey) {
    memset(survey, 0, sizeof *survey);
    STRATA_DOMAIN_EACH(domain, stack) survey->idle += strata_stack_idle_bytes(stack);
    strata_domain_lock_stacks(domain);
    for (uint32_t i = 0; i < domain->stack_count; i++) count_stack(domain->stacks[i], survey);
    strata_domain_unlock_stacks(domain);
    qsort(survey->owners, STRATA_SURVEY_OWNERS, sizeof *survey->owners, by_bytes);
}
