#include "platform/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Not initial-exec: 4 KiB of static thread storage would make the library refuse to load late (dlopen). */
static _Thread_local strata_error_t last_error;

const char *strata_status_name(strata_status_t status) {
    switch (status) {
#define STRATA_STATUS_NAME(name, number, text) \
    case STRATA_##name: return "STRATA_" #name;
        STRATA_STATUS_MAP(STRATA_STATUS_NAME)
#undef STRATA_STATUS_NAME
    }
    return "STRATA_?";
}

const char *strata_status_text(strata_status_t status) {
    switch (status) {
#define STRATA_STATUS_TEXT(name, number, text) \
    case STRATA_##name: return text;
        STRATA_STATUS_MAP(STRATA_STATUS_TEXT)
#undef STRATA_STATUS_TEXT
    }
    return "unknown status";
}

const strata_error_t *strata_last_error(void) {
    return &last_error;
}

static strata_status_t set(strata_status_t status, int64_t code, uint32_t line, uint32_t column, const char *format,
                           va_list arguments) {
    /* An argument may point into the last error's own text. */
    char text[sizeof last_error.text];
    vsnprintf(text, sizeof text, format, arguments);
    last_error.status = status;
    last_error.device_code = code;
    last_error.line = line;
    last_error.column = column;
    memcpy(last_error.text, text, sizeof text);
    return status;
}

strata_status_t strata_fail(strata_status_t status, int64_t device_code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set(status, device_code, 0, 0, format, arguments);
    va_end(arguments);
    return status;
}

strata_status_t strata_fail_at(strata_status_t status, uint32_t line, uint32_t column, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set(status, 0, line, column, format, arguments);
    va_end(arguments);
    return status;
}

strata_status_t strata_fail_context(const char *format, ...) {
    char context[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(context, sizeof context, format, arguments);
    va_end(arguments);
    char text[sizeof last_error.text];
    snprintf(text, sizeof text, "%s: %.3500s", context, last_error.text);
    memcpy(last_error.text, text, sizeof text);
    return last_error.status;
}
