#include "platform/host/call_stack.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { OWN_MAX = 32 }; /* frames of the library itself above the program's */

/* The address range of the library; empty if it is part of the program. Written once. */
static uintptr_t own_begin, own_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int find_own(struct dl_phdr_info *module, size_t size, void *context) {
    uintptr_t self = (uintptr_t)&strata_call_stack_capture;
    (void)size;
    (void)context;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &module->dlpi_phdr[i];
        uintptr_t begin = module->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || self < begin || self >= begin + part->p_memsz) continue;
        if (!module->dlpi_name || !*module->dlpi_name) return 1;
        own_begin = begin;
        own_end = begin + part->p_memsz;
        return 1;
    }
    return 0;
}

static void get_ready(void) {
    void *frame;
    (void)backtrace(&frame, 1);
    (void)dl_iterate_phdr(find_own, NULL);
}

void strata_call_stack_ready(void) { (void)pthread_once(&once, get_ready); }

uint32_t strata_call_stack_capture(uint64_t *frames, uint32_t most) {
    void *all[STRATA_CALL_STACK_MAX + OWN_MAX];
    uint32_t wanted = most < STRATA_CALL_STACK_MAX ? most : STRATA_CALL_STACK_MAX, first = 1, count = 0;
    int found = backtrace(all, (int)(wanted + (own_end ? OWN_MAX : 1)));
    while (first < (uint32_t)found && (uintptr_t)all[first] >= own_begin && (uintptr_t)all[first] < own_end) first++;
    for (; first < (uint32_t)found && count < wanted; first++) frames[count++] = (uintptr_t)all[first];
    return count;
}

/* A return address may be the first byte of the next function, because the call is before it. */
void strata_call_stack_name(uint64_t frame, char name[STRATA_CALL_STACK_NAME]) {
    Dl_info info;
    bool known = frame && dladdr((const void *)(uintptr_t)(frame - 1), &info) != 0 && info.dli_fname;
    if (!known) {
        snprintf(name, STRATA_CALL_STACK_NAME, "0x%llx", (unsigned long long)frame);
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/'), *file = slash ? slash + 1 : info.dli_fname;
    unsigned long long offset = (unsigned long long)(frame - (uintptr_t)info.dli_fbase);
    if (info.dli_sname) snprintf(name, STRATA_CALL_STACK_NAME, "%.56s+0x%llx %.120s", file, offset, info.dli_sname);
    else snprintf(name, STRATA_CALL_STACK_NAME, "%.100s+0x%llx", file, offset);
}
