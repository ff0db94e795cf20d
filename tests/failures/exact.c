/* Each device call of a call is refused: alone, together with the next one, and with all that follow. So is each allocation of host
 * memory, and each table may be full. Whatever the call answers, every figure is then as before it, or as after it.
 *
 * Two rigs do the same, and only one of them is refused anything. A refused call has changed nothing, so all figures are those of before.
 * What an undo could not give back is quarantined, and after a release nothing of it is left. The call that is made again ends as the
 * twin's did. */
#include <stdlib.h>

#include "allocation/layers/sources/vmm_state.h"
#include "platform/host/host_memory.h"
#include "tests/failures/figures.h"
#include "tests/failures/operations.h"
#include "tests/harness/slots.h"

typedef enum refusing { ALONE, WITH_THE_NEXT, ONWARD, REFUSINGS } refusing_t;
static const char *const refusing_names[REFUSINGS] = {"alone", "with the next one", "onward"};

/* An undisturbed run, and where each of its steps left the figures. */
typedef struct twin {
    const operation_t *operation;
    strata_strategy_t *strategy;
    const char *name; /* of the strategy */
    uint64_t calls, allocations; /* of the device and of host memory, in the call */
    figures_t before, after, end;
} twin_t;

static void open_operated(operated_t *o, const twin_t *twin) {
    uint64_t capacity = twin->operation->capacity ? twin->operation->capacity : OPERATION_CAPACITY;
    *o = (operated_t){.stream = NULL};
    rig_open_on(&o->rig, twin->strategy, &(strata_sim_options_t){.devices = 2, .capacity = capacity}, 0);
    o->stream = rig_stream(&o->rig);
    o->other = rig_stream(&o->rig);
}

static void prepare(operated_t *o, const operation_t *operation) {
    if (operation->prepare) operation->prepare(o);
}

static bool has_pool(const twin_t *twin) { return strstr(twin->name, "async") != NULL; }

/* Until nothing goes any more: what vmm keeps mapped goes first, then its addresses are free, then their range goes. What is told is
 * what went, but for pools of graphs, which end before. */
static void release_all(operated_t *o, const twin_t *twin) {
    for (int i = 0; i < 3; i++) {
        uint64_t before = rig_figures(&o->rig).reserved_bytes, released = rig_release(&o->rig);
        if (!has_pool(twin) && !twin->operation->wants_pools) EXPECT_EQ(released, before - rig_figures(&o->rig).reserved_bytes);
    }
}

static void undo(operated_t *o, const twin_t *twin) {
    if (twin->operation->undo) twin->operation->undo(o);
    release_all(o, twin);
}

static void close_operated(operated_t *o) {
    strata_stream_t streams[] = {o->stream, o->other};
    strata_shared_close(&o->shared);
    strata_shared_close(&o->again);
    for (size_t i = 0; i < COUNT(streams); i++) EXPECT_OK(strata_stream_forget(o->rig.s, o->rig.gpu, streams[i]));
    rig_close(&o->rig);
}

/* Tables that are made at the first use are there, unless the call works once only. */
static void warm_up(operated_t *o, const twin_t *twin) {
    const operation_t *operation = twin->operation;
    if (!operation->is_for_good) {
        prepare(o, operation);
        EXPECT_OK(operation->run(o));
        undo(o, twin);
    }
    prepare(o, operation);
}

static void run_twin(twin_t *twin) {
    operated_t o;
    open_operated(&o, twin);
    warm_up(&o, twin);
    figures_snapshot(&twin->before, &o.rig);
    uint64_t calls = strata_sim_calls(o.rig.devices[0]), allocations = strata_host_allocations();
    EXPECT_OK(twin->operation->run(&o));
    twin->calls = strata_sim_calls(o.rig.devices[0]) - calls;
    twin->allocations = strata_host_allocations() - allocations;
    figures_snapshot(&twin->after, &o.rig);
    undo(&o, twin);
    figures_snapshot(&twin->end, &o.rig);
    close_operated(&o);
}

static void end_twin(twin_t *twin) {
    figures_delete(&twin->before);
    figures_delete(&twin->after);
    figures_delete(&twin->end);
}

/* ---- what may differ ---- */

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), part = strlen(end);
    return length >= part && strcmp(text + length - part, end) == 0;
}

static bool is_any_of(const char *name, const char *const *ends) {
    for (; ends && *ends; ends++)
        if (ends_with(name, *ends)) return true;
    return false;
}

/* Tables that may be full. */
typedef enum table { SLOTS_OF_THE_STREAM, SLOTS_OF_THE_PLACE, PIECES_OF_VMM, DIRECTORY, TABLES } table_t;

typedef enum cause { DEVICE_CALL, HOST_MEMORY, FULL_TABLE } cause_t;

/* A run with refusals. */
typedef struct refused {
    const twin_t *twin;
    cause_t cause;
    strata_status_t fault;
    uint64_t k;
    refusing_t refusing;
    bool is_past; /* the call went another way than the twin's, or left something quarantined */
    bool grew; /* a part of a growth came, and went again */
} refused_t;

static bool may_differ(const char *name, const void *context) {
    /* TensorFlow's regions grow with what is asked for, whatever comes of it. */
    if (ends_with(name, "next_region")) return true;
    /* A pool of the driver keeps what it got from the device. */
    static const char *const of_pools[] = {"device memory, managed included", "used_bytes", "pool_idle_bytes", NULL};
    static const char *const of_other_ways[] = {"peak_reserved_bytes", "growths",        "joins",        "creations", "cache_hits",
                                                "recoveries",          "deferred_frees", "holds events", NULL};
    static const char *const of_growth[] = {"peak_reserved_bytes", "growths", "creations", "handles_mapped",
                                            "handles_unmapped",    "offset",  NULL};
    static const char *const of_ladders[] = {"recoveries", "out_of_memory", "retries", "waits_for_all", "backpedals", NULL};
    const refused_t *r = context;
    /* A block that cannot be cut is served whole. */
    if (r->cause == FULL_TABLE && ends_with(name, "peak_allocated_bytes")) return true;
    if (r->fault != STRATA_E_DEVICE && is_any_of(name, of_ladders)) return true;
    if ((r->grew || r->cause == FULL_TABLE) && is_any_of(name, of_growth)) return true;
    if (has_pool(r->twin) && is_any_of(name, of_pools)) return true;
    if (r->is_past && is_any_of(name, of_other_ways)) return true;
    return is_any_of(name, r->twin->operation->differs);
}

static void expect_figures(operated_t *o, const figures_t *wanted, const refused_t *r, const char *when) {
    figures_t now;
    bool failed = strata_test_has_failed();
    figures_snapshot(&now, &o->rig);
    figures_expect_equal(&now, wanted, may_differ, r);
    figures_delete(&now);
    if (strata_test_has_failed() && !failed) FAIL_TEST("so far %s", when);
}

/* ---- refusals ---- */

/* Another reason than the first refusal's, which must stay the last error. */
static strata_status_t next_fault(const refused_t *r) {
    return r->fault == STRATA_E_NO_MEMORY ? STRATA_E_DEVICE : STRATA_E_NO_MEMORY;
}

static void arm_device(operated_t *o, const refused_t *r) {
    strata_device_t *device = o->rig.devices[0];
    EXPECT_OK(strata_sim_fail(device, STRATA_DEVICE_CALLS, r->k, r->refusing == ONWARD, r->fault));
    if (r->refusing == WITH_THE_NEXT) EXPECT_OK(strata_sim_fail(device, STRATA_DEVICE_CALLS, r->k + 1, false, next_fault(r)));
}

/* The source of handles of the place; NULL: it has another one. */
static vmm_layer_t *vmm_of(operated_t *o) {
    const strata_stack_t *stack = rig_domain(&o->rig)->first_stack;
    STRATA_EACH_OWN_LAYER(stack, layer)
        if (layer->type == &strata_vmm_type) return (vmm_layer_t *)layer;
    return NULL;
}

/* What is kept from a table while it counts as full. */
typedef struct filled {
    slots_t slots;
    strata_nodes_t *nodes;
    strata_directory_t *directory;
    uint32_t capacity, kept[64], count;
} filled_t;

static void fill_nodes(filled_t *filled, strata_nodes_t *nodes) {
    filled->nodes = nodes;
    filled->capacity = nodes->capacity;
    while (nodes->unused > 0 && filled->count < COUNT(filled->kept)) filled->kept[filled->count++] = strata_nodes_acquire(nodes);
    nodes->capacity = nodes->used;
}

/* Leaves that are free are kept from it too. */
static void fill_directory(filled_t *filled, strata_directory_t *directory) {
    filled->directory = directory;
    filled->capacity = directory->capacity;
    filled->kept[0] = directory->free_head;
    filled->kept[1] = directory->free_count;
    directory->capacity = directory->used;
    directory->free_head = directory->free_count = 0;
}

/* After those that were freed meanwhile. */
static void give_leaves(filled_t *filled) {
    strata_directory_t *directory = filled->directory;
    uint32_t *end = &directory->free_head;
    while (*end) end = &directory->leaves[*end].next;
    *end = filled->kept[0];
    directory->free_count += filled->kept[1];
    directory->capacity = filled->capacity;
}

static void fill_table(operated_t *o, table_t table, filled_t *filled) {
    vmm_layer_t *vmm = vmm_of(o);
    *filled = (filled_t){.nodes = NULL};
    bool has_stack = strata_domain_serves(rig_domain(&o->rig), o->stream);
    if (table == SLOTS_OF_THE_STREAM && has_stack) filled->slots = slots_limit(&rig_stack(&o->rig, o->stream)->slab, 0);
    if (table == SLOTS_OF_THE_PLACE) filled->slots = slots_limit(&rig_domain(&o->rig)->first_stack->slab, 0);
    if (table == PIECES_OF_VMM && vmm) fill_nodes(filled, &vmm->pieces);
    if (table == DIRECTORY) fill_directory(filled, rig_domain(&o->rig)->directory);
}

static void empty_table(filled_t *filled) {
    if (filled->slots.slab) slots_restore(&filled->slots);
    if (filled->nodes) filled->nodes->capacity = filled->capacity;
    while (filled->count > 0) strata_nodes_release(filled->nodes, filled->kept[--filled->count]);
    if (filled->directory) give_leaves(filled);
}

static strata_status_t run_with_refusals(operated_t *o, const refused_t *r) {
    filled_t filled = {.nodes = NULL};
    if (r->cause == DEVICE_CALL) arm_device(o, r);
    if (r->cause == HOST_MEMORY) strata_host_fail_at(r->k, r->refusing == ONWARD);
    if (r->cause == FULL_TABLE) fill_table(o, (table_t)r->k, &filled);
    strata_status_t status = r->twin->operation->run(o);
    strata_host_fail_at(0, 0);
    strata_sim_clear_faults(o->rig.devices[0]);
    empty_table(&filled);
    return status;
}

/* In the place, or in pinned memory. */
static bool has_quarantined(operated_t *o) {
    return rig_figures(&o->rig).quarantined_bytes > 0 || rig_figures_in(&o->rig, strata_pinned()).quarantined_bytes > 0;
}

/* The undo was refused too, or the cache is smaller. */
static bool has_changed(operated_t *o, const refused_t *r) {
    strata_sim_held_t held;
    strata_sim_held(o->rig.devices[0], &held);
    strata_statistics_t f = rig_figures(&o->rig);
    if (has_quarantined(o) || f.reserved_bytes < figures_of(&r->twin->before, "gpu reserved_bytes")) return true;
    if (r->refusing == ALONE) return false;
    return held.device_bytes > figures_of(&r->twin->before, "device 0 holds bytes of device memory, managed included") ||
           held.handles > figures_of(&r->twin->before, "device 0 holds handles of physical memory") ||
           held.mappings > figures_of(&r->twin->before, "device 0 holds mappings") ||
           held.address_bytes > figures_of(&r->twin->before, "device 0 holds bytes of reserved addresses");
}

static void try_again(operated_t *o, const refused_t *r) {
    if (!r->is_past) expect_figures(o, &r->twin->before, r, "after the refusal");
    EXPECT_OK(r->twin->operation->run(o));
    if (!r->is_past && r->refusing == ALONE) expect_figures(o, &r->twin->after, r, "after the second try");
}

static const char *const cause_names[] = {"device call", "host allocation", "table"};

static uint64_t count_of(const twin_t *twin, cause_t cause) {
    return cause == DEVICE_CALL ? twin->calls : cause == HOST_MEMORY ? twin->allocations : TABLES - 1;
}

/* Whatever was refused, what counts as reserved is what the device has given. Chunks of other sources are no whole granules. */
static void expect_conserved(operated_t *o, const refused_t *r) {
    strata_sim_figures_t figures;
    strata_statistics_t f = rig_figures(&o->rig);
    strata_sim_figures(o->rig.devices[0], &figures);
    EXPECT_LE(f.quarantined_bytes, f.reserved_bytes);
    if (vmm_of(o) && !r->twin->operation->wants_pools) EXPECT_EQ(figures.used_bytes, f.reserved_bytes);
}

/* A device without host memory tells so in its own words, and a cache without slots serves no part of what it has. What an undo is
 * refused is no reason, but the second try after a release may have another one. */
static void expect_answer(const refused_t *r, strata_status_t status) {
    bool is_second = r->refusing == WITH_THE_NEXT && r->fault == STRATA_E_NO_MEMORY;
    const strata_status_t also[] = {
        [DEVICE_CALL] = is_second ? next_fault(r) : STRATA_OK, [HOST_MEMORY] = STRATA_E_DEVICE, [FULL_TABLE] = STRATA_E_NO_MEMORY};
    bool says = status == r->fault || status == r->twin->operation->says || status == also[r->cause];
    if (status == STRATA_OK) return;
    if (!says) FAIL_TEST("answered %s: %s", strata_status_name(status), strata_last_error()->text);
    if (strata_last_error()->status != status)
        FAIL_TEST("answered %s, and the last error is %s", strata_status_name(status), strata_last_error()->text);
}

static void run_refused(refused_t *r) {
    operated_t o;
    const operation_t *operation = r->twin->operation;
    const strata_host_live_t live = strata_host_live();
    open_operated(&o, r->twin);
    warm_up(&o, r->twin);
    expect_figures(&o, &r->twin->before, r, "before the call");
    strata_status_t status = run_with_refusals(&o, r);
    expect_conserved(&o, r);
    r->is_past = status == STRATA_OK || has_changed(&o, r);
    r->grew = rig_figures(&o.rig).growths > figures_of(&r->twin->before, "gpu growths") ||
              rig_figures(&o.rig).peak_reserved_bytes > figures_of(&r->twin->before, "gpu peak_reserved_bytes");
    expect_answer(r, status);
    if (status != STRATA_OK) try_again(&o, r);
    undo(&o, r->twin);
    if (!has_quarantined(&o)) expect_figures(&o, &r->twin->end, r, "at the end");
    close_operated(&o);
    EXPECT_EQ(strata_host_live().allocations, live.allocations);
    EXPECT_EQ(strata_host_live().mapped, live.mapped);
    if (strata_test_has_failed())
        FAIL_TEST("so far %s on %s: %s %llu of %llu refused %s", operation->name, r->twin->name, cause_names[r->cause],
                  (unsigned long long)r->k, (unsigned long long)count_of(r->twin, r->cause), refusing_names[r->refusing]);
}

/* Not every strategy has pools of graphs. */
static bool serves(const operation_t *operation, strata_strategy_t *strategy, const char *name) {
    operated_t o;
    open_operated(&o, &(twin_t){.operation = operation, .strategy = strategy, .name = name});
    bool pools = strata_graph_pool_begin(o.rig.s, o.rig.gpu, o.stream, &o.pool) != STRATA_E_UNSUPPORTED;
    rig_close_by_force(&o.rig);
    return pools || !operation->wants_pools;
}

/* A device call is refused in every way, host memory is out once or onward, and a table is full until the call is over. */
static bool is_a_way(const operation_t *operation, cause_t cause, refusing_t refusing) {
    if (refusing == ONWARD) return cause != FULL_TABLE && !operation->ends_layers;
    return cause == DEVICE_CALL || (refusing == ALONE && !(cause == FULL_TABLE && operation->ends_layers));
}

static void refuse_each(const operation_t *operation, strata_strategy_t *strategy, const char *name, cause_t cause,
                        strata_status_t fault) {
    twin_t twin = {.operation = operation, .strategy = strategy, .name = name};
    run_twin(&twin);
    uint64_t last = count_of(&twin, cause);
    for (uint64_t k = cause == FULL_TABLE ? 0 : 1; k <= last && !strata_test_has_failed(); k += STRIDE)
        for (refusing_t refusing = ALONE; refusing < REFUSINGS && !strata_test_has_failed(); refusing++)
            if (is_a_way(operation, cause, refusing))
                run_refused(&(refused_t){.twin = &twin, .cause = cause, .fault = fault, .k = k, .refusing = refusing});
    end_twin(&twin);
}

static void on_every_strategy(const operation_t *operation, cause_t cause, strata_status_t fault) {
    const char *only = getenv("STRATA_FAILURES_ONLY");
    for (size_t i = 0; operation->strategy ? i < 1 : strata_preset_name(i) != NULL; i++) {
        const char *name = operation->strategy ? operation->strategy : strata_preset_name(i);
        if (only && !strstr(name, only)) continue;
        strata_strategy_t *strategy = rig_strategy(name, NULL, 0);
        if (serves(operation, strategy, name)) refuse_each(operation, strategy, name, cause, fault);
        strata_strategy_delete(strategy);
        if (strata_test_has_failed()) return;
    }
}

static void refused_by_the_device(const void *of) { on_every_strategy(of, DEVICE_CALL, STRATA_E_DEVICE); }
static void without_memory(const void *of) { on_every_strategy(of, DEVICE_CALL, STRATA_E_NO_MEMORY); }
static void without_host_memory(const void *of) { on_every_strategy(of, HOST_MEMORY, STRATA_E_HOST_MEMORY); }
static void with_full_tables(const void *of) { on_every_strategy(of, FULL_TABLE, STRATA_E_LIMIT); }

__attribute__((constructor)) static void register_operations(void) {
    for (size_t i = 0; i < operation_count; i++) {
        const operation_t *o = &operations[i];
        strata_test_register_row("exact", "refused_by_the_device", o->name, __FILE__, __LINE__, refused_by_the_device, o);
        strata_test_register_row("exact", "without_memory", o->name, __FILE__, __LINE__, without_memory, o);
        strata_test_register_row("exact", "without_host_memory", o->name, __FILE__, __LINE__, without_host_memory, o);
        strata_test_register_row("exact", "with_full_tables", o->name, __FILE__, __LINE__, with_full_tables, o);
    }
}
