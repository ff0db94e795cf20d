#include "platform/host/host_memory.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/arithmetic.h"

#define HUGE_PAGE ((size_t)2 << 20)

static _Atomic uint64_t allocations;
static _Atomic uint64_t live_allocations, live_bytes, live_mapped;
/* The number of the allocation that fails, or 0 for none. Read before every allocation, written only by
 * tests. */
static _Atomic uint64_t fail_at;
static atomic_int fail_onward;

uint64_t strata_host_allocations(void) { return atomic_load_explicit(&allocations, memory_order_relaxed); }

void strata_host_fail_at(uint64_t k, int onward) {
    atomic_store(&fail_onward, onward);
    atomic_store(&fail_at, k == 0 ? 0 : strata_host_allocations() + k);
}

bool strata_host_refuses(void) {
    uint64_t number = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
    uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    if (at == 0) return false;
    return number == at || (number > at && atomic_load_explicit(&fail_onward, memory_order_relaxed));
}

const char *strata_host_bound(char *text, size_t capacity) {
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    bool bound = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    text[0] = 0;
    if (bound)
        snprintf(text, capacity, "; the process may map %llu bytes in all (RLIMIT_AS, ulimit -v)",
                 (unsigned long long)limit.rlim_cur);
    return text;
}

strata_status_t strata_host_out_of_memory(uint64_t bytes) {
    char bound[96];
    return strata_fail(STRATA_E_HOST_MEMORY, 0, "the host refused %llu bytes for Strata's own records%s", (unsigned long long)bytes,
                       strata_host_bound(bound, sizeof bound));
}

strata_host_live_t strata_host_live(void) {
    return (strata_host_live_t){
        .allocations = atomic_load(&live_allocations), .bytes = atomic_load(&live_bytes), .mapped = atomic_load(&live_mapped)};
}

void strata_host_count_mapped(int64_t bytes) { atomic_fetch_add_explicit(&live_mapped, (uint64_t)bytes, memory_order_relaxed); }

/* Adds to the counts (1) or subtracts (-1). */
static void count_live(void *memory, int sign) {
    if (!memory) return;
    atomic_fetch_add_explicit(&live_allocations, (uint64_t)(int64_t)sign, memory_order_relaxed);
    atomic_fetch_add_explicit(&live_bytes, (uint64_t)(sign * (int64_t)malloc_usable_size(memory)), memory_order_relaxed);
}

static void *out_of_host_memory(uint64_t bytes) {
    (void)strata_host_out_of_memory(bytes);
    return NULL;
}

void *strata_host_new(size_t count, size_t size) {
    void *memory = strata_host_refuses() ? NULL : calloc(count, size);
    count_live(memory, 1);
    return memory ? memory : out_of_host_memory((uint64_t)count * size);
}

void *strata_host_resize(void *memory, size_t count, size_t size) {
    uint64_t bytes;
    if (!strata_multiply(count, size, &bytes)) return out_of_host_memory(UINT64_MAX);
    if (strata_host_refuses()) return out_of_host_memory(bytes);
    count_live(memory, -1);
    void *grown = realloc(memory, bytes);
    count_live(grown ? grown : memory, 1);
    return grown ? grown : out_of_host_memory(bytes);
}

char *strata_host_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = strata_host_new(bytes, 1);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

void strata_host_delete(void *memory) {
    count_live(memory, -1);
    free(memory);
}

void *strata_host_reserve(size_t size, size_t least, size_t *got) {
    if (strata_host_refuses()) return out_of_host_memory(size);
    for (; size >= least && size > 0; size /= 2) {
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory != MAP_FAILED) {
            /* A huge page would cost 2 MiB at the first touch. A kernel without huge pages refuses
             * this, which is just as good. */
            (void)madvise(memory, size, MADV_NOHUGEPAGE);
            *got = size;
            strata_host_count_mapped((int64_t)size);
            return memory;
        }
    }
    return out_of_host_memory(least);
}

void strata_host_unreserve(void *memory, size_t size) {
    if (!memory) return;
    munmap(memory, size);
    strata_host_count_mapped(-(int64_t)size);
}

bool strata_host_advise_huge_pages(void *memory, size_t size) { return madvise(memory, size, MADV_HUGEPAGE) == 0; }

/* Starts at the first page that contains it, because only a mapping of one kind throughout can be
 * resized without a copy. */
void strata_host_will_fill(void *memory, size_t size) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)memory / page * page;
    if (size >= 2 * HUGE_PAGE) (void)strata_host_advise_huge_pages((void *)first, (uintptr_t)memory + size - first);
}

bool strata_host_discard(void *memory, size_t size) { return madvise(memory, size, MADV_DONTNEED) == 0; }

uint64_t strata_host_memory_size(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

/* The link count of /proc/self/task is 2 plus the number of threads. */
uint32_t strata_host_threads(void) {
    struct stat tasks;
#ifdef __SANITIZE_THREAD__
    enum { NOT_THREADS = 3 }; /* "." and "..", and the thread that ThreadSanitizer adds to every process */
#else
    enum { NOT_THREADS = 2 }; /* "." and ".." */
#endif
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > NOT_THREADS ? (uint32_t)tasks.st_nlink - NOT_THREADS : 0;
}
