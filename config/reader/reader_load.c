/* Reads `load:`, the shared objects that contain layers of a strategy. */
#include "config/files.h"
#include "config/reader/reader.h"
#include "strategy/registry/code.h"

enum { OBJECTS_MAX = 64 };

static strata_status_t load_one(const strata_text_t *text, const strata_tree_t *node) {
    char path[STRATA_CONFIG_PATH];
    strata_origin_t origin = strata_origin_of(text, node->line, node->column);
    if (node->kind != STRATA_TREE_SCALAR_NODE || !*node->text)
        return strata_fail_origin(&origin, "an object to load must be a file path; write load: [./libmine.so]");
    if (!strata_path_relative_to(node->text, text->path, path, sizeof path))
        return strata_fail_origin(&origin, "the path is longer than %d bytes; write a shorter one", STRATA_CONFIG_PATH - 1);
    strata_status_t status = strata_code_load(path, NULL);
    if (status == STRATA_OK || status == STRATA_E_HOST_MEMORY) return status;
    return strata_fail_origin(&origin, "%s", strata_last_error()->text);
}

strata_status_t strata_read_load(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *node) {
    strata_origin_t key = strata_origin_of(text, node->key_line, node->key_column);
    if (node->kind != STRATA_TREE_LIST)
        return strata_fail_origin(&key, "\"load\" must be a list of shared objects; write load: [./libmine.so]");
    if (!reader->allow_code)
        return strata_fail_origin(&key,
                                  "the strategy would load code, which its reader does not allow; remove \"load\", or open it "
                                  "with STRATA_OPEN_ALLOW_CODE (strata: --allow-code)");
    if (node->count > OBJECTS_MAX) return strata_fail_origin(&key, "more than %d objects to load; remove some", OBJECTS_MAX);
    strata_status_t status = STRATA_OK;
    for (const strata_tree_t *child = node->first; child && status == STRATA_OK; child = child->next)
        status = strata_note_error(reader->error_sink, load_one(text, child));
    return status;
}
