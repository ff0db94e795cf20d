/* Locks stacks, and enters a stack by its handle so that it is not destroyed. */
#include "allocation/stack/stack.h"

strata_stack_t *_Atomic strata_stacks[STRATA_STACKS];

void strata_stack_lock(strata_stack_t *stack) {
    strata_stack_lock_own(stack);
    strata_stack_t *home = atomic_load(&stack->home);
    if (home != stack) strata_stack_lock_own(home);
}

void strata_stack_unlock(strata_stack_t *stack) {
    strata_stack_t *home = atomic_load(&stack->home);
    if (home != stack) strata_unlock(&home->lock);
    strata_unlock(&stack->lock);
}

strata_stack_handle_t strata_stack_handle_of(strata_stack_t *stack) { return atomic_load(&stack->handle); }

strata_stack_t *strata_stack_enter(strata_stack_handle_t handle) {
    strata_stack_t *stack = strata_stack_of(strata_stack_handle_number(handle));
    if (!stack || handle == 0) return NULL;
    strata_stack_lock(stack);
    bool named = stack->handle == handle;
    stack->holds.calls += named;
    strata_stack_unlock(stack);
    return named ? stack : NULL;
}

void strata_stack_exit(strata_stack_t *stack) {
    strata_stack_lock_own(stack);
    stack->holds.calls--;
    strata_unlock(&stack->lock);
}
