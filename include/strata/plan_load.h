/* Plans that were made ahead, by a compiler (strata/plan.h) or by `strata plan`, for the requests of a facade.
 *
 *     strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t), .preset = "planned"}, &s);
 *     if (strata_plan_load(s, strata_gpu(0), stream, "step.json", NULL) != STRATA_OK) puts(strata_last_error()->text);
 */
#ifndef STRATA_PLAN_LOAD_H
#define STRATA_PLAN_LOAD_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct strata_plan_load_options {
    size_t struct_size;
    uint64_t pool; /* whose requests: 0: the thread's current pool, as for strata_allocate_with() */
    bool one_branch; /* of a plan with several branches (streams) `branch` is this stream's; the others are passed over */
    uint32_t branch;
} strata_plan_load_options_t;

/* The requests of a stream follow a plan that was made ahead, by `strata plan -o` or a compiler: CSV or JSON (docs/planning.md). The
 * stream's stack has the layer `planned` (preset "planned"). `options` (may be NULL): all of them are 0. Room for the plan comes together in this call; from the next request on, the
 * one that the plan has there (the same order, and as many bytes, rounded up to 256) is served at its offset in the room, without a
 * device call, step after step. A request whose tag is the name of a buffer of the plan is that buffer, wherever in the step it comes.
 * Where the program asks for something else it leaves the plan, and is served as without one: a plan is advice, and nothing overlaps
 * whatever it says. It is kept beside those that the layer makes itself.
 *
 * On failure nothing is loaded. E_FORMAT: the text has the file, the line, and what to write. E_IO: the file cannot be read. E_LIMIT:
 * more than 65,536 buffers. E_NO_MEMORY: there is no memory for the plan's peak. E_UNSUPPORTED: the stack has no such layer, or its cache
 * adds to what is asked for. E_BUSY: another thread is ending a step of the stream, or a captured graph has the memory. E_HOST_MEMORY. */
STRATA_API strata_status_t strata_plan_load(strata_t facade, strata_place_t place, strata_stream_t stream, const char *path,
                                            const strata_plan_load_options_t *options);

#ifdef __cplusplus
}
#endif
#endif
