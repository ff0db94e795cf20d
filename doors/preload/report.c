#include "doors/preload/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocation/options/option.h"
#include "doors/preload/real.h"
#include "doors/preload/table.h"
#include "facade/registry/facade.h"
#include "platform/place.h"

static const char *const names[] = {
#define NAME(treatment, name, arguments, passed, text) #name,
    STRATA_PRELOAD_MAP(NAME)
#undef NAME
};
enum { ROWS = sizeof names / sizeof *names };

static uint64_t calls(const strata_run_report_t *report) {
    uint64_t all = 0;
    for (size_t i = 0; i < ROWS; i++) all += atomic_load(&report->served[i]) + atomic_load(&report->passed_on[i]);
    return all;
}

void strata_run_report_warn(const strata_run_report_t *report, FILE *out) {
    if (calls(report) || !strata_real_driver_is_loaded()) return;
    fprintf(out, "strata: the program used CUDA, but no memory request reached Strata: its CUDA runtime is linked statically or "
                 "loaded by the program itself\n");
}

static void print_places(strata_door_t *door, FILE *out) {
    strata_facade_t *facade = strata_facade_of(strata_door_facade(door));
    uint32_t index = 0;
    for (strata_domain_t *domain; facade && (domain = strata_facade_next_domain(facade, &index)) != NULL;) {
        strata_statistics_t figures = {.struct_size = sizeof figures};
        if (strata_statistics_all(strata_door_facade(door), domain->place, &figures) != STRATA_OK || !figures.allocations) continue;
        char place[STRATA_PLACE_LETTERS], reserved[32], allocated[32];
        strata_place_text(domain->place, place);
        strata_print_size(figures.peak_reserved_bytes, reserved, sizeof reserved);
        strata_print_size(figures.peak_allocated_bytes, allocated, sizeof allocated);
        fprintf(out, "strata:   %s: %" PRIu64 " requests, %" PRIu64 " from the cache, at most %s reserved and %s allocated\n",
                place, figures.allocations, figures.cache_hits, reserved, allocated);
    }
}

static void print(const strata_run_report_t *report, FILE *out) {
    fprintf(out, "strata: report of process %ld (%s)\n", (long)getpid(), program_invocation_short_name);
    strata_run_report_warn(report, out);
    fprintf(out,
            calls(report) ? "strata: function, calls served by Strata, by CUDA\n" : "strata: no memory request reached Strata\n");
    for (size_t i = 0; i < ROWS; i++) {
        uint64_t served = atomic_load(&report->served[i]), passed_on = atomic_load(&report->passed_on[i]);
        if (served || passed_on) fprintf(out, "strata:   %-28s %10" PRIu64 " %10" PRIu64 "\n", names[i], served, passed_on);
    }
    if (report->door) print_places(report->door, out);
}

/* ---- the destination ---- */

static bool write_all(int file, const char *text, size_t size) {
    while (size > 0) {
        ssize_t written = write(file, text, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        text += written;
        size -= (size_t)written;
    }
    return true;
}

/* Replaces %p by the process ID. Returns true if the name contains %p, so that only this process writes the file. */
static bool expand(const char *pattern, char path[PATH_MAX]) {
    size_t length = 0;
    bool own = false;
    for (; *pattern && length + 24 < PATH_MAX; pattern++) {
        bool number = pattern[0] == '%' && pattern[1] == 'p';
        if (number) length += (size_t)snprintf(path + length, 24, "%ld", (long)getpid());
        else path[length++] = *pattern;
        pattern += number;
        own = own || number;
    }
    path[length] = '\0';
    return own;
}

static bool write_file(const char *path, bool own, const char *text, size_t size) {
    char part[PATH_MAX + 8];
    snprintf(part, sizeof part, "%s.part", path);
    int file = own ? open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
                   : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    bool done = file >= 0 && write_all(file, text, size);
    if (file >= 0) done = close(file) == 0 && done;
    if (own && done) done = rename(part, path) == 0;
    if (own && !done) unlink(part);
    return done;
}

void strata_run_report_write(const strata_run_report_t *report, const char *where) {
    char path[PATH_MAX], *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (memory) print(report, memory);
    bool made = memory && fclose(memory) == 0;
    bool to_file = strcmp(where, "1") != 0;
    bool own = expand(where, path);
    if (made && !to_file) (void)write_all(STDERR_FILENO, text, size);
    else if (!made || !write_file(path, own, text, size))
        fprintf(stderr, "strata: the report was not written to %s: %s\n", path, strerror(errno));
    free(text);
}
