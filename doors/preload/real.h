/* The real functions of CUDA that the preloaded library interposes. */
#ifndef STRATA_INTEGRATION_REAL_H
#define STRATA_INTEGRATION_REAL_H

#include <stdbool.h>

#include "doors/preload/table.h"

/* Returns the function `name` of the CUDA runtime ("libcudart.so") or of the driver ("libcuda.so"), or NULL. It is the next one
 * in load order, else one in a library that was loaded with local symbols, as interpreters load extensions. */
void *strata_real(const char *name);

/* Codes that Strata returns itself if there is no real function to call. */
enum { STRATA_REAL_MISSING = 500, STRATA_REAL_OUT_OF_MEMORY = 2, STRATA_REAL_NOT_SUPPORTED = 801 };

/* STRATA_REAL(cudaFree)(address) calls the real function, which is looked up once. */
#define STRATA_REAL_DECLARE(treatment, name, arguments, passed, text)                                                              \
    typedef int(*strata_real_##name##_t) arguments;                                                                                \
    int strata_real_##name arguments;
STRATA_PRELOAD_MAP(STRATA_REAL_DECLARE)
#undef STRATA_REAL_DECLARE
#define STRATA_REAL(name) strata_real_##name

/* Returns the device of the calling thread in the runtime, or in the driver's current context, or -1 if there is none. */
int strata_real_runtime_device(void);
int strata_real_driver_device(void);
/* Waits for all work of that device. Returns the code of the real function. */
int strata_real_synchronise_runtime(void);
int strata_real_synchronise_driver(void);
/* Clears the thread's last runtime error after a call of the function `name`. Functions of the driver set no such error. */
void strata_real_clear_error(const char *name);
/* Returns the context of a stream, or NULL if the driver cannot report it. */
void *strata_real_context_of(void *stream);
/* Returns the current context of the calling thread, or NULL if there is none. */
void *strata_real_context(void);
/* Returns true if the process has loaded the driver. Strata itself loads it only at the first request. */
bool strata_real_driver_is_loaded(void);

#endif
