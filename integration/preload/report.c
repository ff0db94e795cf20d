#include "integration/preload/report.h"

#include <inttypes.h>

#include "allocation/options/option.h"
#include "facade/facade.h"
#include "integration/preload/real.h"
#include "integration/preload/table.h"
#include "platform/place.h"

static const char *const names[] = {
#define NAME(treatment, name, arguments, passed, text) #name,
    STRATA_PRELOAD_MAP(NAME)
#undef NAME
};
enum { ROWS = sizeof names / sizeof *names };

static uint64_t calls(const strata_report_t *report) {
    uint64_t all = 0;
    for (size_t i = 0; i < ROWS; i++) all += atomic_load(&report->served[i]) + atomic_load(&report->passed_on[i]);
    return all;
}

void strata_report_warn(const strata_report_t *report, FILE *out) {
    if (calls(report) || !strata_real_driver_is_loaded()) return;
    fprintf(out, "strata: the program used CUDA, and no request for memory came through: its CUDA runtime is linked statically, or "
                 "loaded by hand\n");
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

void strata_report_print(const strata_report_t *report, FILE *out) {
    strata_report_warn(report, out);
    fprintf(out, "strata: function, answered by Strata, by CUDA\n");
    for (size_t i = 0; i < ROWS; i++) {
        uint64_t served = atomic_load(&report->served[i]), passed_on = atomic_load(&report->passed_on[i]);
        if (served || passed_on) fprintf(out, "strata:   %-28s %10" PRIu64 " %10" PRIu64 "\n", names[i], served, passed_on);
    }
    if (report->door) print_places(report->door, out);
}
