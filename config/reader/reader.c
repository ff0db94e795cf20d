#include "config/reader/reader.h"

#include <string.h>

#include "config/hint.h"
#include "config/page.h"
#include "config/profile/profile.h"
#include "platform/place.h"
#include "platform/sim/sim.h"

strata_status_t strata_note_error(strata_error_sink_t *error_sink, strata_status_t status) {
    if (status != STRATA_E_STRATEGY) return status;
    if (!error_sink->out) return status;
    if (error_sink->count == STRATA_ERRORS_MAX) return status;
    fprintf(error_sink->out, "%s\n", strata_last_error()->text);
    if (++error_sink->count < STRATA_ERRORS_MAX) return STRATA_OK;
    fprintf(error_sink->out, "more than %d errors; the rest is not shown\n", STRATA_ERRORS_MAX - 1);
    return status;
}

/* ---- devices ---- */

static const char *device_word(size_t index, const void *context) {
    (void)context;
    return index == 0 ? "gpu" : "sim";
}

static const char *profile_word(size_t index, const void *context) {
    (void)context;
    return strata_sim_profile_name(index);
}

static strata_status_t fail_devices(const char *devices, const strata_origin_t *origin) {
    strata_hint_t hint = strata_hint(devices, 2, device_word, NULL);
    return strata_fail_origin(origin, "\"%.40s\" is not a device; %s, gpu:0, sim:h100, or sim:h100x2 for two", devices, hint.text);
}

/* Explains why the text names no device. */
static strata_status_t explain_devices(const char *devices, const strata_origin_t *origin) {
    const char *tail = strchr(devices, ':');
    size_t head = tail ? (size_t)(tail - devices) : 0;
    bool gpu = head == 3 && strncmp(devices, "gpu", 3) == 0, sim = head == 3 && strncmp(devices, "sim", 3) == 0;
    if (!gpu && !sim) return fail_devices(devices, origin);
    tail++;
    if (gpu)
        return strata_fail_origin(origin, "\"%.40s\" is not a device number; write gpu:0 to gpu:%d", tail,
                                  STRATA_MODEL_DEVICES - 1);
    size_t count = 0;
    while (strata_sim_profile_name(count)) count++;
    strata_hint_t hint = strata_hint(tail, count, profile_word, NULL);
    return strata_fail_origin(
        origin,
        "there is no profile \"%.40s\" of a simulated device; %s, with x2 to x%d after it for several devices, as in "
        "sim:%sx2",
        tail, hint.text, STRATA_MODEL_DEVICES, strata_sim_profile_name(0));
}

strata_status_t strata_read_devices(strata_strategy_t *strategy, const char *devices, const char *base,
                                    const strata_origin_t *origin) {
    bool by_file = origin->source == STRATA_FROM_FILE;
    strata_device_choice_t choice;
    const char *shown;
    strata_status_t status = strata_devices_choose(
        strategy->memory, devices, base, by_file ? STRATA_FILE_NAMED_BY_FILE : STRATA_FILE_NAMED_BY_USER, &choice, &shown);
    bool invalid = status == STRATA_E_INVALID,
         is_file = strata_device_names_file(devices, &(const char *){NULL}, &(size_t){0}, &(int){0});
    if (invalid && !is_file) return explain_devices(devices, origin);
    if (invalid || status == STRATA_E_IO) return strata_fail_origin(origin, "%s", strata_last_error()->text);
    if (status != STRATA_OK) return status;
    strategy->devices = shown;
    strategy->device_choice = choice;
    strategy->devices_origin = *origin;
    return STRATA_OK;
}

/* ---- keys of a strategy ---- */

strata_status_t strata_fail_broken(const strata_origin_t *origin) {
    return strata_fail_origin(origin, "the value spans lines or contains a tab; write it on one line");
}

typedef strata_status_t (*read_fn)(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node);

static strata_origin_t origin_of(const strata_text_t *text, const strata_tree_t *node) {
    return strata_origin_of(text, node->line, node->column);
}

static strata_status_t expect_value(const strata_text_t *text, const strata_tree_t *node, const char *example) {
    if (node->kind == STRATA_TREE_SCALAR_NODE && !node->empty) return STRATA_OK;
    strata_origin_t origin = strata_origin_of(text, node->key_line, node->key_column);
    return strata_fail_origin(&origin, "\"%s\" needs one value; write %s: %s", node->key, node->key, example);
}

static strata_status_t copy_text(strata_reader_t *reader, const char *value, const char **kept) {
    char *copy = strata_arena_strndup(reader->strategy->memory, value, strlen(value));
    if (!copy) return STRATA_E_HOST_MEMORY;
    *kept = copy;
    return STRATA_OK;
}

static strata_status_t read_version(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    (void)reader;
    strata_status_t status = expect_value(text, node, "1");
    if (status || strcmp(node->text, "1") == 0) return status;
    strata_origin_t origin = origin_of(text, node);
    return strata_fail_origin(&origin, "this Strata reads strategies of version 1, not \"%.40s\"; write version: 1", node->text);
}

static strata_status_t read_strategy(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    strata_status_t status = expect_value(text, node, "training");
    if (status) return status;
    strata_origin_t origin = origin_of(text, node);
    if (strlen(node->text) > STRATA_NAME_LETTERS)
        return strata_fail_origin(&origin, "the strategy's name is longer than %d bytes; write a shorter one", STRATA_NAME_LETTERS);
    return copy_text(reader, node->text, &reader->strategy->name);
}

static strata_status_t read_description(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    strata_status_t status = expect_value(text, node, "what it is for");
    return status ? status : copy_text(reader, node->text, &reader->strategy->description);
}

static strata_status_t read_peer(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    strata_status_t status = expect_value(text, node, "paddle develop of 2025-01");
    return status ? status : copy_text(reader, node->text, &reader->strategy->peer);
}

static strata_status_t read_report(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    strata_status_t status = expect_value(text, node, "short");
    strata_origin_t origin = origin_of(text, node);
    if (status) return status;
    bool is_short = strcmp(node->text, "short") == 0;
    if (!is_short && strcmp(node->text, "full") != 0)
        return strata_fail_origin(&origin, "\"report\" must be full or short, not \"%.40s\"", node->text);
    reader->strategy->short_report = is_short;
    return STRATA_OK;
}

static strata_status_t read_devices(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    strata_origin_t origin = origin_of(text, node);
    if (node->kind == STRATA_TREE_MAP) return strata_read_own_stacks(reader, text, node);
    strata_status_t status = expect_value(text, node, "gpu");
    if (status == STRATA_OK && node->broken) return strata_fail_broken(&origin);
    return status ? status : strata_read_devices(reader->strategy, node->text, text->path, &origin);
}

/* Removes stacks that an extended text set beside its own `stack`, because the new `stack` replaces both.
 * This concerns the stack for devices without virtual memory, and a preset's stack for captured graphs. */
static void drop_inherited_named(strata_reader_t *reader, const strata_text_t *text) {
    strata_model_names_t *plain = &reader->strategy->named[STRATA_NAMED_PLAIN],
                         *graph = &reader->strategy->named[STRATA_NAMED_GRAPH];
    if (plain->count > 0 && strcmp(plain->list->origin.file, text->file) != 0) plain->count = 0;
    if (graph->count == 0) return;
    strata_model_stack_t *stacks = graph->list->stacks;
    if (stacks[STRATA_PLACE_GPU].count == 0 || stacks[STRATA_PLACE_GPU].origin.source != STRATA_FROM_PRESET) return;
    stacks[STRATA_PLACE_GPU].count = 0;
    if (stacks[STRATA_PLACE_MANAGED].count == 0) graph->count = 0;
}

static strata_status_t read_stack(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    drop_inherited_named(reader, text);
    return strata_read_stack(reader, text, STRATA_PLACE_GPU, NULL, node);
}

/* Places other than gpu; the gpu's stack has the key `stack:`. */
static const char *place_word(size_t index, const void *context) {
    (void)context;
    return strata_place_name((strata_place_kind_t)(index + STRATA_PLACE_MANAGED));
}

static strata_status_t read_place(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    strata_place_kind_t place = strata_place_find(node->key);
    strata_origin_t origin = strata_origin_of(text, node->key_line, node->key_column);
    if (place == STRATA_PLACE_GPU)
        return strata_fail_origin(&origin, "the stack of the place gpu belongs at the top level; write stack:");
    if (place != STRATA_PLACE_KINDS) return strata_read_stack(reader, text, place, NULL, node);
    strata_hint_t hint = strata_hint(node->key, STRATA_PLACE_KINDS - 1, place_word, NULL);
    return strata_fail_origin(&origin, "there is no place \"%.40s\"; %s", node->key, hint.text);
}

static strata_status_t read_places(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    strata_origin_t origin = origin_of(text, node);
    if (node->kind == STRATA_TREE_SCALAR_NODE && node->empty) return STRATA_OK;
    if (node->kind != STRATA_TREE_MAP)
        return strata_fail_origin(&origin, "\"places\" must be a mapping of places to stacks; write places: {pinned: [...]}");
    strata_status_t status = STRATA_OK;
    for (const strata_tree_t *child = node->first; child && status == STRATA_OK; child = child->next)
        status = strata_note_error(reader->error_sink, read_place(reader, text, child));
    return status;
}

/* `extends` and `load` were read before all other keys. Keys beside a stack are read after them. */
static strata_status_t read_nothing(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    (void)reader, (void)text, (void)node;
    return STRATA_OK;
}

/* The keys, which are also the rows of docs/strategy.md. */
static const struct {
    const char *key;
    read_fn read;
    const char *says, *without;
} keys[] = {
    {"version", read_version, "version of this grammar: `1`", "1"},
    {"strategy", read_strategy, "name in reports", "name of the preset or file"},
    {"description", read_description, "short text for people", "none"},
    {"peer", read_peer, "allocator whose behavior it reproduces, with its version or date", "none"},
    {"extends", read_nothing,
     "name of a preset or path of a file, relative to this file. It supplies all values that this file does not set", "none"},
    {"load", read_nothing,
     "shared objects with layers, relative to this file: `[./libmine.so]`. Refused unless the caller allows code: "
     "`STRATA_OPEN_ALLOW_CODE`, `strata --allow-code`",
     "none"},
    {"report", read_report,
     "error text of a request that runs out of memory. `full` has the cause, the remedies and all statistics. `short` is one "
     "line, for programs that retry with a smaller size. `STRATA_NO_REPORT` selects `short` for one request",
     "`full`"},
    {"devices", read_devices,
     "`gpu` is every GPU, `gpu:1` one of them. `sim` is a simulated device, `sim:h100` one with a profile, `sim:h100x2` two "
     "of them. The profile of `sim:my-gpu.yaml` is a file, relative to this file ([profile-file.md](profile-file.md)). For a "
     "mapping, see below. A replay opens as many devices as its trace has",
     "`gpu`"},
    {"stack", read_stack, "layers of the place gpu, outermost first; a source or router is last", "as in the preset `strata`"},
    {STRATA_RECLAIM_KEY, read_nothing, "recovery when that stack is out of memory, see below", "one more try, without waiting"},
    {STRATA_IDLE_KEY, read_nothing, "memory that the stack gives back when the program is idle, see below",
     "idle memory stays reserved"},
    {"places", read_places, "stacks of `managed`, `pinned` and `host`", "as in the preset `strata`"},
    {"pools", strata_read_pools, "named pools with stacks of their own, see below", "none"},
    {"streams", strata_read_streams, "stacks for streams by name, see below", "the place's layers"},
    {"graph", strata_read_graph, "stack of the private pools of captured graphs, see below", "the place's layers"},
    {"without_virtual_memory", strata_read_plain, "stack of the place gpu on a device without virtual memory, see below",
     "a stack that needs virtual memory is refused there"},
};

void strata_page_keys(FILE *out) {
    fprintf(out, "\n## Keys\n\n| key | meaning | default |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        fprintf(out, "| `%s` | %s | %s |\n", keys[i].key, keys[i].says, keys[i].without);
    fprintf(out, "\nA chain of `extends` may be at most %d files deep.\n", STRATA_EXTENDS_DEPTH);
}

static const char *key_word(size_t index, const void *context) {
    (void)context;
    return keys[index].key;
}

static strata_status_t read_key(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].key, node->key) == 0) return keys[i].read(reader, text, node);
    strata_origin_t origin = strata_origin_of(text, node->key_line, node->key_column);
    strata_hint_t hint = strata_hint(node->key, sizeof keys / sizeof *keys, key_word, NULL);
    return strata_fail_origin(&origin, "a strategy has no key \"%.40s\"; %s", node->key, hint.text);
}

/* ---- a strategy ---- */

static strata_status_t read_extends(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    strata_status_t status = expect_value(text, node, "strata");
    if (status) return status;
    strata_origin_t origin = origin_of(text, node);
    if (reader->extended == STRATA_EXTENDS_DEPTH)
        return strata_fail_origin(&origin, "files extend each other more than %d deep, or in a cycle; write the stack here",
                                  STRATA_EXTENDS_DEPTH);
    reader->extended++;
    status = strata_read_named(reader, node->text, text->path, &origin);
    reader->extended--;
    return status;
}

static strata_status_t read_tree(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *tree) {
    strata_origin_t origin = origin_of(text, tree);
    if (tree->kind != STRATA_TREE_MAP)
        return strata_fail_origin(&origin, "a strategy must be a mapping; write keys as in \"stack: [system]\"");
    const strata_tree_t *extends = strata_tree_get(tree, "extends");
    strata_status_t status = extends ? strata_note_error(reader->error_sink, read_extends(reader, text, extends)) : STRATA_OK;
    const strata_tree_t *code = strata_tree_get(tree, "load");
    if (status == STRATA_OK && code) status = strata_note_error(reader->error_sink, strata_read_load(reader, text, code));
    if (status == STRATA_OK) status = copy_text(reader, text->short_name, &reader->strategy->name);
    reader->strategy->origin = origin;
    for (const strata_tree_t *node = tree->first; node && status == STRATA_OK; node = node->next)
        status = strata_note_error(reader->error_sink, read_key(reader, text, node));
    if (status) return status;
    return strata_note_error(reader->error_sink,
                             strata_read_stack_keys(reader, text, tree, &reader->strategy->stacks[STRATA_PLACE_GPU]));
}

strata_status_t strata_read_text(strata_reader_t *reader, const strata_text_t *text) {
    strata_text_t kept = *text;
    strata_tree_t *tree;
    strata_status_t status = copy_text(reader, text->file, &kept.file);
    if (status == STRATA_OK) status = strata_tree_read(reader->scratch, kept.file, text->text, text->length, &tree);
    if (status == STRATA_OK) status = read_tree(reader, &kept, tree);
    return strata_note_error(reader->error_sink, status);
}
