/* Outside of valgrind this does nothing. */
#include <valgrind/callgrind.h>

#include "lab/bench/peers/measured.h"

void workload_count_instructions(bool on) {
    if (on) CALLGRIND_START_INSTRUMENTATION;
    else CALLGRIND_STOP_INSTRUMENTATION;
}
