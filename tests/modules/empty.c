/* An object whose table has no layer in it. */
#include "strata/layer.h"

STRATA_LAYERS(NULL);
