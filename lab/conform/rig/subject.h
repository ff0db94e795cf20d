/* What the suite is run on: a layer in the stacks where it may stand, over a source that can fail; or a preset. */
#ifndef STRATA_CONFORM_SUBJECT_H
#define STRATA_CONFORM_SUBJECT_H

#include "lab/conform/rig/rig.h"

enum { SUBJECTS = 128, SUBJECT_LAYERS = 6 };

typedef struct subject {
    char name[64];
    const char *preset; /* or a strategy's text; or */
    const strata_layer_type_t *layers[SUBJECT_LAYERS]; /* outermost first, closed by NULL */
    bool test_source; /* the bottom layer is lab/conform/rig/source.h's */
    bool routed; /* the last layer is a router: over a cache and the test's source, and over that source alone */
    /* What cannot be seen of a strategy's text. */
    bool may_refuse; /* a layer is told to refuse requests, as out of memory or as a fault of the device */
    bool at_use; /* borrows cover what was submitted before the call */
    bool asks_for_more; /* a decorator asks below for more than it was asked for */
    bool elsewhere; /* some memory is not the device's own: its capacity bounds nothing, its figures do not tell of it */
    bool drawn; /* one of many stacks: of a long series of failures a few are tried */
} subject_t;

/* Told of a stack that the builder refuses; the thread's last error says why. */
typedef void (*subject_refused_fn)(void *context, const char *name);
/* Appends the stacks in which a layer is checked; their number. What does not fit in SUBJECTS is counted and not written.
 * `refused` may be NULL. */
size_t subjects_of_layer(subject_t *list, size_t *count, const strata_layer_type_t *type, subject_refused_fn refused,
                         void *context);
/* Adds a stack with the decorator on top, where an author's own layer mostly stands, so that borrows and large alignments pass through it.
 * Returns 1, or 0 for layers that are not decorators. */
size_t subject_on_top(subject_t *list, size_t *count, const strata_layer_type_t *type, subject_refused_fn refused, void *context);
void subject_of_preset(subject_t *list, size_t *count, const char *preset);
/* A few strategies with routers. */
void subjects_of_routers(subject_t *list, size_t *count);
/* A facade over one simulated device of `capacity` bytes. */
void subject_open(const subject_t *subject, uint64_t capacity, rig_t *rig);
/* The same over the devices that `options` describes. */
void subject_open_with(const subject_t *subject, const strata_sim_options_t *options, rig_t *rig);
/* The k-th time that memory is asked from the bottom fails; with `onward` all after it too. k 0: no more. */
void subject_fail(const subject_t *subject, rig_t *rig, uint64_t k, bool onward, strata_status_t status);
/* A request was refused that should have been served: where a stack that nobody has used refuses it too, conform_unfit() is
 * told, which does not come back. */
void conform_refused(const rig_t *rig, size_t size, strata_status_t status);
/* Ends the check under way, with the reason. NULL: a refusal is a failure like any other. */
extern void (*conform_unfit)(const char *reason);
/* Other random requests than those of seed 0. */
extern uint64_t conform_seed;
/* What a random sequence begins with, and its next 31 bits. */
uint64_t conform_random(uint64_t number);
uint64_t conform_draw(uint64_t *random);
/* How often memory was asked from the bottom. */
uint64_t subject_asked(const subject_t *subject, rig_t *rig);

#endif
