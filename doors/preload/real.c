#include "doors/preload/real.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

/* ---- finding ---- */

typedef struct search {
    const char *library, *name;
    void *found;
} search_t;

/* Looks the function up in a loaded library of that name. RTLD_NOLOAD makes sure that this loads nothing. */
static int search_library(struct dl_phdr_info *object, size_t size, void *searching) {
    search_t *search = searching;
    (void)size;
    const char *slash = strrchr(object->dlpi_name, '/');
    const char *file = slash ? slash + 1 : object->dlpi_name;
    if (strncmp(file, search->library, strlen(search->library)) != 0) return 0;
    void *library = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return 0;
    search->found = dlsym(library, search->name);
    dlclose(library);
    return search->found != NULL;
}

static bool is_of_runtime(const char *name) { return strncmp(name, "cuda", 4) == 0; }

void *strata_real(const char *name) {
    search_t search = {.library = is_of_runtime(name) ? "libcudart.so" : "libcuda.so", .name = name};
    search.found = dlsym(RTLD_NEXT, name);
    if (!search.found) dl_iterate_phdr(search_library, &search);
    return search.found;
}

/* Repeats the lookup until it succeeds, because the library may be loaded later. */
static void *look_up(void *_Atomic *slot, const char *name) {
    void *function = atomic_load_explicit(slot, memory_order_relaxed);
    if (function) return function;
    function = strata_real(name);
    atomic_store_explicit(slot, function, memory_order_relaxed);
    return function;
}

#define REAL_DEFINE(treatment, name, arguments, passed, text)                                                                      \
    int strata_real_##name arguments {                                                                                             \
        static void *_Atomic slot;                                                                                                 \
        void *address_of = look_up(&slot, #name);                                                                                  \
        strata_real_##name##_t function;                                                                                           \
        memcpy(&function, &address_of, sizeof function);                                                                           \
        return function ? function passed : STRATA_REAL_MISSING;                                                                   \
    }
STRATA_PRELOAD_MAP(REAL_DEFINE)
#undef REAL_DEFINE

/* ---- asking ---- */

static int query_device(void *_Atomic *slot, const char *name) {
    void *address_of = look_up(slot, name);
    int (*function)(int *device);
    int device;
    memcpy(&function, &address_of, sizeof function);
    return function && function(&device) == 0 ? device : -1;
}

int strata_real_runtime_device(void) {
    static void *_Atomic slot;
    return query_device(&slot, "cudaGetDevice");
}

int strata_real_driver_device(void) {
    static void *_Atomic slot;
    return query_device(&slot, "cuCtxGetDevice");
}

void *strata_real_context_of(void *stream) {
    static void *_Atomic slot;
    void *address_of = look_up(&slot, "cuStreamGetCtx"), *context;
    int (*function)(void *stream, void **context);
    memcpy(&function, &address_of, sizeof function);
    return function && function(stream, &context) == 0 ? context : NULL;
}

void *strata_real_context(void) {
    static void *_Atomic slot;
    void *address_of = look_up(&slot, "cuCtxGetCurrent"), *context;
    int (*function)(void **context);
    memcpy(&function, &address_of, sizeof function);
    return function && function(&context) == 0 ? context : NULL;
}

static int call_function(void *_Atomic *slot, const char *name) {
    void *address_of = look_up(slot, name);
    int (*function)(void);
    memcpy(&function, &address_of, sizeof function);
    return function ? function() : STRATA_REAL_MISSING;
}

int strata_real_synchronise_runtime(void) {
    static void *_Atomic slot;
    return call_function(&slot, "cudaDeviceSynchronize");
}

int strata_real_synchronise_driver(void) {
    static void *_Atomic slot;
    return call_function(&slot, "cuCtxSynchronize");
}

void strata_real_clear_error(const char *name) {
    static void *_Atomic slot;
    if (is_of_runtime(name)) (void)call_function(&slot, "cudaGetLastError");
}

bool strata_real_driver_is_loaded(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver) dlclose(driver);
    return driver != NULL;
}
