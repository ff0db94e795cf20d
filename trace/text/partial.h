/* The names of files that are being written, so that a program that a signal ends can remove them.
 * Strata itself handles no signal. */
#ifndef STRATA_TRACE_PARTIAL_H
#define STRATA_TRACE_PARTIAL_H

#include <signal.h>

typedef struct strata_partial {
    struct strata_partial *next;
    const char *name; /* NULL if it is not in the list */
    long process; /* so that a forked child removes no files of its parent */
} strata_partial_t;

/* Blocks all signals of this thread. So a file is either created and in the list, or neither. */
void strata_partial_block_signals(sigset_t *before);
void strata_partial_unblock_signals(const sigset_t *before);

/* Adds a name, which must stay valid until the removal. Any thread may call. */
void strata_partial_add(strata_partial_t *partial, const char *name);
/* Removes a name. Ignored if it is not in the list. */
void strata_partial_remove(strata_partial_t *partial);

/* Unlinks the files of this process. May be called from a signal handler, whatever it interrupts. The
 * process must end after it. */
void strata_partial_unlink_all(void);

#endif
