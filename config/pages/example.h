/* Finds a small stack that may contain a given layer. */
#ifndef STRATA_CONFIG_EXAMPLE_H
#define STRATA_CONFIG_EXAMPLE_H

#include <stdio.h>

#include "strategy/model.h"

/* Writes "example" and part of a strategy file: the first of a few stacks that loads. Writes nothing if none does. */
void strata_config_example(const strata_layer_type_t *type, FILE *out);

#endif
