/* A bound on the address space of the process, as `ulimit -v` sets it, for as long as a test wants. */
#ifndef STRATA_TESTS_ADDRESS_SPACE_H
#define STRATA_TESTS_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* 0: unknown here. */
static inline uint64_t address_space_used(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%llu", &pages) != 1) pages = 0;
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* AddressSanitizer maps memory of its own now and then, and ends the program where it gets none: a few MiB are no bound there. */
static inline bool address_space_is_ours(void) {
#if defined(__SANITIZE_ADDRESS__)
    return false;
#else
    return true;
#endif
}

/* The sanitizers end the program where malloc() would answer NULL. */
static inline bool malloc_may_fail(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#else
    return true;
#endif
}

/* `more` bytes above what is used; *before is for the function below. False: it cannot be bounded here. */
static inline bool bound_address_space(uint64_t more, struct rlimit *before) {
    uint64_t used = address_space_used();
    if (used == 0 || getrlimit(RLIMIT_AS, before) != 0) return false;
    struct rlimit bound = *before;
    bound.rlim_cur = used + more;
    return setrlimit(RLIMIT_AS, &bound) == 0;
}

static inline void unbound_address_space(const struct rlimit *before) { (void)setrlimit(RLIMIT_AS, before); }

#endif
