/* Options of layers. One table of rows gives parsing, printing, defaults and bounds. */
#ifndef STRATA_ALLOCATION_OPTION_H
#define STRATA_ALLOCATION_OPTION_H

#include "strata/layer.h"

/* Parse sizes ("20MiB", "512", "1.5GiB", "unlimited") and times ("100ms", "20us", "2s", "never"). Values
 * are rounded down to a byte or a nanosecond. E_STRATEGY, with the mistake and the allowed forms in the
 * text. */
strata_status_t strata_parse_size(const char *text, uint64_t *bytes);
strata_status_t strata_parse_time(const char *text, uint64_t *nanoseconds);
/* Return the ways to write a size or a time: "512, 64KiB, 20MiB, 1.5GiB or unlimited". */
const char *strata_size_example(void);
const char *strata_time_example(void);
/* Write the shortest text, of a number of at least 1, that parses to the same value. */
void strata_print_size(uint64_t bytes, char *text, size_t capacity);
void strata_print_time(uint64_t nanoseconds, char *text, size_t capacity);

/* Returns the row of this name, or NULL. */
const strata_option_row_t *strata_option_find(const strata_layer_type_t *type, const char *name);
size_t strata_option_count(const strata_layer_type_t *type);
/* Sets one option of `options` (the type's struct) from text. E_STRATEGY. */
strata_status_t strata_option_set(const strata_option_row_t *row, void *options, const char *text);
void strata_option_print(const strata_option_row_t *row, const void *options, char *text, size_t capacity);
/* Count and name the words of a CHOICE row. */
size_t strata_choice_count(const strata_option_row_t *row);
void strata_choice_name(const strata_option_row_t *row, uint32_t index, char *text, size_t capacity);
/* An option that acts only if option `other` has `value`, or with "!VALUE" any other value. */
typedef struct strata_option_dependency {
    const char *name, *other, *value;
} strata_option_dependency_t;
/* Refuses an option that differs from its default and cannot act, for a layer's `check`. E_STRATEGY;
 * *option is then its name. `dependencies` ends with a NULL name. */
strata_status_t strata_option_check_dependencies(const strata_option_row_t *rows, const strata_option_dependency_t *dependencies,
                                                 const void *options, const char **option);
/* Fills the struct with the defaults. They are part of the program, so a default that does not parse aborts. */
void strata_option_defaults(const strata_layer_type_t *type, void *options);

#endif
