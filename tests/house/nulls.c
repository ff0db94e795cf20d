/* Passes NULL once for every pointer parameter of every public function, with valid values for the others. If the header does not allow it,
 * the function must return E_INVALID, name the parameter, and change nothing. Each call runs in its own process. Struct fields and invalid
 * struct sizes are tested in the same way. */
#include <stdio.h>
#include <string.h>

#include "strata/status.h"
#include "tests/harness/test.h"
#include "tests/house/child.h"
#include "tests/house/declarations.h"
#include "tests/house/house.h"
#include "tests/house/values.h"

static declarations_t declared;

static void read_declarations(void) {
    if (declared.count == 0) declarations_read_all(&declared);
    if (declared.fault) FAIL_TEST("cannot be read: %.200s", declared.fault);
}

/* One call, and how its child process changes it. */
typedef struct try {
    const function_t *function;
    size_t at; /* the tested parameter */
    const char *zero; /* another parameter that is set to 0; "": none */
    size_t size; /* the struct_size that is passed */
    size_t known; /* the real size of the struct */
    size_t field; /* offset of the struct field that is set to NULL; SIZE_MAX: none */
    const char *name;
    bool required;
    uint64_t words[2 * PARAMETERS];
    size_t word; /* position of the parameter's first word */
}
try_t;

/* Fills in the words of all parameters. Returns false if one has no value. */
static bool fill_words(try_t *try, char *wrong, size_t capacity) {
    size_t at = 0;
    for (size_t i = 0; i < try->function->count; i++) {
        const parameter_t *parameter = &try->function->parameters[i];
        size_t count = values_of(try->function, parameter, &try->words[at]);
        if (count == 0) {
            snprintf(wrong, capacity, "`%s %s` has no value: add a row to tests/house/values.c", parameter->type, parameter->name);
            return false;
        }
        if (i == try->at) try->word = at;
        if (strcmp(parameter->name, try->zero) == 0) try->words[at] = 0;
        at += count;
    }
    return true;
}

static strata_status_t call(const try_t *try) { return (strata_status_t)(uint32_t)values_call(try->function, try->words); }

/* Checks for E_INVALID, a text that starts with the function and contains `named`, and no other change. */
static void expect_refused(const try_t *try, strata_status_t wanted, const char *named, char *wrong, size_t capacity) {
    strata_status_t status = call(try);
    const char *text = strata_last_error()->text;
    if (status != wanted) snprintf(wrong, capacity, "answers %s", strata_status_name(status));
    else if (!strstr(text, named) || !starts_with(text, try->function->name))
        snprintf(wrong, capacity, "says \"%.300s\", without \"%s\"", text, named);
    else if (values_are_unchanged(wrong, capacity)) wrong[0] = '\0';
}

/* The call may fail for another reason, for example without a GPU. */
static void expect_allowed(const try_t *try, char *wrong, size_t capacity) {
    strata_status_t status = call(try);
    if (status == STRATA_E_INVALID) snprintf(wrong, capacity, "is allowed and refused: %.300s", strata_last_error()->text);
}

/* ---- pointers ---- */

static bool is_stream(const parameter_t *parameter) { return strcmp(parameter->type, "strata_stream_t") == 0; }

/* A stream may always be NULL, the legacy stream, although some functions refuse that stream. */
static void try_null(void *context, char *wrong, size_t capacity) {
    try_t *try = context;
    const parameter_t *parameter = &try->function->parameters[try->at];
    char named[64];
    if (!fill_words(try, wrong, capacity)) return;
    try->words[try->word] = 0;
    snprintf(named, sizeof named, "`%s` is NULL", parameter->name);
    bool answers = strcmp(try->function->result, "strata_status_t") == 0 && !is_stream(parameter);
    bool allowed = parameter->may_be_null && (!*parameter->unless || *try->zero);
    if (!answers) (void)call(try);
    else if (allowed || strcmp(parameter->name, "context") == 0) expect_allowed(try, wrong, capacity);
    else expect_refused(try, STRATA_E_INVALID, named, wrong, capacity);
}

/* Layer functions need a working instance before they reach an optional value. */
static bool is_for_layers(const function_t *function) {
    for (size_t i = 0; i < function->count; i++)
        if (strstr(function->parameters[i].type, "strata_layer_t") || strstr(function->parameters[i].type, "strata_stack_t"))
            return true;
    return false;
}

static bool is_tried(const function_t *function, const parameter_t *parameter) {
    bool any = is_stream(parameter) || strcmp(parameter->name, "context") == 0;
    return parameter->is_pointer && !(any && is_for_layers(function));
}

static void run(try_t try, child_fn check, report_t *report) {
    const char *wrong = child_run(check, &try);
    const char *what = try.name ? try.name : try.function->parameters[try.at].name;
    if (*wrong)
        report_add(report, "%s: %s%s%s (size %zu): %s", try.function->name, what, *try.zero ? ", 0: " : "", try.zero, try.size,
                   wrong);
}

TEST(house, every_public_function_handles_null_pointers) {
    static report_t report;
    size_t calls = 0;
    read_declarations();
    EXPECT_GE(declared.count, 160);
    for (size_t i = 0; i < declared.count; i++) {
        const function_t *function = &declared.functions[i];
        for (size_t k = 0; k < function->count && !function->not_checked; k++) {
            if (!is_tried(function, &function->parameters[k])) continue;
            run((try_t){.function = function, .at = k, .zero = ""}, try_null, &report);
            if (*function->parameters[k].unless)
                run((try_t){.function = function, .at = k, .zero = function->parameters[k].unless}, try_null, &report);
            calls++;
        }
    }
    EXPECT_GE(calls, 200);
    if (report.count) FAIL_TEST("%zu of %zu:\n%s", report.count, calls, report.text);
}

/* Only functions of the hot path may skip the check of their pointers. */
TEST(house, few_public_functions_do_not_check_their_pointers) {
    size_t count = 0;
    read_declarations();
    for (size_t i = 0; i < declared.count; i++) count += declared.functions[i].not_checked;
    EXPECT_LE(count, 11);
}

/* ---- structs ---- */

enum { ROOM = 8192, BEYOND = 64, MARK = 0xa5 };

/* Passes a copy of the struct, with a marker pattern after it. NULL: the parameter has no value. */
static unsigned char *copy_struct(try_t *try, char *wrong, size_t capacity) {
    static unsigned char copy[ROOM];
    if (!fill_words(try, wrong, capacity)) return NULL;
    memset(copy, MARK, sizeof copy);
    memcpy(copy, (const void *)(uintptr_t)try->words[try->word], try->known);
    memcpy(copy, &try->size, sizeof try->size);
    try->words[try->word] = (uint64_t)(uintptr_t)copy;
    return copy;
}

static void try_wrong_size(void *context, char *wrong, size_t capacity) {
    if (copy_struct(context, wrong, capacity)) expect_refused(context, STRATA_E_INVALID, "struct_size", wrong, capacity);
}

static void try_newer_options(void *context, char *wrong, size_t capacity) {
    try_t *try = context;
    unsigned char *copy = copy_struct(try, wrong, capacity);
    if (!copy) return;
    memset(copy + try->known, 0, BEYOND);
    copy[try->known + BEYOND - 1] = 1;
    expect_refused(try, STRATA_E_UNSUPPORTED, "newer", wrong, capacity);
    copy[try->known + BEYOND - 1] = 0;
    if (!*wrong) expect_allowed(try, wrong, capacity);
}

static bool all_are(const unsigned char *bytes, size_t from, size_t to, unsigned char value) {
    for (size_t i = from; i < to; i++)
        if (bytes[i] != value) return false;
    return true;
}

/* A result is filled up to its size, bytes that this library does not know become 0, and nothing beyond it changes. */
static void try_result(void *context, char *wrong, size_t capacity) {
    try_t *try = context;
    unsigned char *copy = copy_struct(try, wrong, capacity);
    if (!copy) return;
    memset(copy + sizeof(size_t), MARK, try->known - sizeof(size_t));
    strata_status_t status = call(try);
    size_t filled = try->size < try->known ? try->size : try->known, said;
    memcpy(&said, copy, sizeof said);
    if (status != STRATA_OK) snprintf(wrong, capacity, "answers %s: %.300s", strata_status_name(status), strata_last_error()->text);
    else if (said != try->size) snprintf(wrong, capacity, "its struct_size has become %zu", said);
    else if (!all_are(copy, try->size, ROOM, MARK)) snprintf(wrong, capacity, "bytes beyond its size were written");
    else if (!all_are(copy, filled, try->size, 0)) snprintf(wrong, capacity, "bytes that the library does not know are not 0");
    else if (filled > sizeof(size_t) && all_are(copy, filled - 4, filled, MARK)) snprintf(wrong, capacity, "it was not filled");
}

static void try_field(void *context, char *wrong, size_t capacity) {
    try_t *try = context;
    char named[64];
    unsigned char *copy = copy_struct(try, wrong, capacity);
    if (!copy) return;
    memset(copy + try->field, 0, sizeof(void *));
    snprintf(named, sizeof named, "`%s` is NULL", try->name);
    if (try->required) expect_refused(try, STRATA_E_INVALID, named, wrong, capacity);
    else expect_allowed(try, wrong, capacity);
}

/* Returns the struct that a parameter points to, or NULL if it does not begin with its size. Layers have their own rules. */
static const sized_t *struct_of(const parameter_t *parameter) {
    const char *type = parameter->type + (starts_with(parameter->type, "const ") ? strlen("const ") : 0);
    for (size_t i = 0; i < declared.struct_count; i++) {
        const char *name = declared.structs[i].name;
        if (strncmp(type, name, strlen(name)) == 0 && strcmp(type + strlen(name), " *") == 0) return &declared.structs[i];
    }
    return NULL;
}

static void try_sizes(try_t try, bool options, report_t *report) {
    static const size_t wrong_sizes[] = {0, 7, 4097, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong_sizes / sizeof *wrong_sizes; i++) {
        try.size = wrong_sizes[i];
        run(try, try_wrong_size, report);
    }
    const size_t result_sizes[] = {sizeof(size_t), try.known - 8, try.known, try.known + BEYOND, 4096};
    for (size_t i = 0; i < sizeof result_sizes / sizeof *result_sizes && !options; i++) {
        try.size = result_sizes[i];
        run(try, try_result, report);
    }
    try.size = try.known + BEYOND;
    if (options) run(try, try_newer_options, report);
}

static void try_fields(try_t try, const sized_t *it, report_t *report) {
    try.size = try.known;
    for (size_t i = 0; i < it->count; i++) {
        try.name = it->pointers[i];
        try.field = values_field(it->name, it->pointers[i], &try.required);
        if (try.field == SIZE_MAX) report_add(report, "%s.%s is not known: add a row to values_field()", it->name, it->pointers[i]);
        else run(try, try_field, report);
    }
}

TEST(house, every_struct_of_every_public_function_has_its_size_checked) {
    static report_t report;
    size_t structs = 0;
    read_declarations();
    for (size_t i = 0; i < declared.count; i++) {
        const function_t *function = &declared.functions[i];
        bool later = starts_with(function->name, "strata_shadow_"); /* not implemented, so it does not check its arguments */
        for (size_t k = 0; k < function->count && !later && !is_for_layers(function); k++) {
            const sized_t *it = struct_of(&function->parameters[k]);
            if (!it || strcmp(it->name, "strata_layer_type_t") == 0) continue;
            try_t try = {.function = function, .at = k, .zero = "", .known = values_size(it->name), .field = SIZE_MAX};
            if (try.known == 0) report_add(&report, "%s is not known: add a row to values_size()", it->name);
            bool options = starts_with(function->parameters[k].type, "const ");
            if (try.known) try_sizes(try, options, &report);
            if (try.known && options) try_fields(try, it, &report);
            structs++;
        }
    }
    EXPECT_GE(structs, 20);
    if (report.count) FAIL_TEST("%s", report.text);
}

/* ---- the reader ---- */

TEST(house, declarations_are_read_as_they_are_written) {
    static declarations_t read;
    declarations_read(
        &read, "/* No. `count` (may be NULL) */\n#define STRATA_API x\n/* Does it. `text` (may be NULL\n * if `capacity` is 0),"
               " *needed (may be NULL). */\nSTRATA_API strata_status_t strata_a(strata_t facade, char *text,\n"
               "    size_t capacity, size_t *needed);\nSTRATA_API const char *strata_b(void);\n\n/* (not checked) */\n"
               "STRATA_API void strata_c(const x_t *const *all, void (*each)(void *context, int b), strata_stream_t s);\n"
               "typedef struct strata_d {\n    size_t struct_size;\n    const char *e; /* f; */\n    bool g;\n"
               "    void (*h)(int *i);\n    const char *const *j;\n} strata_d_t;\ntypedef struct strata_k {\n    void *l;\n"
               "} strata_k_t;\n");
    EXPECT_EQ(read.fault, NULL);
    EXPECT_EQ(read.count, 3);
    const function_t *a = &read.functions[0], *b = &read.functions[1], *c = &read.functions[2];
    EXPECT_STREQ(a->name, "strata_a");
    EXPECT_STREQ(a->result, "strata_status_t");
    EXPECT_EQ(a->count, 4);
    EXPECT_FALSE(a->parameters[0].is_pointer);
    EXPECT_TRUE(a->parameters[1].is_pointer && a->parameters[1].may_be_null);
    EXPECT_STREQ(a->parameters[1].type, "char *");
    EXPECT_STREQ(a->parameters[1].unless, "capacity");
    EXPECT_FALSE(a->parameters[2].is_pointer);
    EXPECT_TRUE(a->parameters[3].may_be_null);
    EXPECT_STREQ(a->parameters[3].unless, "");
    EXPECT_STREQ(b->result, "const char *");
    EXPECT_EQ(b->count, 0);
    EXPECT_EQ(c->count, 3);
    EXPECT_STREQ(c->parameters[0].type, "const x_t *const *");
    EXPECT_STREQ(c->parameters[1].name, "each");
    EXPECT_TRUE(c->parameters[1].is_pointer && c->parameters[2].is_pointer && c->not_checked);
    EXPECT_FALSE(c->parameters[1].may_be_null);
    EXPECT_EQ(read.struct_count, 1);
    EXPECT_STREQ(read.structs[0].name, "strata_d_t");
    EXPECT_EQ(read.structs[0].count, 2);
    EXPECT_STREQ(read.structs[0].pointers[0], "e");
    EXPECT_STREQ(read.structs[0].pointers[1], "j");
}
