/* Requests of a preloaded process, as both the runtime's and the driver's functions make them. Each answers whether Strata has done it;
 * if not, the real function has to. */
#ifndef STRATA_INTEGRATION_SERVE_H
#define STRATA_INTEGRATION_SERVE_H

#include "doors/common/unordered.h"
#include "doors/preload/process.h"
#include "doors/preload/real.h"

/* Memory without a stream, of the device or, with STRATA_PLACE_PINNED, of the host for work of `device`. */
bool strata_serve(strata_row_t row, strata_place_kind_t kind, int device, size_t size, void **address);
bool strata_serve_on(strata_row_t row, int device, void *stream, size_t size, void **address);
/* For an invalid free (a double free, the other kind of memory, an address inside a block). The real function must not see the address,
 * because Strata may hold memory there. *address is replaced by one that no allocation has, so the program gets CUDA's own error. */
bool strata_serve_free(strata_row_t row, strata_door_memory_t memory, void **address);
bool strata_serve_free_on(strata_row_t row, strata_door_memory_t memory, void **address, void *stream);
/* What is idle in the memory of the device counts as free. */
void strata_serve_mem_info(strata_row_t row, int device, size_t *unused, size_t total);
void strata_serve_forget(strata_row_t row, void *stream);
/* Whether an address is of Strata's and begins inside a piece of the device's memory. */
bool strata_serve_is_inside(strata_row_t row, void *address);

/* A real function was out of memory: idle memory goes back. Whether there is use in calling it again. */
bool strata_serve_room(bool of_host, int device);

/* CUDA's name of the calling thread's own default stream, where NULL means that. */
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
/* A capture that was broken, or has work that was not joined, ends all the same. */
static inline bool strata_ended_capture(int code) { return code == 0 || code == 901 || code == 904; }

/* Calls the real function with the arguments in `passed`, and once more after idle memory was returned. If the second try succeeds, the
 * error of the first is cleared, because the program must not see it. */
#define STRATA_PASS_ON(code, name, passed, of_host, device)                                                                        \
    do {                                                                                                                           \
        int tries_ = 1;                                                                                                            \
        strata_process_enter_real();                                                                                               \
        (code) = STRATA_REAL(name) passed;                                                                                         \
        strata_process_leave_real();                                                                                               \
        for (; (code) == STRATA_REAL_OUT_OF_MEMORY && tries_ < STRATA_SERVE_TRIES; tries_++) {                                     \
            if (!strata_serve_room(of_host, device)) break;                                                                        \
            strata_process_enter_real();                                                                                           \
            (code) = STRATA_REAL(name) passed;                                                                                     \
            strata_process_leave_real();                                                                                           \
        }                                                                                                                          \
        if ((code) == 0 && tries_ > 1) strata_real_clear_error(#name);                                                             \
    } while (0)

#endif
