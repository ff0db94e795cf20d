/* The names of files that are being written. A program that is ended by a signal can take them away; Strata itself handles none. */
#ifndef STRATA_TRACE_BEGUN_H
#define STRATA_TRACE_BEGUN_H

#include <signal.h>

typedef struct strata_begun {
    struct strata_begun *next;
    const char *name; /* NULL: not in the list */
    long process; /* a child that was forked meanwhile takes nothing of its parent's away */
} strata_begun_t;

/* No signal reaches this thread between the two: a file is made and in the list, or neither. */
void strata_begun_block(sigset_t *before);
void strata_begun_unblock(const sigset_t *before);

/* `name` stays where it is until the removal. Any thread. */
void strata_begun_add(strata_begun_t *begun, const char *name);
/* Ignored where it is not in the list. */
void strata_begun_remove(strata_begun_t *begun);

/* Unlinks the files of this process. From a signal's handler too, in whatever that interrupts; behind it the process ends. */
void strata_begun_unlink_all(void);

#endif
