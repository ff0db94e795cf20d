/* Runs many programs under many strategies.
 *
 *     seed --> draw.c --> program --> every strategy, in every mode --> verdict --> report/: shrinks and prints a failure */
#ifndef STRATA_TORTURE_CAMPAIGN_H
#define STRATA_TORTURE_CAMPAIGN_H

#include <stdio.h>

#include "lab/torture/strategies.h"
#include "programs/play.h"

/* A run has a program by its number, a strategy of the list, and a mode. */
typedef struct torture_run {
    uint64_t number;
    uint32_t strategy;
    strata_torture_mode_t mode;
} torture_run_t;

typedef struct torture_failure {
    torture_run_t run;
    torture_verdict_t verdict;
} torture_failure_t;

typedef struct torture_sum {
    uint64_t programs, runs[STRATA_TORTURE_MODES], hazards, failed;
    uint64_t operations; /* drawn; after a refused one, some have no effect */
    uint64_t served, refused, unopened; /* requests, and runs in which the strategy did not open on a small device */
    uint64_t recycled;
    uint64_t captures, launches; /* successful captures and launches of graphs */
} torture_sum_t;

/* Adds the results of a run. */
void torture_sum_add(torture_sum_t *sum, const torture_run_t *run, const torture_program_t *well_formed,
                     const torture_verdict_t *verdict);

enum { TORTURE_FAILURES_KEPT = 16, TORTURE_JOBS = 64, TORTURE_LOOK_MS = 100 };

/* Called with the number of programs done, and of runs that failed. */
typedef void (*torture_progress_fn)(void *context, uint64_t done, uint64_t failed);

typedef struct torture_campaign {
    const torture_strategies_t *strategies;
    uint64_t seed, first, programs; /* the programs are numbers first, first + 1, ... */
    uint32_t length; /* operations of each program; 0 for some dozens, or TORTURE_LONG in one of `seldom` programs */
    uint32_t seldom; /* 0 if none is long */
    const char *again; /* further options of a command that runs one program again; may be NULL */
    uint32_t drawn_each; /* drawn strategies of each program, in turn */
    uint32_t thin; /* each program is run under every `thin`-th strategy, in turn; 0 for all */
    uint32_t jobs; /* processes */
    torture_progress_fn progress; /* of torture_run_isolated(), every TORTURE_LOOK_MS; may be NULL */
    void *progress_context;
    bool few_threads; /* threads run programs only under every third strategy */
} torture_campaign_t;

enum { TORTURE_LONG = 6000 };

/* Draws program `number` of a campaign, which is not well-formed yet. Returns false if the host has no memory. */
bool torture_campaign_draw(const torture_campaign_t *campaign, uint64_t number, torture_program_t *program);

/* Called for every run. Returns false to stop. */
typedef bool (*torture_each_fn)(void *context, const torture_run_t *run, const torture_program_t *well_formed);
/* Calls `each` for every run of one program: all strategies except the drawn ones, and `drawn_each` of those.
 * A program with threads is also run in turns, or at once. */
void torture_each_run(const torture_campaign_t *campaign, uint64_t number, torture_each_fn each, void *context);

/* Runs the programs in this process, one after the other, and keeps the first failures. Returns the number of
 * those in `failures`. */
uint32_t torture_run_here(const torture_campaign_t *campaign, torture_sum_t *sum, torture_failure_t *failures, uint32_t room);
/* Runs the programs in separate processes, so that a crash or a hang is a failure like any other. No facade
 * may have been opened in this process. Fails with E_IO. */
strata_status_t torture_run_isolated(const torture_campaign_t *campaign, torture_sum_t *sum, torture_failure_t *failures,
                                     uint32_t *failure_count);

/* Shrinks a failure, in separate processes if `apart` is true. Prints its description and a C program that shows it. */
strata_status_t torture_report_failure(FILE *out, const torture_campaign_t *campaign, const torture_failure_t *failure, bool apart);

#endif
