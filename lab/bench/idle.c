/* Measures the memory that a server holds between its bursts under `idle:`, and the cost of the next burst
 * (docs/virtual-memory.md).
 *
 *     lab/bench/idle [--strategy PRESET] [--json]     PRESET: strata. Runs the same program without and with
 *                                                     `idle: {after: 1s, keep: 10%}`, by the clock of a simulated H100
 *
 * The program has 3 GiB of weights. Every three seconds there is a burst of 3,000 requests of 256 KiB to 24
 * MiB, of which 96 are live at once. The third burst has only 300 requests. */
#include <stdlib.h>
#include <string.h>

#include "facade/figures/figures.h"
#include "facade/open/idle.h"
#include "facade/open/life.h"
#include "lab/bench/simulated.h"

#define MIB    (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)

enum { WEIGHTS = 24, LIVE = 96, REQUESTS = 3000, FEW = 300, BURSTS = 6, STEPS = 4 };

typedef struct burst {
    double idle_mib[STEPS]; /* reserved at each quarter of the pause before the burst */
    double warm_mib; /* reserved at its end */
    double p99_us, max_us; /* of the times of its requests */
    uint64_t calling; /* its requests that called the device */
} burst_t;

typedef struct server {
    strata_sim_t *world;
    strata_device_t *device;
    strata_strategy_t *strategy;
    strata_t facade;
    uint32_t seed;
} server_t;

static void open_server(server_t *server, const char *preset, bool idle) {
    char text[128];
    snprintf(text, sizeof text, "extends: %s\n%s", preset, idle ? "idle: {after: 1s, keep: 10%}\n" : "");
    strata_config_request_t request = {.text = text, .devices = "sim"};
    strata_sim_options_t options = {.profile = strata_sim_profile("h100")};
    must(strata_config_load(&request, &server->strategy));
    must(strata_sim_new(&options, &server->world));
    must(strata_sim_open(server->world, 0, &server->device));
    must(strata_facade_open_on(server->strategy, &server->device, 1, 0, &server->facade));
}

static void close_server(server_t *server) {
    must(strata_close(server->facade, STRATA_CLOSE_FORCE, NULL, NULL));
    strata_strategy_delete(server->strategy);
    strata_device_close(server->device);
    strata_sim_drop(server->world);
}

static void advance_time(server_t *server, uint64_t ns) {
    uint64_t until = strata_sim_now(server->world) + ns, due;
    while ((due = strata_facade_check_idle(server->facade)) <= until) strata_sim_advance_to(server->world, due);
    strata_sim_advance_to(server->world, until);
}

static double reserved_mib(const server_t *server) {
    return (double)strata_facade_reserved(server->facade, strata_gpu(0)) / (double)MIB;
}

static uint64_t draw(server_t *server, uint64_t below) {
    server->seed = server->seed * 1664525u + 1013904223u;
    return (server->seed >> 8) % below;
}

static uint64_t draw_size(server_t *server) {
    static const uint64_t kib[] = {256, 1024, 4096, 16384, 24576};
    return (kib[draw(server, 5)] + draw(server, 1024)) << 10;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void run_burst(server_t *server, size_t requests, burst_t *burst) {
    static uint64_t took[REQUESTS];
    strata_block_t live[LIVE] = {{0}};
    for (size_t i = 0; i < requests; i++) {
        strata_block_t *block = &live[i % LIVE];
        if (block->ref) must(strata_free(server->facade, block->ref));
        uint64_t size = draw_size(server), before = strata_sim_now(server->world);
        must(strata_allocate(server->facade, strata_gpu(0), NULL, size, block));
        took[i] = strata_sim_now(server->world) - before;
        burst->calling += took[i] > 0;
        strata_sim_advance_to(server->world, strata_sim_now(server->world) + 100000);
    }
    burst->warm_mib = reserved_mib(server);
    for (size_t i = 0; i < LIVE; i++) must(strata_free(server->facade, live[i].ref));
    qsort(took, requests, sizeof *took, by_value);
    burst->p99_us = (double)took[requests * 99 / 100 - 1] / 1000;
    burst->max_us = (double)took[requests - 1] / 1000;
}

static void run_server(const char *preset, bool idle, burst_t bursts[BURSTS]) {
    server_t server = {.seed = 5};
    open_server(&server, preset, idle);
    for (int i = 0; i < WEIGHTS; i++) {
        strata_block_t weight;
        must(strata_allocate(server.facade, strata_gpu(0), NULL, 128 * MIB, &weight));
    }
    for (int b = 0; b < BURSTS; b++) {
        for (int step = 0; step < STEPS; step++) {
            advance_time(&server, 3 * SECOND / STEPS);
            bursts[b].idle_mib[step] = reserved_mib(&server);
        }
        run_burst(&server, b == 2 ? FEW : REQUESTS, &bursts[b]);
    }
    close_server(&server);
}

static void print_table(const char *label, const burst_t *bursts) {
    printf("%s\n  burst    reserved MiB 0.75 s, 1.5 s, 2.25 s, 3 s after the last   at its end   99th %%      max   calling\n",
           label);
    for (int b = 0; b < BURSTS; b++) {
        const burst_t *at = &bursts[b];
        printf("  %5d   %16.0f %8.0f %8.0f %8.0f %25.0f %6.1f us %6.1f us %8llu\n", b + 1, at->idle_mib[0], at->idle_mib[1],
               at->idle_mib[2], at->idle_mib[3], at->warm_mib, at->p99_us, at->max_us, (unsigned long long)at->calling);
    }
}

static void print_json(const char *label, const burst_t *bursts, bool last) {
    printf("\"%s\": [", label);
    for (int b = 0; b < BURSTS; b++)
        printf("%s{\"idle_mib\": %.0f, \"warm_mib\": %.0f, \"p99_us\": %.1f, \"most_us\": %.1f, \"calling\": %llu}", b ? ", " : "",
               bursts[b].idle_mib[STEPS - 1], bursts[b].warm_mib, bursts[b].p99_us, bursts[b].max_us,
               (unsigned long long)bursts[b].calling);
    printf("]%s", last ? "" : ", ");
}

int main(int argc, char **argv) {
    const char *preset = "strata";
    bool json = false, wrong = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) json = true;
        else if (i + 1 < argc && strcmp(argv[i], "--strategy") == 0) preset = argv[++i];
        else wrong = true;
    }
    if (wrong) {
        fprintf(stderr, "usage: idle [--strategy PRESET] [--json]\n");
        return 2;
    }
    static burst_t without[BURSTS], with[BURSTS];
    run_server(preset, false, without);
    run_server(preset, true, with);
    if (json) printf("{");
    for (int i = 0; i < 2; i++) {
        if (json) print_json(i ? "idle" : "without", i ? with : without, i == 1);
        else print_table(i ? "idle: {after: 1s, keep: 10%}" : "without", i ? with : without);
    }
    if (json) printf("}\n");
    return 0;
}
