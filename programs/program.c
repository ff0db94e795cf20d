#include "programs/program.h"

#include <string.h>

#include "platform/host/host_memory.h"

bool torture_program_reserve(torture_program_t *program, uint32_t operations) {
    if (operations <= program->room) return true;
    torture_op_t *ops = strata_host_resize(program->ops, operations, sizeof *ops);
    if (ops) program->ops = ops;
    torture_needs_t *all_needs = ops ? strata_host_resize(program->all_needs, operations, sizeof *all_needs) : NULL;
    if (!all_needs) return false;
    program->all_needs = all_needs;
    program->room = operations;
    return true;
}

bool torture_program_copy(torture_program_t *to, const torture_program_t *from) {
    if (!torture_program_reserve(to, from->count)) return false;
    to->seed = from->seed;
    to->devices = from->devices;
    to->threads = from->threads;
    to->capacity = from->capacity;
    to->check_stream_ids = from->check_stream_ids;
    to->count = from->count;
    if (from->count) memcpy(to->ops, from->ops, from->count * sizeof *from->ops);
    return true;
}

void torture_program_delete(torture_program_t *program) {
    strata_host_delete(program->ops);
    strata_host_delete(program->all_needs);
    strata_host_delete(program->touched);
    *program = (torture_program_t){0};
}
