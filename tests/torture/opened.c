#include "tests/torture/opened.h"

#include "tests/harness/test.h"

void opened_begin(opened_t *o, const char *text, uint32_t devices, uint64_t capacity) {
    *o = (opened_t){.list = {0}};
    ASSERT_OK(torture_add_text(&o->list, "by hand", text));
    torture_world_open(&o->world, o->list.all[0].strategy, &(torture_setting_t){.devices = devices, .capacity = capacity});
}

const torture_verdict_t *opened_verdict(opened_t *o) {
    torture_world_end(&o->world);
    torture_strategies_delete(&o->list);
    return &o->world.verdict;
}

void opened_end(opened_t *o) {
    const torture_verdict_t *verdict = opened_verdict(o);
    if (verdict->fault) FAIL_TEST("%s: %s", torture_fault_text(verdict->fault), verdict->text);
}
