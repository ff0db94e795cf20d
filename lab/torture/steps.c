#include "lab/torture/steps.h"

#include <inttypes.h>
#include <string.h>

#include "facade/figures/changes.h"
#include "platform/host/host_memory.h"

typedef struct steps {
    const torture_campaign_t *campaign;
    strata_output_t *out;
    uint64_t every, failed;
    strata_status_t status;
    const torture_program_t *program;
    uint64_t refused; /* refused requests of the run, up to the last operation */
    strata_changes_t changes;
    torture_verdict_t verdict;
} steps_t;

static const char *kind_name(uint8_t kind) {
    static const char *const names[] = {
#define KIND_NAME(name, what) #name,
        STRATA_TORTURE_KIND_MAP(KIND_NAME)
#undef KIND_NAME
    };
    return names[kind];
}

static void write_blocks(const steps_t *steps, const torture_world_t *w, const torture_op_t *op) {
    for (uint8_t i = 0; i < op->count; i++) {
        const torture_block_t *b = &w->blocks[op->blocks[i]];
        if (b->live)
            strata_output_print(steps->out, " block %" PRIu32 " at 0x%" PRIxPTR ", %zu bytes", op->blocks[i],
                                (uintptr_t)b->block.ptr, b->block.size);
        else strata_output_print(steps->out, " block %" PRIu32 " is not there", op->blocks[i]);
    }
}

/* A run that failed makes no further calls. */
static void after_operation(void *context, const torture_world_t *w, uint32_t number) {
    steps_t *steps = context;
    bool ended = number == steps->program->count;
    if (atomic_load(&w->failed) || steps->status != STRATA_OK) return;
    if (ended) {
        strata_output_print(steps->out, "end");
    } else {
        strata_output_print(steps->out, "%" PRIu32 " %s", number, kind_name(steps->program->ops[number].kind));
        write_blocks(steps, w, &steps->program->ops[number]);
    }
    uint64_t refused = atomic_load(&w->refused);
    if (refused != steps->refused) strata_output_print(steps->out, " refused %s", strata_status_name(strata_last_error()->status));
    steps->refused = refused;
    strata_output_print(steps->out, " time %" PRIu64, strata_sim_now(w->sim));
    if (ended || number % steps->every == 0) strata_changes_write(&steps->changes, strata_facade_of(w->s), steps->out);
    steps->status = strata_output_print(steps->out, "\n");
    if (ended && steps->status == STRATA_OK) steps->status = strata_changes_write_all(w->s, steps->out);
}

static bool run(void *context, const torture_run_t *run, const torture_program_t *well_formed) {
    steps_t *steps = context;
    const torture_strategy_t *strategy = &steps->campaign->strategies->all[run->strategy];
    const torture_verdict_t *verdict = &steps->verdict;
    if (run->mode != STRATA_TORTURE_INTERLEAVED) return true;
    steps->program = well_formed;
    steps->refused = 0;
    memset(&steps->changes, 0, sizeof steps->changes);
    strata_output_print(steps->out, "program %" PRIu64 " under %s\n", run->number, strategy->name);
    torture_play_watched(well_formed, strategy->strategy, strategy->may_refuse, after_operation, steps, &steps->verdict);
    steps->failed += verdict->fault != TORTURE_FAULT_NONE;
    strata_status_t written = strata_output_print(
        steps->out, "verdict %s, %" PRIu64 " served, %" PRIu64 " refused, %" PRIu64 " captures, %" PRIu64 " launches%s%s\n",
        torture_fault_text(verdict->fault), verdict->served, verdict->refused, verdict->captures, verdict->launches,
        verdict->unopened ? ", not opened" : "", verdict->fault == TORTURE_FAULT_NONE ? "" : ": ");
    if (verdict->fault != TORTURE_FAULT_NONE) written = strata_output_print(steps->out, "%.6000s\n", verdict->text);
    if (steps->status == STRATA_OK) steps->status = written;
    return steps->status == STRATA_OK;
}

strata_status_t torture_write_steps(const torture_campaign_t *campaign, uint64_t every, strata_output_t *out, uint64_t *failed) {
    steps_t *steps = strata_host_new(1, sizeof *steps);
    if (!steps) return STRATA_E_HOST_MEMORY;
    *steps = (steps_t){.campaign = campaign, .out = out, .every = every};
    for (uint64_t i = 0; i < campaign->programs && steps->status == STRATA_OK; i++)
        torture_each_run(campaign, campaign->first + i, run, steps);
    *failed = steps->failed;
    strata_status_t status = steps->status;
    strata_host_delete(steps);
    return status;
}
