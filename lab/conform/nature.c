/* Some stacks cannot pass a check by their nature, which is not a failure. The reason is reported, and the
 * check is left out or ends. */
#include <stdio.h>

#include "lab/conform/checks.h"
#include "lab/conform/rig/source.h"
#include "lab/conform/stacks.h"

void (*conform_skip)(const char *reason);
uint64_t conform_seed;

uint64_t conform_random(uint64_t number) { return number + conform_seed * 0x9e3779b97f4a7c15ull; }

uint64_t conform_draw(uint64_t *random) {
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    return *random >> 33;
}

/* ---- missing operations of a layer ---- */

static bool is_one_of(int check, const int *list, size_t count) {
    bool found = false;
    for (size_t i = 0; i < count; i++) found = found || list[i] == check;
    return found;
}

static const char *cache_lacks(int check, const strata_layer_type_t *cache) {
    static const int needing_release[] = {CHECK_release_returns_everything, CHECK_thousands_of_blocks_come_and_go,
                                          CHECK_trim_keeps_what_is_asked, CHECK_out_of_memory_leaves_everything_as_it_was,
                                          CHECK_what_threads_freed_is_one_piece_again};
    static const int needing_walk[] = {CHECK_a_snapshot_shows_what_is_live, CHECK_addresses_inside_find_their_block,
                                       CHECK_neighbours_and_victims_hold};
    if (!cache->release && is_one_of(check, needing_release, sizeof needing_release / sizeof *needing_release))
        return "a cache of the stack has no release, so it keeps its memory";
    if (!cache->walk && is_one_of(check, needing_walk, sizeof needing_walk / sizeof *needing_walk))
        return "a cache of the stack has no walk, so it shows no blocks";
    return NULL;
}

const char *check_unsupported(int check, const strata_layer_type_t *const *layers) {
    const char *why = NULL;
    for (size_t i = 0; layers[i] && !why; i++)
        if (layers[i]->role == STRATA_CACHE) why = cache_lacks(check, layers[i]);
    return why;
}

/* ---- random stacks ---- */

bool stack_is_for_all(int check) {
    static const int list[] = {CHECK_zero_size,
                               CHECK_sizes_from_4_bytes_to_1_petabyte,
                               CHECK_a_hundred_are_live_at_once,
                               CHECK_five_of_ten_are_counted_and_told,
                               CHECK_a_copy_of_the_handle_is_the_handle,
                               CHECK_four_threads_at_once,
                               CHECK_another_thread_frees_on_its_stream,
                               CHECK_a_destroyed_stream_leaves_its_memory,
                               CHECK_what_threads_freed_is_one_piece_again};
    return is_one_of(check, list, sizeof list / sizeof *list);
}

bool stack_is_for(const drawn_stack_t *stack, int check) {
    static const int of_the_device[] = {CHECK_release_returns_everything, CHECK_out_of_memory_leaves_everything_as_it_was,
                                        CHECK_no_retry_climbs_no_ladder, CHECK_the_bottom_is_out_of_memory_at_every_call,
                                        CHECK_the_bottom_refuses_every_call};
    if (stack->subject.other_memory && is_one_of(check, of_the_device, sizeof of_the_device / sizeof *of_the_device)) return false;
    return !stack->subject.may_refuse || stack_is_for_all(check);
}

/* ---- requests that a stack refuses however much memory there is ---- */

void conform_judge_refusal(const rig_t *rig, size_t size, strata_status_t status) {
    char reason[1024];
    rig_t fresh;
    strata_block_t block;
    if (!conform_skip || !rig->subject || (status != STRATA_E_NO_MEMORY && status != STRATA_E_UNSUPPORTED)) return;
    const strata_error_t refusal = *strata_last_error();
    test_source_fail(0, false, STRATA_OK);
    subject_open(rig->subject, rig->capacity, &fresh);
    strata_status_t again = strata_allocate(fresh.s, fresh.gpu, NULL, size, &block);
    snprintf(reason, sizeof reason, "a fresh stack does not serve %zu bytes either: %.*s", size,
             (int)strcspn(strata_last_error()->text, "\n"), strata_last_error()->text);
    rig_close_by_force(&fresh);
    (void)strata_fail_again(&refusal);
    if (again == status) conform_skip(reason);
}

/* ---- the page ---- */

/* Prints lines of at most WIDTH letters. */
static void print_wrapped(FILE *out, const char *text) {
    enum { WIDTH = 120 };
    for (size_t at = 0; *text; text += strspn(text, " ")) {
        size_t word = strcspn(text, " ");
        bool fits = at + 1 + word <= WIDTH;
        fprintf(out, "%s%.*s", at == 0 ? "" : fits ? " " : "\n", (int)word, text);
        at = at && fits ? at + 1 + word : word;
        text += word;
    }
    fputc('\n', out);
}

void checks_print(FILE *out) {
    fputs("# Checks of `strata conform`\n\n", out);
    print_wrapped(
        out,
        "`strata conform ./libmine.so` runs these checks on each layer of a shared object. A layer is checked in the stacks that "
        "may contain it and in a few random legal ones (`--seed` draws others). The device is simulated, and the options of the "
        "layer have their defaults. `strata conform --explain CHECK` prints one of the paragraphs below, and `--explain all` "
        "prints this page. `--only CHECK` runs one check. In a pattern such as `\"the_bottom_*\"` the star matches any characters.");
    fputc('\n', out);
    print_wrapped(
        out, "Each check runs in its own process. A check fails if it crashes or does not end within `--limit` (5 s). If three "
             "checks of a layer do not end, its other checks are skipped.");
    fputc('\n', out);
    print_wrapped(
        out,
        "`skip` is not a failure. A check is skipped if the builder refuses the stack, or if the layer lacks an operation that "
        "the check needs. It is also skipped if a fresh stack of these layers does not serve the requested size either. "
        "The line has the reason.");
    for (const check_t *check = checks; check->name; check++) {
        fprintf(out, "\n## %s\n\n", check->name);
        print_wrapped(out, check->text);
    }
}
