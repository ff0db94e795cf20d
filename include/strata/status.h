/* The statuses that every Strata call may return. One line per status gives the enum, its name and its text. */
#ifndef STRATA_STATUS_H
#define STRATA_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define STRATA_API                 __attribute__((visibility("default")))
#define STRATA_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define STRATA_API
#define STRATA_PRINTF(text, first)
#endif

/* X(name, number, text). Numbers are part of the ABI: never reuse one (14 is used up). */
#define STRATA_STATUS_MAP(X)                                                                                                       \
    X(OK, 0, "done")                                                                                                               \
    X(E_INVALID, 1, "invalid argument")                                                                                            \
    X(E_NO_MEMORY, 2, "out of memory in this place")                                                                               \
    X(E_HOST_MEMORY, 3, "out of host memory for Strata's own records")                                                             \
    X(E_STALE, 4, "stale handle: already freed, closed, or of another facade")                                                     \
    X(E_UNSUPPORTED, 5, "not supported by this strategy, device or version")                                                       \
    X(E_NO_DEVICE, 6, "no usable device")                                                                                          \
    X(E_DEVICE, 7, "the device refused a call")                                                                                    \
    X(E_DEVICE_LOST, 8, "the device is lost; the process must end")                                                                \
    X(E_STRATEGY, 9, "invalid strategy")                                                                                           \
    X(E_FORMAT, 10, "invalid format of an input file")                                                                             \
    X(E_IO, 11, "a file could not be read or written")                                                                             \
    X(E_BUSY, 12, "still in use")                                                                                                  \
    X(E_NOT_READY, 13, "submitted work is not done yet")                                                                           \
    X(E_UNKNOWN_POINTER, 15, "no live allocation begins at this address")                                                          \
    X(E_UNKNOWN_STREAM, 16, "the stream is unknown, was destroyed, or its handle now names another stream")                        \
    X(E_FORKED, 17, "the process was forked after the device was opened; the child cannot use it")                                 \
    X(E_CAPTURE, 18, "not allowed while a stream is being captured into a graph")                                                  \
    X(E_SHUTDOWN, 19, "the driver is shutting down")                                                                               \
    X(E_CORRUPT, 20, "an internal structure is corrupt")                                                                           \
    X(E_LIMIT, 21, "a fixed limit of Strata was reached")

typedef enum strata_status {
#define STRATA_STATUS_ENUM(name, number, text) STRATA_##name = number,
    STRATA_STATUS_MAP(STRATA_STATUS_ENUM)
#undef STRATA_STATUS_ENUM
} strata_status_t;

/* The reason of a failure, in words for a person to act on. */
typedef struct strata_error {
    strata_status_t status;
    int64_t device_code; /* the driver's number (CUresult); 0 if no driver call failed */
    uint32_t line; /* 1-based, in the file that the text names; 0 if the error is not in a file */
    uint32_t column;
    char text[4096];
} strata_error_t;

/* Returns "STRATA_E_NO_MEMORY" and the like, never NULL. Any thread. */
STRATA_API const char *strata_status_name(strata_status_t status);
/* Returns "out of memory in this place" and the like, never NULL. Any thread. */
STRATA_API const char *strata_status_text(strata_status_t status);
/* Returns the calling thread's last failure, never NULL. It is valid until the thread's next call. After a call that succeeded it
 * has no meaning, because some step on the way may have failed. */
STRATA_API const strata_error_t *strata_last_error(void);
/* For layers and callbacks: sets the calling thread's last error and returns `status`. `device_code` is the driver's number, or
 * 0. */
STRATA_API strata_status_t strata_fail(strata_status_t status, int64_t device_code, const char *format, ...) STRATA_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
