/* The functions that the public headers declare, with their parameters, and what the comment above each says of NULL.
 *
 * A header says where NULL is allowed, in the comment of the function: "`name` (may be NULL)" or "*name (may be NULL)", and of an array
 * "`name` (may be NULL if `count` is 0)". A function of the hot path whose comment says "(not checked)" does not look at its pointers. */
#ifndef STRATA_TESTS_HOUSE_DECLARATIONS_H
#define STRATA_TESTS_HOUSE_DECLARATIONS_H

#include <stdbool.h>
#include <stddef.h>

enum { PARAMETERS = 10, FUNCTIONS = 400 };

typedef struct parameter {
    char type[64]; /* "const strata_ref_t *"; "(*)" for a pointer to a function */
    char name[32];
    bool is_pointer; /* by its type: a pointer, a function, or a handle that is one */
    bool may_be_null;
    char unless[32]; /* it may be NULL only if the parameter of this name is 0; "": in any case */
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
    char pointers[8][32]; /* its fields that are pointers to data */
    size_t count;
} sized_t;

typedef struct declarations {
    function_t functions[FUNCTIONS];
    size_t count;
    sized_t structs[64];
    size_t struct_count;
    const char *fault; /* NULL, or what could not be read */
} declarations_t;

/* Adds those of one header. */
void declarations_read(declarations_t *declarations, const char *header);
/* Adds those of every header of include/strata. */
void declarations_read_all(declarations_t *declarations);

#endif
