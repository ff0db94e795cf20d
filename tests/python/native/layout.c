/* Prints how the structs that the Python package mirrors lie in memory: "struct field offset size", and "struct size" at the end of each.
 * doors/python/strata/_abi.py says the same, which test_abi.py compares. */
#include <stddef.h>
#include <stdio.h>

#include "strata/plan.h"
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
    FIELD(strata_out_of_memory_t, tag)
    FIELD(strata_out_of_memory_t, operator_name)
    FIELD(strata_out_of_memory_t, step)
    SIZE(strata_out_of_memory_t)
}

static void print_caches(void) {
    FIELD(strata_allocator_info_t, struct_size)
    FIELD(strata_allocator_info_t, facade)
    FIELD(strata_allocator_info_t, place)
    FIELD(strata_allocator_info_t, stream)
    FIELD(strata_allocator_info_t, pool)
    SIZE(strata_allocator_info_t)
    FIELD(strata_layer_figure_t, layer)
    FIELD(strata_layer_figure_t, type)
    FIELD(strata_layer_figure_t, number)
    FIELD(strata_layer_figure_t, shared)
    FIELD(strata_layer_figure_t, stream)
    FIELD(strata_layer_figure_t, thread)
    FIELD(strata_layer_figure_t, forgotten)
    FIELD(strata_layer_figure_t, name)
    FIELD(strata_layer_figure_t, unit)
    FIELD(strata_layer_figure_t, meaning)
    FIELD(strata_layer_figure_t, value)
    FIELD(strata_layer_figure_t, pool)
    SIZE(strata_layer_figure_t)
    FIELD(strata_cache_t, struct_size)
    FIELD(strata_cache_t, id)
    FIELD(strata_cache_t, used_bytes)
    FIELD(strata_cache_t, idle_bytes)
    FIELD(strata_cache_t, name)
    FIELD(strata_cache_t, layer)
    SIZE(strata_cache_t)
    FIELD(strata_neighbours_t, struct_size)
    FIELD(strata_neighbours_t, free_before)
    FIELD(strata_neighbours_t, free_after)
    FIELD(strata_neighbours_t, run)
    FIELD(strata_neighbours_t, block)
    SIZE(strata_neighbours_t)
}

static void print_graphs_and_pauses(void) {
    FIELD(strata_graph_pool_info_t, struct_size)
    FIELD(strata_graph_pool_info_t, pool)
    FIELD(strata_graph_pool_info_t, begins)
    FIELD(strata_graph_pool_info_t, graphs)
    FIELD(strata_graph_pool_info_t, live_allocations)
    FIELD(strata_graph_pool_info_t, allocated_bytes)
    FIELD(strata_graph_pool_info_t, reserved_bytes)
    FIELD(strata_graph_pool_info_t, outside_blocks)
    FIELD(strata_graph_pool_info_t, begun)
    SIZE(strata_graph_pool_info_t)
    FIELD(strata_pause_options_t, struct_size)
    FIELD(strata_pause_options_t, pool)
    FIELD(strata_pause_options_t, tag)
    FIELD(strata_pause_options_t, contents)
    FIELD(strata_pause_options_t, directory)
    FIELD(strata_pause_options_t, staging)
    SIZE(strata_pause_options_t)
    FIELD(strata_paused_t, struct_size)
    FIELD(strata_paused_t, bytes)
    FIELD(strata_paused_t, kept_bytes)
    FIELD(strata_paused_t, rest_bytes)
    FIELD(strata_paused_t, handles)
    FIELD(strata_paused_t, copy_ns)
    SIZE(strata_paused_t)
}

static void print_sharing(void) {
    FIELD(strata_segment_t, number)
    FIELD(strata_segment_t, size)
    SIZE(strata_segment_t)
    FIELD(strata_shared_t, owner)
    FIELD(strata_shared_t, sender)
    FIELD(strata_shared_t, offset)
    FIELD(strata_shared_t, size)
    FIELD(strata_shared_t, device)
    FIELD(strata_shared_t, count)
    FIELD(strata_shared_t, segments)
    FIELD(strata_shared_t, descriptors)
    FIELD(strata_shared_t, lease)
    SIZE(strata_shared_t)
    FIELD(strata_imported_t, ptr)
    FIELD(strata_imported_t, size)
    FIELD(strata_imported_t, id)
    SIZE(strata_imported_t)
    FIELD(strata_registration_t, ptr)
    FIELD(strata_registration_t, size)
    FIELD(strata_registration_t, base)
    FIELD(strata_registration_t, base_size)
    FIELD(strata_registration_t, handles)
    FIELD(strata_registration_t, place)
    SIZE(strata_registration_t)
}

static void print_plans(void) {
    FIELD(strata_plan_buffer_t, lower)
    FIELD(strata_plan_buffer_t, upper)
    FIELD(strata_plan_buffer_t, size)
    FIELD(strata_plan_buffer_t, alignment)
    FIELD(strata_plan_buffer_t, offset)
    FIELD(strata_plan_buffer_t, kind)
    FIELD(strata_plan_buffer_t, fork)
    FIELD(strata_plan_buffer_t, branch)
    FIELD(strata_plan_buffer_t, flags)
    SIZE(strata_plan_buffer_t)
    FIELD(strata_plan_options_t, struct_size)
    FIELD(strata_plan_options_t, planner)
    FIELD(strata_plan_options_t, time_ns)
    FIELD(strata_plan_options_t, capacity)
    FIELD(strata_plan_options_t, pools)
    FIELD(strata_plan_options_t, close_gaps)
    SIZE(strata_plan_options_t)
    FIELD(strata_plan_result_t, struct_size)
    FIELD(strata_plan_result_t, peak)
    FIELD(strata_plan_result_t, lower_bound)
    FIELD(strata_plan_result_t, time_ns)
    FIELD(strata_plan_result_t, pools)
    FIELD(strata_plan_result_t, proved)
    SIZE(strata_plan_result_t)
    FIELD(strata_plan_line_t, time)
    FIELD(strata_plan_line_t, effect)
    FIELD(strata_plan_line_t, buffer)
    FIELD(strata_plan_line_t, other)
    SIZE(strata_plan_line_t)
    FIELD(strata_plan_dependencies_t, struct_size)
    FIELD(strata_plan_dependencies_t, reuses)
    FIELD(strata_plan_dependencies_t, bytes)
    FIELD(strata_plan_dependencies_t, implicit)
    FIELD(strata_plan_dependencies_t, implicit_bytes)
    SIZE(strata_plan_dependencies_t)
}

int main(void) {
    print_requests();
    print_open_and_close();
    print_figures();
    print_errors();
    print_caches();
    print_graphs_and_pauses();
    print_sharing();
    print_plans();
    return 0;
}
