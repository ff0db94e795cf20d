#include "trace/trace.h"

const char *strata_trace_op_name(strata_trace_op_t op) {
    static const char *const names[] = {
#define STRATA_TRACE_OP_NAME(name) #name,
        STRATA_TRACE_OP_MAP(STRATA_TRACE_OP_NAME)
#undef STRATA_TRACE_OP_NAME
    };
    return names[op];
}

const char *strata_trace_column_name(strata_trace_column_t column) {
    static const char *const names[] = {
#define STRATA_TRACE_COLUMN_NAME(name, mandatory) #name,
        STRATA_TRACE_COLUMN_MAP(STRATA_TRACE_COLUMN_NAME)
#undef STRATA_TRACE_COLUMN_NAME
    };
    return names[column];
}
