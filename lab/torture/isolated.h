/* Runs programs in separate processes. */
#ifndef STRATA_TORTURE_ISOLATED_H
#define STRATA_TORTURE_ISOLATED_H

#include <sys/types.h>

#include "programs/play.h"

enum { TORTURE_SECONDS = 60, TORTURE_SECONDS_SMALL = 5 /* limits of one run, in a campaign and while it is shrunk */ };

/* Calls torture_play() in another process. A crash or a hang is its verdict. `shared` is in memory that both
 * processes can access (torture_shared_new()). Fails with E_IO if no process can be created. */
strata_status_t torture_play_isolated(const torture_program_t *program, const strata_strategy_t *strategy, bool may_refuse,
                                      strata_torture_mode_t mode, torture_verdict_t *shared);
/* Calls fork(). The child ends with the thread that created it, however that ends. */
pid_t torture_fork(void);
void *torture_shared_new(size_t size);
void torture_shared_delete(void *memory, size_t size);
/* Sets the verdict of an ended process: a crash, or a hang after `seconds`. */
void torture_describe_exit(int how, int seconds, torture_verdict_t *verdict);

#endif
