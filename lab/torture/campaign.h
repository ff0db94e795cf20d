/* Many programs under many strategies. */
#ifndef STRATA_TORTURE_CAMPAIGN_H
#define STRATA_TORTURE_CAMPAIGN_H

#include <stdio.h>

#include "lab/torture/strategies.h"
#include "programs/play.h"

/* A run: a program by its number, a strategy of the list, a mode. */
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
    uint64_t operations; /* drawn: after one that is refused some have nothing to do */
    uint64_t served, refused, unopened; /* requests, and runs whose strategy did not open on a small device */
    uint64_t recycled;
    uint64_t captures, launches; /* of graphs, that were served */
} torture_sum_t;

/* What a run has shown. */
void torture_sum_add(torture_sum_t *sum, const torture_run_t *run, const torture_program_t *lawful,
                     const torture_verdict_t *verdict);

enum { TORTURE_FAILURES_KEPT = 16, TORTURE_JOBS = 64, TORTURE_LOOK_MS = 100 };

/* How many programs are done, and how many runs have failed. */
typedef void (*torture_progress_fn)(void *context, uint64_t done, uint64_t failed);

typedef struct torture_campaign {
    const torture_strategies_t *strategies;
    uint64_t seed, first, programs; /* those of the numbers first, first + 1, ... */
    uint32_t length; /* operations of each program; 0: some dozens, but TORTURE_LONG of one in `seldom` */
    uint32_t seldom; /* 0: of none */
    const char *again; /* what a command that runs one program again must say besides; NULL: nothing */
    uint32_t drawn_each; /* of the drawn strategies so many a program, in turn */
    uint32_t thin; /* a program is run under every so many-th strategy, in turn; 0: under all of them */
    uint32_t jobs; /* processes */
    torture_progress_fn progress; /* of torture_run_apart(), every TORTURE_LOOK_MS; NULL: nobody looks */
    void *progress_context;
    bool few_threads; /* the runs by threads are made with every third strategy alone */
} torture_campaign_t;

enum { TORTURE_LONG = 6000 };

/* Program `number` of a campaign, not lawful yet. False: the host has no memory. */
bool torture_campaign_draw(const torture_campaign_t *campaign, uint64_t number, torture_program_t *program);

/* Told of every run; false: enough. */
typedef bool (*torture_each_fn)(void *context, const torture_run_t *run, const torture_program_t *lawful);
/* Every run of one program: all strategies but the drawn, and `drawn_each` of those; with threads a program is run in turns, or at
 * once, as well. */
void torture_each_run(const torture_campaign_t *campaign, uint64_t number, torture_each_fn each, void *context);

/* In this process, one after the other; the first failures are kept. Answers how many there are in `failures`. */
uint32_t torture_run_here(const torture_campaign_t *campaign, torture_sum_t *sum, torture_failure_t *failures, uint32_t room);
/* In processes of their own, so that a crash or a hang is a failure like any other. No facade has been opened in this process.
 * E_IO. */
strata_status_t torture_run_apart(const torture_campaign_t *campaign, torture_sum_t *sum, torture_failure_t *failures,
                                  uint32_t *failure_count);

/* Shrinks a failure (in processes of its own if `apart`) and prints what it is and a program in C that shows it. */
strata_status_t torture_tell(FILE *out, const torture_campaign_t *campaign, const torture_failure_t *failure, bool apart);

#endif
