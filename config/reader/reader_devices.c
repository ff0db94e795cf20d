/* Reads `devices:` as a mapping, `{use: gpu, gpu:1: {stack: [...]}}`, which gives single devices their own stacks. */
#include <string.h>

#include "config/hint.h"
#include "config/page.h"
#include "config/reader/reader.h"
#include "strategy/devices.h"

static strata_origin_t key_of(const strata_text_t *text, const strata_tree_t *node) {
    return strata_origin_of(text, node->key_line, node->key_column);
}

static const char *own_word(size_t index, const void *context) {
    (void)context;
    static const char *const keys[] = {"stack", "places", STRATA_RECLAIM_KEY, STRATA_IDLE_KEY};
    return keys[index];
}

/* Besides gpu memory, only managed memory belongs to a device. */
static strata_status_t read_own_places(strata_reader_t *reader, const strata_text_t *text, strata_model_device_t *own,
                                       const strata_tree_t *node) {
    strata_origin_t key = key_of(text, node);
    if (node->kind != STRATA_TREE_MAP)
        return strata_fail_origin(&key, "\"places\" must be a mapping of places to stacks; write places: {managed: [...]}");
    strata_status_t status = STRATA_OK;
    for (const strata_tree_t *child = node->first; child && status == STRATA_OK; child = child->next) {
        key = key_of(text, child);
        if (strcmp(child->key, "managed") == 0) status = strata_read_stack(reader, text, STRATA_PLACE_MANAGED, own, child);
        else
            status = strata_note_error(
                reader->error_sink,
                strata_fail_origin(&key, "a device has no own \"%.40s\"; write managed, or places: at the top level", child->key));
    }
    return status;
}

static strata_status_t read_own_key(strata_reader_t *reader, const strata_text_t *text, strata_model_device_t *own,
                                    const strata_tree_t *node) {
    if (strcmp(node->key, "stack") == 0) return strata_read_stack(reader, text, STRATA_PLACE_GPU, own, node);
    if (strcmp(node->key, "places") == 0) return read_own_places(reader, text, own, node);
    if (strata_is_stack_key(node->key)) return STRATA_OK; /* read after the stack */
    strata_origin_t key = key_of(text, node);
    strata_hint_t hint = strata_hint(node->key, 4, own_word, NULL);
    return strata_fail_origin(&key, "a device has no key \"%.40s\"; %s", node->key, hint.text);
}

static strata_status_t read_device(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    strata_origin_t key = key_of(text, node);
    if (strcmp(node->key, "use") == 0) {
        strata_origin_t value = strata_origin_of(text, node->line, node->column);
        if (node->kind != STRATA_TREE_SCALAR_NODE || node->empty)
            return strata_fail_origin(&key, "\"use\" needs one value; write use: gpu");
        return strata_read_devices(reader->strategy, node->text, text->path, &value);
    }
    /* A leading zero is refused: one device could have two keys, and the second would silently replace the first. */
    int number = strncmp(node->key, "gpu:", 4) == 0 ? strata_device_number(node->key + 4) : -1;
    if (number < 0)
        return strata_fail_origin(&key, "\"%.40s\" is not a device; write gpu:0 to gpu:%d, or use: gpu for the devices to use",
                                  node->key, STRATA_MODEL_DEVICES - 1);
    if (node->kind != STRATA_TREE_MAP)
        return strata_fail_origin(&key, "a device must be a mapping; write %s: {stack: [...]}", node->key);
    strata_model_device_t *own = strata_strategy_own(reader->strategy, (uint32_t)number);
    if (!own) return STRATA_E_HOST_MEMORY;
    strata_status_t status = STRATA_OK;
    for (const strata_tree_t *child = node->first; child && status == STRATA_OK; child = child->next)
        status = strata_note_error(reader->error_sink, read_own_key(reader, text, own, child));
    if (status) return status;
    return strata_note_error(reader->error_sink, strata_read_stack_keys(reader, text, node, &own->stacks[STRATA_PLACE_GPU]));
}

strata_status_t strata_read_own_stacks(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    strata_status_t status = STRATA_OK;
    for (const strata_tree_t *child = node->first; child && status == STRATA_OK; child = child->next)
        status = strata_note_error(reader->error_sink, read_device(reader, text, child));
    return status;
}

/* ---- the page ---- */

static const char about_own_stacks[] =
    "\n### Stacks of one device\n\n"
    "`devices` as a mapping gives up to %d devices stacks of their own. A device that does not list a stack has the one of\n"
    "all devices. `use` names the devices to open, as described above; the default is the inherited value or `gpu`.\n\n"
    "```yaml\n"
    "devices:\n"
    "  use: gpu\n"
    "  gpu:1:\n"
    "    stack: [retry, stream_safe, auto_growth: {chunk_size: 64MiB}, system]\n"
    "    places: {managed: [system]}\n"
    "stack:\n"
    "  - retry\n"
    "  - stream_safe\n"
    "  - auto_growth: {chunk_size: 20MiB}\n"
    "  - system\n"
    "```\n\n"
    "Pinned and host memory belong to no device, so their stacks are allowed only in `places` at the top level.\n\n"
    "The profiles of simulated devices:";

void strata_page_devices(FILE *out) {
    fprintf(out, about_own_stacks, STRATA_MODEL_DEVICES);
    for (size_t i = 0; strata_sim_profile_name(i); i++) fprintf(out, "%s `%s`", i ? "," : "", strata_sim_profile_name(i));
    fprintf(out, " ([profiles.md](profiles.md)), and files ([profile-file.md](profile-file.md)); `sim` alone is the first "
                 "one.\n");
}
