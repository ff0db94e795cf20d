#include "config/words.h"

#include "platform/status.h"

const char *strata_role_word(strata_role_t role) {
    static const char *const words[] = {
        [STRATA_SOURCE] = "source", [STRATA_CACHE] = "cache", [STRATA_DECORATOR] = "decorator", [STRATA_ROUTER] = "router"};
    return words[role];
}

const char *strata_scope_word(strata_scope_t scope) {
    static const char *const words[] = {[STRATA_SCOPE_NONE] = "none",
                                        [STRATA_SCOPE_STREAM] = "stream",
                                        [STRATA_SCOPE_THREAD] = "thread",
                                        [STRATA_SCOPE_DEVICE] = "device",
                                        [STRATA_SCOPE_PROCESS] = "process"};
    return words[scope];
}

const char *strata_kind_word(strata_option_kind_t kind) {
    static const char *const words[] = {[STRATA_OPTION_BOOL] = "true or false",
                                        [STRATA_OPTION_COUNT] = "count",
                                        [STRATA_OPTION_SIZE] = "size",
                                        [STRATA_OPTION_TIME] = "time",
                                        [STRATA_OPTION_FRACTION] = "fraction",
                                        [STRATA_OPTION_CHOICE] = "choice",
                                        [STRATA_OPTION_TEXT] = "text"};
    return words[kind];
}

strata_status_t strata_config_written(FILE *out) {
    if (fflush(out) == 0 && !ferror(out)) return STRATA_OK;
    return strata_fail(STRATA_E_IO, 0, "the text could not be written");
}
