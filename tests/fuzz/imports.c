/* A string of another allocator: what is refused says where, what is accepted is a strategy that its own file says again. */
#include <string.h>

#include "config/config.h"
#include "config/import/import.h"
#include "platform/host/host_memory.h"
#include "tests/fuzz/fuzz.h"

enum { FILE_BYTES = 1 << 18 };

/* The peer, with a version or none, in the first line; the string after it. */
static strata_status_t load(const char *peer, const char *text, strata_import_t **import, strata_strategy_t **strategy) {
    strata_status_t status = strata_import_new(&(strata_import_request_t){.peer = peer, .text = text}, import);
    if (status == STRATA_OK) status = strata_config_load(&(strata_config_request_t){.import = *import}, strategy);
    return status;
}

static void expect_said_again(strata_import_t *import, const strata_strategy_t *strategy) {
    static char yaml[FILE_BYTES], difference[FILE_BYTES];
    strata_strategy_t *again = NULL;
    FILE *out = fmemopen(yaml, sizeof yaml, "w"), *told = fmemopen(difference, sizeof difference, "w");
    if (!out || !told) abort();
    FUZZ_EXPECT_OK(strata_import_write(import, strategy, out));
    fclose(out);
    FUZZ_EXPECT_OK(strata_config_load(&(strata_config_request_t){.text = yaml}, &again));
    FUZZ_EXPECT_OK(strata_config_diff(strategy, again, "a", "b", told));
    fclose(told);
    FUZZ_EXPECT(strstr(difference, "no difference") != NULL);
    strata_strategy_delete(again);
    strata_import_print(import, "", fuzz_nowhere());
}

/* The same once more, with a host that has no memory left somewhere. */
static void load_in_need(const char *peer, const char *text, uint64_t k) {
    strata_import_t *import = NULL;
    strata_strategy_t *strategy = NULL;
    strata_host_fail_at(k, 1);
    strata_status_t status = load(peer, text, &import, &strategy);
    strata_host_fail_at(0, 0);
    FUZZ_EXPECT(status == STRATA_OK || status == STRATA_E_HOST_MEMORY || status == STRATA_E_STRATEGY);
    strata_strategy_delete(strategy);
    strata_import_delete(import);
}

void fuzz_imports(const uint8_t *bytes, size_t count) {
    char *peer = fuzz_text(bytes, count), *end = strchr(peer, '\n'), nothing[1] = "";
    const char *text = end ? end + 1 : nothing;
    strata_import_t *import = NULL;
    strata_strategy_t *strategy = NULL;
    if (end) *end = '\0';
    uint64_t before = strata_host_allocations();
    strata_status_t status = load(peer, text, &import, &strategy);
    uint64_t allocations = strata_host_allocations() - before;
    if (status == STRATA_OK) expect_said_again(import, strategy);
    else FUZZ_EXPECT(status == STRATA_E_STRATEGY && strata_last_error()->text[0] != '\0');
    strata_strategy_delete(strategy);
    strata_import_delete(import);
    if (count && allocations) load_in_need(peer, text, 1 + bytes[count / 2] % allocations);
    free(peer);
}
