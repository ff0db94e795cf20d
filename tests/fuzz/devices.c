/* What names devices: the library's `devices`, the command's --device. Only names of devices are taken, and the same
 * by all. */
#include "strategy/devices.h"
#include "config/config.h"
#include "lab/replay/timeline/target.h"
#include "tests/fuzz/fuzz.h"
#include "tests/harness/owned.h"

void fuzz_devices(const uint8_t *bytes, size_t count) {
    char *text CLOSED_BY(text_cleanup) = fuzz_text(bytes, count);
    strata_strategy_t *strategy = NULL;
    strata_status_t status = strata_config_load(&(strata_config_request_t){.preset = "system", .devices = text}, &strategy);
    bool named = status == STRATA_OK;
    if (named) strata_strategy_delete(strategy);
    else FUZZ_EXPECT(status == STRATA_E_STRATEGY);

    strata_target_t target = {.ordinal = 77, .capacity = 88};
    status = strata_target_parse(text, &target);
    FUZZ_EXPECT(target.capacity == 88);
    FUZZ_EXPECT((status == STRATA_OK) == named);
    if (named) FUZZ_EXPECT(target.ordinal < 16);
    else FUZZ_EXPECT(status == STRATA_E_INVALID && target.ordinal == 77);

    strata_device_choice_t choice;
    FUZZ_EXPECT((strata_device_choice_parse(text, &choice) == STRATA_OK) == named);
    if (named)
        FUZZ_EXPECT(choice.count >= 1 && choice.count <= 16 && choice.ordinal < 16 &&
                    (choice.profile == NULL || choice.ordinal < 0));
}
