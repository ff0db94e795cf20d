/* The suite over 200 random legal stacks; a failure shows the seed and the strategy. */
#include <stdio.h>
#include <stdlib.h>

#include "lab/conform/checks.h"
#include "lab/conform/stacks.h"
#include "tests/harness/test.h"

enum { CASES = 20, SEEDS = 10 };

/* The rows of peers, and of the others every third, another third than the stack before it; with sanitizers every twelfth of all. */
static bool takes(const drawn_stack_t *stack, int check) {
    int turn = check + (int)stack->seed;
    return stack_is_for(stack, check) && (STRIDE > 1 ? turn % 12 == 0 : turn % 3 == 0 || stack_is_for_all(check));
}

static void check_stack(const drawn_stack_t *stack) {
    for (int i = 0; checks[i].name; i++) {
        if (!takes(stack, i)) continue;
        checks[i].run(&stack->subject);
        if (!strata_test_has_failed()) continue;
        FAIL_TEST("%s does not hold for the stack of seed %llu:\n%s", checks[i].name, (unsigned long long)stack->seed, stack->text);
        return;
    }
}

static void check_seeds(const void *first) {
    static drawn_stack_t stack;
    for (uint64_t seed = *(const uint64_t *)first, end = seed + SEEDS; seed < end && !strata_test_has_failed(); seed++) {
        EXPECT_TRUE(stack_draw(&stack, seed, NULL));
        if (!strata_test_has_failed()) check_stack(&stack);
    }
}

__attribute__((constructor)) static void register_cases(void) {
    static uint64_t firsts[CASES];
    char name[32];
    for (uint32_t i = 0; i < CASES; i++) {
        firsts[i] = 1 + SEEDS * i;
        snprintf(name, sizeof name, "seeds_%03u_to_%03u", 1 + SEEDS * i, SEEDS * (i + 1));
        strata_test_register_of("random_stacks", name, __FILE__, __LINE__, check_seeds, &firsts[i]);
    }
}

/* The 200 are worth their name: each layer stands in some, few of several layers are alike, and many an order that is drawn is
 * none. */
TEST(random_stacks, are_of_every_layer_and_unlike_one_another) {
    static drawn_stack_t stacks[CASES * SEEDS];
    uint32_t alike = 0, refused = 0, strict = 0, shown[128] = {0};
    for (uint32_t i = 0; i < CASES * SEEDS; i++) {
        EXPECT_TRUE(stack_draw(&stacks[i], i + 1, NULL));
        for (uint32_t k = 0; k < i && stacks[i].layers[1]; k++) alike += strcmp(stacks[i].text, stacks[k].text) == 0;
        for (size_t n = 0; strata_layer_at(n) && n < 128; n++)
            for (uint32_t l = 0; stacks[i].layers[l]; l++) shown[n] += stacks[i].layers[l] == strata_layer_at(n);
        refused += stacks[i].refused;
        strict += !stacks[i].subject.may_refuse;
    }
    for (size_t n = 0; strata_layer_at(n) && n < 128; n++) {
        if (shown[n] == 0) FAIL_TEST("no stack has a layer %s", strata_layer_at(n)->name);
    }
    EXPECT_LT(alike, 30);
    EXPECT_GT(refused, CASES * SEEDS / 2);
    EXPECT_GT(strict, CASES * SEEDS / 2);
    printf("%u orders refused, %u stacks never told to refuse, %u alike\n", refused, strict, alike);
}

/* What a stack wants, every machine has: a number would name a node of the host. */
TEST(random_stacks, name_no_node_of_the_host) {
    static drawn_stack_t stack;
    uint32_t nodes = 0;
    for (uint64_t seed = 1; seed <= 5000; seed++) {
        EXPECT_TRUE(stack_draw(&stack, seed, NULL));
        for (const char *at = stack.text; (at = strstr(at, "node: ")) != NULL; nodes++) {
            at += strlen("node: ");
            if (*at >= '0' && *at <= '9') FAIL_TEST("the stack of seed %llu: %s", (unsigned long long)seed, stack.text);
        }
    }
    EXPECT_GT(nodes, 10);
}

TEST(random_stacks, a_seed_says_all) {
    static drawn_stack_t a, b;
    for (uint64_t seed = 1; seed < 10; seed++) {
        EXPECT_TRUE(stack_draw(&a, seed, NULL));
        EXPECT_TRUE(stack_draw(&b, seed, NULL));
        EXPECT_STREQ(a.text, b.text);
    }
}

/* Any layer can be asked for; it stands there with its defaults. */
TEST(random_stacks, hold_the_layer_that_is_asked_for) {
    static drawn_stack_t stack;
    for (size_t i = 0; strata_layer_at(i); i++)
        for (uint64_t seed = 1; seed < 4; seed++) {
            bool found = false;
            EXPECT_TRUE(stack_draw(&stack, seed, strata_layer_at(i)));
            for (uint32_t l = 0; stack.layers[l]; l++) found |= stack.layers[l] == strata_layer_at(i);
            EXPECT_TRUE(found);
        }
}
