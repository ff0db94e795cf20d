/* What the suite is run on: every layer of the registry over a source that can fail, one layer from outside the tree, and every
 * preset; and a few strategies with routers. */
#ifndef STRATA_TESTS_CONFORMANCE_SUBJECT_H
#define STRATA_TESTS_CONFORMANCE_SUBJECT_H

#include "tests/facade/fixture.h"

enum { SUBJECTS = 64, SUBJECT_LAYERS = 4 };

typedef struct subject {
    char name[64];
    const char *preset;                                /* or a strategy's text; or */
    const strata_layer_type_t *layers[SUBJECT_LAYERS]; /* outermost first, closed by NULL */
    bool test_source;                                  /* the bottom layer is the test's */
    bool routed; /* the last layer is a router: over a cache and the test's source, and over that source alone */
} subject_t;

/* Every subject there is; the count. More than SUBJECTS are counted and not written. */
size_t subjects(subject_t *list);
/* A facade over one simulated device of `capacity` bytes. */
void subject_open(const subject_t *subject, uint64_t capacity, rig_t *rig);
/* The k-th time that memory is asked from the bottom fails; with `onward` all behind it too. k 0: no more. */
void subject_fail(const subject_t *subject, rig_t *rig, uint64_t k, bool onward, strata_status_t status);
/* How often memory was asked from the bottom. */
uint64_t subject_asked(const subject_t *subject, rig_t *rig);

#endif
