/* What the tests of this folder share. */
#ifndef STRATA_TESTS_CONFIG_REFUSED_H
#define STRATA_TESTS_CONFIG_REFUSED_H

#include <stdio.h>

#include "config/config.h"
#include "platform/status.h"
#include "tests/harness/test.h"

/* The text of a source's refusal after its name. */
#define WITHOUT_A_CACHE "without a cache above it gives memory back to the device while a captured graph may still use it"

/* A YAML text must be refused at line:column, with `what` and after it what to write. */
void expect_refused(const char *yaml, unsigned line, unsigned column, const char *what, const char *write);
/* Must load. NULL otherwise, with the test failed. */
strata_strategy_t *load_text(const char *yaml);
strata_strategy_t *load_request(const strata_config_request_t *request);
/* A setting must be refused with exactly this text. */
void expect_unset(const char *yaml, const char *setting, const char *text);
/* The value of an option in a stack, by the layer's name, as printed; "none": there is none. The text is good until the next call. */
const char *value_in(const strata_model_stack_t *stack, const char *layer, const char *option);
/* The value of a path of the gpu's stack, as printed. */
const char *value_of(const strata_strategy_t *strategy, const char *layer, const char *option);
const strata_origin_t *origin_of(const strata_strategy_t *strategy, const char *layer, const char *option);
/* A file below the build folder with this text; the path is good until the next call. */
const char *file_of(const char *name, const char *text);
/* What was written to a temporary file, which is closed; the text is good until the next call. */
const char *read_back(FILE *file);
/* What `strata diff` says about two texts, called one and two. */
const char *difference_of(const char *first, const char *second);

#endif
