/* Runs in processes of their own. */
#ifndef STRATA_TORTURE_APART_H
#define STRATA_TORTURE_APART_H

#include <sys/types.h>

#include "programs/play.h"

enum { TORTURE_SECONDS = 60, TORTURE_SECONDS_SMALL = 5 /* that one run may take, in a campaign and while it is made small */ };

/* torture_play() in another process; a crash or a hang is its verdict. `shared` lies in memory that both see
 * (torture_shared_new()). E_IO: there is no process. */
strata_status_t torture_play_apart(const torture_program_t *program, const strata_strategy_t *strategy, bool may_refuse,
                                   strata_torture_mode_t mode, torture_verdict_t *shared);
/* fork(). The child ends with the thread that made it, however that ends. */
pid_t torture_fork(void);
void *torture_shared_new(size_t size);
void torture_shared_delete(void *memory, size_t size);
/* What an ended process was doing is a crash, or a hang of `seconds`. */
void torture_ended(int how, int seconds, torture_verdict_t *verdict);

#endif
