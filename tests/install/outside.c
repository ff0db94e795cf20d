/* Opens the strategy of argv[1], which loads the example's layer, and shows the layers of an allocation. With LATE the library
 * is loaded at run time, as interpreters do. */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <strata/strata.h>
#include <string.h>

#ifdef LATE
#include <dlfcn.h>
#define CALL(name) ((__typeof__(&name))dlsym(library, #name))
#else
#define CALL(name) name
#endif

int main(int argc, char **argv) {
#ifdef LATE
    void *library = dlopen(LATE, RTLD_NOW | RTLD_LOCAL);
    if (!library) return puts(dlerror()), 1;
#endif
    strata_t s;
    strata_open_options_t options = {
        .struct_size = sizeof options, .file = argc > 1 ? argv[1] : NULL, .flags = STRATA_OPEN_ALLOW_CODE};
    if (CALL(strata_open)(&options, &s) != STRATA_OK) return puts(CALL(strata_last_error)()->text), 1;
    strata_block_t block, more;
    char path[256];
    if (CALL(strata_allocate)(s, strata_gpu(0), NULL, 48 << 20, &block) != STRATA_OK) return 2;
    if (CALL(strata_allocation_route)(s, block.ref, path, sizeof path) != STRATA_OK) return 3;
    puts(path);
    if (strcmp(path, "retry > my_quota > stream_safe > auto_growth | system") != 0) return 4;
    strata_allocate_options_t above = {.struct_size = sizeof above, .size = 48 << 20, .flags = STRATA_NO_RETRY};
    if (CALL(strata_allocate_with)(s, strata_gpu(0), NULL, &above, &more) != STRATA_E_NO_MEMORY) return 5;
    if (CALL(strata_free)(s, block.ref) != STRATA_OK) return 6;
    return CALL(strata_close)(s, STRATA_CLOSE_WAIT, NULL, NULL) == STRATA_OK ? 0 : 7;
}
