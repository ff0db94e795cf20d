#include "platform/cuda/driver/cuda_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "platform/lock.h"

typedef struct entry {
    const char *symbol;
    int version;
    strata_cuda_group_t group;
    size_t offset;
} entry_t;

static const entry_t entries[] = {
#define STRATA_CUDA_ROW(field, name, version, group, arguments)                                                                    \
    {"cu" #name, version, STRATA_CUDA_##group, offsetof(strata_cuda_driver_t, field)},
    STRATA_CUDA_ENTRY_MAP(STRATA_CUDA_ROW)
#undef STRATA_CUDA_ROW
};

#define ENTRIES (sizeof entries / sizeof entries[0])

static strata_lock_t load_lock = {.rank = STRATA_RANK_DEVICE};
static strata_cuda_driver_t real_driver; /* guarded by load_lock until `loaded` */
static bool loaded; /* guarded by load_lock */
static const strata_cuda_driver_t *test_driver; /* guarded by load_lock */
static _Atomic uint32_t initialised_in; /* 1 + the generation that called cuInit successfully, or 0 */
static atomic_bool shut_down;

/* Number of forks of this process since the library was loaded. A fork handler counts them, because
 * asking the kernel at every call costs more than most calls. (A child made by a bare clone is not
 * noticed.) */
static _Atomic uint32_t generation;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_watched; /* 0 if forks are watched, otherwise the error */

static void forked(void) { atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed); }

static void watch_forks(void) { fork_watched = pthread_atfork(NULL, NULL, forked); }

uint32_t strata_cuda_generation(void) { return atomic_load_explicit(&generation, memory_order_relaxed); }

static void *entry_of(const strata_cuda_driver_t *driver, const entry_t *entry) {
    void *function;
    memcpy(&function, (const char *)driver + entry->offset, sizeof function);
    return function;
}

bool strata_cuda_driver_has(const strata_cuda_driver_t *driver, strata_cuda_group_t group) {
    bool any = false;
    for (size_t i = 0; i < ENTRIES; i++) {
        if (entries[i].group != group) continue;
        if (!entry_of(driver, &entries[i])) return false;
        any = true;
    }
    return any;
}

strata_status_t strata_cuda_driver_fill(strata_cuda_get_proc_t get_proc, strata_cuda_driver_t *driver) {
    strata_cuda_driver_t filled;
    memset(&filled, 0, sizeof filled);
    for (size_t i = 0; i < ENTRIES; i++) {
        const entry_t *entry = &entries[i];
        void *function = NULL;
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        CUresult code = get_proc(entry->symbol, &function, entry->version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
        /* A driver older than the requested version returns INVALID_VALUE. One without the entry
         * returns NOT_FOUND, NOT_SUPPORTED or no address. */
        bool missing = code == CUDA_ERROR_INVALID_VALUE || code == CUDA_ERROR_NOT_FOUND || code == CUDA_ERROR_NOT_SUPPORTED ||
                       (code == CUDA_SUCCESS && (!function || found != CU_GET_PROC_ADDRESS_SUCCESS));
        if (missing) {
            if (entry->group != STRATA_CUDA_BASE) continue;
            return strata_fail(STRATA_E_NO_DEVICE, code, "the driver has no %s of version %d", entry->symbol, entry->version);
        }
        if (code != CUDA_SUCCESS) return strata_cuda_fail_init(NULL, "cuGetProcAddress", code);
        memcpy((char *)&filled + entry->offset, &function, sizeof function);
    }
    *driver = filled;
    return STRATA_OK;
}

/* Called with load_lock held. A failure is not recorded, because a driver may be installed or found later. */
static strata_status_t load(void) {
    if (loaded) return STRATA_OK;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        return strata_fail(STRATA_E_NO_DEVICE, 0, "no CUDA driver: %s", why ? why : "libcuda.so.1 cannot be loaded");
    }
    void *symbol = dlsym(library, "cuGetProcAddress_v2");
    strata_status_t status;
    if (symbol) {
        strata_cuda_get_proc_t get_proc;
        memcpy(&get_proc, &symbol, sizeof get_proc);
        status = strata_cuda_driver_fill(get_proc, &real_driver);
    } else {
        status = strata_fail(STRATA_E_NO_DEVICE, 0, "the CUDA driver is older than 12.0: it has no cuGetProcAddress_v2");
    }
    if (status != STRATA_OK) {
        dlclose(library);
        return status;
    }
    loaded = true; /* never unloaded, because the driver keeps threads */
    return STRATA_OK;
}

strata_status_t strata_cuda_driver_get(const strata_cuda_driver_t **driver) {
    pthread_once(&fork_once, watch_forks);
    if (fork_watched != 0) return strata_fail(STRATA_E_HOST_MEMORY, 0, "cannot watch for forks: %s", strerror(fork_watched));
    uint32_t owner = atomic_load(&initialised_in);
    if (owner && owner != strata_cuda_generation() + 1)
        return strata_fail(STRATA_E_FORKED, 0, "CUDA was initialized before this process was forked; the child cannot use it");
    if (strata_cuda_is_shut_down()) return strata_cuda_fail(NULL, STRATA_E_SHUTDOWN, "cuInit", CUDA_ERROR_DEINITIALIZED);
    strata_lock(&load_lock);
    strata_status_t status = test_driver ? STRATA_OK : load();
    const strata_cuda_driver_t *found = test_driver ? test_driver : &real_driver;
    strata_unlock(&load_lock);
    if (status != STRATA_OK) return status;
    CUresult code = found->Init(0);
    if (code != CUDA_SUCCESS) return strata_cuda_fail_init(found, "cuInit", code);
    atomic_store(&initialised_in, strata_cuda_generation() + 1);
    *driver = found;
    return STRATA_OK;
}

bool strata_cuda_is_shut_down(void) { return atomic_load_explicit(&shut_down, memory_order_relaxed); }

void strata_cuda_note_shutdown(void) { atomic_store(&shut_down, true); }

strata_status_t strata_cuda_fail_init(const strata_cuda_driver_t *driver, const char *call, CUresult code) {
    strata_status_t status = strata_cuda_status(code);
    if (status == STRATA_E_DEVICE || status == STRATA_E_DEVICE_LOST) status = STRATA_E_NO_DEVICE;
    if (status == STRATA_E_SHUTDOWN) strata_cuda_note_shutdown();
    return strata_cuda_fail(driver, status, call, code);
}

void strata_cuda_set_table_for_tests(const strata_cuda_driver_t *driver) {
    strata_lock(&load_lock);
    test_driver = driver;
    strata_unlock(&load_lock);
    atomic_store(&initialised_in, 0);
    atomic_store(&shut_down, false);
}
