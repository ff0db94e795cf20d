#include "tests/house/values.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "strata/layer.h"
#include "strata/note.h"
#include "strata/plan.h"
#include "strata/strata.h"
#include "strata/torture.h"
#include "tests/house/house.h"

static const char strategy[] = "extends: strata\npools: {weights: {stack: [stream_safe, auto_growth_vmm, vmm]}}\n";

static strata_t facade, opened;
static strata_place_t place, place_found;
static strata_stream_t stream, captured, stream_found;
static strata_block_t block, found;
static strata_allocator_t allocator;
static strata_checkpoint_t checkpoint, checkpoint_made;
static strata_graph_t graph, graph_made;
static strata_registration_t registration, registered;
static strata_shared_t shared, received;
static strata_imported_t imported;
static strata_functions_t functions;
static uint64_t pool, graph_pool, number, numbers[64];
static int sockets[2];
static size_t length;
static uint32_t id;
static bool truth;
static void *address;
static char text[4096];

static strata_open_options_t open_options = {.struct_size = sizeof open_options, .preset = "strata", .devices = "sim"};
static strata_allocate_options_t allocate_options = {.struct_size = sizeof allocate_options, .size = 100};
static strata_pause_options_t pause_options = {.struct_size = sizeof pause_options};
static strata_plan_options_t plan_options = {.struct_size = sizeof plan_options, .planner = "greedy"};
static strata_torture_program_t program = {.struct_size = sizeof program,
                                           .strategy = "stack: [stream_safe, auto_growth, system]\n"};
static strata_plan_buffer_t buffers[1] = {{.upper = 9, .size = 100}};
static strata_plan_result_t plan_result = {.struct_size = sizeof plan_result};
static strata_plan_line_t lines[4];
static strata_plan_dependencies_t dependencies = {.struct_size = sizeof dependencies};
static strata_statistics_t statistics = {.struct_size = sizeof statistics};
static strata_mem_info_t mem_info = {.struct_size = sizeof mem_info};
static strata_pool_trim_t pool_trim = {.struct_size = sizeof pool_trim};
static strata_cache_t cache = {.struct_size = sizeof cache};
static strata_neighbours_t neighbours = {.struct_size = sizeof neighbours};
static strata_allocator_info_t allocator_info = {.struct_size = sizeof allocator_info};
static strata_graph_pool_info_t pool_info = {.struct_size = sizeof pool_info};
static strata_paused_t paused = {.struct_size = sizeof paused};

/* For functions that layers call. They are not dereferenced before all pointers are checked. */
static uint64_t layer[512], record[512], request[512], stack[512], running[512], anything[512];

static bool filter(strata_stream_t of, void *context) { return of == context; }
static void nothing(void) {}

/* AT: the address of a variable; OF: its contents; IS: a number. `only`: prefix of the function names; NULL: all functions. */
enum { AT, OF, IS };
#define TO(variable)   .how = AT, .address = &(variable)
#define WITH(variable) .how = OF, .address = &(variable)
static const struct row {
    const char *type, *name, *only;
    int how;
    const void *address;
    uint64_t number;
} rows[] = {
    {"strata_t", NULL, NULL, WITH(facade)},
    {"strata_t *", NULL, NULL, TO(opened)},
    {"strata_place_t *", NULL, NULL, TO(place_found)},
    {"strata_stream_t", NULL, "strata_capture_end", WITH(captured)},
    {"strata_stream_t", NULL, NULL, WITH(stream)},
    {"strata_stream_t *", NULL, NULL, TO(stream_found)},
    {"strata_ref_t", NULL, NULL, WITH(block.ref)},
    {"const strata_ref_t *", NULL, NULL, TO(block.ref)},
    {"strata_ref_t *", NULL, NULL, TO(numbers)},
    {"strata_block_t *", NULL, NULL, TO(found)},
    {"strata_allocator_t *", NULL, NULL, TO(anything)},
    {"const void *", NULL, NULL, WITH(block.ptr)},
    {"void *", "ptr", NULL, WITH(block.ptr)},
    {"void *", "context", NULL, TO(anything)},
    {"void **", NULL, NULL, TO(address)},
    {"char *", NULL, NULL, TO(text)},
    {"const char *", "name", "strata_pool", .how = AT, .address = "weights"},
    {"const char *", "path", NULL, .how = AT, .address = "/dev/null"},
    {"const char *", NULL, NULL, .how = AT, .address = "some"},
    {"bool *", NULL, NULL, TO(truth)},
    {"bool", NULL, NULL, IS, NULL, 1},
    {"int", "socket", NULL, WITH(sockets[0])},
    {"int", NULL, NULL, IS, NULL, 0},
    {"int64_t", NULL, NULL, IS, NULL, 0},
    {"uint8_t", NULL, NULL, IS, NULL, 0},
    {"size_t", "capacity", NULL, IS, NULL, 64},
    {"size_t", "count", NULL, IS, NULL, 1},
    {"size_t", "index", NULL, IS, NULL, 0},
    {"size_t", "size", "strata_torture_run", IS, NULL, sizeof text},
    {"size_t", NULL, NULL, IS, NULL, 4096},
    {"size_t *", NULL, NULL, TO(length)},
    {"uint32_t *", NULL, NULL, TO(id)},
    {"uint32_t", NULL, NULL, IS, NULL, 0},
    {"uint64_t", "pool", "strata_graph_", WITH(graph_pool)},
    {"uint64_t", "pool", "strata_resume", WITH(pool)},
    {"uint64_t", "pool", NULL, IS, NULL, STRATA_POOL_ORDINARY},
    {"uint64_t", "process", NULL, WITH(number)},
    {"uint64_t", NULL, NULL, IS, NULL, 4096},
    {"uint64_t *", "pool", "strata_graph_", TO(graph_pool)},
    {"uint64_t *", NULL, NULL, TO(numbers)},
    {"const uint64_t *", NULL, NULL, TO(numbers)},
    {"strata_status_t", NULL, NULL, IS, NULL, STRATA_E_IO},
    {"strata_cause_t", NULL, NULL, IS, NULL, STRATA_CAUSE_FULL},
    {"strata_close_mode_t", NULL, NULL, IS, NULL, STRATA_CLOSE_FORCE},
    {"strata_log_level_t", NULL, NULL, IS, NULL, STRATA_LOG_ERROR},
    {"strata_graph_filter_fn", NULL, NULL, .how = AT, .address = (const void *)filter},
    {"(*)", NULL, NULL, .how = AT, .address = (const void *)nothing},
    {"strata_checkpoint_t", NULL, NULL, WITH(checkpoint)},
    {"strata_checkpoint_t *", NULL, NULL, TO(checkpoint_made)},
    {"strata_graph_t", NULL, NULL, WITH(graph)},
    {"strata_graph_t *", NULL, NULL, TO(graph_made)},
    {"strata_functions_t *", NULL, NULL, TO(functions)},
    {"strata_allocator_info_t *", NULL, NULL, TO(allocator_info)},
    {"strata_graph_pool_info_t *", NULL, NULL, TO(pool_info)},
    {"strata_statistics_t *", NULL, NULL, TO(statistics)},
    {"strata_mem_info_t *", NULL, NULL, TO(mem_info)},
    {"strata_pool_trim_t *", NULL, NULL, TO(pool_trim)},
    {"strata_cache_t *", NULL, NULL, TO(cache)},
    {"strata_neighbours_t *", NULL, NULL, TO(neighbours)},
    {"strata_paused_t *", NULL, NULL, TO(paused)},
    {"const strata_open_options_t *", NULL, NULL, TO(open_options)},
    {"const strata_allocate_options_t *", NULL, NULL, TO(allocate_options)},
    {"const strata_pause_options_t *", NULL, NULL, TO(pause_options)},
    {"const strata_plan_options_t *", NULL, NULL, TO(plan_options)},
    {"const strata_torture_program_t *", NULL, NULL, TO(program)},
    {"const strata_plan_buffer_t *", NULL, NULL, TO(buffers)},
    {"strata_plan_result_t *", NULL, NULL, TO(plan_result)},
    {"strata_plan_line_t *", NULL, NULL, TO(lines)},
    {"strata_plan_dependencies_t *", NULL, NULL, TO(dependencies)},
    {"strata_shared_t *", NULL, "strata_shared_close", TO(shared)},
    {"strata_shared_t *", NULL, NULL, TO(received)},
    {"const strata_shared_t *", NULL, NULL, TO(shared)},
    {"strata_imported_t *", NULL, NULL, TO(imported)},
    {"strata_registration_t *", NULL, NULL, TO(registered)},
    {"const strata_registration_t *", NULL, NULL, TO(registration)},
    {"strata_layer_t *", NULL, NULL, TO(layer)},
    {"const strata_layer_t *", NULL, NULL, TO(layer)},
    {"strata_record_t *", NULL, NULL, TO(record)},
    {"const strata_record_t *", NULL, NULL, TO(record)},
    {"strata_record_t **", NULL, NULL, TO(anything)},
    {"const strata_request_t *", NULL, NULL, TO(request)},
    {"const strata_stack_t *", NULL, NULL, TO(stack)},
    {"strata_call_t *", NULL, NULL, TO(running)},
    {"strata_event_t", NULL, NULL, TO(anything)},
    {"strata_event_t *", NULL, NULL, TO(anything)},
    {"const strata_block_t *", NULL, NULL, TO(block)},
    {"const strata_adopted_t *", NULL, NULL, TO(anything)},
    {"const strata_chunked_policy_t *", NULL, NULL, TO(anything)},
    {"const strata_layer_type_t *", NULL, NULL, TO(anything)},
};

/* A place has 4 bytes; a struct of two words is two arguments. */
size_t values_of(const function_t *function, const parameter_t *parameter, uint64_t *words) {
    bool two = strcmp(parameter->type, "strata_allocator_t") == 0;
    if (two) memcpy(words, &allocator, sizeof allocator);
    if (two) return 2;
    if (strcmp(parameter->type, "strata_unlocked_t") == 0) return words[0] = words[1] = 0, 2;
    if (strcmp(parameter->type, "strata_place_t") == 0) return words[0] = place, 1;
    if (ends_with(parameter->type, "_fn") && strcmp(parameter->type, "strata_graph_filter_fn") != 0)
        return words[0] = (uint64_t)(uintptr_t)nothing, 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        if (strcmp(row->type, parameter->type) != 0) continue;
        if (row->name && strcmp(row->name, parameter->name) != 0) continue;
        if (row->only && !starts_with(function->name, row->only)) continue;
        words[0] = row->how == IS ? row->number : (uint64_t)(uintptr_t)row->address;
        if (row->how == OF) memcpy(words, row->address, sizeof *words);
        return 1;
    }
    return 0;
}

/* Every argument is one word, and a struct of two words is two. On the supported machines integers and pointers are passed alike, and a
 * function ignores additional words. */
typedef uint64_t (*any_fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

uint64_t values_call(const function_t *function, const uint64_t *w) {
    void *symbol = dlsym(RTLD_DEFAULT, function->name);
    any_fn any;
    memcpy(&any, &symbol, sizeof any);
    return any(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9]);
}

size_t values_size(const char *name) {
#define SIZE(type)                                                                                                                 \
    { #type, sizeof(type) }
    static const struct {
        const char *name;
        size_t size;
    } sizes[] = {SIZE(strata_open_options_t),    SIZE(strata_allocate_options_t),
                 SIZE(strata_pause_options_t),   SIZE(strata_plan_options_t),
                 SIZE(strata_torture_program_t), SIZE(strata_statistics_t),
                 SIZE(strata_mem_info_t),        SIZE(strata_cache_t),
                 SIZE(strata_neighbours_t),      SIZE(strata_allocator_info_t),
                 SIZE(strata_graph_pool_info_t), SIZE(strata_paused_t),
                 SIZE(strata_plan_result_t),     SIZE(strata_plan_dependencies_t),
                 SIZE(strata_pool_trim_t)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(sizes[i].name, name) == 0) return sizes[i].size;
    return 0;
}

size_t values_field(const char *name, const char *field, bool *required) {
#define FIELD(type, field, required)                                                                                               \
    { #type, #field, offsetof(type, field), required }
    static const struct {
        const char *name, *field;
        size_t offset;
        bool required;
    } fields[] = {FIELD(strata_open_options_t, preset, false),  FIELD(strata_open_options_t, file, false),
                  FIELD(strata_open_options_t, text, false),    FIELD(strata_open_options_t, set, false),
                  FIELD(strata_open_options_t, devices, false), FIELD(strata_allocate_options_t, tag, false),
                  FIELD(strata_pause_options_t, tag, false),    FIELD(strata_pause_options_t, directory, false),
                  FIELD(strata_plan_options_t, planner, false), FIELD(strata_torture_program_t, strategy, true),
                  FIELD(strata_torture_program_t, ops, false)};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(fields[i].name, name) != 0 || strcmp(fields[i].field, field) != 0) continue;
        *required = fields[i].required;
        return fields[i].offset;
    }
    return SIZE_MAX;
}

#define MUST(call)                                                                                                                 \
    do {                                                                                                                           \
        if ((call) == STRATA_OK) break;                                                                                            \
        snprintf(why, capacity, "%s: %.300s", #call, strata_last_error()->text);                                                   \
        return false;                                                                                                              \
    } while (0)

static bool make_graph(char *why, size_t capacity) {
    uint64_t its_pool = 0;
    MUST(strata_stream_create(facade, place, 0, &captured));
    MUST(strata_graph_pool_begin(facade, place, captured, &its_pool));
    MUST(strata_capture_begin(facade, place, captured));
    MUST(strata_capture_end(facade, place, captured, &graph));
    MUST(strata_graph_pool_end(facade, place, its_pool));
    graph_pool = its_pool;
    MUST(strata_graph_pool_checkpoint(facade, place, graph_pool, &checkpoint));
    return true;
}

bool values_make(char *why, size_t capacity) {
    strata_open_options_t options = {
        .struct_size = sizeof options, .text = strategy, .devices = "sim", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    place = strata_gpu(0);
    number = (uint64_t)getpid();
    MUST(strata_open(&options, &facade));
    MUST(strata_stream_create(facade, place, 0, &stream));
    MUST(strata_allocate(facade, place, stream, 1 << 20, &block));
    MUST(strata_pool(facade, "weights", &pool));
    pause_options.pool = pool;
    MUST(strata_allocator_get(facade, place, stream, 0, &allocator));
    MUST(strata_export(facade, block.ref, &shared));
    MUST(strata_register(facade, block.ref, &registration));
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) {
        snprintf(why, capacity, "no sockets can be had");
        return false;
    }
    return make_graph(why, capacity);
}

bool values_are_unchanged(char *why, size_t capacity) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    MUST(strata_validate(facade));
    MUST(strata_statistics_all(facade, place, &figures));
    snprintf(why, capacity, "%llu allocations are live", (unsigned long long)figures.live_allocations);
    return figures.live_allocations == 1 && figures.allocations == 1 && figures.frees == 0;
}
