/* Reads the functions of the public headers, with their parameters and the NULL rules in the comments above them.
 *
 * The comment of a function allows NULL with "`name` (may be NULL)" or "*name (may be NULL)", and for an array with
 * "`name` (may be NULL if `count` is 0)". Hot-path functions that do not check their pointers have "(not checked)" in the comment. */
#ifndef STRATA_TESTS_HOUSE_DECLARATIONS_H
#define STRATA_TESTS_HOUSE_DECLARATIONS_H

#include <stdbool.h>
#include <stddef.h>

enum { PARAMETERS = 10, FUNCTIONS = 400 };

typedef struct parameter {
    char type[64]; /* "const strata_ref_t *"; "(*)" for a pointer to a function */
    char name[32];
    bool is_pointer; /* a pointer, a function pointer, or a handle that is a pointer */
    bool may_be_null;
    char unless[32]; /* may be NULL only if the parameter of this name is 0; "": always */
} parameter_t;

typedef struct function {
    char result[48];
    char name[64];
    parameter_t parameters[PARAMETERS];
    size_t count;
    bool not_checked;
} function_t;

/* A struct that begins with struct_size. */
typedef struct sized {
    char name[48]; /* "strata_open_options_t" */
    char pointers[8][32]; /* fields that are data pointers */
    size_t count;
} sized_t;

typedef struct declarations {
    function_t functions[FUNCTIONS];
    size_t count;
    sized_t structs[64];
    size_t struct_count;
    const char *fault; /* NULL, or the text that could not be parsed */
} declarations_t;

/* Adds the declarations of one header. */
void declarations_read(declarations_t *declarations, const char *header);
/* Adds the declarations of all headers in include/strata. */
void declarations_read_all(declarations_t *declarations);

#endif
