/* A compiler has the lifetime of each buffer of a program, and plans the addresses. No device is opened. */
#include <stdio.h>
#include <strata/plan.h>

int main(void) {
    /* Forward and backward pass: activations live until their gradients are made. The weights' gradients leave the program. */
    static const char *const names[] = {"act0", "act1", "act2", "scratch", "grad2", "grad1", "dw2", "dw1"};
    static const strata_plan_buffer_t buffers[] = {
        {.lower = 0, .upper = 7, .size = 6 << 20, .alignment = 256},
        {.lower = 1, .upper = 6, .size = 4 << 20, .alignment = 256},
        {.lower = 2, .upper = 4, .size = 4 << 20, .alignment = 256},
        {.lower = 2, .upper = 3, .size = 9 << 20, .alignment = 256},
        {.lower = 3, .upper = 5, .size = 4 << 20, .alignment = 256},
        {.lower = 4, .upper = 7, .size = 4 << 20, .alignment = 256},
        {.lower = 4, .upper = 8, .size = 1 << 20, .alignment = 256, .flags = STRATA_PLAN_OUTPUT},
        {.lower = 6, .upper = 8, .size = 1 << 20, .alignment = 256, .flags = STRATA_PLAN_OUTPUT},
    };
    enum { COUNT = sizeof buffers / sizeof *buffers };
    uint64_t offsets[COUNT];
    strata_plan_options_t options = {.struct_size = sizeof options, .planner = "exact", .time_ns = 1000000000};
    strata_plan_result_t result = {.struct_size = sizeof result};
    if (strata_plan_make(&options, buffers, COUNT, offsets, &result) != STRATA_OK) return puts(strata_last_error()->text), 1;
    if (strata_plan_check(buffers, COUNT, offsets, NULL) != STRATA_OK) return puts(strata_last_error()->text), 1;
    for (int i = 0; i < COUNT; i++)
        printf("%-8s %8llu bytes at %8llu, from %llu to %llu\n", names[i], (unsigned long long)buffers[i].size,
               (unsigned long long)offsets[i], (unsigned long long)buffers[i].lower, (unsigned long long)buffers[i].upper);
    printf("peak %llu bytes, %s\n", (unsigned long long)result.peak,
           result.proved ? "the minimum of all plans" : "perhaps not the minimum");
    return result.peak == result.lower_bound ? 0 : 1;
}
