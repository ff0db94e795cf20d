/* Prints how the structs that the Python package mirrors lie in memory: "struct field offset size", and "struct size" at the end of each.
 * python/strata/_abi.py says the same, which test_abi.py compares. */
#include <stddef.h>
#include <stdio.h>

#include "strata/strata.h"

#define FIELD(type, field) printf("%s %s %zu %zu\n", #type, #field, offsetof(type, field), sizeof((type){0}.field));
#define SIZE(type)         printf("%s %zu\n", #type, sizeof(type));

static void print_requests(void) {
    FIELD(strata_block_t, ptr)
    FIELD(strata_block_t, size)
    FIELD(strata_block_t, ref)
    SIZE(strata_block_t)
    FIELD(strata_allocate_options_t, struct_size)
    FIELD(strata_allocate_options_t, size)
    FIELD(strata_allocate_options_t, alignment)
    FIELD(strata_allocate_options_t, flags)
    FIELD(strata_allocate_options_t, pool)
    FIELD(strata_allocate_options_t, tag)
    FIELD(strata_allocate_options_t, freed_before)
    SIZE(strata_allocate_options_t)
    FIELD(strata_plan_load_options_t, struct_size)
    FIELD(strata_plan_load_options_t, pool)
    FIELD(strata_plan_load_options_t, one_branch)
    FIELD(strata_plan_load_options_t, branch)
    SIZE(strata_plan_load_options_t)
    FIELD(strata_allocator_t, stack)
    FIELD(strata_allocator_t, stream)
    SIZE(strata_allocator_t)
    FIELD(strata_functions_t, allocate)
    FIELD(strata_functions_t, free)
    SIZE(strata_functions_t)
}

static void print_open_and_close(void) {
    FIELD(strata_open_options_t, struct_size)
    FIELD(strata_open_options_t, preset)
    FIELD(strata_open_options_t, file)
    FIELD(strata_open_options_t, text)
    FIELD(strata_open_options_t, set)
    FIELD(strata_open_options_t, set_count)
    FIELD(strata_open_options_t, devices)
    FIELD(strata_open_options_t, flags)
    SIZE(strata_open_options_t)
    FIELD(strata_leak_t, place)
    FIELD(strata_leak_t, stream)
    FIELD(strata_leak_t, block)
    FIELD(strata_leak_t, requested)
    FIELD(strata_leak_t, tag)
    FIELD(strata_leak_t, operator_name)
    FIELD(strata_leak_t, step)
    FIELD(strata_leak_t, pool)
    SIZE(strata_leak_t)
}

static void print_figures(void) {
    FIELD(strata_mem_info_t, struct_size)
    FIELD(strata_mem_info_t, free)
    FIELD(strata_mem_info_t, total)
    FIELD(strata_mem_info_t, cached)
    FIELD(strata_mem_info_t, limit)
    SIZE(strata_mem_info_t)
    FIELD(strata_statistics_t, struct_size)
#define PRINT(name, unit, kind, meaning) FIELD(strata_statistics_t, name)
    STRATA_STATISTICS_MAP(PRINT)
    SIZE(strata_statistics_t)
    FIELD(strata_snapshot_row_t, block)
    FIELD(strata_snapshot_row_t, chunk)
    FIELD(strata_snapshot_row_t, requested)
    FIELD(strata_snapshot_row_t, stream)
    FIELD(strata_snapshot_row_t, state)
    FIELD(strata_snapshot_row_t, pool)
    SIZE(strata_snapshot_row_t)
}

static void print_errors(void) {
    FIELD(strata_error_t, status)
    FIELD(strata_error_t, device_code)
    FIELD(strata_error_t, line)
    FIELD(strata_error_t, column)
    FIELD(strata_error_t, text)
    SIZE(strata_error_t)
    FIELD(strata_out_of_memory_t, struct_size)
    FIELD(strata_out_of_memory_t, place)
    FIELD(strata_out_of_memory_t, stream)
    FIELD(strata_out_of_memory_t, size)
    FIELD(strata_out_of_memory_t, device_free)
    FIELD(strata_out_of_memory_t, device_total)
    FIELD(strata_out_of_memory_t, text)
    FIELD(strata_out_of_memory_t, cause)
    SIZE(strata_out_of_memory_t)
}

int main(void) {
    print_requests();
    print_open_and_close();
    print_figures();
    print_errors();
    return 0;
}
