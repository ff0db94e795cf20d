/* The properties of a program that preloading depends on. */
#ifndef STRATA_TOOLS_PROGRAM_H
#define STRATA_TOOLS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

typedef enum strata_program_kind {
    STRATA_PROGRAM_PLAIN, /* no problem is known; also scripts and unreadable files */
    STRATA_PROGRAM_STATIC, /* linked statically, so nothing can be preloaded */
    STRATA_PROGRAM_OWN_RUNTIME /* has code for GPUs and does not need libcudart, so its CUDA runtime is linked statically */
} strata_program_kind_t;

/* The loader ignores LD_PRELOAD for a program that changes user, group or capabilities when it starts. */
typedef enum strata_program_preload {
    STRATA_PRELOAD_HEEDED,
    STRATA_PRELOAD_HEEDED_NOW, /* set-user or set-group, but the caller already has that user or group */
    STRATA_PRELOAD_IGNORED
} strata_program_preload_t;
strata_program_preload_t strata_program_preload_of(const char *path);

/* Finds the file that the shell would run for `name`, along PATH if it has no slash. Returns false if there is none. */
bool strata_program_find(const char *name, char *path, size_t capacity);
strata_program_kind_t strata_program_kind(const char *path);

#endif
