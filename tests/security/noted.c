#include "tests/security/noted.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool noting;
static char notes[16384];
static size_t length;

void note_begin(void) {
    noting = true;
    length = 0;
    *notes = '\0';
}

const char *note_end(void) {
    noting = false;
    return notes;
}

static void note(const char *what, const char *name) {
    if (!noting || length >= sizeof notes - 1) return;
    int wrote = snprintf(notes + length, sizeof notes - length, "%s %s\n", what, name ? name : "(itself)");
    length += wrote > 0 ? (size_t)wrote : 0;
}

int __real_open(const char *path, int flags, ...);
FILE *__real_fopen(const char *path, const char *mode);
void *__real_dlopen(const char *path, int flags);
char *__real_getenv(const char *name);
int __wrap_open(const char *path, int flags, ...);
FILE *__wrap_fopen(const char *path, const char *mode);
void *__wrap_dlopen(const char *path, int flags);
char *__wrap_getenv(const char *name);

int __wrap_open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    note("open", path);
    return __real_open(path, flags, mode);
}

FILE *__wrap_fopen(const char *path, const char *mode) {
    note("open", path);
    return __real_fopen(path, mode);
}

void *__wrap_dlopen(const char *path, int flags) {
    note("load", path);
    return __real_dlopen(path, flags);
}

char *__wrap_getenv(const char *name) {
    note("ask", name);
    return __real_getenv(name);
}
