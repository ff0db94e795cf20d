#include "lab/tools/run/program.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "platform/host/file.h"

enum { MAX_HEADERS = 4096, NAME_ROOM = 64, MAX_NEEDED = 4096 };

bool strata_program_find(const char *name, char *path, size_t capacity) {
    if (strchr(name, '/')) return (size_t)snprintf(path, capacity, "%s", name) < capacity && access(path, X_OK) == 0;
    const char *folders = getenv("PATH");
    for (const char *at = folders ? folders : "/usr/bin:/bin"; *at; at += strcspn(at, ":"), at += *at == ':') {
        int length = (int)strcspn(at, ":");
        int whole = snprintf(path, capacity, "%.*s%s%s", length, at, length ? "/" : "", name);
        if (whole > 0 && (size_t)whole < capacity && access(path, X_OK) == 0) return true;
    }
    return false;
}

/* ---- the file, which may have any contents ---- */

static bool read_at(int file, void *into, size_t size, uint64_t offset) {
    return offset <= INT64_MAX && pread(file, into, size, (off_t)offset) == (ssize_t)size;
}

/* Reads a zero-terminated text, cut to the room. */
static void read_name(int file, char name[NAME_ROOM], uint64_t table, uint64_t offset) {
    ssize_t got = table + offset <= INT64_MAX ? pread(file, name, NAME_ROOM - 1, (off_t)(table + offset)) : 0;
    name[got > 0 ? got : 0] = '\0';
}

typedef struct elf {
    int file;
    Elf64_Ehdr header;
    bool interpreted; /* has a dynamic loader */
    bool has_code; /* GPU code as the CUDA compiler embeds it */
    bool needs_runtime; /* needs libcudart.so */
} elf_t;

static bool read_header(elf_t *elf) {
    return read_at(elf->file, &elf->header, sizeof elf->header, 0) && memcmp(elf->header.e_ident, ELFMAG, SELFMAG) == 0 &&
           elf->header.e_ident[EI_CLASS] == ELFCLASS64 && elf->header.e_ident[EI_DATA] == ELFDATA2LSB &&
           elf->header.e_phentsize == sizeof(Elf64_Phdr) && elf->header.e_phnum <= MAX_HEADERS &&
           elf->header.e_shnum <= MAX_HEADERS;
}

static void read_segments(elf_t *elf) {
    for (uint64_t i = 0; i < elf->header.e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_at(elf->file, &segment, sizeof segment, elf->header.e_phoff + i * sizeof segment)) return;
        elf->interpreted |= segment.p_type == PT_INTERP;
    }
}

static void read_needed(elf_t *elf, const Elf64_Shdr *dynamic, uint64_t texts) {
    Elf64_Dyn entry;
    char name[NAME_ROOM];
    for (uint64_t i = 0; i < dynamic->sh_size / sizeof entry && i < MAX_NEEDED; i++) {
        if (!read_at(elf->file, &entry, sizeof entry, dynamic->sh_offset + i * sizeof entry) || entry.d_tag == DT_NULL) return;
        if (entry.d_tag != DT_NEEDED) continue;
        read_name(elf->file, name, texts, entry.d_un.d_val);
        elf->needs_runtime |= strncmp(name, "libcudart.so", strlen("libcudart.so")) == 0;
    }
}

static bool read_section(const elf_t *elf, uint64_t index, Elf64_Shdr *section) {
    return index < elf->header.e_shnum &&
           read_at(elf->file, section, sizeof *section, elf->header.e_shoff + index * sizeof *section);
}

static void read_sections(elf_t *elf) {
    Elf64_Shdr names, section, texts;
    char name[NAME_ROOM];
    if (elf->header.e_shentsize != sizeof section || !read_section(elf, elf->header.e_shstrndx, &names)) return;
    for (uint64_t i = 0; i < elf->header.e_shnum; i++) {
        if (!read_section(elf, i, &section)) return;
        read_name(elf->file, name, names.sh_offset, section.sh_name);
        elf->has_code |= strcmp(name, ".nv_fatbin") == 0 || strcmp(name, ".nvFatBinSegment") == 0;
        if (section.sh_type == SHT_DYNAMIC && read_section(elf, section.sh_link, &texts))
            read_needed(elf, &section, texts.sh_offset);
    }
}

strata_program_kind_t strata_program_kind(const char *path) {
    elf_t elf = {.file = -1};
    strata_program_kind_t kind = STRATA_PROGRAM_PLAIN;
    if (strata_file_open(path, STRATA_FILE_NAMED_BY_FILE, &elf.file) != STRATA_OK) return kind;
    if (read_header(&elf)) {
        read_segments(&elf);
        read_sections(&elf);
        if (!elf.interpreted) kind = STRATA_PROGRAM_STATIC;
        else if (elf.has_code && !elf.needs_runtime) kind = STRATA_PROGRAM_OWN_RUNTIME;
    }
    close(elf.file);
    return kind;
}

/* ---- the dynamic loader ---- */

strata_program_preload_t strata_program_preload_of(const char *path) {
    struct stat file;
    struct statvfs system;
    bool mounted_so = statvfs(path, &system) == 0 && system.f_flag & ST_NOSUID;
    if (stat(path, &file) != 0 || mounted_so) return STRATA_PRELOAD_HEEDED;
    bool sets_user = file.st_mode & S_ISUID, sets_group = file.st_mode & S_ISGID && file.st_mode & S_IXGRP;
    if ((sets_user && file.st_uid != getuid()) || (sets_group && file.st_gid != getgid())) return STRATA_PRELOAD_IGNORED;
    if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0) return STRATA_PRELOAD_IGNORED;
    return sets_user || sets_group ? STRATA_PRELOAD_HEEDED_NOW : STRATA_PRELOAD_HEEDED;
}
