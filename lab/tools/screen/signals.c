#include "lab/tools/screen/signals.h"

#include <signal.h>
#include <stddef.h>

#include "trace/text/partial.h"

static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGXFSZ};
enum { ENDING = sizeof ending / sizeof *ending };

/* The parent process must see the signal that ended the command. The signal is blocked until the handler returns. */
static void end_by(int number) {
    strata_partial_unlink_all();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

void strata_signals_end_cleanly(void) {
    struct sigaction action = {.sa_handler = end_by}, before;
    for (int i = 0; i < ENDING; i++) (void)sigaddset(&action.sa_mask, ending[i]);
    for (int i = 0; i < ENDING; i++)
        if (sigaction(ending[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) (void)sigaction(ending[i], &action, NULL);
}
