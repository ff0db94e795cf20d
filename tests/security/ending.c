#include "tests/security/ending.h"

#include <errno.h>
#include <stdbool.h>

static int fails[ENDINGS];

void ending_fails(ending_t ending, int why) { fails[ending] = why; }

static bool is_to_fail(ending_t ending) {
    if (fails[ending]) errno = fails[ending];
    return fails[ending] != 0;
}

int __real_fsync(int file);
int __real_close(int file);
int __real_rename(const char *from, const char *to);
int __wrap_fsync(int file);
int __wrap_close(int file);
int __wrap_rename(const char *from, const char *to);

int __wrap_fsync(int file) { return is_to_fail(ENDING_FSYNC) ? -1 : __real_fsync(file); }

int __wrap_close(int file) {
    int closed = __real_close(file);
    return is_to_fail(ENDING_CLOSE) ? -1 : closed;
}

int __wrap_rename(const char *from, const char *to) { return is_to_fail(ENDING_RENAME) ? -1 : __real_rename(from, to); }
