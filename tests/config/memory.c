/* Each host allocation failed in turn: a clear status, nothing kept, nothing lost (the sanitizers watch). */
#include <stdio.h>
#include <stdlib.h>

#include "platform/host/host_memory.h"
#include "tests/config/refused.h"

static void expect_all_failures(const strata_config_request_t *request) {
    strata_strategy_t *strategy = NULL;
    strata_status_t status = STRATA_E_HOST_MEMORY;
    uint64_t k = 0;
    while (status == STRATA_E_HOST_MEMORY && k < 1000) {
        strata_host_fail_at(++k, 0);
        status = strata_config_load(request, &strategy);
        strata_host_fail_at(0, 0);
        EXPECT_EQ((status == STRATA_OK), (strategy != NULL));
    }
    EXPECT_EQ(status, STRATA_OK);
    EXPECT_GT(k, 4);
    strata_strategy_delete(strategy);
    strata_host_fail_at(1, 1);
    strategy = NULL;
    EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_config_load(request, &strategy));
    strata_host_fail_at(0, 0);
    EXPECT_EQ(strategy, NULL);
}

TEST(memory, every_allocation_of_a_load_fails) {
    const char *set[] = {"auto_growth.chunk_size=1MiB"};
    char base[1024];
    expect_all_failures(&(strata_config_request_t){.preset = "strata-malloc", .set = set, .set_count = 1, .devices = "sim"});
    snprintf(base, sizeof base, "%s", file_of("memory_base.yaml", "peer: none\nstack: [auto_growth: {name: a}, system]\n"));
    expect_all_failures(&(strata_config_request_t){
        .text =
            "devices: {gpu:1: {stack: [system]}}\n"
            "stack: [binning: {routes: [{up_to: 1MiB, stack: [fallback: {stacks: [[system], [system]]}]}, {stack: [system]}]}]\n"});
    expect_all_failures(&(strata_config_request_t){.text = "pools: {weights: {stack: [system], places: {pinned: [system]}}, "
                                                           "scratch: }\nstreams: {\"copy*\": [buffered, system]}\n"
                                                           "graph: {stack: [buffered, system]}\n"});
    expect_all_failures(&(strata_config_request_t){.file = file_of("memory.yaml", "extends: memory_base.yaml\ndescription: x\n")});
}

TEST(memory, every_allocation_of_a_check_fails) {
    const char *path = file_of("memory_check.yaml", "stak: 1\nstack: [auto_growth: {chunk: 1}, system]\n");
    size_t count = 0;
    for (uint64_t k = 1; k < 1000 && count != 2; k++) {
        FILE *out = tmpfile();
        strata_host_fail_at(k, 0);
        count = strata_config_check(path, false, out);
        strata_host_fail_at(0, 0);
        EXPECT_GE(count, 1);
        fclose(out);
    }
    EXPECT_EQ(count, 2);
}
