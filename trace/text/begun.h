/* The names of files that are being written, so that a program that is ended by a signal can remove them. Strata itself handles no
 * signal. */
#ifndef STRATA_TRACE_BEGUN_H
#define STRATA_TRACE_BEGUN_H

#include <signal.h>

typedef struct strata_begun {
    struct strata_begun *next;
    const char *name; /* NULL: not in the list */
    long process; /* so that a child that was forked meanwhile removes nothing of its parent's */
} strata_begun_t;

/* No signal reaches this thread in between: either a file is made and in the list, or neither. */
void strata_begun_block(sigset_t *before);
void strata_begun_unblock(const sigset_t *before);

/* `name` must stay where it is until the removal. Any thread. */
void strata_begun_add(strata_begun_t *begun, const char *name);
/* Ignored if it is not in the list. */
void strata_begun_remove(strata_begun_t *begun);

/* Unlinks the files of this process. Also from a signal handler, whatever it interrupts; the process ends after it. */
void strata_begun_unlink_all(void);

#endif
