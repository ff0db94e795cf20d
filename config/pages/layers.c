/* Describes the layers, their options, and the allowed orders of layers, as text and as docs/layers.md. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocation/call/figures.h"
#include "allocation/options/option.h"
#include "config/config.h"
#include "config/hint.h"
#include "config/pages/example.h"
#include "config/words.h"
#include "platform/status.h"
#include "strategy/plan/legal.h"

static void values_text(const strata_option_row_t *row, char *text, size_t capacity) {
    char low[64] = "", high[64] = "";
    uint64_t bound = row->min;
    *text = '\0';
    if (row->kind == STRATA_OPTION_CHOICE) {
        size_t length = 0;
        for (const char *at = row->choices; *at && length + 3 < capacity; at++) {
            if (*at == '|') {
                text[length++] = ',';
                text[length++] = ' ';
            } else {
                text[length++] = *at;
            }
        }
        text[length] = '\0';
        return;
    }
    if (row->kind == STRATA_OPTION_BOOL || row->kind == STRATA_OPTION_TEXT || (row->min == 0 && row->max == 0)) return;
    /* Bounds of fractions are in millionths; all other bounds are values. */
    double fraction = (double)bound / 1e6;
    const void *value = row->kind == STRATA_OPTION_FRACTION ? (const void *)&fraction : &bound;
    strata_option_row_t alone = *row;
    alone.offset = 0;
    strata_option_print(&alone, value, low, sizeof low);
    bound = row->max;
    fraction = (double)bound / 1e6;
    if (bound) strata_option_print(&alone, value, high, sizeof high);
    snprintf(text, capacity, bound ? "%s to %s" : "%s or more", low, high);
}

/* Most decorators pass on all traits except a few, so those few are listed. */
static void traits(uint32_t bits, char *text, size_t capacity) {
    const uint32_t all = 0
#define BIT(name, bit, meaning) | STRATA_TRAIT_##name
        STRATA_TRAIT_MAP(BIT)
#undef BIT
        ;
    char rest[256];
    strata_traits_text(bits, ", ", text, capacity);
    if (bits == 0) snprintf(text, capacity, "-");
    strata_traits_text(all & ~bits, ", ", rest, sizeof rest);
    if (strlen(rest) + 8 < strlen(text)) snprintf(text, capacity, "all%s%.240s", *rest ? " but " : "", rest);
}

/* ---- text ---- */

static void layer_as_text(const strata_layer_type_t *type, FILE *out) {
    char needs[256], gives[256], passes[256], values[256];
    traits(type->needs, needs, sizeof needs);
    traits(type->gives, gives, sizeof gives);
    traits(type->passes, passes, sizeof passes);
    fprintf(out, "%s: %s of scope %s\n  %s\n  needs %s; gives %s; passes on %s\n", type->name, strata_role_word(type->role),
            strata_scope_word(type->scope), type->doc, needs, gives, passes);
    for (const strata_option_row_t *row = type->options; row && row->name; row++) {
        values_text(row, values, sizeof values);
        fprintf(out, "    %-24s %-10s %s (%s%s%s)\n", row->name, row->default_text, row->doc, strata_kind_word(row->kind),
                *values ? ": " : "", values);
    }
    strata_own_figure_t rows[STRATA_OWN_FIGURES];
    uint32_t count = strata_own_figure_rows(type, rows);
    for (uint32_t i = 0; i < count; i++) fprintf(out, "    figure %-17s %-10s %s\n", rows[i].name, rows[i].unit, rows[i].doc);
}

/* ---- one layer ---- */

static void print_options(const strata_layer_type_t *type, size_t width, FILE *out) {
    char values[256];
    if (strata_option_count(type) == 0) {
        fprintf(out, "\nno options\n");
        return;
    }
    fprintf(out, "\noptions\n");
    for (const strata_option_row_t *row = type->options; row->name; row++) {
        values_text(row, values, sizeof values);
        fprintf(out, "  %s: %s%s%s, by default %s\n      ", row->name, strata_kind_word(row->kind), *values ? ", " : "", values,
                row->default_text);
        strata_print_wrapped(out, row->doc, 6, width);
    }
}

static void print_figures(const strata_layer_type_t *type, size_t width, FILE *out) {
    strata_own_figure_t rows[STRATA_OWN_FIGURES];
    uint32_t count = strata_own_figure_rows(type, rows);
    if (count > 0) fprintf(out, "\nfigures (strata stats)\n");
    for (uint32_t i = 0; i < count; i++) {
        fprintf(out, "  %s, %s\n      ", rows[i].name, rows[i].unit);
        strata_print_wrapped(out, rows[i].doc, 6, width);
    }
}

static void print_traits(const char *what, uint32_t bits, size_t width, FILE *out) {
    char text[256];
    traits(bits, text, sizeof text);
    fprintf(out, "  %-9s ", what);
    strata_print_wrapped(out, text, 12, width);
}

strata_status_t strata_config_layer(FILE *out, const char *name, size_t width) {
    const strata_layer_type_t *type = strata_layer_find(name);
    strata_hint_t hint;
    if (!type) {
        hint = strata_hint(name, strata_layer_words(), strata_layer_word, NULL);
        return strata_fail(STRATA_E_STRATEGY, 0, "there is no layer \"%.40s\"; %s", name, hint.text);
    }
    fprintf(out, "%s: %s of scope %s\n", type->name, strata_role_word(type->role), strata_scope_word(type->scope));
    strata_print_wrapped(out, type->doc, 0, width);
    fputc('\n', out);
    print_traits("needs", type->needs, width, out);
    print_traits("gives", type->gives, width, out);
    print_traits("passes on", type->passes, width, out);
    print_options(type, width, out);
    print_figures(type, width, out);
    strata_config_example(type, out);
    return strata_config_written(out);
}

/* ---- Markdown ---- */

/* A bar would end the cell of the table. */
static void cell(const char *text, FILE *out) {
    for (; *text; text++) fprintf(out, "%s%c", *text == '|' ? "\\" : "", *text);
}

static void table_of_layers(FILE *out) {
    const strata_layer_type_t *type;
    char text[256];
    fprintf(out, "| layer | role | scope | lock | needs | gives | passes on |\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; (type = strata_layer_at(i)); i++) {
        fprintf(out, "| [%s](#%s) | %s | %s | %s |", type->name, type->name, strata_role_word(type->role),
                strata_scope_word(type->scope), type->guarded ? "its stack's" : "-");
        const uint32_t bits[] = {type->needs, type->gives, type->passes};
        for (size_t j = 0; j < 3; j++) {
            traits(bits[j], text, sizeof text);
            fprintf(out, " %s |", text);
        }
        fprintf(out, "\n");
    }
    fprintf(out, "\n");
}

static void table_of_traits(FILE *out) {
    static const char *const meanings[] = {
#define MEANING(name, bit, meaning) [bit] = meaning,
        STRATA_TRAIT_MAP(MEANING)
#undef MEANING
    };
    char name[64];
    fprintf(out, "| trait | meaning |\n|---|---|\n");
    for (uint32_t bit = 0; bit < sizeof meanings / sizeof *meanings; bit++) {
        strata_traits_text(1u << bit, "", name, sizeof name);
        fprintf(out, "| %s | %s |\n", name, meanings[bit]);
    }
}

static void table_of_options(const strata_layer_type_t *type, FILE *out) {
    char values[256];
    if (strata_option_count(type) == 0) {
        fprintf(out, "\nNo options.\n");
        return;
    }
    fprintf(out, "\n| option | kind | default | values | meaning |\n|---|---|---|---|---|\n");
    for (const strata_option_row_t *row = type->options; row->name; row++) {
        values_text(row, values, sizeof values);
        fprintf(out, "| `%s` | %s | `%s` | %s | ", row->name, strata_kind_word(row->kind), row->default_text,
                *values ? values : "any");
        cell(row->doc, out);
        fprintf(out, " |\n");
    }
}

static void table_of_figures(const strata_layer_type_t *type, FILE *out) {
    strata_own_figure_t rows[STRATA_OWN_FIGURES];
    uint32_t count = strata_own_figure_rows(type, rows);
    if (count == 0) return;
    fprintf(out, "\n| figure | unit | meaning |\n|---|---|---|\n");
    for (uint32_t i = 0; i < count; i++) fprintf(out, "| `%s` | %s | %s |\n", rows[i].name, rows[i].unit, rows[i].doc);
}

static void layer_as_section(const strata_layer_type_t *type, FILE *out) {
    fprintf(out, "\n### %s\n\n%s.\n", type->name, type->doc);
    table_of_options(type, out);
    table_of_figures(type, out);
}

static const char *const clash_reasons[] = {[STRATA_CLASH_WAITS] = "a wait under a lock",
                                            [STRATA_CLASH_SHARED_LOCK] = "a shared lock on every hit",
                                            [STRATA_CLASH_NARROW] = "shared above one per stream",
                                            [STRATA_CLASH_NEEDS] = "a missing trait",
                                            [STRATA_CLASH_UNSEEN] = "owners change unseen"};

/* Returns why `upper` may not be directly above `lower`. A trait that the lower layer passes on from further down is not missing. */
static strata_clash_t clash_of(const strata_layer_type_t *upper, const strata_layer_type_t *lower) {
    uint32_t given = strata_traits_above(lower, 0);
    strata_scope_t scope = strata_scope_of(upper, NULL);
    strata_clash_t clash = strata_clash_of_neighbours(upper, scope, lower, given);
    bool passed = clash == STRATA_CLASH_NEEDS && (upper->needs & ~(given | lower->passes)) == 0 &&
                  strata_clash_of_pair(upper, scope, lower) == STRATA_CLASH_NONE;
    return passed ? STRATA_CLASH_NONE : clash;
}

/* Writes the names of the layers whose clash below `upper` is this one. Returns their number. */
static size_t list_below(const strata_layer_type_t *upper, strata_clash_t clash, FILE *out) {
    const strata_layer_type_t *lower;
    size_t count = 0;
    for (size_t i = 0; (lower = strata_layer_at(i)); i++)
        if (clash_of(upper, lower) == clash && ++count && out) fprintf(out, "%s%s", count > 1 ? ", " : "", lower->name);
    return count;
}

/* Writes the shorter list: the layers that may be directly below `upper`, or those that may not, with the reasons. */
static void line_of_orders(const strata_layer_type_t *upper, FILE *out) {
    size_t all = 0, allowed = list_below(upper, STRATA_CLASH_NONE, NULL);
    while (strata_layer_at(all)) all++;
    if (allowed == 0) return; /* a source */
    fprintf(out, "| `%s` | %s", upper->name, allowed == all ? "any layer" : allowed * 2 < all ? "only " : "all but ");
    if (allowed * 2 < all) list_below(upper, STRATA_CLASH_NONE, out);
    for (size_t clash = 0, groups = 0; allowed * 2 >= all && clash < sizeof clash_reasons / sizeof *clash_reasons; clash++) {
        if (!clash_reasons[clash] || list_below(upper, (strata_clash_t)clash, NULL) == 0) continue;
        fputs(groups++ ? "; " : "", out);
        list_below(upper, (strata_clash_t)clash, out);
        fprintf(out, " (%s)", clash_reasons[clash]);
    }
    fprintf(out, " |\n");
}

static void table_of_orders(FILE *out) {
    const strata_layer_type_t *upper;
    fprintf(out, "| layer | may be directly above |\n|---|---|\n");
    for (size_t i = 0; (upper = strata_layer_at(i)); i++) line_of_orders(upper, out);
}

static const char introduction[] =
    "# Layers\n\n"
    "<!-- Made by `strata layers --markdown`; a test compares. Changes belong to the layers' option rows. -->\n\n"
    "A stack is a list of layers, the outermost first. It ends with a source or a router, which has several stacks below it.\n"
    "The layers below a layer must meet its needs. It gives its traits to the layer above. A router passes on the traits\n"
    "that all of its stacks give.\n\n";
static const char about_orders[] =
    "\n## Legal orders\n\n"
    "A layer further down may also give a trait, if the layers between pass it on. A layer that waits is never below a layer\n"
    "that holds a lock, at any distance. At most %d layers are allowed from the top through the first cache or source, and\n"
    "from below a cache through the next one.\n\n";
static const char about_options[] =
    "\n## Options and figures\n\n"
    "Sizes have units (B, KiB, MiB, GiB, TiB; bytes by default) or are `unlimited`. Times have units (ns, us, ms, s) or are\n"
    "`never`. The options of a router's branches have names that end in a number. A strategy file sets them in the routes,\n"
    "without the number ([strategy.md](strategy.md)).\n"
    "\nFigures are a layer's own counts, shown by strata_layer_figures(), `strata stats` and the out-of-memory report.\n";

static void as_markdown(FILE *out) {
    const strata_layer_type_t *type;
    fputs(introduction, out);
    table_of_layers(out);
    table_of_traits(out);
    fprintf(out, about_orders, STRATA_ROUTE_LAYERS);
    table_of_orders(out);
    fputs(about_options, out);
    for (size_t i = 0; (type = strata_layer_at(i)); i++) layer_as_section(type, out);
}

strata_status_t strata_config_layers(FILE *out, bool markdown) {
    const strata_layer_type_t *type;
    if (markdown) as_markdown(out);
    for (size_t i = 0; !markdown && (type = strata_layer_at(i)); i++) layer_as_text(type, out);
    return strata_config_written(out);
}
