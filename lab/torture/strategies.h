/* The strategies that programs run under: presets, random legal stacks and a user's files. */
#ifndef STRATA_TORTURE_STRATEGIES_H
#define STRATA_TORTURE_STRATEGIES_H

#include "config/config.h"
#include "programs/program.h"

typedef struct torture_strategy {
    char name[64];
    const char *text; /* YAML, for the page of a failure */
    strata_strategy_t *strategy;
    bool may_refuse; /* requests may be refused although there is memory; false for presets */
    bool drawn; /* one of many; a program uses a few of these, and all others */
    torture_dialect_t dialect;
} torture_strategy_t;

typedef struct torture_strategies {
    torture_strategy_t *all;
    uint32_t count, room;
    uint32_t drawn; /* number of drawn ones, which are last */
} torture_strategies_t;

/* If one of these fails, the list is unchanged, and the thread's last error has the reason. Drawn strategies
 * must be added last. */
strata_status_t torture_add_presets(torture_strategies_t *list);
strata_status_t torture_add_text(torture_strategies_t *list, const char *name, const char *text);
/* Adds a text that names layers of a shared object. The instruction that loads it is put before the text. */
strata_status_t torture_add_loading(torture_strategies_t *list, const char *name, const char *text, const char *object);
strata_status_t torture_add_file(torture_strategies_t *list, const char *file, bool allow_code);
/* Adds `count` random legal stacks. If `with` is not NULL, all contain that layer. It is from the shared
 * object `object`, or from this program if that is NULL. */
strata_status_t torture_add_drawn(torture_strategies_t *list, uint64_t seed, uint32_t count, const strata_layer_type_t *with,
                                  const char *object);
void torture_strategies_delete(torture_strategies_t *list);

#endif
