#include "platform/host/growing.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

/* The address range of all windows: above the addresses that sanitizers use, below programs. Each
 * process starts elsewhere in it. */
#define FIRST_WINDOW   0x110000000000ull
#define END_OF_WINDOWS 0x540000000000ull

enum { CLASSES = 48, TRIES = 16, MIN_STEP = 64 << 10, LARGEST_STEP = 64 << 20 };

struct strata_window {
    unsigned char *memory;
    size_t size; /* of the window; a power of two, or 0 for a fallback range, which cannot grow */
    size_t most;
    _Atomic size_t usable; /* written under the lock */
    _Atomic bool marked; /* it is in the list of windows that should grow */
    bool live; /* guarded by the lock */
    strata_window_t *next_marked;
    strata_window_t *next_free;
};

_Atomic(strata_window_t *) strata_growing_marked;
static _Thread_local bool was_short __attribute__((tls_model("initial-exec")));

/* Guards all windows. No other lock is taken under it, and its holder never waits for a lock of Strata. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static strata_window_t *free_windows[CLASSES];
static uint64_t next_window;

static size_t whole_pages(size_t bytes) { return strata_round_up_any(bytes, (size_t)sysconf(_SC_PAGESIZE)); }

static uint32_t class_of(size_t most) {
    uint32_t class = 0;
    while (((uint64_t)1 << class) < most) class ++;
    return class;
}

/* Maps memory at exactly this address or fails. The address is passed as a hint, which the kernel
 * follows if nothing is mapped there: ThreadSanitizer turns a fixed address outside its own map into 0.
 * errno is ENOMEM if no memory can be mapped at all. */
static bool map_at(unsigned char *at, size_t bytes) {
    void *got = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return false;
    if (got != at) {
        munmap(got, bytes);
        errno = EEXIST;
        return false;
    }
    /* A huge page would cost 2 MiB at the first touch. A kernel without huge pages refuses this, which
     * is just as good. */
    (void)madvise(got, bytes, MADV_NOHUGEPAGE);
    strata_host_count_mapped((int64_t)bytes);
    return true;
}

/* Returns addresses that no window has used yet, or 0 if none are left. Called under the lock. */
static uint64_t fresh_addresses(uint64_t size) {
    if (next_window == 0) next_window = FIRST_WINDOW + (((uintptr_t)&size >> 12) * 0x9e3779b97f4a7c15ull >> 52 << 30);
    uint64_t at = strata_round_up_any(next_window, size);
    if (at + size > END_OF_WINDOWS) return 0;
    next_window = at + size;
    return at;
}

/* Returns a window of a class with its first bytes mapped; a new one is `spare`. If the process may map
 * no more memory, no addresses are consumed. Called under the lock. */
static strata_window_t *open_window(uint32_t class, size_t least, strata_window_t *spare) {
    strata_window_t *known = free_windows[class];
    if (known && map_at(known->memory, least)) {
        free_windows[class] = known->next_free;
        return known;
    }
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = next_window, at = fresh_addresses((uint64_t)1 << class);
        if (at == 0) return NULL;
        spare->memory = (unsigned char *)(uintptr_t)at;
        spare->size = (size_t)1 << class;
        if (map_at(spare->memory, least)) return spare;
        if (errno != ENOMEM) continue;
        next_window = before;
        return NULL;
    }
    return NULL;
}

/* Fallback if there is no window: as much as the system gives in one piece, which cannot grow. */
static bool reserve_fixed(strata_window_t *window, size_t least, size_t most) {
    window->memory = strata_host_reserve(most, least, &window->most);
    atomic_store(&window->usable, window->most);
    return window->memory != NULL;
}

strata_status_t strata_growing_reserve(strata_growing_t *range, size_t least, size_t most) {
    least = whole_pages(least);
    most = most < least ? least : whole_pages(most);
    strata_window_t *spare = strata_host_new(1, sizeof *spare);
    if (!spare) return STRATA_E_HOST_MEMORY;
    if (strata_host_refuses()) {
        strata_host_delete(spare);
        return strata_host_out_of_memory(least);
    }
    pthread_mutex_lock(&lock);
    strata_window_t *window = open_window(class_of(most), least, spare);
    if (window) {
        window->most = most;
        atomic_store(&window->usable, least);
        window->live = true;
    }
    pthread_mutex_unlock(&lock);
    if (window != spare) strata_host_delete(window ? spare : NULL);
    if (!window) {
        window = spare;
        window->size = 0;
        if (!reserve_fixed(window, least, most)) {
            strata_host_delete(spare);
            return STRATA_E_HOST_MEMORY;
        }
    }
    *range = (strata_growing_t){window->memory, window};
    return STRATA_OK;
}

void strata_growing_release(strata_growing_t *range) {
    strata_window_t *window = range->window;
    *range = (strata_growing_t){NULL, NULL};
    if (!window) return;
    if (window->size == 0) {
        strata_host_unreserve(window->memory, window->most);
        strata_host_delete(window);
        return;
    }
    pthread_mutex_lock(&lock);
    munmap(window->memory, window->usable);
    strata_host_count_mapped(-(int64_t)window->usable);
    window->live = false;
    window->next_free = free_windows[class_of(window->size)];
    free_windows[class_of(window->size)] = window;
    pthread_mutex_unlock(&lock);
}

size_t strata_growing_usable(const strata_growing_t *range) {
    return atomic_load_explicit(&range->window->usable, memory_order_acquire);
}

size_t strata_growing_max(const strata_growing_t *range) { return range->window->most; }

void strata_growing_mark(const strata_growing_t *range, bool short_of_it) {
    strata_window_t *window = range->window;
    if (strata_growing_usable(range) >= window->most) return;
    was_short = was_short || short_of_it;
    if (atomic_exchange(&window->marked, true)) return;
    strata_window_t *head = atomic_load(&strata_growing_marked);
    do window->next_marked = head;
    while (!atomic_compare_exchange_weak(&strata_growing_marked, &head, window));
}

/* Makes more than `needed` usable, if the system gives it, so that steps are few. Called under the lock. */
static bool extend(strata_window_t *window, size_t needed) {
    size_t usable = window->usable, step = strata_min(usable, LARGEST_STEP);
    if (needed <= usable) return true;
    size_t wanted = strata_min(strata_max(needed, usable + step), window->most);
    if (!map_at(window->memory + usable, wanted - usable)) {
        wanted = needed;
        if (!map_at(window->memory + usable, wanted - usable)) return false;
    }
    atomic_store_explicit(&window->usable, wanted, memory_order_release);
    return true;
}

strata_status_t strata_growing_grow(const strata_growing_t *range, size_t bytes) {
    strata_window_t *window = range->window;
    size_t needed = strata_min(whole_pages(bytes), window->most);
    if (needed <= strata_growing_usable(range)) return STRATA_OK;
    pthread_mutex_lock(&lock);
    bool grown = !strata_host_refuses() && extend(window, needed);
    pthread_mutex_unlock(&lock);
    return grown ? STRATA_OK : strata_host_out_of_memory(needed - strata_growing_usable(range));
}

/* Returns the next window that should grow, or NULL if there are none left. Called under the lock, so
 * that no other thread takes from the list. */
static strata_window_t *pop_marked(void) {
    strata_window_t *window = atomic_load(&strata_growing_marked);
    while (window && !atomic_compare_exchange_weak(&strata_growing_marked, &window, window->next_marked)) {}
    if (window) atomic_store(&window->marked, false);
    return window;
}

strata_status_t strata_growing_grow_marked(void) {
    size_t missed = 0;
    pthread_mutex_lock(&lock);
    for (strata_window_t *window; (window = pop_marked()) != NULL;) {
        size_t usable = window->usable, needed = strata_min(usable + MIN_STEP, window->most);
        if (!window->live || usable >= window->most) continue;
        if (strata_host_refuses() || !extend(window, needed)) missed = needed - usable;
    }
    pthread_mutex_unlock(&lock);
    return missed == 0 ? STRATA_OK : strata_host_out_of_memory(missed);
}

bool strata_growing_try_again(strata_status_t *status) {
    bool too_short = was_short;
    was_short = false;
    if (*status != STRATA_E_LIMIT || !too_short) return false;
    *status = strata_growing_grow_marked();
    return *status == STRATA_OK;
}
