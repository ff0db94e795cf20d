/* Reads stacks by name: `pools: {weights: {stack: [...], places: {pinned: [...]}}}`, `streams: {"copy*":
 * [...]}` and `graph: {stack: [...]}`. */
#include <stdio.h>
#include <string.h>

#include "config/hint.h"
#include "config/page.h"
#include "config/reader/reader.h"
#include "platform/place.h"

/* The words for each kind in messages. */
static const struct {
    const char *one;
    const char *example; /* of the whole key */
    const char *letters; /* allowed in a name */
} words[STRATA_NAMED_KINDS] = {
    [STRATA_NAMED_POOL] = {"a pool", "pools: {weights: {stack: [...]}}",
                           "letters, digits, - and _, starting with a letter, or only digits"},
    [STRATA_NAMED_STREAM] = {"a pattern of streams", "streams: {\"copy*\": {stack: [...]}}",
                             "letters, digits, - _ : and /, and * for any characters"},
    [STRATA_NAMED_GRAPH] = {"\"graph\"", "graph: {stack: [...]}", ""},
    [STRATA_NAMED_PLAIN] = {"\"without_virtual_memory\"", "without_virtual_memory: {stack: [...]}", ""},
};

static strata_origin_t key_of(const strata_text_t *text, const strata_tree_t *node) {
    return strata_origin_of(text, node->key_line, node->key_column);
}

/* The entries of one text precede those that it extends. If two patterns match a stream, the one in the
 * later text is tried first. */
typedef struct reading {
    strata_reader_t *reader;
    const strata_text_t *text;
    strata_named_kind_t kind;
    strata_model_names_t read;
} reading_t;

/* ---- one entry ---- */

static const char *key_word(size_t index, const void *context) {
    (void)context;
    static const char *const keys[] = {"stack", "places", STRATA_RECLAIM_KEY, STRATA_IDLE_KEY, "keep"};
    return keys[index];
}

/* Only gpu and managed memory have owner streams, and only gpu memory is virtual. */
static bool may_have(strata_named_kind_t kind, strata_place_kind_t place) {
    if (kind == STRATA_NAMED_PLAIN) return false;
    return place == STRATA_PLACE_MANAGED || (kind == STRATA_NAMED_POOL && place != STRATA_PLACE_GPU);
}

static const char *place_word(size_t index, const void *context) {
    (void)context;
    return strata_place_name((strata_place_kind_t)(index + STRATA_PLACE_MANAGED));
}

static strata_status_t fail_place(const reading_t *reading, const strata_tree_t *node) {
    strata_origin_t key = key_of(reading->text, node);
    strata_place_kind_t place = strata_place_find(node->key);
    if (reading->kind == STRATA_NAMED_PLAIN)
        return strata_fail_origin(&key, "only the place gpu can have a stack without virtual memory; remove it");
    if (place == STRATA_PLACE_GPU)
        return strata_fail_origin(&key, "the stack of the place gpu belongs beside \"places\"; write stack:");
    if (place != STRATA_PLACE_KINDS)
        return strata_fail_origin(&key, "%s memory has no owner stream, and %s; write managed, or remove it", node->key,
                                  reading->kind == STRATA_NAMED_GRAPH ? "therefore no graph pools" : "one stack for all streams");
    strata_hint_t hint = strata_hint(node->key, reading->kind == STRATA_NAMED_POOL ? STRATA_PLACE_KINDS - 1 : 1, place_word, NULL);
    return strata_fail_origin(&key, "there is no place \"%.40s\"; %s", node->key, hint.text);
}

static strata_status_t read_place(reading_t *reading, strata_model_named_t *named, const strata_tree_t *node) {
    strata_place_kind_t place = strata_place_find(node->key);
    if (place == STRATA_PLACE_KINDS || !may_have(reading->kind, place)) return fail_place(reading, node);
    return strata_read_stack_of(reading->reader, reading->text, place, named->stacks, &named->broken, node);
}

static strata_status_t read_places(reading_t *reading, strata_model_named_t *named, const strata_tree_t *node) {
    strata_origin_t key = key_of(reading->text, node);
    if (node->kind != STRATA_TREE_MAP)
        return strata_fail_origin(&key, "\"places\" must be a mapping of places to stacks; write places: {managed: [...]}");
    strata_status_t status = STRATA_OK;
    for (const strata_tree_t *child = node->first; child && status == STRATA_OK; child = child->next)
        status = strata_note_error(reading->reader->error_sink, read_place(reading, named, child));
    return status;
}

static strata_status_t read_gpu(reading_t *reading, strata_model_named_t *named, const strata_tree_t *node) {
    return strata_read_stack_of(reading->reader, reading->text, STRATA_PLACE_GPU, named->stacks, &named->broken, node);
}

static strata_status_t read_keep(reading_t *reading, strata_model_named_t *named, const strata_tree_t *node) {
    strata_origin_t origin = strata_origin_of(reading->text, node->line, node->column);
    if (node->kind != STRATA_TREE_SCALAR_NODE)
        return strata_fail_origin(&origin, "\"keep\" must be true or false; write keep: true");
    strata_status_t status = strata_named_set_keep(named, node->text, &origin);
    return status ? strata_fail_origin(&origin, "%s", strata_last_error()->text) : STRATA_OK;
}

static strata_status_t read_key(reading_t *reading, strata_model_named_t *named, const strata_tree_t *node) {
    if (strcmp(node->key, "stack") == 0) return read_gpu(reading, named, node);
    if (strcmp(node->key, "places") == 0) return read_places(reading, named, node);
    if (strata_is_stack_key(node->key)) return STRATA_OK; /* read after the stack */
    bool pool = reading->kind == STRATA_NAMED_POOL, keep = strcmp(node->key, "keep") == 0;
    if (pool && keep) return read_keep(reading, named, node);
    strata_origin_t key = key_of(reading->text, node);
    if (reading->kind == STRATA_NAMED_GRAPH && keep) {
        (void)strata_graph_refuse_keep();
        return strata_fail_origin(&key, "%s", strata_last_error()->text);
    }
    strata_hint_t hint = strata_hint(node->key, pool ? 5 : 4, key_word, NULL);
    return strata_fail_origin(&key, "%s has no key \"%.40s\"; %s", words[reading->kind].one, node->key, hint.text);
}

/* A bare list is the gpu's stack. An empty pool has the layers of the places, in its own instances. */
static strata_status_t read_body(reading_t *reading, strata_model_named_t *named, const strata_tree_t *node) {
    strata_origin_t key = key_of(reading->text, node);
    bool nothing = node->kind == STRATA_TREE_SCALAR_NODE && node->empty;
    if (node->kind == STRATA_TREE_MAP && node->count == 0) nothing = true;
    if (nothing && reading->kind == STRATA_NAMED_POOL) return STRATA_OK;
    if (node->kind == STRATA_TREE_LIST) return read_gpu(reading, named, node);
    if (node->kind != STRATA_TREE_MAP || nothing)
        return strata_fail_origin(&key, "%s must be a mapping with a stack; write %s", words[reading->kind].one,
                                  words[reading->kind].example);
    strata_status_t status = STRATA_OK;
    for (const strata_tree_t *child = node->first; child && status == STRATA_OK; child = child->next)
        status = strata_note_error(reading->reader->error_sink, read_key(reading, named, child));
    if (status) return status;
    status = strata_read_stack_keys(reading->reader, reading->text, node, &named->stacks[STRATA_PLACE_GPU]);
    return strata_note_error(reading->reader->error_sink, status);
}

static strata_status_t set_name(const reading_t *reading, strata_model_named_t *named, const char *name) {
    strata_arena_t *arena = reading->reader->strategy->memory;
    char path[2 * STRATA_NAME_LETTERS];
    int length = snprintf(path, sizeof path, "%s", strata_named_key(reading->kind));
    if (!strata_named_is_single(reading->kind)) length += snprintf(path + length, sizeof path - (size_t)length, ".%s", name);
    named->name = strata_arena_strndup(arena, name, strlen(name));
    named->path = strata_arena_strndup(arena, path, (size_t)length);
    return named->name && named->path ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

/* Reads an entry over the one with the same name in an extended text. */
static strata_status_t read_one(reading_t *reading, const strata_tree_t *node) {
    strata_reader_t *reader = reading->reader;
    strata_origin_t key = key_of(reading->text, node);
    if (!strata_named_is_name(reading->kind, node->key))
        return strata_fail_origin(&key, "\"%.70s\" is not a valid name for %s; write up to %d %s", node->key,
                                  words[reading->kind].one, STRATA_NAME_LETTERS, words[reading->kind].letters);
    const strata_model_named_t *before = strata_strategy_named(reader->strategy, reading->kind, node->key);
    strata_model_named_t *named = &reading->read.list[reading->read.count++];
    if (before) *named = *before;
    named->origin = key;
    strata_status_t status = set_name(reading, named, node->key);
    return status ? status : read_body(reading, named, node);
}

/* ---- all entries ---- */

static bool has(const strata_model_names_t *names, const char *name) {
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->list[i].name, name) == 0) return true;
    return false;
}

/* Appends the entries that the text did not replace. */
static strata_status_t append_inherited(reading_t *reading, const strata_tree_t *node) {
    strata_model_names_t *all = &reading->reader->strategy->named[reading->kind];
    for (size_t i = 0; i < all->count; i++) {
        if (has(&reading->read, all->list[i].name)) continue;
        if (reading->read.count == STRATA_MODEL_NAMED) {
            strata_origin_t key = key_of(reading->text, node);
            return strata_fail_origin(&key, "more than %d %s, including inherited ones; remove some", STRATA_MODEL_NAMED,
                                      node->key);
        }
        reading->read.list[reading->read.count++] = all->list[i];
    }
    *all = reading->read;
    return STRATA_OK;
}

static strata_status_t read_all(reading_t *reading, const strata_tree_t *node) {
    strata_origin_t key = key_of(reading->text, node);
    if (node->kind != STRATA_TREE_MAP)
        return strata_fail_origin(&key, "\"%s\" must be a mapping of names to stacks; write %s", node->key,
                                  words[reading->kind].example);
    if (node->count > STRATA_MODEL_NAMED)
        return strata_fail_origin(&key, "\"%s\" has %zu names, and the maximum is %d; remove some", node->key, node->count,
                                  STRATA_MODEL_NAMED);
    strata_arena_t *arena = reading->reader->strategy->memory;
    reading->read.list = strata_arena_alloc(arena, STRATA_MODEL_NAMED, sizeof *reading->read.list);
    if (!reading->read.list) return STRATA_E_HOST_MEMORY;
    strata_status_t status = STRATA_OK;
    for (const strata_tree_t *child = node->first; child && status == STRATA_OK; child = child->next)
        status = strata_note_error(reading->reader->error_sink, read_one(reading, child));
    return status ? status : append_inherited(reading, node);
}

strata_status_t strata_read_pools(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    reading_t reading = {.reader = reader, .text = text, .kind = STRATA_NAMED_POOL};
    return read_all(&reading, node);
}

strata_status_t strata_read_streams(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    reading_t reading = {.reader = reader, .text = text, .kind = STRATA_NAMED_STREAM};
    return read_all(&reading, node);
}

static strata_status_t read_single(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node,
                                   strata_named_kind_t kind) {
    reading_t reading = {.reader = reader, .text = text, .kind = kind};
    reading.read.list = strata_arena_alloc(reader->strategy->memory, 1, sizeof *reading.read.list);
    if (!reading.read.list) return STRATA_E_HOST_MEMORY;
    strata_status_t status = read_one(&reading, node);
    if (status == STRATA_OK) reader->strategy->named[kind] = reading.read;
    return status;
}

strata_status_t strata_read_graph(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    return read_single(reader, text, node, STRATA_NAMED_GRAPH);
}

strata_status_t strata_read_plain(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    return read_single(reader, text, node, STRATA_NAMED_PLAIN);
}

/* ---- the page ---- */

static const char about_named[] =
    "\n### Named pools\n\n"
    "A pool is memory that is kept separate from all other memory. It has its own stacks, one for each stream, and its caches\n"
    "serve only requests of the pool. The program assigns requests to a pool: it calls `strata_pool()`, then\n"
    "`strata_pool_begin()` and `strata_pool_end()` around the requests. It can also set `pool` of one request. When memory\n"
    "runs out, idle chunks of all streams and pools go back to the device, except those of pools with `keep: true`.\n\n"
    "```yaml\n"
    "strategy: serving\n"
    "stack: [retry: {timeout: 100ms}, stream_safe, auto_growth: {chunk_size: 20MiB}, system]\n"
    "pools:\n"
    "  weights:                  # loaded once and kept: large chunks without other blocks\n"
    "    keep: true\n"
    "    stack: [retry: {timeout: 100ms}, stream_safe, auto_growth: {chunk_size: 1GiB}, system]\n"
    "    places:\n"
    "      pinned: [stream_safe, buffered, system]\n"
    "  kv_cache: [retry: {timeout: 100ms}, stream_safe, limit: {bytes: 40GiB}, system]   # a list is the gpu's stack\n"
    "  scratch:                  # layers of each place, in its own instances\n"
    "```\n\n"
    "A place that a pool does not list has the layers of that place, in instances of the pool. If the device has its own layers\n"
    "for the place, the pool has those. A `limit` among them counts only for the pool. A pool's name consists of letters,\n"
    "digits, `-` and `_` and begins with a letter. It may also consist of digits alone, because a replay names each pool by its\n"
    "number in the trace.\n"
    "\n"
    "`keep: true` keeps the pool's idle chunks when other requests need memory. Requests outside the pool that run out of\n"
    "memory, strata_release(), strata_trim() and a lowered limit do not release them. The chunks go back for the pool's own\n"
    "requests, by `strata_release_pool()` and `strata_trim_pool()`, and when the facade is closed or gets another strategy. The\n"
    "option does not change a layer's own releases (`free_idle_chunk`). A pool needs `keep: true` if a captured graph uses its memory, because the\n"
    "graph writes there at each launch, even if the blocks were freed. If that memory went back to the device, its address is\n"
    "illegal (observed on an H100: gpu/h100-2026-11-23.md). A pool in which no layer keeps chunks is refused. The option's\n"
    "path is `pools.weights.keep`.\n\n"
    "### Streams by name\n\n"
    "`streams` gives streams their own stacks, selected by the name that the program sets before the stream's first request\n"
    "(`strata_stream_name()`). A key must match the whole name; `*` in a key matches any characters. The first matching key in\n"
    "the file applies. A stream without a name, or with a name that matches no key, has the place's layers. So does every\n"
    "stream in a place that its key does not list.\n"
    "\n"
    "Streams that match one key share the instances of device scope, and have a stack each. Pinned and host memory have one\n"
    "stack for all streams, so only the gpu's `stack` and `places: {managed: ...}` are allowed here. A replay uses the stream\n"
    "names of its trace (column `stream_name`), or the numbers of the streams.\n\n"
    "```yaml\n"
    "stack: [retry: {timeout: 100ms}, stream_safe, auto_growth: {chunk_size: 20MiB}, system]\n"
    "streams:\n"
    "  \"copy*\": {stack: [stream_safe, buffered, system]}   # staging buffers come back in few sizes\n"
    "  \"nccl:*\": [stream_safe, auto_growth: {chunk_size: 64MiB, free_idle_chunk: true}, system]\n"
    "```\n\n"
    "A file's pools and stream keys replace inherited ones of the same name, place by place; the others stay. Its stream\n"
    "keys are tried before the inherited ones. A pool's stack does not depend on the stream's name.\n\n"
    "A strategy has at most %d pools and %d stream keys.\n\n"
    "### Captured graphs\n\n"
    "At every launch, a captured graph uses the memory that was allocated during its capture. That memory is therefore kept "
    "separate,\n"
    "in a private pool. `graph` defines the layers of such pools. It has the syntax of a pool: a list is the gpu's stack.\n"
    "Pinned and host memory have no pools of graphs, so only `managed` is allowed in `places`. A place that `graph` does not\n"
    "list has its usual layers (those of the device, if it has its own), in instances of the pool.\n\n"
    "```yaml\n"
    "stack: [stream_safe, auto_growth, system]\n"
    "graph: {stack: [auto_growth: {chunk_size: 8MiB}, system]}   # without it: the place's own stack\n"
    "```\n\n"
    "Every path from the top of such a stack to a source must contain a cache or end in `cuda_malloc_async`. Any other source\n"
    "would give memory back to the device while a graph may still use it. `keep` is not allowed: a graph's pool keeps its\n"
    "chunks while the graph exists.\n"
    "\n"
    "Graphs that share a pool hold hardly more than the largest of them alone if chunks are as large as the largest block\n"
    "(`chunk_size`). See graphs.md. Paths begin with `graph`: `graph.auto_growth.chunk_size`,\n"
    "`graph.managed.buffered.reuse_below`. A file replaces an inherited `graph` place by place. A file that extends a preset\n"
    "and has its own `stack` does not inherit the preset's `graph` stack.\n"
    "\n### Without virtual memory\n\n"
    "A stack that ends in `vmm` needs a device with virtual memory. `without_virtual_memory` defines the layers of the place "
    "gpu\n"
    "on other devices; `strata explain` shows both stacks. It belongs to the stack beside it: a file that extends another and\n"
    "has its own `stack` does not inherit it. It also serves captured graphs there if the stack of `graph` ends in `vmm`.\n"
    "Paths begin with its name: `without_virtual_memory.auto_growth.chunk_size`.\n\n"
    "```yaml\n"
    "stack: [retry: {timeout: 100ms}, stream_safe, auto_growth_vmm, vmm]\n"
    "without_virtual_memory: {stack: [retry: {timeout: 100ms}, stream_safe, auto_growth: {chunk_size: 20MiB}, system]}\n"
    "```\n";

void strata_page_named(FILE *out) { fprintf(out, about_named, STRATA_MODEL_NAMED, STRATA_MODEL_NAMED); }
