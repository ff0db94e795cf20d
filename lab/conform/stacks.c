#include "lab/conform/stacks.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>

#include "allocation/options/option.h"
#include "lab/conform/checks.h"
#include "strategy/plan/legal.h"

enum { TRIES = 4000, DEEPEST = 2, BRANCHES_MAX = 3, CHAIN = 6, OPTION_BYTES = 4096, WORD = 64 };
#define SHORT_TIMEOUT "5ms" /* the longest timeout that is drawn */

/* A chain of layers; the last is a source, or a router with chains below it. */
typedef struct chain {
    const strata_layer_type_t *layers[CHAIN + 1];
    uint32_t count;
    uint32_t branches[BRANCHES_MAX];
    uint32_t branch_count;
    bool any_memory; /* a layer above allows other kinds of memory */
} chain_t;

typedef struct drawing {
    uint64_t random;
    drawn_stack_t *stack;
    const strata_layer_type_t *with;
    chain_t chains[STACK_LAYERS];
    uint32_t chain_count, layer_count;
    uint32_t at; /* position in its chain of the layer that gets options */
    bool optioned, late; /* late: no memory is requested before the first request */
    size_t length;
} drawing_t;

static uint64_t draw(drawing_t *d, uint64_t below) {
    d->random = d->random * 6364136223846793005ull + 1442695040888963407ull;
    return (d->random >> 20) % below;
}

/* Draws small numbers as often as large ones. */
static uint64_t draw_between(drawing_t *d, uint64_t low, uint64_t high) {
    uint64_t range = high - low;
    range >>= draw(d, 24);
    return low + (range ? draw(d, range + 1) : 0);
}

/* ---- the order ---- */

static const strata_layer_type_t *draw_layer(drawing_t *d, bool ends, bool routes) {
    for (;;) {
        size_t count = 0;
        while (strata_layer_at(count)) count++;
        const strata_layer_type_t *type = strata_layer_at((size_t)draw(d, count));
        if (ends && type->role == (routes ? STRATA_ROUTER : STRATA_SOURCE)) return type;
        if (!ends && (type->role == STRATA_DECORATOR || type->role == STRATA_CACHE)) return type;
    }
}

static bool with_is_end(const drawing_t *d) {
    return d->with && (d->with->role == STRATA_SOURCE || d->with->role == STRATA_ROUTER);
}

static void add(drawing_t *d, chain_t *chain, const strata_layer_type_t *type) {
    if (chain->count > CHAIN || d->layer_count + 1 >= STACK_LAYERS) return;
    chain->layers[chain->count++] = type;
    d->stack->layers[d->layer_count++] = type;
}

/* With such a layer, few orders would be legal if its source were drawn. */
static bool needs_handles(const chain_t *chain) {
    for (uint32_t i = 0; i < chain->count; i++)
        if (chain->layers[i]->needs & STRATA_TRAIT_HANDLE_SOURCE) return true;
    return false;
}

/* `above` is the number of layers over the chain. A route has at most STRATA_ROUTE_LAYERS. */
static uint32_t draw_chain(drawing_t *d, uint32_t depth, uint32_t above, bool any_memory) {
    uint32_t number = d->chain_count++;
    chain_t *chain = &d->chains[number];
    *chain = (chain_t){.any_memory = any_memory};
    bool placed = depth == 0 && d->with && !with_is_end(d), ends = depth == 0 && with_is_end(d);
    uint32_t room = STRATA_ROUTE_LAYERS - above - 1;
    uint32_t count = (uint32_t)draw(d, (room < CHAIN ? room : CHAIN) + 1), at = (uint32_t)draw(d, count ? count : 1);
    if (placed && count == 0) count = 1;
    for (uint32_t i = 0; i < count; i++) add(d, chain, placed && i == at ? d->with : draw_layer(d, false, false));
    bool routes = depth < DEEPEST && above + count + 2 < STRATA_ROUTE_LAYERS && draw(d, 4) == 0;
    const strata_layer_type_t *end = ends ? d->with : needs_handles(chain) ? strata_layer_find("vmm") : draw_layer(d, true, routes);
    add(d, chain, end);
    if (end->role != STRATA_ROUTER) return number;
    uint32_t branches = 2 + (uint32_t)draw(d, BRANCHES_MAX - 1);
    for (uint32_t i = 0; i < chain->count; i++) any_memory |= (chain->layers[i]->gives & STRATA_TRAIT_ANY_MEMORY) != 0;
    for (uint32_t b = 0; b < branches; b++) chain->branches[b] = draw_chain(d, depth + 1, above + chain->count, any_memory);
    chain->branch_count = branches;
    return number;
}

/* ---- options ---- */

/* Returns true for the rows that set a layer to refuse requests. */
static bool causes_refusal(const strata_layer_type_t *type, const strata_option_row_t *row) {
    static const char *const rows[] = {"limit.bytes",
                                       "limit.fraction",
                                       "fault.at",
                                       "fault.every",
                                       "fault.above",
                                       "fault.probability",
                                       "cuda_malloc_async.max_size",
                                       "system.cap",
                                       "bfc.memory_limit",
                                       "bfc.memory_fraction",
                                       "bfc.allow_growth",
                                       "caching.memory_fraction",
                                       "caching_vmm.memory_fraction"};
    char name[2 * WORD];
    snprintf(name, sizeof name, "%s.%s", type->name, row->name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(name, rows[i]) == 0) return true;
    return false;
}

/* The memory that a decorator takes beside a block must leave room on the small devices of some checks. */
static void draw_number(drawing_t *d, const strata_layer_type_t *type, const strata_option_row_t *row, char text[WORD]) {
    uint64_t most = row->kind == STRATA_OPTION_COUNT  ? 4096
                    : row->kind == STRATA_OPTION_TIME ? 5 * 1000 * 1000
                    : type->role == STRATA_CACHE      ? 4 * MIB
                                                      : MIB / 4;
    uint64_t high = row->max && row->max < most ? row->max : most, low = row->min;
    uint64_t value = draw_between(d, low, high > low ? high : low);
    if (row->kind == STRATA_OPTION_SIZE && draw(d, 2))
        while (value & (value - 1)) value &= value - 1;
    snprintf(text, WORD, "%llu%s", (unsigned long long)(value < low ? low : value), row->kind == STRATA_OPTION_TIME ? "ns" : "");
}

static void draw_value(drawing_t *d, const strata_layer_type_t *type, const strata_option_row_t *row, char text[WORD]) {
    uint64_t part;
    switch (row->kind) {
    case STRATA_OPTION_BOOL: snprintf(text, WORD, "%s", draw(d, 2) ? "true" : "false"); return;
    case STRATA_OPTION_CHOICE: strata_choice_name(row, (uint32_t)draw(d, strata_choice_count(row)), text, WORD); return;
    case STRATA_OPTION_FRACTION:
        part = row->min + draw(d, (row->max ? row->max : 1000000) - row->min + 1);
        snprintf(text, WORD, "%llu.%06llu", (unsigned long long)(part / 1000000), (unsigned long long)(part % 1000000));
        return;
    default: draw_number(d, type, row, text);
    }
}

/* Returns true if all layers of the chain from `first` on may be below a layer of that scope. The order was
 * checked with the default options. */
static bool may_be_below(const drawing_t *d, const chain_t *chain, uint32_t first, const strata_layer_type_t *type,
                         strata_scope_t scope) {
    for (uint32_t i = first; i < chain->count; i++)
        if (strata_clash_of_pair(type, scope, chain->layers[i]) != STRATA_CLASH_NONE) return false;
    for (uint32_t b = 0; b < chain->branch_count; b++)
        if (!may_be_below(d, &d->chains[chain->branches[b]], 0, type, scope)) return false;
    return true;
}

/* Returns true if all chunks that a layer of the chain gets are from one source and may be joined. */
static bool is_above_contiguous(const chain_t *chain, uint32_t at) {
    while (++at < chain->count) {
        if (chain->layers[at]->gives & STRATA_TRAIT_CONTIGUOUS) return true;
        if (chain->layers[at]->role != STRATA_DECORATOR || !(chain->layers[at]->passes & STRATA_TRAIT_CONTIGUOUS)) return false;
    }
    return false;
}

/* Returns true for an option that would be refused. No stack drawn here serves pools. `registrable` is
 * refused below most caches of handles, and `coalesce_regions` if no chunks below may be used as one. */
static bool is_refused_option(const drawing_t *d, const chain_t *chain, const strata_option_row_t *row, const char *text) {
    static const char *const names[] = {"pool_no_split", "pools_on_oom", "registrable"};
    bool wanted = strcmp(text, "true") == 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(row->name, names[i]) == 0 && wanted) return true;
    return strcmp(row->name, "coalesce_regions") == 0 && wanted && !is_above_contiguous(chain, d->at);
}

/* A number may name a node of the host that the machine lacks. */
static bool names_a_node(const strata_layer_type_t *type, const strata_option_row_t *row, const char *text) {
    return type->role == STRATA_SOURCE && strcmp(row->name, "node") == 0 && *text >= '0' && *text <= '9';
}

static bool fits(const drawing_t *d, const chain_t *chain, const strata_layer_type_t *type, const strata_option_row_t *row,
                 const void *options, const char *text) {
    const char *option = NULL;
    if (is_refused_option(d, chain, row, text) || names_a_node(type, row, text)) return false;
    if (strcmp(row->name, "streams") == 0 && !may_be_below(d, chain, d->at + 1, type, strata_scope_of(type, options))) return false;
    if (type->role == STRATA_SOURCE && strcmp(row->name, "memory") == 0)
        return strcmp(text, "place") == 0 || strcmp(text, strata_place_memory(STRATA_PLACE_GPU)) == 0 ||
               (chain->any_memory && strata_place_reaches(STRATA_PLACE_GPU, text));
    /* Larger alignments need chunks of that alignment, and the layers below are not drawn yet. */
    if (type->role == STRATA_CACHE && strcmp(row->name, "alignment") == 0) return strcmp(text, "256") == 0;
    bool asked = type->struct_size >= offsetof(strata_layer_type_t, check) + sizeof type->check && type->check;
    return !asked || type->check(options, STRATA_PLACE_GPU, &option) == STRATA_OK;
}

/* ---- the text ---- */

static void print(drawing_t *d, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));
static void print(drawing_t *d, const char *format, ...) {
    va_list arguments;
    size_t room = STACK_LETTERS - d->length;
    va_start(arguments, format);
    int written = vsnprintf(d->stack->text + d->length, room, format, arguments);
    va_end(arguments);
    d->length += written < 0 ? 0 : (size_t)written < room ? (size_t)written : room - 1;
}

static void note_option(drawing_t *d, const strata_layer_type_t *type, const strata_option_row_t *row, const char *text) {
    subject_t *subject = &d->stack->subject;
    subject->may_refuse |= causes_refusal(type, row);
    subject->may_refuse |= strcmp(row->name, "steps") == 0 && strcmp(text, "wait") == 0; /* nothing is returned then */
    subject->at_use |= strcmp(row->name, "event") == 0 && strcmp(text, "use") == 0;
    subject->other_memory |= type->role == STRATA_SOURCE && strcmp(row->name, "memory") == 0 && strcmp(text, "place") != 0 &&
                             strcmp(text, strata_place_memory(STRATA_PLACE_GPU)) != 0;
}

/* Returns true if the layer has options. Half of the rows are drawn. If the layer refuses a value beside the
 * others, that row keeps its default. A timeout is always set, because the default makes a thread wait for 10
 * s. */
static bool print_options(drawing_t *d, const chain_t *chain, const strata_layer_type_t *type, const char *begin) {
    static _Thread_local alignas(max_align_t) unsigned char options[OPTION_BYTES];
    bool some = false;
    if (!d->optioned || type == d->with || type->options_size > sizeof options) return false;
    strata_option_defaults(type, options);
    for (const strata_option_row_t *row = type->options; row && row->name; row++) {
        char text[WORD];
        if (row->kind == STRATA_OPTION_TEXT || strata_option_branch(row)) continue;
        bool drawn = draw(d, 2) == 0, waits = strcmp(row->name, "timeout") == 0;
        if (!drawn && !waits) continue;
        if (d->late && strstr(row->name, "preallocate")) continue;
        if (drawn) draw_value(d, type, row, text);
        else snprintf(text, WORD, "%s", SHORT_TIMEOUT);
        EXPECT_OK(strata_option_set(row, options, text));
        if (!fits(d, chain, type, row, options, text)) {
            EXPECT_OK(strata_option_set(row, options, row->default_text));
            continue;
        }
        print(d, "%s%s: %s", some ? ", " : begin, row->name, text);
        note_option(d, type, row, text);
        some = true;
    }
    return some;
}

static void print_chain(drawing_t *d, uint32_t number, bool top);

/* Bounds the limit of a route. Each limit must be less than the next, and the last one at most the row's max. */
static uint64_t within_row(uint64_t limit, const strata_option_row_t *row, uint32_t after) {
    return row->max && limit > row->max - after ? row->max - after : limit;
}

/* Prints "routes: [{up_to: 4096, stack: [...]}, {stack: [...]}]" or "stacks: [[...], [...]]". */
static void print_branches(drawing_t *d, const chain_t *chain, const strata_layer_type_t *type) {
    const strata_option_row_t *row = type->options;
    while (row && row->name && strata_option_branch(row) != 1) row++;
    bool routes = row && row->name;
    int letters = routes ? (int)(strrchr(row->name, '_') - row->name) : 0;
    uint64_t limit = draw_between(d, 256, 64 * 1024);
    print(d, "%s: [", routes ? "routes" : "stacks");
    for (uint32_t b = 0; b < chain->branch_count; b++) {
        if (b) print(d, ", ");
        if (routes) print(d, "{");
        if (routes && b + 1 < chain->branch_count)
            print(d, "%.*s: %llu, ", letters, row->name, (unsigned long long)within_row(limit, row, chain->branch_count - b - 2));
        if (routes) print(d, "stack: ");
        print_chain(d, chain->branches[b], false);
        if (routes) print(d, "}");
        limit += draw_between(d, 1, 2 * MIB);
    }
    print(d, "]");
}

static void print_layer(drawing_t *d, const chain_t *chain, const strata_layer_type_t *type) {
    print(d, "%s", type->name);
    bool some = print_options(d, chain, type, ": {");
    if (type->role == STRATA_ROUTER) {
        print(d, some ? ", " : ": {");
        print_branches(d, chain, type);
        some = true;
    }
    if (some) print(d, "}");
}

static void print_chain(drawing_t *d, uint32_t number, bool top) {
    const chain_t *chain = &d->chains[number];
    if (!top) print(d, "[");
    for (uint32_t i = 0; i < chain->count; i++) {
        print(d, "%s", top ? "  - " : i ? ", " : "");
        d->at = i;
        print_layer(d, chain, chain->layers[i]);
        if (top) print(d, "\n");
    }
    if (!top) print(d, "]");
}

static void print_stack(drawing_t *d, bool optioned) {
    d->length = 0;
    d->optioned = optioned;
    d->stack->subject = (subject_t){.drawn = true};
    print(d, "version: 1\nstack:\n");
    print_chain(d, 0, true);
}

/* ---- the builder's verdict ---- */

static strata_status_t try_build(const drawn_stack_t *stack) {
    strata_config_request_t request = {.text = stack->text, .devices = "sim"};
    strata_strategy_t *strategy = NULL;
    strata_status_t status = strata_config_load(&request, &strategy);
    if (status == STRATA_OK) strata_strategy_delete(strategy);
    return status;
}

static bool is_in_stack(const drawn_stack_t *stack, const char *name, size_t length) {
    for (uint32_t i = 0; stack->layers[i]; i++)
        if (strncmp(stack->layers[i]->name, name, length) == 0 && stack->layers[i]->name[length] == '\0') return true;
    return false;
}

/* Expects that the reason names two layers of the stack, in quotes. */
static void expect_a_reason(const drawn_stack_t *stack) {
    const char *reason = strata_last_error()->text;
    uint32_t named = 0;
    for (const char *at = strchr(reason, '"'); at; at = strchr(at, '"')) {
        size_t length = strcspn(++at, "\"");
        named += is_in_stack(stack, at, length);
        at += length + (at[length] == '"');
    }
    if (named < 2) FAIL_TEST("the builder names %u layers of\n%sin \"%s\"", named, stack->text, reason);
}

static void fill_subject(drawing_t *d) {
    subject_t *subject = &d->stack->subject;
    subject->preset = d->stack->text;
    snprintf(subject->name, sizeof subject->name, "%.30s_random_%llu", d->with ? d->with->name : "stack",
             (unsigned long long)d->stack->seed);
    for (uint32_t i = 0; d->stack->layers[i]; i++) {
        const strata_layer_type_t *type = d->stack->layers[i];
        /* The rest of a small device may be less than one of their handles. */
        subject->may_refuse |= strata_option_find(type, "handle") || strcmp(type->name, "caching_vmm") == 0;
        subject->requests_more |= type->role == STRATA_DECORATOR && !(type->passes & STRATA_TRAIT_EXACT_SIZE);
    }
}

bool stack_draw(drawn_stack_t *stack, uint64_t seed, const strata_layer_type_t *with) {
    static _Thread_local drawing_t d;
    *stack = (drawn_stack_t){.seed = seed};
    d = (drawing_t){.random = seed * 0x9e3779b97f4a7c15ull + 1, .stack = stack, .with = with};
    for (; stack->refused < TRIES; stack->refused++) {
        d.chain_count = d.layer_count = 0;
        (void)draw_chain(&d, 0, 0, false);
        stack->layers[d.layer_count] = NULL;
        print_stack(&d, false);
        strata_status_t status = try_build(stack);
        if (status == STRATA_OK) break;
        EXPECT_EQ(status, STRATA_E_STRATEGY);
        expect_a_reason(stack);
    }
    if (stack->refused == TRIES) return false;
    print_stack(&d, true);
    /* Memory requested at the open would be refused there. */
    d.late = stack->subject.may_refuse;
    if (d.late) print_stack(&d, true);
    fill_subject(&d);
    EXPECT_OK(try_build(stack));
    return true;
}
