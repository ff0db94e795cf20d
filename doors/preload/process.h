/* The door of the process under LD_PRELOAD. The first request opens it, and the end of the process closes it. */
#ifndef STRATA_INTEGRATION_PROCESS_H
#define STRATA_INTEGRATION_PROCESS_H

#include <stdbool.h>

#include "doors/common/door.h"
#include "doors/preload/table.h"

/* Begins a call that Strata may serve. Returns NULL if the real function must serve it. That is so inside Strata, inside a real
 * function, without a device or a valid strategy, and at the end of the process. Each begin that returns a door needs one end. */
strata_door_t *strata_process_begin(void);
void strata_process_end(void);
/* Like strata_process_begin(), but never opens the door. For frees and statistics, which need no door before the first request. */
strata_door_t *strata_process_begin_if_open(void);

/* Between these two calls, Strata ignores the calls that a real function makes. */
void strata_process_enter_real(void);
void strata_process_exit_real(void);

/* Closes the door before its device is reset. The next request opens a new one. Returns false and does nothing if blocks are
 * live on other devices, or if `device` is negative and a door is open. */
bool strata_process_close_for_reset(int device);

/* Sets the place of a request for memory of `device`, which is -1 if there is none. Returns false if Strata does not serve the
 * device, or if the current context is not its primary context. */
bool strata_process_place(strata_door_t *door, strata_place_kind_t kind, int device, strata_place_t *place);
/* Returns true if a stream belongs to the primary context of the place's device. */
bool strata_process_owns_stream(strata_door_t *door, strata_place_t place, void *stream);

/* The rows of the table. */
typedef enum strata_row {
#define STRATA_ROW(treatment, name, arguments, passed, text) STRATA_ROW_##name,
    STRATA_PRELOAD_MAP(STRATA_ROW)
#undef STRATA_ROW
        STRATA_ROWS
} strata_row_t;
/* Counts a call of a row. `served` is true if Strata answered it. */
void strata_process_count(strata_row_t row, bool served);

#endif
