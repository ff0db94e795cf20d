/* Two layers, of which one has the name of a layer of the tree: neither is registered. */
#include "tests/modules/pass.h"

PASS_TYPE(untaken, .free = pass_free);
PASS_TYPE(retry, .free = pass_free);

STRATA_LAYERS(&untaken_type, &retry_type);
