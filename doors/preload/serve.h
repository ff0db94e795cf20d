/* Requests of a preloaded process, shared by the functions of the runtime and of the driver. A request returns true if Strata
 * served it. If it returns false, the caller must call the real function. */
#ifndef STRATA_INTEGRATION_SERVE_H
#define STRATA_INTEGRATION_SERVE_H

#include "doors/common/unordered.h"
#include "doors/preload/process.h"
#include "doors/preload/real.h"

/* Serves memory without a stream: of the device or, with STRATA_PLACE_PINNED, of the host for work of `device`. */
bool strata_serve(strata_row_t row, strata_place_kind_t kind, int device, size_t size, void **address);
bool strata_serve_on(strata_row_t row, int device, void *stream, size_t size, void **address);
/* Frees a block. A free is invalid for a freed block, for the other kind of memory, and for an address inside a block. The real
 * function must not get the address of an invalid free, because Strata may hold memory there. So *address is then replaced by
 * one that no allocation has, and the program gets CUDA's own error. */
bool strata_serve_free(strata_row_t row, strata_door_memory_t memory, void **address);
bool strata_serve_free_on(strata_row_t row, strata_door_memory_t memory, void **address, void *stream);
/* Adds Strata's idle memory of the device to *unused, the free bytes from the real function. */
void strata_serve_mem_info(strata_row_t row, int device, size_t *unused, size_t total);
void strata_serve_forget(strata_row_t row, void *stream);
/* Returns true if the address is in memory that Strata serves, and not at the start of an allocation of the device. */
bool strata_serve_is_inside(strata_row_t row, void *address);

/* Releases idle memory after a real function ran out of memory. Returns true if it released any, so that a retry makes sense. */
bool strata_serve_release_idle(bool of_host, int device);

/* Converts a stream for the _ptsz functions, in which NULL means the calling thread's own default stream. */
static inline void *strata_own_stream(void *stream) { return stream ? stream : (void *)2; }

enum { STRATA_SERVE_TRIES = 4 };

/* Defines a function that begins a capture, and one that ends it. */
#define STRATA_BEGINS_CAPTURE(name, arguments, passed)                                                                             \
    int name arguments {                                                                                                           \
        int code;                                                                                                                  \
        strata_unordered_capture_begins();                                                                                         \
        STRATA_PASS_ON(code, name, passed, false, -1);                                                                             \
        if (code != 0) strata_unordered_capture_ends();                                                                            \
        strata_process_count(STRATA_ROW_##name, true);                                                                             \
        return code;                                                                                                               \
    }
#define STRATA_ENDS_CAPTURE(name, arguments, passed)                                                                               \
    int name arguments {                                                                                                           \
        int code;                                                                                                                  \
        STRATA_PASS_ON(code, name, passed, false, -1);                                                                             \
        if (strata_ended_capture(code)) strata_unordered_capture_ends();                                                           \
        strata_process_count(STRATA_ROW_##name, true);                                                                             \
        return code;                                                                                                               \
    }
/* The capture also ends if it was invalidated (901) or has unjoined work (904). */
static inline bool strata_ended_capture(int code) { return code == 0 || code == 901 || code == 904; }

/* Calls the real function with the arguments in `passed`. If it is out of memory, releases idle memory and calls it again, at
 * most STRATA_SERVE_TRIES times in all. If a later try succeeds, the error of the first is cleared, because the program must
 * not see it. */
#define STRATA_PASS_ON(code, name, passed, of_host, device)                                                                        \
    do {                                                                                                                           \
        int tries_ = 1;                                                                                                            \
        strata_process_enter_real();                                                                                               \
        (code) = STRATA_REAL(name) passed;                                                                                         \
        strata_process_exit_real();                                                                                                \
        for (; (code) == STRATA_REAL_OUT_OF_MEMORY && tries_ < STRATA_SERVE_TRIES; tries_++) {                                     \
            if (!strata_serve_release_idle(of_host, device)) break;                                                                \
            strata_process_enter_real();                                                                                           \
            (code) = STRATA_REAL(name) passed;                                                                                     \
            strata_process_exit_real();                                                                                            \
        }                                                                                                                          \
        if ((code) == 0 && tries_ > 1) strata_real_clear_error(#name);                                                             \
    } while (0)

#endif
