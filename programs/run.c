/* strata_torture_run(), for programs that were printed by `strata torture` or written by hand. */
#include <stdio.h>
#include <string.h>

#include "platform/arguments.h"
#include "platform/host/host_memory.h"
#include "programs/load.h"
#include "programs/play.h"

static strata_status_t fail_op(size_t number, const char *what) {
    return strata_fail(STRATA_E_INVALID, 0, "strata_torture_run: operation %zu names %s", number, what);
}

static strata_status_t check_op(const torture_op_t *op, size_t number) {
    if (op->kind >= STRATA_TORTURE_KINDS) return fail_op(number, "an unknown kind");
    if (op->place >= STRATA_TORTURE_PLACES) return fail_op(number, "an unknown place");
    if (op->stream > STRATA_TORTURE_NO_STREAM || op->other > STRATA_TORTURE_NO_STREAM) return fail_op(number, "an unknown stream");
    if (op->how >= STRATA_TORTURE_COVERS) return fail_op(number, "an unknown way to free");
    if (op->graph >= STRATA_TORTURE_GRAPHS) return fail_op(number, "a graph number that is too large");
    if (op->pool >= STRATA_TORTURE_POOLS) return fail_op(number, "a pool number that is too large");
    if (op->count > STRATA_TORTURE_NAMED) return fail_op(number, "too many blocks");
    if (op->kind == STRATA_TORTURE_ALLOCATE && op->count != 1) return fail_op(number, "no block to serve, or several");
    for (uint8_t i = 0; i < op->count; i++)
        if (op->blocks[i] >= STRATA_TORTURE_BLOCKS) return fail_op(number, "a block number that is too large");
    return STRATA_OK;
}

static strata_status_t check(const strata_torture_program_t *program) {
    strata_status_t status = strata_check_options(program, sizeof *program, sizeof *program, "strata_torture_run", "program");
    if (status != STRATA_OK) return status;
    if (!program->strategy) return strata_fail(STRATA_E_INVALID, 0, "strata_torture_run: `strategy` is NULL");
    if (program->count && !program->ops)
        return strata_fail(STRATA_E_INVALID, 0, "strata_torture_run: `ops` is NULL and `count` is %zu", program->count);
    if (program->count > STRATA_TORTURE_OPERATIONS || program->devices > TORTURE_DEVICES || program->threads > TORTURE_THREADS ||
        program->mode >= STRATA_TORTURE_MODES)
        return strata_fail(STRATA_E_INVALID, 0,
                           "strata_torture_run: too many operations, devices or threads, or an unknown "
                           "mode");
    for (size_t i = 0; i < program->count; i++) {
        status = check_op(&program->ops[i], i);
        if (status != STRATA_OK) return status;
    }
    return STRATA_OK;
}

static bool copy(const strata_torture_program_t *from, torture_program_t *to) {
    to->devices = from->devices ? from->devices : 1;
    to->threads = from->threads ? from->threads : 1;
    to->capacity = from->capacity;
    to->check_stream_ids = from->check_stream_ids;
    to->count = (uint32_t)from->count;
    if (!torture_program_reserve(to, to->count)) return false;
    if (from->count) memcpy(to->ops, from->ops, from->count * sizeof *from->ops);
    return true;
}

static strata_status_t run(const strata_torture_program_t *given, torture_program_t *program, torture_verdict_t *verdict) {
    strata_config_request_t request = {.text = given->strategy, .devices = "sim", .allow_code = true};
    strata_strategy_t *strategy = NULL;
    torture_dialect_t dialect = TORTURE_FREE_COVERS;
    strata_status_t status = torture_load(&request, &strategy, &dialect);
    if (status == STRATA_OK && !(copy(given, program) && torture_make_well_formed(program, dialect))) status = STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK) torture_play(program, strategy, given->may_refuse, given->mode, verdict);
    strata_strategy_delete(strategy);
    return status;
}

strata_status_t strata_torture_run(const strata_torture_program_t *given, char *report, size_t size) {
    torture_program_t program = {0};
    STRATA_REFUSE_NULL_AS(given, "program", STRATA_E_INVALID);
    STRATA_REFUSE_NULL_ARRAY(report, size);
    if (size) *report = '\0';
    strata_status_t status = check(given);
    if (status != STRATA_OK) return status;
    torture_verdict_t *verdict = strata_host_new(1, sizeof *verdict);
    status = verdict ? run(given, &program, verdict) : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK && verdict->fault != TORTURE_FAULT_NONE) {
        if (size) snprintf(report, size, "%s: %s", torture_fault_text(verdict->fault), verdict->text);
        status = strata_fail(STRATA_E_CORRUPT, 0, "%s", torture_fault_text(verdict->fault));
    }
    torture_program_delete(&program);
    strata_host_delete(verdict);
    return status;
}
