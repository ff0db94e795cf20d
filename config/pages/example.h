/* A small stack in which a layer may stand. */
#ifndef STRATA_CONFIG_EXAMPLE_H
#define STRATA_CONFIG_EXAMPLE_H

#include <stdio.h>

#include "strategy/model.h"

/* "example" and a piece of a strategy file: the first of a few stacks that loads; nothing if none does. */
void strata_config_example(const strata_layer_type_t *type, FILE *out);

#endif
