/* Loads and checks strategies. Values have several origins, and later origins override earlier ones. */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/import/import.h"
#include "config/page.h"
#include "config/reader/reader.h"

enum { SETTING_LETTERS = 512 };

/* ---- overrides of the text ---- */

static strata_status_t apply_setting(strata_strategy_t *strategy, const char *text, size_t length, const strata_origin_t *origin) {
    char setting[SETTING_LETTERS];
    while (length > 0 && *text == ' ') text++, length--;
    while (length > 0 && text[length - 1] == ' ') length--;
    const char *equals = memchr(text, '=', length);
    if (!equals || length >= sizeof setting)
        return strata_fail_origin(origin, "\"%.*s\" is not a setting; write PATH=VALUE, as in auto_growth.chunk_size=32MiB",
                                  length < 80 ? (int)length : 80, text);
    memcpy(setting, text, length);
    setting[length] = '\0';
    char *value = setting + (equals - text);
    *value++ = '\0';
    return strata_strategy_set(strategy, setting, value, origin);
}

/* Applies STRATA_SET, as in "a.b=1,c.d=2". */
static strata_status_t apply_environment(strata_strategy_t *strategy) {
    static const strata_origin_t origin = {.source = STRATA_FROM_ENVIRONMENT, .file = "STRATA_SET"};
    const char *at = getenv("STRATA_SET");
    strata_status_t status = STRATA_OK;
    while (at && *at && status == STRATA_OK) {
        size_t length = strcspn(at, ",");
        if (length > 0) status = apply_setting(strategy, at, length, &origin);
        at += length + (at[length] == ',');
    }
    return status;
}

static strata_status_t apply_settings(strata_strategy_t *strategy, const strata_config_request_t *request) {
    const strata_origin_t by_hand = {.source = STRATA_FROM_COMMAND, .file = request->by_program ? "set" : "--set"};
    strata_status_t status = request->environment ? apply_environment(strategy) : STRATA_OK;
    for (size_t i = 0; i < request->set_count && status == STRATA_OK; i++)
        status = apply_setting(strategy, request->set[i], strlen(request->set[i]), &by_hand);
    return status;
}

/* ---- a whole strategy ---- */

static void inherit_named_stacks(strata_strategy_t *strategy, const strata_strategy_t *filler) {
    strategy->named[STRATA_NAMED_PLAIN] = filler->named[STRATA_NAMED_PLAIN];
    if (strategy->named[STRATA_NAMED_GRAPH].count == 0) strategy->named[STRATA_NAMED_GRAPH] = filler->named[STRATA_NAMED_GRAPH];
}

/* Fills places that were not listed with those of the preset strata. */
static strata_status_t fill_missing_places(strata_reader_t *reader) {
    strata_strategy_t filler = {.memory = reader->strategy->memory, .name = "", .description = "", .devices = "gpu"};
    strata_reader_t other = {.strategy = &filler, .scratch = reader->scratch, .error_sink = reader->error_sink};
    bool missing = false;
    for (size_t place = 0; place < STRATA_PLACE_KINDS; place++)
        missing = missing || (reader->strategy->stacks[place].count == 0 && !(reader->broken & (1u << place)));
    strata_status_t status = missing ? strata_read_preset(&other, "strata") : STRATA_OK;
    for (size_t place = 0; place < STRATA_PLACE_KINDS && status == STRATA_OK; place++)
        if (reader->strategy->stacks[place].count == 0) {
            reader->strategy->stacks[place] = filler.stacks[place];
            if (place == STRATA_PLACE_GPU) inherit_named_stacks(reader->strategy, &filler);
        }
    return status;
}

static strata_status_t plan_own(const strata_reader_t *reader, const strata_model_device_t *own, unsigned broken) {
    strata_status_t status = STRATA_OK;
    strata_plan_t plan;
    for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS && status == STRATA_OK; place++)
        if (own->stacks[place].count > 0 && !(broken & (1u << place)))
            status = strata_note_error(reader->error_sink, strata_stack_plan(&own->stacks[place], place, &plan));
    return status;
}

static strata_status_t check_graph(const strata_model_stack_t *stack, const strata_plan_t *plan) {
    strata_status_t status = strata_plan_serves_graphs(plan);
    return status ? strata_fail_origin(&stack->origin, "%s", strata_last_error()->text) : STRATA_OK;
}

static strata_status_t plan_named(const strata_reader_t *reader, strata_named_kind_t kind) {
    const strata_model_names_t *names = &reader->strategy->named[kind];
    strata_status_t status = STRATA_OK;
    strata_plan_t plan;
    for (size_t i = 0; i < names->count; i++)
        for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS && status == STRATA_OK; place++) {
            const strata_model_named_t *named = &names->list[i];
            if (named->stacks[place].count == 0 || (named->broken & (1u << place))) continue;
            status = strata_stack_plan(&named->stacks[place], place, &plan);
            if (status == STRATA_OK && kind == STRATA_NAMED_GRAPH) status = check_graph(&named->stacks[place], &plan);
            status = strata_note_error(reader->error_sink, status);
        }
    for (size_t i = 0; i < names->count && status == STRATA_OK; i++)
        status = strata_note_error(reader->error_sink, strata_named_check_keep(reader->strategy, &names->list[i]));
    return status;
}

static strata_status_t plan_all(const strata_reader_t *reader) {
    strata_status_t status = STRATA_OK;
    strata_plan_t plan;
    for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS && status == STRATA_OK; place++)
        if (!(reader->broken & (1u << place)))
            status = strata_note_error(reader->error_sink, strata_strategy_plan(reader->strategy, place, &plan));
    for (size_t i = 0; i < reader->strategy->own_count && status == STRATA_OK; i++)
        status = plan_own(reader, &reader->strategy->own[i], reader->broken_own[i]);
    for (int kind = 0; kind < STRATA_NAMED_KINDS && status == STRATA_OK; kind++)
        status = plan_named(reader, (strata_named_kind_t)kind);
    if (status == STRATA_OK && reader->broken == 0)
        status = strata_note_error(reader->error_sink, strata_strategy_check_pool_options(reader->strategy));
    return status;
}

static strata_status_t read_base(strata_reader_t *reader, const strata_config_request_t *request) {
    static const strata_origin_t environment = {.source = STRATA_FROM_ENVIRONMENT, .file = "STRATA_STRATEGY"};
    if (request->text)
        return strata_read_text(reader, &(strata_text_t){.source = STRATA_FROM_FILE,
                                                         .file = "<text>",
                                                         .short_name = "text",
                                                         .text = request->text,
                                                         .length = strlen(request->text)});
    if (request->import) return strata_read_import(reader, request->import);
    if (request->file) return strata_read_file(reader, request->file, STRATA_FILE_NAMED_BY_USER);
    if (request->preset) return strata_read_preset(reader, request->preset);
    const char *named = request->environment ? getenv("STRATA_STRATEGY") : NULL;
    if (named && *named) return strata_read_named(reader, named, NULL, &environment);
    return strata_read_preset(reader, "strata");
}

static strata_status_t read_devices(strata_reader_t *reader, const strata_config_request_t *request) {
    const strata_origin_t by_hand = {.source = STRATA_FROM_COMMAND, .file = request->by_program ? "devices" : "--device"};
    return request->devices ? strata_read_devices(reader->strategy, request->devices, NULL, &by_hand) : STRATA_OK;
}

static strata_status_t load(strata_reader_t *reader, const strata_config_request_t *request) {
    strata_status_t status = read_base(reader, request);
    if (status == STRATA_OK) status = read_devices(reader, request);
    if (status == STRATA_OK) status = fill_missing_places(reader);
    if (status == STRATA_OK) status = apply_settings(reader->strategy, request);
    return status ? status : plan_all(reader);
}

static strata_status_t reader_begin(strata_reader_t *reader, strata_error_sink_t *error_sink) {
    *reader = (strata_reader_t){.error_sink = error_sink, .scratch = strata_arena_new()};
    return reader->scratch ? strata_strategy_new(&reader->strategy) : STRATA_E_HOST_MEMORY;
}

strata_status_t strata_config_load(const strata_config_request_t *request, strata_strategy_t **strategy) {
    if (!!request->preset + !!request->file + !!request->text + !!request->import > 1)
        return strata_fail(STRATA_E_INVALID, 0, "only one of preset, file and text can be given");
    strata_error_sink_t error_sink = {.out = NULL};
    strata_reader_t reader;
    strata_status_t status = reader_begin(&reader, &error_sink);
    reader.allow_code = request->allow_code;
    if (status == STRATA_OK) status = load(&reader, request);
    strata_arena_delete(reader.scratch);
    if (status == STRATA_OK) {
        *strategy = reader.strategy;
    } else {
        strata_strategy_delete(reader.strategy);
    }
    return status;
}

size_t strata_config_check(const char *file, bool allow_code, FILE *errors) {
    strata_error_sink_t error_sink = {.out = errors};
    strata_reader_t reader;
    strata_status_t status = reader_begin(&reader, &error_sink);
    reader.allow_code = allow_code;
    if (status == STRATA_OK) status = strata_read_file(&reader, file, STRATA_FILE_NAMED_BY_USER);
    if (status == STRATA_OK) status = fill_missing_places(&reader);
    if (status == STRATA_OK) status = plan_all(&reader);
    if (status && status != STRATA_E_STRATEGY) {
        fprintf(errors, "%s\n", strata_last_error()->text);
        error_sink.count++;
    }
    strata_arena_delete(reader.scratch);
    strata_strategy_delete(reader.strategy);
    return error_sink.count;
}

/* ---- the page ---- */

static const char about_paths[] =
    "\n## Order of precedence\n\n"
    "Later sources override earlier ones: the layer's default, the preset, the file, `STRATA_SET` in the environment,\n"
    "`--set` of the command (`set` of the API). `STRATA_STRATEGY` names a preset or a file for programs that name none.\n\n"
    "    STRATA_SET=auto_growth.chunk_size=32MiB,pinned.auto_growth.order=address\n"
    "    strata explain mine.yaml --set small.chunk_size=4MiB\n\n"
    "A path is LAYER.OPTION for the place gpu, or PLACE.LAYER.OPTION. `stack.` also means the place gpu, and `gpu:1.` the\n"
    "stack of device 1 alone. The prefixes `pools.NAME.` and `streams.KEY.` come first and name the stacks of a pool or "
    "streams:\n"
    "`pools.weights.auto_growth.chunk_size`, `pools.weights.pinned.buffered.reuse_below`,\n"
    "`streams.copy*.buffered.reuse_below`. The prefix `graph.` names the stack of captured graphs:\n"
    "`graph.auto_growth.chunk_size`.\n\n"
    "LAYER is a layer's name. It may be the layer's type if only one layer, in all branches, has that type. A path that\n"
    "matches two layers is refused, and the error names both. A value of a route has the route's number after it:\n"
    "`binning.up_to_1`. `strata explain` draws each stack with every value and its origin; `--short` omits the defaults.\n"
    "`strata diff A B` shows how two strategies differ.\n\n"
    "`import:pytorch`, `import:paddle` and `import:tensorflow` are allowed in place of a preset's name. Each is the strategy\n"
    "that the framework's environment variables describe ([import.md](import.md)). `strata import` prints one as a file.\n";

void strata_page_paths(FILE *out) { fputs(about_paths, out); }
