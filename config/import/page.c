/* Writes docs/import.md from the tables. */
#include <string.h>

#include "config/import/rows.h"
#include "config/words.h"

static const char introduction[] =
    "# Strings of other allocators\n\n"
    "<!-- Made by `strata import --markdown`; a test compares. Changes belong to the tables in config/import/. -->\n\n"
    "The settings of PyTorch's, Paddle's or TensorFlow's allocator can be turned into a strategy:\n\n"
    "    strata import pytorch \"max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:4]\" > mine.yaml\n"
    "    strata import pytorch \"expandable_segments:True\" --as-of 2.9\n"
    "    strata import paddle \"FLAGS_allocator_strategy=auto_growth FLAGS_gpu_memory_limit_mb=8000\"\n"
    "    strata import tensorflow \"TF_FORCE_GPU_ALLOW_GROWTH=true XLA_PYTHON_CLIENT_MEM_FRACTION=.75\"\n"
    "    strata import pytorch                 # what the environment's variables mean\n\n"
    "The strategy is printed as a file that `strata check` accepts. An unknown key inside a value, and a spelling\n"
    "that the framework itself refuses or ignores, are errors with a line and a column. PyTorch accepts `True` but not\n"
    "`true`, and TF_FORCE_GPU_ALLOW_GROWTH accepts `true` but not `1`. Settings without an equivalent are listed on standard\n"
    "error and in the file.\n\n"
    "Variables can have the syntax of scripts and images: `NAME=value`, `export NAME=value`, `ENV NAME value`,\n"
    "`setenv NAME value`, `-e NAME=value`. A line can have several, with quotes, `;`, `&&`, comments, continued lines and a\n"
    "program's command after them. A variable that is in no table is listed as ignored. A name that closely resembles one in\n"
    "a table is refused as a likely mistake.\n\n"
    "If one setting disables another, both are listed as a pair:\n\n"
    "    <pytorch>:1:26: max_split_size_mb:128 conflicts with expandable_segments:True: a free block of max_split_size or more "
    "...\n\n"
    "The names `import:pytorch`, `import:paddle` and `import:tensorflow` do the same in a running program. They are accepted\n"
    "where a preset can be named: `preset` of strata_open(), `STRATA_STRATEGY`, `extends:` and the command. The variables\n"
    "below are then read from the environment, and settings without an equivalent are listed on standard error.\n"
    "`import:pytorch@2.9` reads them as of a version. Other environment variables are not read.\n\n"
    "A variable sets each of the options beside it that the strategy has. Options that no setting changes are as in the\n"
    "preset. If a version is given, only the keys of that version are accepted. Otherwise, all keys are accepted. A\n"
    "version in the tables is the first or last one that is known to have the key. A `-` means that it is not known.\n";

static const char *written(const import_row_t *row) {
    switch (row->kind) {
    case IMPORT_CONF: return "key:value,key:value";
    case IMPORT_BOOL:
    case IMPORT_BOOL_EXACT: return "true, false";
    case IMPORT_BOOL_TENSORFLOW: return "true, false, 1, 0";
    case IMPORT_BOOL_JAX: return "true; false, False, 0";
    case IMPORT_BOOL_PYTORCH: return "True, False";
    case IMPORT_BOOL_DIGIT: return "1, 0";
    case IMPORT_COUNT: return "number";
    case IMPORT_BYTES: return "bytes";
    case IMPORT_MIB: return "MiB";
    case IMPORT_GIB: return "GiB";
    case IMPORT_MS: return "ms";
    case IMPORT_FRACTION: return "fraction";
    case IMPORT_REAL: return "number";
    case IMPORT_WORD:
    case IMPORT_WORD_ANY_CASE: return "word";
    case IMPORT_TEXT: return "text";
    }
    return "";
}

/* Writes each word of a list in quotes, with `between` as the separator. */
static void write_list(const char *list, const char *between, FILE *out) {
    const char *first = "";
    while (*(list += strspn(list, " +"))) {
        size_t length = strcspn(list, " ");
        fprintf(out, "%s`%.*s`", first, (int)length, list);
        list += length;
        first = between;
    }
}

/* Writes a rule of the form "PLACE.LAYER OTHER path=value ...". */
static void write_exchange(const char *what, FILE *out) {
    size_t layer = strcspn(what, " ");
    const char *other = what + layer + 1;
    size_t length = strcspn(other, " ");
    fprintf(out, "`%.*s` instead of `%.*s`, with ", (int)length, other, (int)layer, what);
    write_list(other + length, ", ", out);
}

static void write_case(const import_case_t *one, FILE *out) {
    size_t name = one->what ? strcspn(one->what, " ") : 0;
    switch (one->verb) {
    case IMPORT_END: break;
    case IMPORT_SET: write_list(one->what, ", ", out); break;
    case IMPORT_FIX: write_list(one->what, ", ", out); break;
    case IMPORT_EXCHANGE: write_exchange(one->what, out); break;
    case IMPORT_DROP: fprintf(out, "no layer `%s`", one->what); break;
    case IMPORT_NOTHING: fprintf(out, "nothing to do%s%s", one->what ? ": " : "", one->what ? one->what : ""); break;
    case IMPORT_NONE: fprintf(out, "**no equivalent**: %s", one->what); break;
    case IMPORT_PRESET:
        fprintf(out, "the preset `%.*s`%s", (int)name, one->what, one->what[name] ? " with " : "");
        write_list(one->what + name, ", ", out);
        break;
    }
}

static void write_row(const import_row_t *row, FILE *out) {
    fprintf(out, "| `%s` | %s | ", row->key, written(row));
    if (row->until) fprintf(out, "%s to %s | ", row->since, row->until);
    else fprintf(out, "%s | ", row->since ? row->since : "-");
    if (row->kind == IMPORT_CONF) fputs("Keys of the second table", out);
    for (size_t i = 0; i < IMPORT_CASES && row->cases[i].verb != IMPORT_END; i++) {
        if (i > 0) fputs(". ", out);
        if (row->cases[i].word) fprintf(out, "`%s`: ", row->cases[i].word);
        else if (i > 0) fputs("Other values: ", out);
        write_case(&row->cases[i], out);
    }
    fprintf(out, "%s%s |\n", row->remark ? ". " : "", row->remark ? row->remark : "");
}

static void write_table(const import_peer_t *peer, bool inner, FILE *out) {
    bool any = false;
    for (const import_row_t *row = peer->rows; row->key; row++) {
        if (row->inner != inner) continue;
        if (!any) fprintf(out, "\n| %s | value | from | here |\n|---|---|---|---|\n", inner ? "key" : "variable");
        any = true;
        write_row(row, out);
    }
}

static void write_peer(const import_peer_t *peer, FILE *out) {
    fprintf(out, "\n## %s\n\nStrings are applied to the preset `%s`", peer->name, peer->preset);
    if (peer->old) fprintf(out, ", and for versions before %s to `%s`", peer->old, peer->old_preset);
    if (peer->later) fprintf(out, ". In version %s and later the framework differs: %s", peer->later, peer->later_note);
    char known[128] = "";
    strata_import_known_text(peer, known, sizeof known);
    fprintf(out, ". Known versions are %s, written as in `--as-of %s`.\n\n    strata import %s \"%s\"\n", known, peer->version,
            peer->name, peer->example);
    write_table(peer, false, out);
    write_table(peer, true, out);
}

strata_status_t strata_import_page(FILE *out) {
    fputs(introduction, out);
    for (size_t i = 0; strata_import_peer_at(i); i++) write_peer(strata_import_peer_at(i), out);
    fprintf(out,
            "\n## Limits\n\nA string has at most %d bytes of printable ASCII and at most %d settings. A value has at most %d "
            "bytes.\n",
            STRATA_IMPORT_BYTES, STRATA_IMPORT_SETTINGS, STRATA_IMPORT_VALUE - 1);
    return strata_config_written(out);
}
