/* What programs run under: presets, random legal stacks, files of a user. */
#ifndef STRATA_TORTURE_STRATEGIES_H
#define STRATA_TORTURE_STRATEGIES_H

#include "config/config.h"
#include "programs/program.h"

typedef struct torture_strategy {
    char name[64];
    const char *text; /* YAML, for the page of a failure */
    strata_strategy_t *strategy;
    bool may_refuse; /* requests may be refused though there is memory: all but presets */
    bool drawn; /* one of many: a program takes a few of these, and all others */
    torture_dialect_t dialect;
} torture_strategy_t;

typedef struct torture_strategies {
    torture_strategy_t *all;
    uint32_t count, room;
    uint32_t drawn; /* the last so many */
} torture_strategies_t;

/* What fails leaves the list as it was; the thread's last error says why. Drawn ones come last. */
strata_status_t torture_add_presets(torture_strategies_t *list);
strata_status_t torture_add_text(torture_strategies_t *list, const char *name, const char *text);
/* A text that names layers of a shared object; what loads it is put before the text. */
strata_status_t torture_add_loading(torture_strategies_t *list, const char *name, const char *text, const char *object);
strata_status_t torture_add_file(torture_strategies_t *list, const char *file, bool allow_code);
/* `count` random legal stacks; where `with` is not NULL all hold that layer, of the shared object `object` (NULL: of this
 * program). */
strata_status_t torture_add_drawn(torture_strategies_t *list, uint64_t seed, uint32_t count, const strata_layer_type_t *with,
                                  const char *object);
void torture_strategies_delete(torture_strategies_t *list);

#endif
