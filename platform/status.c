#include "platform/status.h"
#include "platform/arguments.h"
#include "platform/text/printable.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The calling thread's error, allocated at its first failure and freed at its exit. It is a pointer
 * because all thread storage of the library is static, so that its words are found without a call.
 * Another 4 KiB there would keep the library from being loaded late (dlopen). It does not use
 * strata_host_new(), because a failure of that function is recorded here. */
static _Thread_local strata_error_t *mine;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_refused; /* 0 if there is a key */

/* For the first thread that finds no host memory for its own error, so that it still gets the reason as
 * text. It is not used if pthread_setspecific() has no memory either. */
static strata_error_t spare;
static atomic_bool spare_taken;

/* For further threads without memory: one error for each status. */
static const strata_error_t bare[] = {
#define STRATA_STATUS_BARE(name, number, meaning) [number] = {.status = STRATA_##name, .text = meaning},
    STRATA_STATUS_MAP(STRATA_STATUS_BARE)
#undef STRATA_STATUS_BARE
};
static _Thread_local strata_status_t without_words; /* the status if `mine` could not be allocated */

static void give_back(strata_error_t *error) {
    if (error == &spare) atomic_store(&spare_taken, false);
    else free(error);
}

static void forget(void *error) {
    mine = NULL;
    give_back(error);
}

static void make_key(void) { key_refused = pthread_key_create(&key, forget); }

/* Runs before any fork. A child forked in the middle of this call may wait forever (under
 * ThreadSanitizer it does). */
__attribute__((constructor)) static void make_key_early(void) { (void)pthread_once(&once, make_key); }

static strata_error_t *error_of_thread(void) {
    if (mine) return mine;
    (void)pthread_once(&once, make_key);
    if (key_refused) return NULL;
    strata_error_t *error = calloc(1, sizeof *error);
    if (!error && !atomic_exchange(&spare_taken, true)) error = &spare;
    if (error && pthread_setspecific(key, error) != 0) {
        give_back(error);
        error = NULL;
    }
    mine = error;
    return error;
}

const char *strata_status_name(strata_status_t status) {
    switch (status) {
#define STRATA_STATUS_NAME(name, number, text)                                                                                     \
    case STRATA_##name: return "STRATA_" #name;
        STRATA_STATUS_MAP(STRATA_STATUS_NAME)
#undef STRATA_STATUS_NAME
    }
    return "STRATA_?";
}

const char *strata_status_text(strata_status_t status) {
    switch (status) {
#define STRATA_STATUS_TEXT(name, number, text)                                                                                     \
    case STRATA_##name: return text;
        STRATA_STATUS_MAP(STRATA_STATUS_TEXT)
#undef STRATA_STATUS_TEXT
    }
    return "unknown status";
}

const strata_error_t *strata_last_error(void) { return mine ? mine : &bare[without_words]; }

static strata_status_t set(strata_status_t status, int64_t code, uint32_t line, uint32_t column, const char *format,
                           va_list arguments) {
    strata_error_t *error = error_of_thread();
    if (!error) {
        without_words = (size_t)status < sizeof bare / sizeof *bare ? status : STRATA_E_INVALID;
        return status;
    }
    /* An argument may point into the last error's own text. */
    char text[sizeof error->text];
    vsnprintf(text, sizeof text, format, arguments);
    strata_make_printable(text, status == STRATA_E_NO_MEMORY);
    error->status = status;
    error->device_code = code;
    error->line = line;
    error->column = column;
    memcpy(error->text, text, sizeof text);
    return status;
}

strata_status_t strata_fail(strata_status_t status, int64_t device_code, const char *format, ...) {
    STRATA_REFUSE_NULL(format);
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
    strata_make_printable(context, false);
    if (!mine) return without_words;
    char text[sizeof mine->text];
    snprintf(text, sizeof text, "%s: %.3500s", context, mine->text);
    memcpy(mine->text, text, sizeof text);
    return mine->status;
}

strata_status_t strata_fail_again(const strata_error_t *kept) {
    strata_error_t *error = error_of_thread();
    if (error) *error = *kept;
    else without_words = kept->status;
    return kept->status;
}
