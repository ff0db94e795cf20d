/* The functions that the preloaded library stands before, as their own libraries have them. */
#ifndef STRATA_INTEGRATION_REAL_H
#define STRATA_INTEGRATION_REAL_H

#include <stdbool.h>

#include "doors/preload/table.h"

/* The function `name` of the CUDA runtime ("libcudart.so") or of the driver ("libcuda.so"): the next one in the order of loading, else
 * that of a library which the process has loaded out of the program's sight, as interpreters do. NULL: there is none. */
void *strata_real(const char *name);

/* The codes that are made up here, where there is no real function to ask. */
enum { STRATA_REAL_MISSING = 500, STRATA_REAL_OUT_OF_MEMORY = 2, STRATA_REAL_NOT_SUPPORTED = 801 };

/* STRATA_REAL(cudaFree)(address): the real function, looked up once. */
#define STRATA_REAL_DECLARE(treatment, name, arguments, passed, text)                                                              \
    typedef int(*strata_real_##name##_t) arguments;                                                                                \
    int strata_real_##name arguments;
STRATA_PRELOAD_MAP(STRATA_REAL_DECLARE)
#undef STRATA_REAL_DECLARE
#define STRATA_REAL(name) strata_real_##name

/* The device of the calling thread as the runtime, or the driver's current context, has it; -1: there is none. */
int strata_real_runtime_device(void);
int strata_real_driver_device(void);
/* Waits for all work of that device; the real function's code. */
int strata_real_synchronise_runtime(void);
int strata_real_synchronise_driver(void);
/* Clears the thread's last runtime error after a function of that name. Functions of the driver set none. */
void strata_real_clear_error(const char *name);
/* The context of a stream; NULL: it cannot be told. */
void *strata_real_context_of(void *stream);
/* The current context of the calling thread; NULL: none. */
void *strata_real_context(void);
/* Whether anybody in the process has loaded the driver; Strata does so only when a request comes. */
bool strata_real_driver_is_loaded(void);

#endif
