/* A library in the place of libcuda.so.1. It answers cuInit with FAKE_CUDA_INIT and shows no device; with FAKE_CUDA_TRACE it
 * says what it is asked for. Built with FAKE_OLD it is a driver from before 12.0. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int answer_init(unsigned int flags) {
    const char *code = getenv("FAKE_CUDA_INIT");
    return flags == 0 && code ? atoi(code) : 0;
}

static int answer_count(int *count) {
    *count = 0;
    return 0;
}

static int answer_text(int code, const char **text) {
    static _Thread_local char buffer[64];
    snprintf(buffer, sizeof buffer, "text of the fake for %d", code);
    *text = buffer;
    return 0;
}

static int answer_nothing(void) { return 999; }

typedef int (*any_fn)(void);

static int look_up(const char *symbol, void **function, int version, uint64_t flags, int *found) {
    if (getenv("FAKE_CUDA_TRACE")) printf("%s %d %llu\n", symbol, version, (unsigned long long)flags);
    any_fn chosen = answer_nothing;
    if (strcmp(symbol, "cuInit") == 0) chosen = (any_fn)(uintptr_t)answer_init;
    if (strcmp(symbol, "cuDeviceGetCount") == 0) chosen = (any_fn)(uintptr_t)answer_count;
    if (strcmp(symbol, "cuGetErrorString") == 0) chosen = (any_fn)(uintptr_t)answer_text;
    memcpy(function, &chosen, sizeof chosen);
    if (strcmp(symbol, "cuGetErrorName") == 0) *function = NULL; /* an entry that may be missing */
    *found = *function ? 0 : 1;
    return 0;
}

#ifdef FAKE_OLD
#define LOOK_UP cuGetProcAddress
#else
#define LOOK_UP cuGetProcAddress_v2
#endif

__attribute__((visibility("default"))) int LOOK_UP(const char *symbol, void **function, int version, uint64_t flags, int *found);

int LOOK_UP(const char *symbol, void **function, int version, uint64_t flags, int *found) {
    return look_up(symbol, function, version, flags, found);
}
