/* How the command ends by a signal. */
#ifndef STRATA_TOOLS_SIGNALS_H
#define STRATA_TOOLS_SIGNALS_H

/* From here on a signal that ends the command first removes the files that it has begun. Signals that the caller of the command
 * ignores stay ignored. */
void strata_signals_end_cleanly(void);

#endif
