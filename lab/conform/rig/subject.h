/* A subject of the suite: a layer in the stacks that may contain it, over a source that can fail; or a preset. */
#ifndef STRATA_CONFORM_SUBJECT_H
#define STRATA_CONFORM_SUBJECT_H

#include "lab/conform/rig/rig.h"

enum { SUBJECTS = 128, SUBJECT_LAYERS = 6 };

typedef struct subject {
    char name[64];
    const char *preset; /* or a strategy's text; if NULL, `layers` is used */
    const strata_layer_type_t *layers[SUBJECT_LAYERS]; /* outermost first; ends with NULL */
    bool test_source; /* the bottom layer is that of lab/conform/rig/source.h */
    bool routed; /* the last layer is a router, over a cache with the test's source and over that source alone */
    /* Properties that are not visible in a strategy's text. */
    bool may_refuse; /* a layer is set to refuse requests, as out of memory or as a fault of the device */
    bool at_use; /* borrows cover work submitted before the call */
    bool requests_more; /* a decorator requests more from below than it was asked for */
    /* some memory is not the device's own, so the device's capacity does not bound it and its figures do not count it */
    bool other_memory;
    bool drawn; /* one of many stacks; only a few of a long series of failures are tried */
} subject_t;

/* Called for a stack that the builder refuses. The thread's last error has the reason. */
typedef void (*subject_refused_fn)(void *context, const char *name);
/* Appends the stacks in which a layer is checked, and returns their number. Those beyond SUBJECTS are counted
 * and not written. `refused` may be NULL. */
size_t subjects_of_layer(subject_t *list, size_t *count, const strata_layer_type_t *type, subject_refused_fn refused,
                         void *context);
/* Adds a stack with the decorator on top, which is the usual place of a user's own layer. So borrows and
 * large alignments pass through it. Returns 1, or 0 for layers that are not decorators. */
size_t subject_on_top(subject_t *list, size_t *count, const strata_layer_type_t *type, subject_refused_fn refused, void *context);
void subject_of_preset(subject_t *list, size_t *count, const char *preset);
/* Adds a few strategies with routers. */
void subjects_of_routers(subject_t *list, size_t *count);
/* Opens a facade over one simulated device of `capacity` bytes. */
void subject_open(const subject_t *subject, uint64_t capacity, rig_t *rig);
/* Opens a facade over the devices that `options` describes. */
void subject_open_with(const subject_t *subject, const strata_sim_options_t *options, rig_t *rig);
/* Makes the k-th request for memory from the bottom fail, and with `onward` all later ones. If k is 0, no more fail. */
void subject_fail(const subject_t *subject, rig_t *rig, uint64_t k, bool onward, strata_status_t status);
/* Call if a request was refused that should have been served. If an unused stack refuses it, too, this calls
 * conform_skip(), which does not return. */
void conform_judge_refusal(const rig_t *rig, size_t size, strata_status_t status);
/* Ends the running check with the reason. If it is NULL, a refusal is a failure like any other. */
extern void (*conform_skip)(const char *reason);
/* Selects other random requests than those of seed 0. */
extern uint64_t conform_seed;
/* Returns the beginning of a random sequence, and its next 31 bits. */
uint64_t conform_random(uint64_t number);
uint64_t conform_draw(uint64_t *random);
/* Returns how often memory was requested from the bottom. */
uint64_t subject_requests(const subject_t *subject, rig_t *rig);

#endif
