/* Clean-up when a signal ends the command. */
#ifndef STRATA_TOOLS_SIGNALS_H
#define STRATA_TOOLS_SIGNALS_H

/* From now on, a signal that ends the command first removes the files that it has begun. Signals that the
 * command's caller ignores stay ignored. */
void strata_signals_end_cleanly(void);

#endif
