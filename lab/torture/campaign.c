#include "lab/torture/campaign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/torture/draw.h"

bool torture_campaign_draw(const torture_campaign_t *campaign, uint64_t number, torture_program_t *program) {
    bool is_long = campaign->seldom && (number + 1) % campaign->seldom == 0;
    uint32_t length = campaign->length ? campaign->length : is_long ? TORTURE_LONG : 0;
    return torture_draw(program, (campaign->seed << 32) + number, length);
}

/* ---- the runs of one program ---- */

typedef struct each {
    const torture_campaign_t *campaign;
    torture_each_fn visit;
    void *context;
    uint64_t number;
    torture_program_t drawn, well_formed[TORTURE_DIALECTS];
    bool made[TORTURE_DIALECTS];
} each_t;

static _Noreturn void fail(void) {
    fputs("strata torture: the host has no memory for a program\n", stderr);
    _Exit(3);
}

static const torture_program_t *well_formed_in(each_t *each, torture_dialect_t dialect) {
    torture_program_t *well_formed = &each->well_formed[dialect];
    if (!each->made[dialect] &&
        !(torture_program_copy(well_formed, &each->drawn) && torture_make_well_formed(well_formed, dialect)))
        fail();
    each->made[dialect] = true;
    return well_formed;
}

/* Selects by the position among the program's strategies. Neighboring programs leave out different ones. */
static bool is_left_out(const each_t *each, uint32_t position) {
    uint32_t thin = each->campaign->thin;
    return thin && (each->number + position) % thin;
}

/* Both orders of threads are tried in turn, one with the program's even strategies, the other with its odd ones. */
static bool visit_modes(each_t *each, uint32_t strategy, uint32_t position) {
    if (is_left_out(each, position)) return true;
    const torture_program_t *well_formed = well_formed_in(each, each->campaign->strategies->all[strategy].dialect);
    torture_run_t run = {.number = each->number, .strategy = strategy, .mode = STRATA_TORTURE_INTERLEAVED};
    if (!each->visit(each->context, &run, well_formed)) return false;
    if (well_formed->threads == 1 || (each->campaign->few_threads && (each->number + strategy) % 3)) return true;
    run.mode = (each->number + strategy) % 2 ? STRATA_TORTURE_TURNS : STRATA_TORTURE_AT_ONCE;
    return each->visit(each->context, &run, well_formed);
}

void torture_each_run(const torture_campaign_t *campaign, uint64_t number, torture_each_fn visit, void *context) {
    static _Thread_local each_t each;
    const torture_strategies_t *list = campaign->strategies;
    uint32_t others = list->count - list->drawn, drawn = campaign->drawn_each < list->drawn ? campaign->drawn_each : list->drawn;
    each.campaign = campaign;
    each.visit = visit;
    each.context = context;
    each.number = number;
    memset(each.made, 0, sizeof each.made);
    if (!torture_campaign_draw(campaign, number, &each.drawn)) fail();
    for (uint32_t i = 0; i < others; i++)
        if (!visit_modes(&each, i, i)) return;
    for (uint32_t i = 0; i < drawn; i++)
        if (!visit_modes(&each, others + (uint32_t)((number * campaign->drawn_each + i) % list->drawn), others + i)) return;
}

void torture_sum_add(torture_sum_t *sum, const torture_run_t *run, const torture_program_t *well_formed,
                     const torture_verdict_t *verdict) {
    sum->runs[run->mode]++;
    sum->operations += well_formed->count;
    sum->hazards += verdict->hazards;
    sum->served += verdict->served;
    sum->refused += verdict->refused;
    sum->unopened += verdict->unopened;
    sum->recycled += verdict->recycled;
    sum->captures += verdict->captures;
    sum->launches += verdict->launches;
}

/* ---- in this process ---- */

typedef struct here {
    const torture_campaign_t *campaign;
    torture_sum_t *sum;
    torture_failure_t *failures;
    uint32_t count, room;
    torture_verdict_t verdict;
} here_t;

static bool run_here(void *context, const torture_run_t *run, const torture_program_t *well_formed) {
    here_t *here = context;
    const torture_strategy_t *strategy = &here->campaign->strategies->all[run->strategy];
    torture_play(well_formed, strategy->strategy, strategy->may_refuse, run->mode, &here->verdict);
    torture_sum_add(here->sum, run, well_formed, &here->verdict);
    if (here->verdict.fault == TORTURE_FAULT_NONE) return true;
    here->sum->failed++;
    if (here->count < here->room) here->failures[here->count++] = (torture_failure_t){*run, here->verdict};
    return true;
}

uint32_t torture_run_here(const torture_campaign_t *campaign, torture_sum_t *sum, torture_failure_t *failures, uint32_t room) {
    static _Thread_local here_t here;
    here = (here_t){.campaign = campaign, .sum = sum, .failures = failures, .room = room};
    *sum = (torture_sum_t){.programs = campaign->programs};
    for (uint64_t i = 0; i < campaign->programs; i++) torture_each_run(campaign, campaign->first + i, run_here, &here);
    return here.count;
}
