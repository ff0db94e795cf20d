/* The door of the process under LD_PRELOAD: opened when the first request comes, closed when the process ends. */
#ifndef STRATA_INTEGRATION_PROCESS_H
#define STRATA_INTEGRATION_PROCESS_H

#include <stdbool.h>

#include "doors/common/door.h"
#include "doors/preload/table.h"

/* Begins a call that Strata may serve. NULL: the real function has to do it, because the call comes from inside Strata or from a real
 * function that it has called, there is no device or no strategy, or the process ends. With a door every begin has an end. */
strata_door_t *strata_process_begin(void);
void strata_process_end(void);
/* The same for a call that needs no door where there is none yet: frees, figures. */
strata_door_t *strata_process_begin_if_open(void);

/* While a real function runs, what it calls itself is not looked at. */
void strata_process_enter_real(void);
void strata_process_leave_real(void);

/* Closes the door before the memory of its device is taken away; the next request opens another. false: other devices hold memory, and
 * nothing has happened. */
bool strata_process_close_for_reset(int device);

/* The place of a request in the memory of `device`, or -1: the device is none of Strata's, or the current context is not its primary
 * one. */
bool strata_process_place(strata_door_t *door, strata_place_kind_t kind, int device, strata_place_t *place);
/* Whether a stream is of the primary context of the place's device. */
bool strata_process_owns_stream(strata_door_t *door, strata_place_t place, void *stream);

/* Counts a call of a row of the table: whether Strata has answered it. */
typedef enum strata_row {
#define STRATA_ROW(treatment, name, arguments, passed, text) STRATA_ROW_##name,
    STRATA_PRELOAD_MAP(STRATA_ROW)
#undef STRATA_ROW
        STRATA_ROWS
} strata_row_t;
void strata_process_count(strata_row_t row, bool served);

#endif
